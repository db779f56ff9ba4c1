"""A project with the scripted job in a folder of its own, and the program run on it as a person would."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BIN = os.path.abspath(os.environ.get("INFRARSI_BIN") or os.path.join(ROOT, "build", "dev", "infrarsi"))
JOB = os.path.join(ROOT, "tests", "fixtures", "scripted_job", "job.py")

# Exit codes, as `infrarsi --help` lists them.
DONE, WANTING, INVALID, NOT_FOUND, CONFLICT, FROZEN, UNSUPPORTED = 0, 1, 2, 3, 4, 5, 6
RESOURCE, IO, CORRUPT, CANCELLED = 8, 9, 10, 130

LIMIT_S = 120    # of one command; a machine ten times slower than usual still makes it

CONTRACT = """\
schema: infrarsi-project-v1
name: scripted
launch:
  command: "bash train.sh"  # how it starts today
  stack: ddp
  updates: {updates}
  warmup: 2
{launch}
knobs: {knobs}
constraints: {constraints}
scope:
  editable: {editable}
  frozen: {frozen}
invariants:
  required: [completes, no_errors, memory_cap, same_workload, same_data, same_model, frozen_files, optimizer_steps,
             loss_within_tolerance]
{more}
"""

KNOBS = """
  micro_batch: {flag: --micro-batch-size, values: [1, 2, 4, 8], reference: 1, mechanism: micro_batch}
  grad_accum: {flag: --grad-accum, values: [1, 2, 4, 8], reference: 8, mechanism: grad_accum}
  compile: {flag: --compile, values: [false, true], reference: false, mechanism: compile}
