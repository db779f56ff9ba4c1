"""The simulated job as an optimizer in another process meets it."""

import json
import os
import subprocess
import unittest

from support import BIN, DONE, E2eTest, INVALID, NOT_FOUND, Project, ROOT

WORKLOAD = os.path.join(ROOT, "seeds", "workloads", "w1-dense-9b-8xh100.yaml")


class Simulate(E2eTest):
    def setUp(self):
        self.project = Project(self, git=False, contract=False)

    def test_each_line_is_answered_at_once(self):
        job = subprocess.Popen([BIN, "simulate", WORKLOAD, "--seed", "42", "--truth"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, universal_newlines=True)
        self.addCleanup(job.stdout.close)
        answers = []
        for request in ("{}", '{"settings": {"recompute": "selective"}}', "nonsense", '{"settings": {"recompute": "full"}}',
                        '{"index": 9}', '{"settings": {"recompute": "selective"}}'):
            job.stdin.write(request + "\n")
            job.stdin.flush()
            answers.append(json.loads(job.stdout.readline()))
        job.stdin.close()
        self.assertEqual(job.stdout.read(), "")
        self.assertEqual(job.wait(), DONE)
        self.assertEqual(answers.pop(2)["status"], "invalid")
        self.assertEqual([(answer["index"], answer["repeat"]) for answer in answers],
                         [(0, 0), (1, 0), (2, 1), (9, 2), (10, 1)])
        self.assertEqual(answers[0]["truth"]["rel_time"], 1)
        vectors = os.path.join(ROOT, "tests", "fixtures", "workloads", "w1-dense-9b-8xh100.jsonl")
        with open(vectors, encoding="utf-8") as file:
            wanted = next(line for line in map(json.loads, file) if line["type"] == "sequence")
        self.assertEqual(wanted["seed"], 42)
        for answer in answers:
            del answer["truth"]
        self.assertEqual(answers, wanted["answers"])

    def test_prior_and_oracle(self):
        prior = self.project.run("simulate", WORKLOAD, "--prior", "--seed", "3").json()
        self.assertEqual(prior["seed"], 3)
        self.assertIn({"id": "fused_rope", "mechanism": "kernel.rope_fusion"}, prior["patches"])
        self.assertEqual({"recompute": "selective"}, prior["atoms"][0]["setting"])
        oracle = self.project.run("simulate", WORKLOAD, "--oracle").json()
        self.assertAlmostEqual(oracle["oracle"]["speedup"], 1.84, places=6)
        self.assertAlmostEqual(oracle["knob_oracle"]["speedup"], 1.723199863, places=6)
        self.project.fails("simulate", WORKLOAD, "--prior", "--oracle", expect=INVALID, says=["--oracle"])

    def test_bad_files(self):
        with open(WORKLOAD, encoding="utf-8") as file:
            good = file.read()
        self.project.write("job.yaml", good.replace("reference: full", "reference: half"))
        result = self.project.fails("simulate", "job.yaml", expect=INVALID,
                                    says=["job.yaml:30:16: knobs[0].reference is the text \"half\""])
        self.assertEqual(result.err.count("\n"), 1)
        self.assertEqual(result.out, "")
        self.project.fails("simulate", WORKLOAD, "--set", "noise.sigma=1", expect=INVALID,
                           says=["unknown key sigma in noise"])
        self.project.fails("simulate", "none.yaml", expect=NOT_FOUND, says=["none.yaml"])
        self.project.fails("simulate", expect=INVALID, says=["file"])
        self.project.fails("simulate", WORKLOAD, "--seed", "-1", expect=INVALID, says=["--seed"])


if __name__ == "__main__":
    unittest.main()
