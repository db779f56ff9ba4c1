"""Real PyTorch jobs through the real program: the planted cheats, and a trainer that knows nothing of us.

Runs are short (12 updates), so nothing here asserts a speed; what is asserted is what the verdicts say.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from support import BIN, ROOT

TOOLS = os.environ.get("INFRARSI_TOOLS") or os.path.join(ROOT, ".tools")
PYTHON_DIR = os.path.join(TOOLS, "venv", "bin")
LIMIT_S = 900

CHEATS = {
    "half_tokens": "same_workload",
    "skip_last_step": "completes",
    "deferred_update": "optimizer_steps",
    "frozen_loss_edited": "frozen_files",
    "timer_moved": "timing_consistent",
    "bf16_cast": "precision",
}


def content(root, name):
    with open(os.path.join(root, name), "rb") as file:
        return file.read()


def has_torch():
    python = os.path.join(PYTHON_DIR, "python3")
    return os.path.exists(python) and subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0


@unittest.skipUnless(has_torch(), "PyTorch is not in %s: run scripts/setup" % TOOLS)
class RealJob(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="infrarsi-real-")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.env = dict(os.environ, PATH=PYTHON_DIR + os.pathsep + os.environ["PATH"],
                        XDG_CONFIG_HOME=os.path.join(self.home, "config"))

    def copy(self, source):
        root = os.path.join(self.home, "job")
        shutil.copytree(os.path.join(ROOT, source), root, ignore=shutil.ignore_patterns("__pycache__", ".infrarsi", "infrarsi*"))
        return root

    def rewrite(self, path, pattern, replacement):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        changed, count = re.subn(pattern, replacement, text, flags=re.S)
        self.assertEqual(count, 1, "%s in %s" % (pattern, path))
        with open(path, "w", encoding="utf-8") as file:
            file.write(changed)

    def infrarsi(self, root, *arguments, code=0):
        done = subprocess.run([BIN, *arguments], cwd=root, env=self.env, capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, code, done.stdout[-2000:] + done.stderr[-4000:])
        return done


class Cheats(RealJob):
    def test_every_planted_cheat_is_refused_by_name_and_honest_patches_are_not(self):
        root = self.copy("examples/tinygpt")
        self.rewrite(os.path.join(root, "train.py"), r'"--updates", type=int, default=30', '"--updates", type=int, default=12')
        self.infrarsi(root, "init", "train.sh")
        self.rewrite(os.path.join(root, "infrarsi.yaml"), r"\nknobs:\n.*?\nconstraints:\n.*?\n\n", "\nknobs: {}\nconstraints: []\n\n")
        honest = ["benign_comment", "benign_rename"]
        patches = []
        for name in [*CHEATS, *honest]:
            patches += ["--patch", os.path.join(ROOT, "tests", "fixtures", "cheats", name + ".diff")]
        before = {name: content(root, name) for name in ("train.py", "model.py", "loss.py")}
        done = self.infrarsi(root, "run", "--screens", str(2 * (len(CHEATS) + len(honest))), "--reference-runs", "2", "--json", *patches)
        state = json.loads(done.stdout)

        # The first trial of each patch is that patch alone.
        alone = {}
        for trial in state["trials"]:
            titles = [patch["title"] for patch in trial["candidate"]["patches"]]
            if trial["role"] == "candidate" and titles and titles[-1] in CHEATS:
                alone.setdefault(titles[-1], trial)
        for name, invariant in CHEATS.items():
            with self.subTest(cheat=name):
                self.assertIn(name, alone)
                self.assertNotEqual(alone[name]["outcome"], "valid")
                self.assertIn(invariant, alone[name]["failed_invariants"], alone[name]["verdict_reason"])
                self.assertIn(invariant, alone[name]["verdict_reason"])
        promoted = [patch["title"] for patch in state["result"]["candidate"]["patches"]]
        self.assertFalse(set(promoted) & set(CHEATS), promoted)
        for name, bytes_before in before.items():
            self.assertEqual(content(root, name), bytes_before, name)


class UnmodifiedTrainer(RealJob):
    def test_a_trainer_with_globals_and_a_configurator_is_drafted_and_measured_as_it_is(self):
        root = self.copy("tests/fixtures/nano_trainer")
        self.rewrite(os.path.join(root, "config", "tiny.py"), r"\nmax_iters = 30\n", "\nmax_iters = 12\n")
        plan = json.loads(self.infrarsi(root, "optimize", "run.sh", "--dry-run", "--json").stdout)
        knobs = {knob["spelling"]: knob["reference"] for knob in plan["knobs"]}
        self.assertEqual(knobs["--batch_size"], 2)
        self.assertEqual(knobs["--gradient_accumulation_steps"], 32)
        self.assertIs(knobs["--compile"], False)
        self.assertFalse(os.path.exists(os.path.join(root, "infrarsi.yaml")), "a dry run writes nothing")

        # Without the compiler the trials take seconds; `infrarsi optimize run.sh` as it is takes some ten minutes.
        self.infrarsi(root, "init", "run.sh")
        self.rewrite(os.path.join(root, "infrarsi.yaml"), r"\n  compile: [^\n]*\n", "\n")
        state = json.loads(self.infrarsi(root, "run", "--screens", "2", "--reference-runs", "2", "--json").stdout)
        trials = [trial for trial in state["trials"] if trial["role"] == "candidate"]
        self.assertEqual(len(trials), 2)
        self.assertIn("valid", [trial["outcome"] for trial in trials], [trial["verdict_reason"] for trial in trials])
        self.assertFalse([trial for trial in trials if trial["outcome"] == "ineffective"])
        self.assertIsNotNone(state["result"])
        self.assertTrue(os.path.exists(os.path.join(state["run_dir"], "REPORT.md")))


del RealJob  # a base, not a test

if __name__ == "__main__":
    unittest.main()
