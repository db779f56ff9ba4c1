"""Ctrl-C and SIGTERM: the first stops the search and re-verifies the best so far, the second ends at once."""

import os
import signal
import unittest

from support import CANCELLED, DONE, E2eTest, Project, finished


def is_candidate(event, kind):
    return event["type"] == kind and event["trial"]["role"] == "candidate"


def is_promotion(event):
    return event["type"] == "trial_started" and event["trial"]["role"].startswith("promotion")


class Stopped(E2eTest):
    def start(self, *arguments, stage=1, **fields):
        """A campaign whose `stage`-th candidate is running."""
        project = Project(self, **fields)
        runner = project.start(*arguments, "--screens", "6", "--json")
        project.wait_for_events(
            runner, lambda events: sum(is_candidate(e, "trial_started") for e in events) == stage, "the trial")
        trial = os.path.join(project.run_dir(), "trials", "t-%03d" % stage)
        project.wait_for(lambda: os.path.exists(os.path.join(trial, "progress.json")), "its job", runner)
        return project, runner

    def test_the_best_so_far_is_verified_and_adopted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                project, runner = self.start("optimize", ".", stage=2)
                runner.send_signal(number)
                result = project.wait(runner, DONE)
                done = result.json()
                state = done["campaign"]
                self.assertIn("Stopping the running trial", result.err)
                self.assertTrue(state["result"]["interrupted"])
                self.assertTrue(state["result"]["promoted"], state["result"])
                self.assertTrue(done["apply"]["written"])
                self.assertTrue(os.path.exists(project.path("infrarsi_optimized.sh")))
                stopped = [trial for trial in state["trials"] if trial["cancelled"]]
                self.assertEqual([trial["id"] for trial in stopped], ["t-002"])
                self.assertGreater(stopped[0]["cost_s"], 0, "what a stopped trial cost is in the ledger")
                self.check_ledger(project, state)
                project.no_processes()

    def test_nothing_to_verify_yet(self):
        project, runner = self.start("run")
        runner.send_signal(signal.SIGINT)
        state = project.wait(runner, DONE).json()
        self.assertEqual((state["result"]["promoted"], state["result"]["interrupted"]), (False, True))
        self.assertEqual(state["why_search_done"], "stopped by the user")

    def test_a_second_ends_at_once_and_finish_goes_on(self):
        project, runner = self.start("run", stage=2)
        runner.send_signal(signal.SIGINT)
        project.wait_for_event(runner, is_promotion, "the re-runs")
        trial = os.path.join(project.run_dir(), "trials", "promo-1-1-ref-1", "progress.json")
        project.wait_for(lambda: os.path.exists(trial), "a job of them", runner)
        runner.send_signal(signal.SIGINT)
        result = project.wait(runner, CANCELLED)
        self.assertIn("infrarsi finish", result.err)
        self.assertIn("cancelled", result.json()["error"]["kind"])
        project.no_processes()
        before = finished(project.events())
        state = project.run("run", "--resume", project.run_dir(), "--json").json()
        self.assertTrue(state["result"]["promoted"], state["result"])
        records = finished(project.events())
        stopped = [trial for trial, list_ in before.items() if list_[0]["cancelled"]]
        for trial, list_ in records.items():
            self.assertEqual(len(list_), 2 if trial in stopped and trial.startswith("promo") else 1, trial)
        self.check_ledger(project, state)
        self.assertIn("stopped before it ended", project.run("report").out)

    def test_on_interrupt_stop_ends_at_once_and_resume_searches_on(self):
        project, runner = self.start("run", "--on-interrupt", "stop", stage=2)
        runner.send_signal(signal.SIGTERM)
        result = project.wait(runner, CANCELLED)
        self.assertIn("infrarsi run --resume", result.err)
        self.assertNotIn("re-verified next", result.err)
        self.assertFalse(any(is_promotion(event) for event in project.events()))
        project.no_processes()
        state = project.run("run", "--resume", project.run_dir(), "--screens", "3", "--json").json()
        done = [t for t in state["trials"] if t["role"] == "candidate" and not t["cancelled"]]
        self.assertEqual(len(done), 3, "the search goes on")
        self.assertFalse(state["result"]["interrupted"])
        self.check_ledger(project, state)

    def test_in_the_reference(self):
        project = Project(self, job="--fault slow")
        runner = project.start("optimize", ".")
        project.wait_for_event(runner, lambda event: event["type"] == "trial_started", "the reference")
        trial = os.path.join(project.run_dir(), "trials", "ref-1", "progress.json")
        project.wait_for(lambda: os.path.exists(trial), "its job", runner)
        runner.send_signal(signal.SIGINT)
        result = project.wait(runner, CANCELLED)
        self.assertIn("infrarsi run --resume", result.err)
        project.no_processes()
        state = project.run("run", "--screens", "1", "--reference-runs", "1", "--resume", project.run_dir(),
                            "--json").json()
        self.assertIsNotNone(state["result"])
        self.check_ledger(project, state)

    def test_an_orphan_is_stopped_with_its_new_runner(self):
        project, runner = self.start("run", job="--fault slow")
        runner.kill()
        project.wait(runner)
        self.assertTrue(project.job_processes())
        resumed = project.start("run", "--on-interrupt", "stop", "--resume", project.run_dir())
        project.wait_for_events(resumed, lambda events: events[-1]["type"] == "session_started", "the second session")
        resumed.send_signal(signal.SIGINT)
        project.wait(resumed, CANCELLED)
        project.no_processes()
        self.assertEqual({e["type"] for e in project.events()[-2:]}, {"trial_finished", "interrupted"})


if __name__ == "__main__":
    unittest.main()
