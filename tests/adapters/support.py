"""Runs jobs under the agent and reads back what it wrote."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
AGENT = os.path.join(ROOT, "adapters", "agent", "infrarsi_agent.py")
HOOK = os.path.join(ROOT, "adapters", "hook")
JOBS = os.path.join(HERE, "jobs")
NONCE = "0123456789abcdef0123456789abcdef"

try:
    import torch    # noqa: F401
    HAS_TORCH = True
except ImportError:
    HAS_TORCH = False


def job_env(**more):
    env = {"PATH": os.path.dirname(sys.executable) + ":/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"),
           "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "LANG": "C.UTF-8"}
    env.update(more)
    return env


class Trial:
    """What the agent left in `out`."""

    def __init__(self, out, process):
        self.out = out
        self.agent_code = process.returncode
        self.agent_stderr = process.stderr
        self.result = json.loads(self.text("agent.json")) if os.path.exists(os.path.join(out, "agent.json")) else None

    def text(self, name):
        with open(os.path.join(self.out, name), "rb") as file:
            return file.read().decode("utf-8", "replace")

    def lines(self, stream="o"):
        return [r["l"] for r in self.rows("output.jsonl") if r["s"] == stream]

    def rows(self, name):
        return [json.loads(line) for line in self.text(name).splitlines()]

    def hook(self, kind, rank=None):
        return [r for r in self.rows("hook.jsonl") if r["k"] == kind and (rank is None or r["rank"] == rank)]

    def series(self, field, rank=None):
        return [u[field] for u in self.hook("update", rank)]


class AgentCase(unittest.TestCase):
    def setUp(self):
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="ia-"))
        self.tree = os.path.join(self.dir, "tree")
        os.mkdir(self.tree)
        self.count = 0

    def tearDown(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def spec(self, argv, **changes):
        self.count += 1
        spec = {"schema": "infrarsi-trial-spec-v1", "argv": argv, "cwd": self.tree, "env": job_env(),
                "out": os.path.join(self.dir, "out%d" % self.count), "updates": 4, "timeout_s": 240.0, "silence_s": 200.0,
                "memory_cap_gib": None, "hook": None,
                "sandbox": {"kind": "none", "writable": [], "readonly": [], "hidden": [], "network": "inherit"},
                "stop_after_updates": False}
        spec.update(changes)
        path = os.path.join(self.dir, "spec%d.json" % self.count)
        with open(path, "w") as file:
            json.dump(spec, file)
        return path, spec["out"]

    def start(self, argv, **changes):
        path, out = self.spec(argv, **changes)
        return out, subprocess.Popen([sys.executable, AGENT, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_job(self, argv, **changes):
        path, out = self.spec(argv, **changes)
        process = subprocess.run([sys.executable, AGENT, path], capture_output=True, text=True, timeout=300)
        return Trial(out, process)

    def run_python(self, code, *args, **changes):
        path = os.path.join(self.tree, "job.py")
        with open(path, "w") as file:
            file.write(code)
        return self.run_job([sys.executable, path, *args], **changes)


def hook_spec(**changes):
    spec = {"dir": HOOK, "nonce": NONCE, "state_at": [], "audit_at": None, "env_keys": ["OMP_NUM_THREADS", "NOT_SET"]}
    spec.update(changes)
    return spec


@unittest.skipUnless(HAS_TORCH, "torch is not installed in this interpreter")
class HookCase(AgentCase):
    plain = {}    # of gpt_once: arguments → run, for the whole process; None → the folder that keeps them

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not HookCase.plain:
            HookCase.plain[None] = tempfile.TemporaryDirectory(prefix="ia-plain-")

    def gpt_once(self, *args, hook=None):
        """Like gpt(), but run once for all tests that only read it: starting PyTorch takes seconds."""
        key = json.dumps([args, hook])
        if key not in HookCase.plain:
            trial = self.gpt(*args, hook=hook)
            kept = os.path.join(HookCase.plain[None].name, str(len(HookCase.plain)))
            shutil.copytree(trial.out, kept, ignore=shutil.ignore_patterns("*.sock"))
            trial.out = kept
            HookCase.plain[key] = trial
        return HookCase.plain[key]

    def gpt(self, *args, launcher=None, **changes):
        """Runs jobs/gpt.py; keyword arguments of the hook's spec go through `hook`."""
        hook = changes.pop("hook", None) or hook_spec()
        argv = (launcher or [sys.executable]) + [os.path.join(JOBS, "gpt.py"), *args]
        trial = self.run_job(argv, hook=hook, **changes)
        self.assertEqual(trial.result["exit_code"], 0, trial.text("stderr.log"))
        self.assertEqual(trial.hook("hook_error"), [])
        return trial
