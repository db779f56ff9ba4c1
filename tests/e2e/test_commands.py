"""Help, version, exit codes of the command line itself, and completion in real shells."""

import json
import os
import shutil
import subprocess
import unittest

from support import BIN, DONE, E2eTest, INVALID, IO, NOT_FOUND, Project

COMMANDS = ["init", "doctor", "run", "report", "apply", "optimize", "finish", "verify", "simulate",
            "bench", "completion"]


class CommandLine(E2eTest):
    def setUp(self):
        self.project = Project(self, git=False, contract=False)

    def test_help(self):
        text = self.project.run("--help").out
        for command in COMMANDS:
            self.assertIn(command, text)
            self.assertIn("Usage", self.project.run(command, "--help").out)
        self.assertIn("Exit codes", text)
        self.assertEqual(self.project.run().out, text)
        for flag in ("--llm", "--screens", "--max-wallclock", "--on-interrupt", "--target-speedup", "--out", "--branch",
                     "--no-doctor", "--dry-run", "--entry", "--config", "--command", "--force", "--json"):
            self.assertIn(flag, self.project.run("optimize", "--help").out)
        self.assertIn("--resume", self.project.run("run", "--help").out)

    def test_version(self):
        self.assertRegex(self.project.run("--version").out, r"^infrarsi \d+\.\d+")

    def test_mistakes(self):
        for arguments in (["nonsense"], ["run", "--nonsense"], ["run", "--screens", "many"], ["run", "--screens", "-1"],
                          ["optimize", ".", "--max-wallclock", "soon"], ["run", "--on-interrupt", "shrug"],
                          ["run", "--target-speedup", "0.5"], ["completion", "tcsh"], ["run", "--tolerance", "nan"],
                          ["run", "--target-speedup", "nan"], ["run", "--target-mfu", "nan"], ["run", "--seed", "-1"],
                          ["run", "--seed", "99999999999999999999"], ["apply", "--write", "--branch", "x"],
                          ["init", ".", "--resume", "x"], ["bench"], ["bench", "search"],
                          ["bench", "search", "w.yaml", "--seeds", "3:3"],
                          ["bench", "search", "w.yaml", "--seeds", "-1:3"],
                          ["bench", "search", "w.yaml", "--threads", "0"]):
            with self.subTest(arguments):
                result = self.project.fails(*arguments, expect=INVALID, says=["infrarsi: ", "--help"])
                self.assertEqual(result.out, "")

    def test_an_option_that_may_be_repeated_takes_one_value(self):
        done = self.project.run("init", "--requirements", "no bf16", "--requirements", "one seed", "train.sh")
        self.assertIn("drafted", done.out)
        text = self.project.read("infrarsi.yaml")
        self.assertIn("no bf16", text)
        self.assertNotIn("- \"train.sh\"", text)
        self.project.fails("run", "--patch", "x.diff", "nowhere", expect=NOT_FOUND, says=["nowhere"])

    def test_a_reader_that_leaves_is_no_fault(self):
        done = subprocess.run("set -o pipefail; %s --help | true" % BIN, shell=True, executable="/bin/bash",
                              stderr=subprocess.PIPE, universal_newlines=True)
        self.assertEqual((done.returncode, done.stderr), (DONE, ""))

    def test_a_full_disk_under_the_output_is_a_fault(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([BIN, "init", "--json", "train.sh"], cwd=self.project.root, env=self.project.env,
                                  stdout=full, stderr=subprocess.PIPE, universal_newlines=True)
        self.assertEqual(done.returncode, IO)
        self.assertIn("could not be written", done.stderr)

    def test_closed_streams_do_not_end_up_in_the_journal(self):
        project = Project(self)
        started = subprocess.run(["bash", "-c", 'exec "$@" <&- >&- 2>&-', "bash", BIN, "doctor", "--reference-runs", "1"],
                                 cwd=project.root, env=project.env)
        self.assertEqual(started.returncode, DONE)
        self.assertIn("The run's verdicts hold", project.run("verify").out)

    def test_a_working_folder_that_is_gone(self):
        project = Project(self)
        gone = subprocess.run(["bash", "-c", 'mkdir gone; cd gone; rmdir ../gone; exec "$@"', "bash", BIN, "doctor"],
                              cwd=project.root, env=project.env, stderr=subprocess.PIPE, universal_newlines=True)
        self.assertEqual(gone.returncode, NOT_FOUND, gone.stderr)
        self.assertIn("is gone", gone.stderr)

    def test_errors_as_json(self):
        result = self.project.fails("run", "--json", expect=3, says=["infrarsi init"])
        self.assertEqual(result.json()["error"]["kind"], "not_found")


class Bench(E2eTest):
    WORKLOAD = os.path.join(os.path.dirname(__file__), "..", "..", "seeds", "workloads", "w1-dense-9b-8xh100.yaml")

    def setUp(self):
        self.project = Project(self, git=False, contract=False)

    def bench(self, *arguments):
        return self.project.run("bench", "search", os.path.abspath(self.WORKLOAD), "--strategies", "random,greedy",
                                "--seeds", "5:8", "--budget", "4", *arguments).out

    def test_a_line_a_campaign_and_a_summary(self):
        lines = [json.loads(line) for line in self.bench("--json").splitlines()]
        self.assertEqual([(line["strategy"], line["seed"]) for line in lines[:-1]],
                         [("random", 5), ("random", 6), ("random", 7), ("greedy", 5), ("greedy", 6), ("greedy", 7)])
        for line in lines[:-1]:
            self.assertEqual(set(line),
                             {"workload", "strategy", "seed", "true_speedup", "valid", "trials", "cost_units",
                              "cost_to_50", "cost_to_75", "cost_to_90", "controller_s"})
            self.assertTrue(line["valid"])
            self.assertTrue(4 <= line["cost_units"] < 7, line)
        self.assertEqual([cell["strategy"] for cell in lines[-1]["summary"]], ["random", "greedy"])
        self.assertIsNone(lines[-1]["summary"][0]["difference"])
        self.assertIsNotNone(lines[-1]["summary"][1]["difference"])

    def test_a_table(self):
        self.assertIn("w1-dense-9b-8xh100, 3 seeds", self.bench())
        self.assertIn("--strategies", self.project.run("bench", "search", "--help").out)

    def test_mistakes(self):
        self.project.fails("bench", "search", "w.yaml", expect=3, says=["w.yaml"])
        self.project.fails("bench", "search", os.path.abspath(self.WORKLOAD), "--strategies", "gredy", expect=3,
                           says=["gredy", 'did you mean "greedy"?'])


class Completion(E2eTest):
    def setUp(self):
        self.project = Project(self, git=False, contract=False)
        bin_dir = os.path.join(self.project.home, "bin")
        os.makedirs(bin_dir)
        os.symlink(BIN, os.path.join(bin_dir, "infrarsi"))
        self.env = dict(self.project.env, PATH=bin_dir + ":" + os.environ["PATH"])

    def script(self, shell):
        path = os.path.join(self.project.home, "completion." + shell)
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.project.run("completion", shell).out)
        return path

    def bash(self, *words):
        line = "source %s; COMP_WORDS=(infrarsi %s); COMP_CWORD=%d; _infrarsi; printf '%%s\\n' \"${COMPREPLY[@]}\"" % (
            self.script("bash"), " ".join("'%s'" % word for word in words), len(words))
        done = subprocess.run(["bash", "--norc", "-c", line], cwd=self.project.root, env=self.env, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash(self):
        self.assertEqual(self.bash("opt"), ["optimize"])
        self.assertEqual(set(self.bash("re")), {"report"})
        self.assertLessEqual(set(COMMANDS), set(self.bash("")))
        self.assertIn("train.sh", self.bash("tra"))
        self.assertIn("--resume", self.bash("run", "--re"))
        self.assertNotIn("--resume", self.bash("apply", "--"))
        self.assertEqual(self.bash("optimize", "tr"), ["train.sh"])
        self.assertEqual(self.bash("bench", ""), ["search"])
        self.assertIn("--seeds", self.bash("bench", "search", "--se"))

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh(self):
        subprocess.run(["zsh", "-n", self.script("zsh")], check=True)

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        subprocess.run(["fish", "-n", self.script("fish")], check=True)

    def test_scripts_name_every_command(self):
        for shell in ("zsh", "fish"):
            with open(self.script(shell), encoding="utf-8") as file:
                text = file.read()
            for command in COMMANDS:
                self.assertIn(command, text)


if __name__ == "__main__":
    unittest.main()
