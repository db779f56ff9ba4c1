"""Bad input and faults: each ends in a sentence that says what happened and what to do, with its own exit code."""

import hashlib
import json
import os
import shutil
import subprocess
import time
import unittest

from support import (BIN, CONFLICT, CORRUPT, E2eTest, FROZEN, INVALID, IO, NOT_FOUND, Project, RESOURCE, UNSUPPORTED,
                     WANTING)


def can_mount():
    """Whether this user may mount: read-only folders and small disks are made that way, as root ignores modes."""
    return os.geteuid() == 0 and shutil.which("mount") and subprocess.run(
        ["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode == 0


class Mounted(Project):
    """A project some folder of which is a mount."""

    def mount(self, *arguments):
        subprocess.run(["mount", *arguments], check=True)
        self.mounts = getattr(self, "mounts", []) + [arguments[-1]]

    def remove(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
        for folder in reversed(getattr(self, "mounts", [])):
            subprocess.run(["umount", "-l", folder], check=False)
        super().remove()


class Job(E2eTest):
    def reference_fails(self, fault, says, **fields):
        project = Project(self, job="--fault " + fault, **fields)
        result = project.fails("run", expect=UNSUPPORTED, says=says)
        self.assertEqual(result.out, "")
        # Asked again, it says the same from its records and runs nothing.
        trials = len(project.events())
        project.fails("run", "--resume", project.run_dir(), expect=UNSUPPORTED, says=says)
        self.assertEqual(len(project.events()), trials + 1)

    def test_no_step_line(self):
        self.reference_fails("silent", ["without a single optimizer update", "print lines such as"])

    def test_a_crash(self):
        self.reference_fails("crash", ["exit code 1", "RuntimeError: CUDA error: device-side assert", "by hand first",
                                       "stderr.log"])

    def test_nan_from_the_first_update(self):
        self.reference_fails("nan", ["the loss is nan at update 1", "until that is mended"])

    def test_fewer_updates_than_asked_for(self):
        self.reference_fails("exit0", ["made 2 updates", "set launch.updates to 2"])

    def test_a_hang(self):
        self.reference_fails("hang", ["2 of 8 updates", "launch.timeout", "hangs"], launch="  timeout: 3s\n")

    def test_a_memory_limit_of_its_own_above_the_cap(self):
        project = Project(self, more="  memory_cap_gib: 1.0\n")
        project.write("train.sh", "set -e\nulimit -d $((2 * 1024 * 1024))\n" + project.read("train.sh"))
        project.fails("run", expect=UNSUPPORTED,
                      says=["memory limit above the cap of 1.000 GiB", "ulimit", "raise invariants.memory_cap_gib"])

    def test_a_program_that_is_not_there(self):
        project = Project(self)
        os.unlink(project.path("job.py"))
        project.fails("run", expect=UNSUPPORTED, says=["exit code 2", "No such file", "job.py"])

    def test_a_candidate_that_fails_is_a_row_of_the_report(self):
        knobs = "\n  fault: {flag: --fault, values: ['', crash, nan, exit0], reference: ''}\n"
        project = Project(self, knobs=knobs, constraints="[]")
        state = project.run("run", "--reference-runs", "2", "--json").json()
        self.assertFalse(state["result"]["promoted"])
        outcomes = {t["candidate"]["settings"]["fault"]: t for t in state["trials"] if t["role"] == "candidate"}
        # On a noisy machine the gate rises, and the search may stop before it has tried all three.
        self.assertTrue(outcomes)
        self.assertLessEqual(set(outcomes), {"crash", "nan", "exit0"})
        for trial in outcomes.values():
            self.assertIn(trial["outcome"], ("failed", "rejected"))
            self.assertGreater(trial["cost_s"], 0)
        says = {"crash": "CUDA error", "nan": "nan", "exit0": "completes"}
        for fault, trial in outcomes.items():
            self.assertIn(says[fault], json.dumps(trial))
        self.check_ledger(project, state)


class Targets(E2eTest):
    def test_missing_ones(self):
        project = Project(self, contract=False)
        for command in ("init", "optimize", "doctor", "run"):
            project.fails(command, "./gone.sh", expect=NOT_FOUND, says=["there is no", "gone.sh"])
        project.fails("init", ".", "--entry", "gone.py", expect=NOT_FOUND, says=["gone.py"])
        for command in ("doctor", "run"):
            project.fails(command, expect=NOT_FOUND, says=["infrarsi init"])
        for command in ("report", "apply", "finish", "verify"):
            project.fails(command, expect=NOT_FOUND, says=["infrarsi"])
            project.fails(command, "gone", expect=NOT_FOUND, says=["gone"])
        project.contract()
        # A mistyped target is not quietly the project around it.
        project.fails("run", "./gone.sh", expect=NOT_FOUND, says=["there is no", "gone.sh"])

    def test_a_folder_without_a_job(self):
        project = Project(self, contract=False)
        os.makedirs(project.path("empty"))
        project.fails("init", project.path("empty"), expect=NOT_FOUND, says=["--entry", "--command"])

    def test_a_folder_whose_name_no_contract_can_hold(self):
        for name in ("a\nb", "n" * 220):
            project = Project(self, name=name, contract=False)
            project.run("init", "train.sh")
            self.assertIn("name: project\n", project.read("infrarsi.yaml"))

    def test_a_config_file_that_is_not_there(self):
        project = Project(self, contract=False)
        project.fails("init", "train.sh", "--config", "gone.yaml", expect=NOT_FOUND, says=["gone.yaml", "job.py"])
        self.assertFalse(os.path.exists(project.path("infrarsi.yaml")))

    def test_a_contract_is_not_overwritten(self):
        project = Project(self)
        old = project.read("infrarsi.yaml")
        project.fails("init", ".", expect=CONFLICT, says=["--force", "infrarsi.yaml.bak"])
        project.run("init", ".", "--force")
        self.assertEqual(project.read("infrarsi.yaml.bak"), old)

    def test_mistakes_in_the_contract(self):
        project = Project(self)
        good = project.read("infrarsi.yaml")
        for old, new, says in [
                ("  warmup: 2", "  warmup: 2\n  node: 1", ["infrarsi.yaml:8:3", "node", "nodes"]),
                ("  updates: 8", "  updates: many", ["infrarsi.yaml:6:12", "updates"]),
                ("reference: 1,", "reference: 3,", ["infrarsi.yaml:10", "micro_batch"]),
                ("name: scripted", "name: [", ["infrarsi.yaml:"]),
                ('["micro_batch * grad_accum == 8"]', '["micro_batch * gradaccum == 8"]',
                 ["infrarsi.yaml:14", "gradaccum"]),
        ]:
            with self.subTest(new):
                self.assertIn(old, good)
                project.write("infrarsi.yaml", good.replace(old, new))
                result = project.fails("doctor", "--json", expect=INVALID, says=says)
                self.assertEqual(result.json()["error"]["kind"], "invalid_input")
        self.assertFalse(os.path.exists(project.path(".infrarsi")))

    def test_frozen_files_that_changed(self):
        project = Project(self, frozen='["loss.py"]')
        project.write("loss.py", "x = 1\n")
        project.run("init", ".", "--force")    # keeps what the contract says, and locks
        self.assertIn(hashlib.sha256(b"x = 1\n").hexdigest(), project.read("infrarsi.lock"))
        project.write("loss.py", "x = 2\n")
        project.fails("run", expect=FROZEN, says=["loss.py", "restore", "infrarsi init --force"])


PATCH = """\
--- a/job.py
+++ b/job.py
@@ -%d,1 +%d,1 @@
-%s
+%s
"""


class Patches(E2eTest):
    def test_those_that_cannot_be_used_are_rejected_and_the_campaign_goes_on(self):
        project = Project(self, knobs="{}", constraints="[]", frozen='["loss.py"]',
                          editable='["job.py", "job.py/**"]')
        project.write("loss.py", "x = 1\n")
        project.commit()
        lines = project.read("job.py").splitlines()
        at = next(n for n, line in enumerate(lines) if "time.sleep(step_seconds(args))" in line)
        project.write("../frozen.diff", "--- a/loss.py\n+++ b/loss.py\n@@ -1,1 +1,1 @@\n-x = 1\n+x = 2\n")
        project.write("../stale.diff", PATCH % (1, 1, "no such line", "another"))
        project.write("../syntax.diff", PATCH % (at + 1, at + 1, lines[at], lines[at] + " +"))
        project.write("../clash.diff", "--- /dev/null\n+++ b/job.py/x.py\n@@ -0,0 +1 @@\n+x = 1\n")
        project.write("../faster.diff", PATCH % (at + 1, at + 1, lines[at],
                                                 lines[at].replace("(args)", "(args) / 3")))
        before = project.files()
        flags = [flag for name in ("frozen", "stale", "syntax", "clash", "faster")
                 for flag in ("--patch", "../%s.diff" % name)]
        state = project.run("run", *flags, "--json").json()
        self.assertEqual(project.files(), before)
        trials = {t["candidate"]["patches"][0]["title"]: t for t in state["trials"] if t["role"] == "candidate"}
        self.assertEqual(set(trials), {"frozen", "stale", "syntax", "clash", "faster"})
        for name, words in (("frozen", "loss.py"), ("stale", "job.py"), ("syntax", "job.py"), ("clash", "job.py")):
            self.assertEqual(trials[name]["outcome"], "rejected", trials[name])
            self.assertIn(words, trials[name]["verdict_reason"])
            self.assertEqual(trials[name]["cost_s"], 0)
        self.assertEqual(trials["faster"]["outcome"], "valid", trials["faster"])
        self.assertTrue(state["result"]["promoted"])
        done = project.run("apply", "--write", "--json").json()
        self.assertEqual([change["path"] for change in done["files"]], ["job.py"])
        self.assertIn("(args) / 3", project.read("job.py"))

    def test_a_file_that_is_no_patch(self):
        project = Project(self)
        project.write("../empty.diff", "nothing\n")
        project.fails("run", "--patch", "../empty.diff", expect=INVALID, says=["empty.diff"])
        project.write("../climbs.diff", "\n--- a/../x.py\n+++ b/../x.py\n@@ -1,1 +1,1 @@\n-x\n+y\n")
        project.fails("run", "--patch", "../climbs.diff", expect=INVALID, says=["climbs.diff:2: ", "../x.py"])
        project.fails("run", "--patch", "../gone.diff", expect=NOT_FOUND, says=["gone.diff"])


class Places(E2eTest):
    def test_a_second_runner_is_told_of_the_first(self):
        project = Project(self, job="--fault slow")
        first = project.start("run", "--reference-runs", "1", "--screens", "0")
        project.wait_for_event(first, lambda event: event["type"] == "trial_started", "the reference")
        for more in ([], ["--out", project.path("..", "elsewhere")]):
            project.fails("run", *more, expect=CONFLICT, says=["infrarsi process %d" % first.pid, "wait for it"])
        project.fails("finish", project.run_dir(), expect=CONFLICT, says=["process %d" % first.pid])
        project.run("report", project.run_dir())    # reading is always allowed
        self.assertEqual(os.listdir(project.runs_dir()), [os.path.basename(project.run_dir())])
        project.wait(first, 0)

    @unittest.skipUnless(can_mount(), "needs to mount: root without restrictions")
    def test_a_full_disk(self):
        project = Mounted(self, knobs="{}", constraints="[]", job="--fault slow")
        disk = os.path.join(project.home, "disk")
        os.makedirs(disk)
        project.mount("-t", "tmpfs", "-o", "size=48k,nr_inodes=10000", "tmpfs", disk)
        result = project.run("run", "--out", os.path.join(disk, "runs"), expect=None)
        self.assertEqual(result.code, RESOURCE, str(result))
        self.assertIn("No space left", result.err)
        self.assertIn("free some space", result.err)
        self.assertNotIn("Traceback", result.err)
        # Filled in the middle of a run, and emptied again: the run goes on.
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        shutil.rmtree(os.path.join(disk, "runs"), ignore_errors=True)
        runner = project.start("run", "--out", os.path.join(disk, "runs"), "--reference-runs", "2")
        ballast = os.path.join(disk, "ballast")

        def runs():
            return [os.path.join(disk, "runs", name) for name in os.listdir(os.path.join(disk, "runs"))
                    if os.path.exists(os.path.join(disk, "runs", name, "events.jsonl"))] \
                if os.path.isdir(os.path.join(disk, "runs")) else []
        project.wait_for(lambda: runs() and any(e["type"] == "trial_started" for e in project.events(runs()[0])),
                         "a trial", runner)
        with open(ballast, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"0" * 4096)
            except OSError:
                pass
        result = project.wait(runner)
        self.assertEqual(result.code, RESOURCE, str(result))
        self.assertIn("No space left", result.err)
        self.assertIn("free some space", result.err)
        self.assertIn("infrarsi run --resume", result.err)
        os.unlink(ballast)
        project.run("run", "--resume", runs()[0], "--reference-runs", "2")
        self.assertTrue(project.run("verify", runs()[0], "--json").json()["sound"])

    @unittest.skipUnless(can_mount(), "needs to mount: root without restrictions")
    def test_a_read_only_repository(self):
        project = Mounted(self)
        project.mount("--bind", project.root, project.root)
        subprocess.run(["mount", "-o", "remount,bind,ro", project.root], check=True)
        project.fails("doctor", expect=IO, says=["Read-only file system", "--out"])
        out = os.path.join(project.home, "out here")
        state = project.run("run", "--out", out, "--screens", "2", "--json").json()
        self.assertTrue(state["result"]["promoted"], state["result"])
        self.assertIn("Nothing is written yet", project.run("apply", "--out", out).out)
        project.fails("apply", "--write", "--out", out, expect=IO, says=["Read-only file system"])

    def test_a_repository_of_50000_files(self):
        project = Project(self, git=False)
        for number in range(500):
            folder = project.path("data%d" % (number % 20), "part%d" % number)
            os.makedirs(folder)
            for name in range(100):
                with open(os.path.join(folder, "%d.txt" % name), "w", encoding="ascii") as file:
                    file.write("%d %d\n" % (number, name))
        times = []
        for command in (["init", "./train.sh", "--force"], ["doctor", "--reference-runs", "2"]):
            begin = time.monotonic()
            project.run(*command)
            times.append(time.monotonic() - begin)
        self.assertLess(times[0], 20, times)
        self.assertLess(times[1], 100, times)


class Evidence(E2eTest):
    def setUp(self):
        # A job that prints its own step times, so that every invariant has its evidence. On a busy machine these may
        # differ from the harness's clock; then the campaign is worth nothing, and the next one is tried.
        self.project = Project(self, timed=True)
        self.project.write("train.sh", self.project.read("train.sh").replace("--step-ms 20", "--step-ms 60"))
        for _ in range(5):
            state = self.project.run("run", "--screens", "1", "--json", expect=None)
            if state.code == 0 and state.json()["result"]["promoted"]:
                break
        self.run_dir = self.project.run_dir()

    def receipt(self, trial):
        return os.path.join(self.run_dir, "trials", trial, "receipt.json")

    def test_receipts(self):
        project, path = self.project, self.receipt("t-001")
        verdict = project.run("verify", path, "--json", expect=None)
        self.assertIn(verdict.code, (0, WANTING))
        self.assertEqual(verdict.json()["valid"], verdict.code == 0)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        body = json.loads(text)
        outer = body.get("receipt", body)
        self.assertEqual(outer["role"], "candidate")

        edited = text.replace('"role":"candidate"', '"role":"reference"')
        self.assertNotEqual(edited, text)
        self.refuse(path, edited, ["receipt.json"])
        unsigned = dict(body)
        for name in ("mac", "signature", "hmac"):
            unsigned.pop(name, None)
        self.assertNotEqual(unsigned, body)
        self.refuse(path, json.dumps(unsigned), ["receipt.json"])
        self.refuse(path, text.replace("infrarsi-receipt-v", "infrarsi-receipt-v9"), ["receipt.json"])
        self.refuse(path, "not json", ["receipt.json"])
        self.refuse(path, "", ["receipt.json"])

        # A genuine receipt in the place of another one.
        with open(self.receipt("ref-2"), encoding="utf-8") as file:
            other = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(other)
        result = project.run("verify", "--json", expect=WANTING).json()
        self.assertFalse(result["sound"])
        row = next(row for row in result["trials"] if row["trial"] == "t-001")
        self.assertIn("not the receipt that the journal recorded", row["why"])

        self.matrix(text, path)

    def refuse(self, path, text, says):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        self.project.fails("verify", path, expect=CORRUPT, says=says)
        result = self.project.run("verify", self.run_dir, "--json", expect=WANTING).json()
        self.assertFalse(result["sound"])

    def matrix(self, text, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        result = self.project.run("verify", "--matrix", "--json")
        matrix = result.json()
        self.assertEqual(set(matrix), {"perturbed", "perturbed_rejected", "benign", "benign_accepted", "rows"})
        self.assertGreaterEqual(matrix["perturbed"], 28)
        self.assertGreaterEqual(matrix["benign"], 12)
        self.assertEqual(matrix["perturbed"], matrix["perturbed_rejected"])
        self.assertEqual(matrix["benign"], matrix["benign_accepted"])
        counted = [row for row in matrix["rows"] if row["got"] != "skipped"]
        self.assertEqual(len(counted), matrix["perturbed"] + matrix["benign"])
        for row in matrix["rows"]:
            self.assertLessEqual({"name", "expected", "got", "invariant"}, set(row))


class Secrets(E2eTest):
    def test_the_job_sees_neither_keys_nor_the_harness(self):
        # Not below /tmp, which a sandboxed job has to itself anyhow.
        project = Project(self, knobs="{}", constraints="[]", job="--spy", place=os.path.dirname(BIN))
        project.run("run", "--reference-runs", "1", OPENAI_API_KEY="sk-not-for-the-job", MY_TOKEN="not-for-the-job",
                    AWS_SECRET_ACCESS_KEY="not-for-the-job", CUDA_TEST_SETTING="for-the-job")
        with open(os.path.join(project.run_dir(), "trials", "ref-1", "stdout.log"), encoding="utf-8") as file:
            seen = json.loads(next(line for line in file if line.startswith("{")))
        self.assertEqual(seen["env"].get("CUDA_TEST_SETTING"), "for-the-job")
        self.assertNotIn("not-for-the-job", json.dumps(seen["env"]))
        self.assertNotIn("XDG_CONFIG_HOME", seen["env"])
        with open(os.path.join(project.home, "config", "infrarsi", "key"), encoding="utf-8") as file:
            key = file.read().strip()
        with open(os.path.join(project.run_dir(), "trials", "ref-1", "receipt.json"), encoding="utf-8") as file:
            receipt = file.read()
        self.assertNotIn(key, json.dumps(seen))
        if '"sandbox":"bwrap"' not in receipt:
            self.skipTest("no sandbox on this machine")
        self.assertEqual(seen["read"], [], "paths that the job could read")
        self.assertGreater(seen["tried"], 2)


if __name__ == "__main__":
    unittest.main()
