"""The stages on a job that can be made faster, and on one that cannot."""

import json
import os
import shutil
import subprocess
import unittest

from support import CONFLICT, CORRUPT, DONE, E2eTest, INVALID, NOT_FOUND, Project


class Stages(E2eTest):
    def test_each_stage_by_itself(self):
        project = Project(self, contract=False)
        drafted = project.run("init", "./train.sh", "--json").json()
        self.assertEqual(drafted["file"], project.path("infrarsi.yaml"))
        self.assertTrue(drafted["written"])
        self.assertGreaterEqual(drafted["knobs"], 3)
        project.commit()
        before = project.files()

        doctor = project.run("doctor", "--json").json()
        self.assertEqual(len(doctor["trials"]), 3)
        self.assertGreater(doctor["doctor"]["reference_s"], 0.0199)
        self.assertIsNone(doctor["result"])

        state = project.run("run", "--screens", "3", "--json").json()
        self.assertEqual(state["run_id"], doctor["run_id"], "doctor's runs are not paid for twice")
        self.assertTrue(state["result"]["promoted"], state["result"])
        self.assertGreater(state["result"]["speedup"], 1.1)
        self.assertEqual(project.files(), before, "a run leaves the user's files alone")
        self.check_ledger(project, state)
        with open(os.path.join(state["run_dir"], "result.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["speedup"], state["result"]["speedup"])

        self.assertIn("Delivered: ", project.run("report").out)
        report = project.run("report", "--json").json()
        self.assertEqual([t["id"] for t in report["trials"]], [t["id"] for t in state["trials"]])
        self.assertTrue(project.run("verify", "--json").json()["sound"])

        shown = project.run("apply", "--json").json()
        self.assertFalse(shown["written"])
        self.assertEqual(project.files(), before, "apply without --write only shows")
        paths = {change["path"] for change in shown["files"]}
        self.assertLessEqual({"train.sh", "infrarsi.yaml", "infrarsi.lock"}, paths)
        written = project.run("apply", "--write", "--json").json()
        self.assertTrue(written["written"])
        changed = {path for path, text in project.files().items() if before.get(path) != text}
        self.assertEqual(changed, paths, "the tree differs by what apply said, and nothing else")
        self.assert_diffs_lead_there(project, before, written["files"])

        # The job as it is now is the next campaign's reference.
        again = project.run("run", "--screens", "1", "--reference-runs", "2", "--json").json()
        self.assertNotEqual(again["run_id"], state["run_id"])
        self.assertLess(again["doctor"]["reference_s"], 0.8 * state["doctor"]["reference_s"])
        self.assertTrue(project.run("apply", state["run_dir"], "--json").json()["already_applied"])

    def assert_diffs_lead_there(self, project, before, changes):
        patch = "".join(change["diff"] for change in changes)
        after = project.files()
        for path in set(after) - set(before):
            os.unlink(project.path(path))
        for path, text in before.items():
            with open(project.path(path), "wb") as file:
                file.write(text)
        subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=project.root, env=project.env, check=True)
        self.assertEqual(project.files(), after)

    def test_optimize_is_all_of_them(self):
        project = Project(self, contract=False)
        before = project.files()
        done = project.run("./train.sh", "--screens", "2", "--no-doctor", "--json").json()
        self.assertTrue(done["campaign"]["result"]["promoted"], done["campaign"]["result"])
        self.assertTrue(done["init"]["written"])
        self.assertTrue(done["apply"]["written"])
        changed = {path for path, text in project.files().items() if before.get(path) != text}
        said = {change["path"] for change in done["apply"]["files"]} | {"infrarsi.yaml", "infrarsi.lock"}
        self.assertEqual(changed, said)
        self.assertIn("infrarsi_optimized.sh", changed)
        job = subprocess.run([project.path("infrarsi_optimized.sh")], cwd="/", env=project.env, check=True,
                             stdout=subprocess.PIPE, universal_newlines=True)
        self.assertEqual(job.stdout.count("step "), 8)
        settings = done["campaign"]["result"]["candidate"]["settings"]
        if "micro_batch" in settings:
            self.assertIn("--micro-batch-size %s" % settings["micro_batch"], project.read("train.sh"))

    def test_a_branch_leaves_the_working_tree(self):
        project = Project(self)
        state = project.run("run", "--screens", "2", "--json").json()
        self.assertTrue(state["result"]["promoted"], state["result"])
        before, head = project.files(), project.git("rev-parse", "HEAD")
        done = project.run("apply", "--branch", "faster", "--json").json()
        self.assertEqual(done["branch"], "faster")
        self.assertEqual(project.git("rev-parse", "faster").strip(), done["commit"])
        self.assertEqual(project.git("rev-parse", "faster^"), head)
        self.assertEqual((project.files(), project.git("rev-parse", "HEAD")), (before, head))
        self.assertEqual(project.git("status", "--porcelain"), "")
        names = set(project.git("diff", "--name-only", "trunk", "faster").split())
        self.assertEqual(names, {change["path"] for change in done["files"]})
        project.fails("apply", "--branch", "faster", expect=CONFLICT, says=["faster"])
        project.fails("apply", "--branch", "faster/still", expect=CONFLICT, says=["the branch faster exists"])

    def test_a_branch_that_cannot_be_made_is_refused_before_the_runs(self):
        project = Project(self)
        project.fails("optimize", ".", "--branch", "a b", expect=INVALID, says=['"a b"', "--branch"])
        project.fails("optimize", ".", "--branch", "trunk", expect=CONFLICT, says=["trunk exists already"])
        project.write("infrarsi.yaml", project.read("infrarsi.yaml") + "# mine\n")
        project.fails("optimize", ".", "--branch", "faster", expect=CONFLICT, says=["infrarsi.yaml", "commit them first"])
        self.assertIsNone(project.run_dir())

    def test_only_what_was_measured_is_applied(self):
        project = Project(self)
        state = project.run("run", "--screens", "2", "--json").json()
        self.assertTrue(state["result"]["promoted"], state["result"])
        for name in ("train.sh", os.path.join(state["run_dir"], "snapshot", "train.sh")):
            project.write(name, project.read(name) + "# mine\n")
        before = project.files()
        for command in (("apply", "--write"), ("run", "--screens", "3", "--resume", state["run_dir"])):
            project.fails(*command, expect=CORRUPT, says=["snapshot", "no longer those that the campaign measured"])
        self.assertEqual(project.files(), before)
        shutil.rmtree(os.path.join(state["run_dir"], "snapshot"))
        project.fails("apply", expect=NOT_FOUND, says=["snapshot", "is gone"])

    def test_a_contract_that_was_broken_since_is_named(self):
        project = Project(self)
        state = project.run("run", "--screens", "2", "--json").json()
        self.assertTrue(state["result"]["promoted"], state["result"])
        good = project.read("infrarsi.yaml")
        project.write("infrarsi.yaml", "name: [\n")
        project.fails("apply", expect=INVALID, says=["infrarsi.yaml:2:1: not valid YAML"])
        project.write("infrarsi.yaml", good.replace("  micro_batch:", "  renamed:"))
        project.fails("apply", expect=NOT_FOUND, says=["infrarsi.yaml: there is no micro_batch"])

    def test_nothing_to_vary_is_delivered_as_it_is(self):
        project = Project(self, knobs="{}", constraints="[]")
        before = project.files()
        done = project.run("optimize", ".", "--reference-runs", "2", "--json").json()
        self.assertFalse(done["campaign"]["result"]["promoted"])
        self.assertEqual(done["campaign"]["result"]["speedup"], 1)
        self.assertIsNone(done["apply"])
        self.assertEqual(project.files(), before)
        self.assertIn("Delivered: 1.00x", project.run("finish").out)
        self.assertIn("Nothing to apply", project.run("apply", "--write").out)
        self.assertEqual(project.files(), before)

    def test_a_dry_run_runs_and_writes_nothing(self):
        project = Project(self, contract=False)
        before = project.files()
        plan = project.run("optimize", "./train.sh", "--dry-run", "--json").json()
        self.assertTrue(plan["dry_run"])
        self.assertGreaterEqual(len(plan["knobs"]), 3)
        self.assertEqual(project.files(), before)
        self.assertFalse(os.path.exists(project.path(".infrarsi")))


class WorkingTree(E2eTest):
    def test_uncommitted_changes_are_part_of_the_job(self):
        project = Project(self)
        project.write("train.sh", project.read("train.sh").replace("--step-ms 20", "--step-ms 60"))
        state = project.run("doctor", "--reference-runs", "2", "--json").json()
        self.assertGreater(state["doctor"]["reference_s"], 0.055)

    def test_a_change_since_then_is_a_conflict(self):
        project = Project(self)
        state = project.run("run", "--screens", "2", "--json").json()
        self.assertTrue(state["result"]["promoted"], state["result"])
        project.write("train.sh", project.read("train.sh") + "# mine\n")
        before = project.files()
        project.fails("apply", "--write", expect=CONFLICT, says=["train.sh", "run the campaign again"])
        self.assertEqual(project.files(), before)

    def test_a_project_without_git(self):
        project = Project(self, git=False)
        state = project.run("run", "--screens", "2", "--json").json()
        self.assertTrue(state["result"]["promoted"], state["result"])
        project.fails("apply", "--branch", "faster", expect=6, says=["git"])
        self.assertTrue(project.run("apply", "--write", "--json").json()["written"])

    def test_names_with_spaces_and_other_letters(self):
        project = Project(self, name="mein Übungs-Modell 模型 'q'")
        project.write("schöne daten/größe 1.txt", "data\n")
        project.write("train.sh", project.read("train.sh").replace("exec ", "test -e 'schöne daten/größe 1.txt'\nexec "))
        project.commit()
        done = project.run("optimize", project.path("train.sh"), "--screens", "2", "--no-doctor", "--json",
                           "--out", project.path("läufe hier")).json()
        self.assertTrue(done["campaign"]["result"]["promoted"], done["campaign"]["result"])
        subprocess.run([project.path("infrarsi_optimized.sh")], cwd="/", env=project.env, check=True,
                       stdout=subprocess.DEVNULL)
        self.assertTrue(project.run("verify", done["campaign"]["run_dir"], "--json").json()["sound"])


if __name__ == "__main__":
    unittest.main()
