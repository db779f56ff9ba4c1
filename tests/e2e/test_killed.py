"""kill -9 of the runner after every kind of event: no finished trial is lost or paid for twice (DESIGN §4)."""

import concurrent.futures
import hashlib
import os
import signal
import unittest

from support import CORRUPT, E2eTest, NOT_FOUND, Project, finished

# (type, role of the trial, how many of these have come)
POINTS = [("campaign_started", None, 1), ("session_started", None, 1),
          ("trial_started", "reference", 1), ("trial_finished", "reference", 1),
          ("doctor_finished", None, 1),
          ("trial_started", "candidate", 1), ("trial_finished", "candidate", 1), ("trial_started", "candidate", 2),
          ("search_finished", None, 1), ("promotion_started", None, 1),
          ("trial_started", "promotion-reference", 1), ("trial_finished", "promotion-candidate", 1),
          ("promotion_decided", None, 1), ("campaign_finished", None, 1)]


def reached(events, point):
    kind, role, count = point
    return sum(event["type"] == kind and (role is None or event["trial"]["role"] == role) for event in events) >= count


def receipts(project, events):
    found = {}
    for trial in finished(events):
        path = os.path.join(project.run_dir(), "trials", trial, "receipt.json")
        if os.path.exists(path):
            with open(path, "rb") as file:
                found[trial] = file.read()
    return found


class Killed(E2eTest):
    def kill_at(self, point, command):
        project = Project(self, more="isolation: {sandbox: none}")    # the same to the runner, and quicker
        runner = project.start("run", "--screens", "2", "--reference-runs", "1")
        project.wait_for_events(runner, lambda events: reached(events, point), str(point))
        runner.send_signal(signal.SIGKILL)
        project.wait(runner)
        before = project.events()
        kept = receipts(project, before)

        state = project.run(*command, project.run_dir(), "--json").json()
        state = state.get("campaign", state)
        after = project.events()
        self.assertEqual(after[:len(before)], before, "what was written stays")
        self.assertIsNotNone(state["result"])
        done = finished(after)
        for trial, records in done.items():
            self.assertEqual(len(records), 1, "%s finished twice" % trial)
        started = [event["trial"]["id"] for event in after if event["type"] == "trial_started"]
        self.assertEqual(sorted(started), sorted(done), "each trial is started once and finished once")
        now = receipts(project, after)
        for trial, text in kept.items():
            self.assertEqual(now[trial], text, "the receipt of %s was made again" % trial)
        for trial, text in now.items():
            self.assertEqual(hashlib.sha256(text).hexdigest(), done[trial][0]["receipt_digest"])
        self.check_ledger(project, state)
        self.assertTrue(project.run("verify", project.run_dir(), "--json").json()["sound"])
        self.assertLessEqual(sum(t["role"] == "candidate" for t in state["trials"]), 2)
        project.no_processes()
        return before

    def check_all(self, command):
        # Each waits for its own processes most of the time.
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            futures = {point: pool.submit(self.kill_at, point, command) for point in POINTS}
            for point, future in futures.items():
                with self.subTest(killed_after=point):
                    future.result()

    def test_resume_after_every_kind_of_event(self):
        self.check_all(["run", "--screens", "2", "--reference-runs", "1", "--resume"])

    def test_finish_after_every_kind_of_event(self):
        self.check_all(["finish"])

    def test_the_orphan_is_taken_over_not_run_again(self):
        project = Project(self, job="--fault slow")
        runner = project.start("run", "--screens", "1", "--reference-runs", "1")
        project.wait_for_event(runner, lambda e: e["type"] == "trial_started", "the first trial")
        trial = os.path.join(project.run_dir(), "trials", "ref-1")
        project.wait_for(lambda: os.path.exists(os.path.join(trial, "agent.pid")), "the agent", runner)
        runner.kill()
        project.wait(runner)
        with open(os.path.join(trial, "agent.pid"), encoding="utf-8") as file:
            agent = file.read()
        self.assertTrue(project.job_processes(), "the job outlives the runner")
        project.run("finish")
        with open(os.path.join(trial, "agent.pid"), encoding="utf-8") as file:
            self.assertEqual(file.read(), agent)


class Journal(E2eTest):
    def setUp(self):
        self.project = Project(self, knobs="{}", constraints="[]")
        self.project.run("run", "--reference-runs", "1")
        self.journal = os.path.join(self.project.run_dir(), "events.jsonl")
        with open(self.journal, encoding="utf-8") as file:
            self.lines = file.read().splitlines(keepends=True)

    def rewrite(self, text):
        with open(self.journal, "w", encoding="utf-8") as file:
            file.write(text)

    def test_a_cut_last_line_never_happened(self):
        for left in (1, len(self.lines[-1]) // 2, len(self.lines[-1]) - 1):
            with self.subTest(left=left):
                self.rewrite("".join(self.lines[:-1]) + self.lines[-1][:left])
                self.assertIsNone(self.project.run("report", "--json").json()["result"])
                self.project.run("run", "--resume", self.project.run_dir())
                events = self.project.events()
                self.assertEqual([e["type"] for e in events[-2:]], ["session_started", "campaign_finished"])
                self.assertEqual(len(events), len(self.lines) + 1)
                self.assertTrue(self.project.run("verify", "--json").json()["sound"])

    def test_a_cut_or_edited_line_inside_is_named(self):
        cut = self.lines[:3] + [self.lines[3][:40] + "\n"] + self.lines[4:]
        edited = self.lines[:3] + [self.lines[3].replace('"device_s":0', '"device_s":9')] + self.lines[4:]
        self.assertNotEqual(edited, self.lines)
        dropped = self.lines[:3] + self.lines[4:]
        for name, lines in (("cut", cut), ("edited", edited), ("dropped", dropped)):
            for command in (["report"], ["finish"], ["verify"], ["apply"], ["run", "--resume", self.project.run_dir()]):
                with self.subTest(name, command=command[0]):
                    self.rewrite("".join(lines))
                    self.project.fails(*command, expect=CORRUPT, says=["events.jsonl:4", "start a new run"])

    def test_a_runner_killed_before_its_first_event(self):
        run_dir = self.project.run_dir()
        self.rewrite("")
        for command in (["report"], ["finish"], ["apply"], ["verify"], ["run", "--resume"]):
            with self.subTest(command=command):
                self.project.fails(*command, run_dir, expect=CORRUPT,
                                   says=["before its first event", "start a new one"])
        self.project.fails("report", expect=NOT_FOUND, says=["infrarsi run"])

    def test_another_users_key(self):
        self.project.fails("report", expect=CORRUPT, says=["another key"],
                           XDG_CONFIG_HOME=os.path.join(self.project.home, "other"))


if __name__ == "__main__":
    unittest.main()
