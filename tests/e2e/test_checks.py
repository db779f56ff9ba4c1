"""The conditional items of a contract: an evaluation, resuming from a checkpoint, the user's own tests."""

import unittest

from support import E2eTest, INVALID, Project, UNSUPPORTED

FAULTS = "\n  fault: {flag: --fault, values: ['', %s], reference: ''}\n"


class Resume(E2eTest):
    rules = "  tolerance: 0.01\n  resume: {save_at: 6, command: \"bash train.sh --resume\"}\n"

    def project(self, fault, job="--save-at 6", more=rules):
        return Project(self, job=job + ' "$@"', knobs=FAULTS % fault, constraints="[]", more=more)

    def test_a_candidate_that_does_not_go_on_from_its_checkpoint_is_rejected(self):
        project = self.project("forgets")
        state = project.run("run", "--reference-runs", "2", "--json").json()
        references = [t for t in state["trials"] if t["role"] == "reference"]
        self.assertEqual({t["outcome"] for t in references}, {"valid"})
        candidate = next(t for t in state["trials"] if t["role"] == "candidate")
        self.assertEqual(candidate["outcome"], "rejected", candidate)
        self.assertEqual(candidate["failed_invariants"], ["resume_continues"])
        self.assertIn("after resuming deviates by", candidate["verdict_reason"])

    def test_a_reference_that_leaves_no_checkpoint_is_told_so_before_the_search(self):
        project = self.project("forgets", job="")
        project.fails("run", "--reference-runs", "2", expect=UNSUPPORTED,
                      says=["resume", "update 6", "exit code 1", "checkpoint.json", "checks/resume/stderr.log"])

    def test_a_launch_command_that_starts_anew_is_no_resumption(self):
        project = self.project("crash", more="  tolerance: 0.01\n  resume: {save_at: 6}\n")
        project.fails("run", "--reference-runs", "2", expect=UNSUPPORTED, says=["after resuming deviates by"])

    def test_a_save_after_the_last_update_is_a_mistake(self):
        project = self.project("crash", more="  resume: {save_at: 8}\n")
        project.fails("run", expect=INVALID, says=["infrarsi.yaml", "save_at"])


class EvaluationAndTests(E2eTest):
    def test_both_are_run_and_judged(self):
        more = ("  eval: {command: \"python3 score.py\", metric: score, tolerance: 0.05}\n"
                "  tests: [\"python3 small_test.py\"]\n")
        project = Project(self, job="--save-at 6", knobs=FAULTS % "poor, untested", constraints="[]", more=more,
                          git=False)
        project.write("score.py", "import time\ntime.sleep(1.5)\n"
                      "print('score=0.5' if 'poor' in open('train.sh').read() else 'score=0.9')\n")
        project.write("small_test.py", "import sys\nif 'untested' in open('train.sh').read(): sys.exit('not this one')\n")
        state = project.run("run", "--reference-runs", "2", "--json").json()
        failed = {t["candidate"]["settings"]["fault"]: t["failed_invariants"]
                  for t in state["trials"] if t["role"] == "candidate"}
        reasons = {t["failed_invariants"][0]: t["verdict_reason"]
                   for t in state["trials"] if t["role"] == "candidate"}
        self.assertIn("not this one", reasons["user_tests"])
        for trial in state["trials"]:    # the evaluation holds the machine too
            self.assertGreater(trial["cost_s"], 1.5)
        self.assertEqual(failed, {"poor": ["eval_matches"], "untested": ["user_tests"]})


if __name__ == "__main__":
    unittest.main()
