"""The agent with small jobs: how they end, what they say, what they leave behind, what they may touch."""

import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

from support import AGENT, AgentCase, hook_spec, job_env

HAS_BWRAP = shutil.which("bwrap") and subprocess.run(
    ["bwrap", "--ro-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "true"], capture_output=True).returncode == 0


def seconds(name):
    """An argument for sleep that marks the processes of this run alone."""
    return "%s.%d" % (name, os.getpid())


def running(mark):
    """Processes whose command line holds `mark`."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/cmdline" % name, "rb") as file:
                    if mark.encode() in file.read():
                        found.append(int(name))
            except OSError:
                pass
    return [p for p in found if p != os.getpid()]


class Ends(AgentCase):
    def test_exit_codes_pass_through(self):
        for code in (0, 1, 7, 255):
            trial = self.run_job(["bash", "-c", "exit %d" % code])
            self.assertEqual((trial.agent_code, trial.result["exit_code"], trial.result["signal"]), (0, code, None))

    def test_a_signal_is_no_exit_code(self):
        trial = self.run_job(["bash", "-c", "kill -SEGV $$"])
        self.assertEqual((trial.result["exit_code"], trial.result["signal"]), (None, signal.SIGSEGV))
        self.assertIsNone(trial.result["oom"])

    def test_a_missing_command_is_an_error_in_words(self):
        trial = self.run_job(["/no/such/program"])
        self.assertIsNone(trial.result["exit_code"])
        self.assertIn("No such file", trial.result["error"])
        self.assertIn("/no/such/program", trial.result["error"])

    def test_a_missing_cwd_is_an_error_in_words(self):
        trial = self.run_job(["true"], cwd="/no/such/folder")
        self.assertIn("/no/such/folder", trial.result["error"])

    def test_wall_limit(self):
        trial = self.run_job(["bash", "-c", "trap '' TERM INT; echo on; while true; do sleep 0.1; done"], timeout_s=1.0)
        self.assertEqual(trial.result["timed_out"], "wall")
        self.assertEqual(trial.result["signal"], signal.SIGKILL)      # it ignores SIGTERM
        self.assertLess(trial.result["duration_s"], 60)
        self.assertIsNone(trial.result["oom"])

    def test_silence_limit(self):
        trial = self.run_job(["bash", "-c", "for i in 1 2 3 4; do echo $i; sleep 0.5; done; sleep 100"], silence_s=2.0)
        self.assertEqual(trial.result["timed_out"], "silence")
        self.assertEqual(trial.lines(), ["1", "2", "3", "4"])

    def test_cancel_ends_the_group(self):
        out, process = self.start(["bash", "-c", "sleep {0} & sleep {0}".format(seconds("7431"))])
        self.wait_for(lambda: len(running(seconds("7431"))) >= 2)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        trial = self.read(out, process)
        self.assertTrue(trial.result["cancelled"])
        self.assertEqual(running(seconds("7431")), [])

    def test_killing_the_agent_leaves_no_orphan(self):
        _, process = self.start(["sleep", seconds("7432")])
        self.wait_for(lambda: running("sleep\0" + seconds("7432")))
        process.kill()
        process.wait(60)
        self.wait_for(lambda: not running("sleep\0" + seconds("7432")))

    def test_the_agent_has_its_own_session(self):
        out, process = self.start(["sleep", "3"])
        self.wait_for(lambda: os.path.exists(os.path.join(out, "agent.pid")))
        self.assertNotEqual(os.getsid(process.pid), os.getsid(0))
        process.terminate()
        process.wait(60)

    def wait_for(self, condition, limit_s=60):
        end = time.monotonic() + limit_s
        while not condition():
            self.assertLess(time.monotonic(), end, "waited in vain")
            time.sleep(0.05)

    def read(self, out, process):
        from support import Trial
        process.stderr_text = process.communicate()[1]
        return Trial(out, subprocess.CompletedProcess([], process.returncode, "", process.stderr_text))

    def test_a_bad_spec_is_refused(self):
        path = os.path.join(self.dir, "bad.json")
        for text in ("{", '{"schema": "other"}', "[]"):
            with open(path, "w") as file:
                file.write(text)
            process = subprocess.run([sys.executable, AGENT, path], capture_output=True, text=True)
            self.assertEqual(process.returncode, 2)
            self.assertIn("could not read the spec", process.stderr)


class Output(AgentCase):
    def test_bytes_are_kept_and_lines_are_text(self):
        trial = self.run_job(["bash", "-c", r"printf 'a\nb\377\376c\n\nlast'; printf 'err\n' >&2"])
        with open(os.path.join(trial.out, "stdout.log"), "rb") as file:
            self.assertEqual(file.read(), b"a\nb\xff\xfec\n\nlast")
        self.assertEqual(trial.lines(), ["a", "b\ufffd\ufffdc", "", "last"])
        self.assertEqual(trial.lines("e"), ["err"])

    def test_a_progress_bar_is_many_lines(self):
        trial = self.run_job(["bash", "-c", r"printf '\r10%%'; sleep 0.6; printf '\r20%%\r\n'; printf 'x\r\ny\n'"])
        self.assertEqual(trial.lines(), ["10%", "20%", "x", "y"])
        rows = trial.rows("output.jsonl")
        self.assertGreater(rows[1]["t"] - rows[0]["t"], 0.4e9)      # stamped when it came, not when the next one ended it

    def test_huge_lines_are_split(self):
        trial = self.run_job(["bash", "-c", "head -c 300000 /dev/zero | tr '\\0' a; echo"])
        self.assertEqual("".join(trial.lines()), "a" * 300000)
        self.assertLessEqual(max(map(len, trial.lines())), 65536)

    def test_a_split_is_not_inside_a_character(self):
        trial = self.run_python("print('a' + 'é' * 100000)")
        self.assertEqual("".join(trial.lines()), "a" + "é" * 100000)

    def test_much_output_is_complete(self):
        trial = self.run_job(["bash", "-c", "seq 200000; seq 5 >&2"])
        self.assertEqual(trial.lines(), [str(i) for i in range(1, 200001)])
        times = [r["t"] for r in trial.rows("output.jsonl") if r["s"] == "o"]
        self.assertEqual(times, sorted(times))


class Leftovers(AgentCase):
    daemon = "(setsid bash -c 'trap \"\" TERM; sleep %s' >/dev/null 2>&1 &) ; sleep 0.3; echo done" % seconds("7433")

    def test_a_daemon_is_found_and_killed(self):
        trial = self.run_job(["bash", "-c", self.daemon])
        self.assertEqual(trial.result["exit_code"], 0)
        self.assertGreaterEqual(trial.result["leftover_killed"], 1)
        self.assertEqual(running(seconds("7433")), [])

    @unittest.skipUnless(HAS_BWRAP, "bubblewrap does not work here")
    def test_a_daemon_in_the_sandbox_too(self):
        trial = self.run_job(["bash", "-c", self.daemon], sandbox={"kind": "bwrap", "writable": [self.tree]})
        self.assertEqual((trial.result["exit_code"], trial.result["sandbox"]["why"]), (0, ""))
        self.assertGreaterEqual(trial.result["leftover_killed"], 1)
        self.assertEqual(running(seconds("7433")), [])

    def test_a_tidy_job_leaves_none(self):
        self.assertEqual(self.run_job(["bash", "-c", "sleep 0.1 & wait"]).result["leftover_killed"], 0)


class Memory(AgentCase):
    grab = "import sys\nkeep = bytearray(150 << 20)\nprint(len(keep))\nmore = bytearray(int(sys.argv[1]) << 20)\nprint(len(more))\n"

    def test_peak_is_the_data_of_the_largest_process(self):
        trial = self.run_python("import time\nx = bytearray(200 << 20)\ntime.sleep(0.5)\n")
        self.assertGreater(trial.result["memory"]["peak_gib"], 200 / 1024)
        self.assertLess(trial.result["memory"]["peak_gib"], 260 / 1024)
        self.assertGreater(trial.result["memory"]["peak_rss_gib"], 200 / 1024)

    def test_an_allocation_over_the_cap_fails_inside(self):
        trial = self.run_python(self.grab, "2000", memory_cap_gib=0.5)
        self.assertEqual(trial.result["exit_code"], 1)
        self.assertEqual(trial.result["oom"]["kind"], "host")
        self.assertIn("MemoryError", trial.result["oom"]["line"])
        self.assertLessEqual(trial.result["memory"]["peak_gib"], 0.5)

    def test_under_the_cap_all_is_well(self):
        trial = self.run_python(self.grab, "100", memory_cap_gib=0.5)
        self.assertEqual((trial.result["exit_code"], trial.result["oom"]), (0, None))

    def test_a_survived_failure_is_no_oom(self):
        trial = self.run_python("try:\n    bytearray(1 << 40)\nexcept MemoryError:\n    print('MemoryError: caught')\n", memory_cap_gib=0.5)
        self.assertEqual((trial.result["exit_code"], trial.result["oom"]), (0, None))

    def test_sizes_in_messages(self):
        torch_line = "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 4294967296 bytes. Error code 12"
        cuda_line = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which "
                     "1.50 GiB is free. Including non-PyTorch memory, this process has 77.65 GiB memory in use.")
        numpy_line = "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8.00 GiB for an array with shape (1073741824,)"
        for line, kind, tried, in_use in ((torch_line, "host", 4.0, None), (cuda_line, "device", 2.0, 77.65), (numpy_line, "host", 8.0, None)):
            trial = self.run_python("import sys\nprint(%r, file=sys.stderr)\nsys.exit(1)\n" % line)
            self.assertEqual((trial.result["oom"]["kind"], trial.result["oom"]["tried_gib"]), (kind, tried))
            if in_use:
                self.assertEqual(trial.result["oom"]["in_use_gib"], in_use)
                self.assertAlmostEqual(trial.result["oom"]["need_gib"], in_use + tried)

    def test_words_that_only_look_like_it(self):
        trial = self.run_python("print('warning: 0 out of memory errors; text about a MemoryError and NaN')\nraise SystemExit(1)\n")
        self.assertIsNone(trial.result["oom"])


@unittest.skipUnless(HAS_BWRAP, "bubblewrap does not work here")
class Sandbox(AgentCase):
    def setUp(self):
        super().setUp()
        os.makedirs(os.path.join(self.tree, "sub", "deep"))
        self.frozen = os.path.join(self.tree, "sub", "deep", "loss.py")
        self.key = os.path.join(self.dir, "key")
        os.mkdir(self.key)
        for path in (self.frozen, os.path.join(self.key, "secret")):
            with open(path, "w") as file:
                file.write("original")

    def inside(self, script, **changes):
        sandbox = {"kind": "bwrap", "writable": [self.tree], "readonly": [self.frozen], "hidden": [self.key], "network": "inherit"}
        sandbox.update(changes.pop("sandbox", {}))
        trial = self.run_job(["bash", "-c", script], sandbox=sandbox, **changes)
        self.assertEqual((trial.result["sandbox"]["kind"], trial.result["sandbox"]["why"]), ("bwrap", ""))
        with open(self.frozen) as file:
            self.assertEqual(file.read(), "original")
        return trial

    def test_a_frozen_file_cannot_be_changed_even_as_root(self):
        trial = self.inside("echo x > sub/deep/loss.py; rm -f sub/deep/loss.py; mv sub/deep/loss.py y; "
                            "mount -o remount,bind,rw sub/deep/loss.py; umount -l sub/deep/loss.py; echo x > sub/deep/loss.py; cat sub/deep/loss.py")
        self.assertTrue(trial.result["sandbox"]["frozen_readonly"])
        self.assertEqual(trial.lines(), ["original"])

    def test_the_folder_of_a_frozen_file_cannot_be_swapped(self):
        trial = self.inside("mv sub/deep sub/away && mkdir sub/deep; mv sub away && mkdir -p sub/deep; "
                            "echo x > sub/deep/loss.py; cat sub/deep/loss.py; echo; echo new > sub/deep/other && echo writable")
        self.assertEqual(trial.lines(), ["original", "writable"])

    def test_hidden_folders_and_the_trial_are_not_there(self):
        trial = self.inside("cat %s/secret; ls -A %s | wc -l; cat %s/agent.pid; ls %s/*.json" % (self.key, self.key, self.dir + "/out1", self.dir))
        self.assertEqual(trial.lines(), ["0"])

    def test_a_hidden_folder_in_the_tree_is_empty(self):
        os.mkdir(os.path.join(self.tree, ".git"))
        with open(os.path.join(self.tree, ".git", "HEAD"), "w") as file:
            file.write("history")
        trial = self.inside("cat .git/HEAD; ls -A .git | wc -l", sandbox={"hidden": [os.path.join(self.tree, ".git")]})
        self.assertEqual(trial.lines(), ["0"])

    def test_only_the_writable_folder_is_writable(self):
        mine, shared = "/tmp/z-%d" % os.getpid(), "/dev/shm/w-%d" % os.getpid()
        trial = self.inside("touch %s/x /usr/x /etc/x; touch y %s %s && echo ok" % (self.dir, mine, shared))
        self.assertEqual(trial.lines(), ["ok"])
        self.assertTrue(os.path.exists(os.path.join(self.tree, "y")))
        self.assertFalse(os.path.exists(mine) or os.path.exists(shared))
        self.assertFalse(os.path.exists(os.path.join(trial.out, "tmp")))

    def test_the_agent_cannot_be_seen_or_signalled(self):
        trial = self.inside("n=$(ls /proc | grep -c '^[0-9]'); echo $n; [ $n -lt 8 ] && kill -9 -1; echo after")
        # Never `kill -9 -1` unguarded: where the sandbox fell away it would end the machine.
        self.assertLess(int(trial.lines()[0]), 8)
        self.assertEqual(trial.agent_code, 0)

    def test_exit_codes_signals_and_missing_commands(self):
        self.assertEqual(self.inside("exit 7").result["exit_code"], 7)
        trial = self.inside("kill -9 $$")
        self.assertEqual((trial.result["exit_code"], trial.result["signal"]), (None, 9))
        trial = self.run_job(["/no/such/program"], sandbox={"kind": "bwrap", "writable": [self.tree]})
        self.assertIn("No such file", trial.result["error"])
        self.assertEqual(trial.result["sandbox"]["kind"], "bwrap")

    def test_sigterm_reaches_the_job_and_lets_it_end_well(self):
        trial = self.inside("trap 'echo bye; exit 3' TERM; echo on; while true; do sleep 0.1; done", timeout_s=2.0)
        self.assertEqual(trial.result["timed_out"], "wall")
        self.assertEqual(trial.lines(), ["on", "bye"])
        self.assertEqual(trial.result["exit_code"], 3)

    def test_no_network(self):
        trial = self.inside("ls /sys/class/net >/dev/null; cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '", sandbox={"network": "none"})
        self.assertEqual(trial.lines(), ["lo"])

    def test_the_memory_cap_holds_inside_and_is_seen_from_outside(self):
        with open(os.path.join(self.tree, "job.py"), "w") as file:
            file.write("import resource, time\nx = bytearray(150 << 20)\ntime.sleep(0.5)\ntry:\n"
                       "    resource.setrlimit(resource.RLIMIT_DATA, (1 << 40, 1 << 40))\nexcept (ValueError, OSError):\n"
                       "    print('held')\nbytearray(2 << 30)\n")
        trial = self.inside("exec %s job.py" % sys.executable, memory_cap_gib=0.4)
        self.assertEqual(trial.lines(), ["held"])
        self.assertGreater(trial.result["memory"]["peak_gib"], 150 / 1024)
        self.assertIn("MemoryError", trial.result["oom"]["line"])

    def test_falls_back_and_says_why(self):
        trial = self.run_job(["echo", "ran"], env=job_env(), sandbox={"kind": "bwrap", "writable": [self.tree], "readonly": [self.frozen],
                                                                      "hidden": [sys.prefix, sys.base_prefix, "/usr/lib", "/lib"]})
        self.assertEqual(trial.result["sandbox"]["kind"], "none")
        self.assertFalse(trial.result["sandbox"]["frozen_readonly"])
        self.assertIn("bwrap", trial.result["sandbox"]["why"])
        self.assertEqual(trial.lines(), ["ran"])


class FullDisk(AgentCase):
    @unittest.skipUnless(os.geteuid() == 0, "mounting a small disk needs root")
    def test_a_full_disk_ends_the_job_and_is_said(self):
        small = os.path.join(self.dir, "small")
        os.mkdir(small)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", small], capture_output=True).returncode:
            self.skipTest("a tmpfs cannot be mounted here")
        try:
            trial = self.run_job(["bash", "-c", "yes 7434-line | head -c 3000000; sleep " + seconds("7434")], out=os.path.join(small, "out"))
            self.assertIn("No space left", trial.result["error"])
            self.assertEqual(running(seconds("7434")), [])
        finally:
            subprocess.run(["umount", "-l", small], check=True)

    def test_an_impossible_out_is_refused(self):
        trial = self.run_job(["true"], out="/proc/nowhere")
        self.assertEqual(trial.agent_code, 3)
        self.assertIn("could not write", trial.agent_stderr)


RANK = r"""
import json, os, socket, sys, time
line = socket.socket(socket.AF_UNIX); line.connect(os.environ["INFRARSI_HOOK_SOCKET"]); file = line.makefile("rw")
def send(m): file.write((m if isinstance(m, str) else json.dumps(m)) + "\n"); file.flush()
def ask(m): send(m); return json.loads(file.readline())
print(ask({"k": "hello", "v": 1, "rank": 0, "world": 1, "pid": 1}), flush=True)
"""


class HookLine(AgentCase):
    def rank(self, code, **changes):
        return self.run_python(RANK + code, hook=changes.pop("hook", None) or hook_spec(state_at=[2], audit_at=3), **changes)

    def test_answers(self):
        trial = self.rank("for n in (1, 2): print(ask({'k': 'update', 'n': n}))\nprint(ask({'k': 'state', 'n': 2}))\n")
        self.assertEqual(trial.lines(), ["{'env_keys': ['OMP_NUM_THREADS', 'NOT_SET']}", "{}",
                                         "{'state': '0123456789abcdef0123456789abcdef'}", "{'audit': True}"])
        self.assertEqual(trial.result["updates_seen"], 2)
        self.assertTrue(all(r["pid"] != 1 and r["rank"] == 0 and r["t"] > 0 for r in trial.rows("hook.jsonl")))

    def test_odd_numbers_and_texts_become_strict_json(self):
        trial = self.rank("send('{\"k\": \"update\", \"n\": 1, \"loss\": NaN, \"lr\": 1e999, \"x\": \"\\\\ud800\"}')\ntime.sleep(0.3)\n")
        row = trial.hook("update")[0]
        self.assertEqual((row["loss"], row["lr"], row["x"]), ("nan", "inf", "?"))

    def test_rubbish_ends_the_line_not_the_agent(self):
        for rubbish in ("garbage", "[1]", "[" * 100000, '{"k": 3}'):
            trial = self.rank("send(%r)\ntime.sleep(0.3)\nprint('end')\n" % rubbish)
            self.assertEqual(trial.result["exit_code"], 0)
            self.assertEqual(len(trial.hook("hook_error")), 1)

    def test_a_rank_that_reads_no_answers_does_not_hold_the_agent(self):
        flood = ("import threading\n"
                 "def flood(): line.sendall(b'{\"k\": \"hello\", \"rank\": 0, \"world\": 1}\\n' * 100000)\n"
                 "threading.Thread(target=flood, daemon=True).start()\ntime.sleep(100)\n")
        started = time.monotonic()
        trial = self.rank(flood, timeout_s=1.0)
        self.assertEqual((trial.result["timed_out"], trial.result["signal"]), ("wall", 15))
        self.assertLess(time.monotonic() - started, 30)

    def test_stops_after_the_updates(self):
        trial = self.rank("for n in range(1, 5): ask({'k': 'update', 'n': n})\n" "time.sleep(100)\n",
                          hook=hook_spec(), stop_after_updates=True, grace_s=0.5)
        self.assertEqual((trial.result["stopped"], trial.result["updates_seen"], trial.result["signal"]), ("after_updates", 4, 15))

    def test_leaving_by_itself_is_not_stopped(self):
        trial = self.rank("for n in range(1, 5): ask({'k': 'update', 'n': n})\n", hook=hook_spec(), stop_after_updates=True)
        self.assertEqual((trial.result["stopped"], trial.result["exit_code"]), (None, 0))

    def test_hook_messages_break_the_silence(self):
        trial = self.rank("for n in range(1, 7): ask({'k': 'update', 'n': n}); time.sleep(0.5)\n", hook=hook_spec(), silence_s=2.0)
        self.assertEqual((trial.result["timed_out"], trial.result["exit_code"]), (None, 0))

    def test_a_long_out_has_a_short_socket(self):
        trial = self.rank("print(len(os.environ['INFRARSI_HOOK_SOCKET']) < 108)\n", out=os.path.join(self.dir, "long" * 30, "out"))
        self.assertEqual(trial.lines()[1:], ["True"])

    @unittest.skipUnless(HAS_BWRAP, "bubblewrap does not work here")
    def test_from_inside_the_sandbox(self):
        trial = self.rank("print(ask({'k': 'update', 'n': 1}))\n", sandbox={"kind": "bwrap", "writable": [self.tree], "network": "none"})
        self.assertEqual(trial.result["sandbox"]["why"], "")
        self.assertEqual(trial.lines()[1:], ["{}"])
        self.assertGreater(trial.hook("hello")[0]["pid"], 10)      # in the agent's numbering


if __name__ == "__main__":
    unittest.main()