"""


class Result:
    def __init__(self, arguments, code, out, err):
        self.arguments, self.code, self.out, self.err = arguments, code, out, err

    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return "infrarsi %s → %s\n--- stdout\n%s\n--- stderr\n%s" % (
            " ".join(map(str, self.arguments)), self.code, self.out[-3000:], self.err[-3000:])


class Project:
    """`root` holds job.py, train.sh and, unless `contract` is False, infrarsi.yaml.

    `timed`: the job prints its own step times too; the verifier then compares them with the harness's clock, which only a
    quiet machine keeps within 3 %."""

    def __init__(self, test, name="project", git=True, contract=True, job="", timed=False, place=None, **fields):
        self.test = test
        self.home = tempfile.mkdtemp(prefix="infrarsi-e2e-", dir=place)
        test.addCleanup(self.remove)
        self.root = os.path.join(self.home, name)
        self.started = []
        os.makedirs(self.root)
        self.env = {key: value for key, value in os.environ.items() if not key.startswith(("INFRARSI_", "XDG_"))}
        self.env.update(XDG_CONFIG_HOME=os.path.join(self.home, "config"), GIT_CONFIG_GLOBAL="/dev/null",
                        GIT_CONFIG_SYSTEM="/dev/null", PYTHONDONTWRITEBYTECODE="1")
        shutil.copy(JOB, self.path("job.py"))
        self.write("train.sh", "#!/usr/bin/env bash\n"
                               "# Starts the scripted job.\n"
                               "exec %s job.py --micro-batch-size 1 --grad-accum 8 --updates 8 --step-ms 20%s%s\n"
                   % (sys.executable, "" if timed else " --untimed", job and " " + job))
        if contract:
            self.contract(**fields)
        if git:
            self.git("init", "-q", "-b", "trunk")
            self.write(".gitignore", ".infrarsi/\n")
            self.commit()

    def contract(self, updates=8, launch="", knobs=KNOBS, constraints='["micro_batch * grad_accum == 8"]',
                 editable='["job.py"]', frozen="[]", more=""):
        self.write("infrarsi.yaml", CONTRACT.format(**{key: value for key, value in locals().items()
                                                       if key not in ("self",)}))

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def git(self, *arguments):
        return subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *arguments],
                              cwd=self.root, env=self.env, check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True).stdout

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "job")

    def files(self):
        """path → content of everything that belongs to the user."""
        found = {}
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in (".git", ".infrarsi")]
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, self.root)] = file.read()
        return found

    def start(self, *arguments, cwd=None, **env):
        process = subprocess.Popen([BIN, *map(str, arguments)], cwd=cwd or self.root, env={**self.env, **env},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   universal_newlines=True, encoding="utf-8")
        process.arguments = arguments
        self.started.append(process)
        return process

    def wait(self, process, expect=None, limit_s=LIMIT_S):
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.test.fail("no end within %d s: %s" % (limit_s, Result(process.arguments, None, out, err)))
        result = Result(process.arguments, process.returncode, out, err)
        if expect is not None:
            self.test.assertEqual(process.returncode, expect, str(result))
        return result

    def run(self, *arguments, expect=DONE, cwd=None, limit_s=LIMIT_S, **env):
        return self.wait(self.start(*arguments, cwd=cwd, **env), expect, limit_s)

    def fails(self, *arguments, expect, says, **more):
        """The command ends with `expect` and one sentence that holds each of `says`."""
        result = self.run(*arguments, expect=expect, **more)
        for words in says:
            self.test.assertIn(words, result.err, str(result))
        for trace in ("Traceback", "terminate called", "internal error", "core dumped"):
            self.test.assertNotIn(trace, result.err, str(result))
        return result

    def runs_dir(self):
        return self.path(".infrarsi", "runs")

    def run_dir(self):
        """The newest run with a journal, or None."""
        if not os.path.isdir(self.runs_dir()):
            return None
        runs = sorted(name for name in os.listdir(self.runs_dir())
                      if os.path.exists(os.path.join(self.runs_dir(), name, "events.jsonl")))
        return os.path.join(self.runs_dir(), runs[-1]) if runs else None

    def events(self, run_dir=None):
        run_dir = run_dir or self.run_dir()
        if not run_dir:
            return []
        with open(os.path.join(run_dir, "events.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file.read().split("\n")[:-1]]

    def wait_for(self, condition, what, process=None, limit_s=LIMIT_S):
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            if process is not None and process.poll() is not None:
                value = condition()
                if value:
                    return value
                self.test.fail("it ended before %s: %s" % (what, self.wait(process)))
            time.sleep(0.002)
        return self.test.fail("not within %d s: %s" % (limit_s, what))

    def wait_for_event(self, process, matches, what):
        return self.wait_for_events(process, lambda events: any(map(matches, events)), what)

    def wait_for_events(self, process, matches, what):
        return self.wait_for(lambda: matches(self.events()), what, process)

    def job_processes(self):
        """Processes of this project's trials: they run in its folder, or name it in their command line."""
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            try:
                with open("/proc/%s/cmdline" % name, "rb") as file:
                    command = file.read().replace(b"\0", b" ").decode(errors="replace")
                cwd = os.readlink("/proc/%s/cwd" % name)
            except OSError:
                continue
            if self.home in command or cwd.startswith(self.home):
                found.append((int(name), command))
        return found

    def no_processes(self):
        self.wait_for(lambda: not self.job_processes(), "the end of all processes of the job", limit_s=20)

    def remove(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for pid, _ in self.job_processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        end = time.monotonic() + 10
        while self.job_processes() and time.monotonic() < end:
            time.sleep(0.02)
        shutil.rmtree(self.home, ignore_errors=True)


def finished(events):
    """id → list of finished records, in order."""
    trials = {}
    for event in events:
        if event["type"] == "trial_finished":
            trials.setdefault(event["trial"]["id"], []).append(event["trial"])
    return trials


class E2eTest(unittest.TestCase):
    maxDiff = None

    def check_ledger(self, project, state):
        """What the stages cost is what their trials cost, cancelled and failed ones too."""
        records = [record for list_ in finished(project.events(state["run_dir"])).values() for record in list_]
        total = sum(record["device_s"] for record in records) / 3600
        self.assertAlmostEqual(sum(row["device_hours"] for row in state["ledger"]), total, places=9)
        self.assertEqual(sum(row["runs"] for row in state["ledger"]), len(records))
