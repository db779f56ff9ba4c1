"""The hook inside a tiny training job: what it reports, and that the job runs as without it."""

import os
import subprocess
import sys
import unittest

from support import HOOK, JOBS, AgentCase, HookCase, hook_spec, job_env

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
MASK = (1 << 64) - 1


def losses(lines):
    return [line for line in lines if line.startswith("step")]


def counts(trial):
    """Graph breaks and unique graphs as the job printed them."""
    words = trial.lines()[-1].split()
    return words[1], words[5]


class Updates(HookCase):
    def test_the_numbers_of_an_update(self):
        trial = self.gpt_once()
        self.assertEqual(trial.result["updates_seen"], 4)
        self.assertEqual([u["n"] for u in trial.hook("update")], [1, 2, 3, 4])
        for update in trial.hook("update"):
            self.assertEqual((update["tokens"], update["samples"], update["seq_len"], update["micro_steps"]), (128, 8, 16, 1))
            self.assertIsNone(update["mem_alloc_gib"])
            self.assertEqual(set(update["phases"]), {"forward", "backward", "optimizer", "data", "other"})
            self.assertTrue(all(update["phases"][p] > 0 for p in ("forward", "backward", "optimizer")))
            self.assertTrue(0 < update["grad_norm"] <= 1.0001)
        self.assertEqual(trial.series("lr"), [0.01 * (1.0 / n) for n in (1, 2, 3, 4)])
        self.assertEqual(trial.series("opt_steps"), [1, 2, 3, 4])
        self.assertEqual([float(line.split()[-1]) for line in losses(trial.lines())], trial.series("loss"))
        self.assertEqual(len(set(trial.series("data"))), 4)
        self.assertEqual(trial.hook("hello")[0]["world"], 1)
        self.assertEqual(trial.hook("model")[0]["params"], 27328)
        self.assertEqual(trial.hook("exit")[0]["updates"], 4)
        self.assertEqual([r["k"] for r in trial.rows("hook.jsonl")][:4], ["hello", "model", "update", "knobs"])

    def test_data_and_loss_do_not_depend_on_the_split(self):
        whole, split = self.gpt_once(), self.gpt("--accum", "4")
        for field in ("data", "tokens", "samples", "seq_len"):
            self.assertEqual(whole.series(field), split.series(field))
        self.assertEqual(split.series("micro_steps"), [4] * 4)
        for a, b in zip(whole.series("loss"), split.series("loss")):
            self.assertAlmostEqual(a, b, places=4)

    def test_the_gradient_norm_is_that_before_clipping(self):
        free, clipped = self.gpt("--clip", "1e9"), self.gpt("--clip", "0.001")
        self.assertAlmostEqual(clipped.series("grad_norm")[0], free.series("grad_norm")[0], places=5)
        self.assertTrue(all(g > 0.01 for g in clipped.series("grad_norm")))

    def test_shorter_sequences_are_seen(self):
        trial = self.gpt("--seq", "8", "--steps", "2")
        self.assertEqual((trial.series("tokens"), trial.series("seq_len")), ([64, 64], [8, 8]))

    def test_recomputation_is_not_counted_twice(self):
        plain = self.gpt_once()
        for kind in ("block", "reentrant", "root"):
            self.assertEqual(self.gpt("--checkpoint", kind).series("data"), plain.series("data"))

    def test_evaluation_is_not_counted(self):
        self.assertEqual(self.gpt("--evaluate").series("data"), self.gpt_once().series("data"))

    def test_a_container_that_is_never_called(self):
        self.assertEqual(self.gpt("--container").series("data"), self.gpt_once().series("data"))

    def test_two_optimizers_make_one_update(self):
        trial = self.gpt("--optimizers", "2", hook=hook_spec(state_at=[4]))
        self.assertEqual(trial.series("opt_steps"), [1, 2, 3, 4])
        names = trial.hook("state")[0]["optimizer"]
        self.assertIn("embed.weight.momentum_buffer", names)
        self.assertIn("head.bias.exp_avg", names)
        self.assertTrue(all(g <= 1.0001 for g in trial.series("grad_norm")))

    def test_a_grad_scaler_does_not_change_the_reported_loss(self):
        trial = self.gpt("--scaler")
        self.assertAlmostEqual(trial.series("loss")[0], self.gpt_once().series("loss")[0], places=5)

    def test_two_ranks(self):
        whole, ranks = self.gpt_once(), self.gpt("--ddp", launcher=TORCHRUN)
        self.assertEqual(ranks.result["updates_seen"], 4)
        self.assertEqual(sorted(h["rank"] for h in ranks.hook("hello")), [0, 1])
        self.assertEqual({h["world"] for h in ranks.hook("hello")}, {2})
        for n in range(4):
            total = sum(int(ranks.series("data", r)[n], 16) for r in (0, 1)) & MASK
            self.assertEqual("%016x" % total, whole.series("data")[n])
            self.assertEqual(sum(ranks.series("tokens", r)[n] for r in (0, 1)), 128)
        self.assertEqual({m["digest"] for m in ranks.hook("model")}, {whole.hook("model")[0]["digest"]})


class Compiled(HookCase):
    def check(self, *args, observed=True):
        plain = self.run_job([sys.executable, os.path.join(JOBS, "gpt.py"), *args])
        trial = self.gpt(*args)
        self.assertEqual(losses(trial.lines()), losses(plain.lines()), plain.text("stderr.log"))
        self.assertEqual(counts(trial), counts(plain))
        eager = self.gpt_once()
        if observed:
            self.assertEqual(trial.series("data"), eager.series("data"))
            self.assertEqual(trial.series("tokens"), [128] * 4)
        else:
            self.assertEqual((trial.series("data"), trial.series("tokens")), ([None] * 4, [None] * 4))
        self.assertEqual(trial.hook("model")[0]["digest"], eager.hook("model")[0]["digest"])
        self.assertEqual(trial.series("micro_steps"), [1] * 4)
        return trial

    def test_module(self):
        trial = self.check("--compile", "module")
        self.assertGreater(trial.hook("knobs")[0]["compiled_frames"], 0)

    def test_fullgraph(self):
        self.check("--compile", "fullgraph")

    def test_in_place(self):
        self.check("--compile", "inplace")

    def test_after_the_optimizer_was_made(self):
        self.check("--compile", "late")

    def test_a_compiled_function_that_calls_the_model(self):
        self.check("--compile", "function", observed=False)

    def test_the_same_with_fullgraph(self):
        self.check("--compile", "fullfunction", observed=False)

    def test_a_compiled_step_with_backward(self):
        self.check("--compile", "step", observed=False)


class State(HookCase):
    def state(self, *args, **hook):
        return self.gpt_once(*args, hook=hook_spec(state_at=[1, 4], **hook)).hook("state")

    def test_equal_runs_agree_and_every_part_is_there(self):
        first, second = self.state(), self.gpt(hook=hook_spec(state_at=[1, 4])).hook("state")
        self.assertEqual([s["n"] for s in first], [1, 4])
        for part in ("params", "buffers", "optimizer"):
            self.assertEqual(first[1][part], second[1][part])
        self.assertEqual(first[1]["buffers"], {"seen": first[1]["buffers"]["seen"]})
        self.assertIn("embed.weight.exp_avg_sq", first[1]["optimizer"])
        self.assertEqual(len(first[1]["params"]), 19)

    def test_a_deferred_update_differs(self):
        first, late = self.state(), self.state("--defer")
        self.assertNotEqual(first[0]["params"], late[0]["params"])

    def test_a_changed_rate_differs_and_another_nonce_too(self):
        first = self.state()[1]["params"]
        self.assertNotEqual(first, self.state("--lr", "0.0101")[1]["params"])
        self.assertNotEqual(first, self.state(nonce="f" * 32)[1]["params"])

    def test_wrappers_do_not_change_the_names(self):
        eager, compiled = self.state()[1], self.state("--compile", "module")[1]
        self.assertEqual(set(eager["params"]), set(compiled["params"]))
        self.assertEqual(set(eager["optimizer"]), set(compiled["optimizer"]))
        for name, value in eager["params"].items():
            self.assertAlmostEqual(value, compiled["params"][name], places=3)


class Audit(HookCase):
    def audit(self, *args):
        trial = self.gpt(*args, hook=hook_spec(audit_at=3))
        audits = trial.hook("audit")
        self.assertEqual([a["n"] for a in audits], [3])
        self.assertEqual([u["n"] for u in trial.hook("update")], [1, 2, 3, 4])
        return trial, audits[0]

    def test_float32_throughout(self):
        _, audit = self.audit()
        self.assertEqual({d for ops in audit["matmul"].values() for d in ops}, {"float32"})
        self.assertEqual(audit["matmul"]["mm"]["float32"], 14)
        self.assertIsNone(audit["autocast"])

    def test_a_cast_is_seen(self):
        _, audit = self.audit("--bf16", "cast")
        self.assertEqual(audit["matmul"]["mm"]["bfloat16"], 6)

    def test_a_cast_in_compiled_code_is_seen_and_nothing_is_compiled_again(self):
        for how in ("module", "function", "step"):
            plain = self.run_job([sys.executable, os.path.join(JOBS, "gpt.py"), "--bf16", "cast", "--compile", how])
            trial, audit = self.audit("--bf16", "cast", "--compile", how)
            self.assertEqual(audit["matmul"]["mm"]["bfloat16"], 6)
            self.assertEqual(counts(trial), counts(plain))

    def test_a_compiled_optimizer_survives_it(self):
        plain = self.run_job([sys.executable, os.path.join(JOBS, "gpt.py"), "--compile", "optimizer"])
        trial, audit = self.audit("--compile", "optimizer")
        self.assertEqual(audit["matmul"]["mm"]["float32"], 14)
        self.assertEqual(len(losses(trial.lines())), len(losses(plain.lines())))

    def test_autocast_is_seen(self):
        _, audit = self.audit("--bf16", "autocast")
        self.assertEqual(audit["autocast"], "bfloat16")
        self.assertEqual({d for ops in audit["matmul"].values() for d in ops}, {"bfloat16"})

    def test_the_first_update_can_be_audited(self):
        trial = self.gpt(hook=hook_spec(audit_at=1))
        self.assertEqual(trial.hook("audit")[0]["matmul"]["mm"]["float32"], 14)


class Knobs(HookCase):
    def test_effective_values(self):
        trial = self.gpt("--lr", "0.5", "--workers", "2")
        knobs = trial.hook("knobs")[0]
        self.assertEqual((knobs["args"]["lr"], knobs["args"]["accum"], knobs["args"]["evaluate"]), (0.5, 1, False))
        self.assertEqual((knobs["globals"]["SEQ"], knobs["globals"]["BATCH"], knobs["globals"]["NAME"]), (16, 8, "tiny"))
        self.assertNotIn("_hidden", knobs["globals"])
        self.assertEqual(knobs["env"], {"OMP_NUM_THREADS": "1", "NOT_SET": None})
        self.assertEqual((knobs["threads"], knobs["workers"]), (1, 2))


class JobFirst(HookCase):
    tiny = ("import torch\nm = torch.nn.Linear(4, 4)\no = torch.optim.SGD(m.parameters(), lr=0.1)\n"
            "for i in range(3):\n    m(torch.ones(2, 4)).sum().backward(); o.step(); o.zero_grad()\nprint('fine')\n")

    def test_without_a_socket_nothing_happens(self):
        code = self.tiny + "import sys\nprint(any(n.startswith('infrarsi_hook') for n in sys.modules))\n"
        process = subprocess.run([sys.executable, "-c", code], env=job_env(PYTHONPATH=HOOK), capture_output=True, text=True)
        self.assertEqual(process.stdout, "fine\nFalse\n")

    def test_with_a_dead_socket_the_job_runs(self):
        process = subprocess.run([sys.executable, "-c", self.tiny], capture_output=True, text=True,
                                 env=job_env(PYTHONPATH=HOOK, INFRARSI_HOOK_SOCKET="/nowhere/hook.sock"))
        self.assertEqual((process.stdout, process.stderr, process.returncode), ("fine\n", "", 0))

    def test_an_error_of_the_hook_is_reported_once_and_the_job_goes_on(self):
        code = "import infrarsi_hook.rank as r\nr.Rank._end_update = lambda self: 1 / 0\n"
        trial = self.run_python("import torch\n" + code + self.tiny, hook=hook_spec())
        self.assertEqual((trial.result["exit_code"], trial.lines()), (0, ["fine"]))
        self.assertEqual(len(trial.hook("hook_error")), 1)
        self.assertIn("ZeroDivisionError", trial.hook("hook_error")[0]["message"])

    def test_an_exception_is_reported_with_its_sizes(self):
        trial = self.run_python(self.tiny + "torch.ones(1 << 30)\n", hook=hook_spec(), memory_cap_gib=2.0)
        self.assertEqual(trial.result["exit_code"], 1)
        told = trial.hook("exception")[0]
        self.assertEqual((told["type"], told["tried_gib"]), ("RuntimeError", 4.0))
        oom = trial.result["oom"]
        self.assertEqual((oom["kind"], oom["tried_gib"]), ("host", 4.0))
        self.assertTrue(0 < oom["in_use_gib"] < 2.0)
        self.assertAlmostEqual(oom["need_gib"], oom["in_use_gib"] + 4.0)
        self.assertIn("Traceback", trial.text("stderr.log"))

    def test_an_exception_before_the_first_optimizer_too(self):
        trial = self.run_python("import torch\ntorch.ones(1 << 30)\n", hook=hook_spec(), memory_cap_gib=2.0)
        self.assertEqual(trial.hook("exception")[0]["tried_gib"], 4.0)
        self.assertEqual(trial.result["updates_seen"], 0)

    def test_a_model_can_be_pickled_and_copied(self):
        trial = self.run_python("import copy, io\n" + self.tiny + "torch.save(m, io.BytesIO()); n = copy.deepcopy(m); n(torch.ones(2, 4))\n"
                                "torch.save(o, io.BytesIO()); copy.deepcopy(o); print('copied')\n", hook=hook_spec())
        self.assertEqual(trial.lines(), ["fine", "copied"])

    def test_the_sandbox_with_workers(self):
        trial = self.gpt("--workers", "2", sandbox={"kind": "bwrap", "writable": [self.tree], "readonly": [JOBS], "network": "none"})
        self.assertEqual(trial.result["sandbox"]["why"], "")
        self.assertEqual(trial.series("tokens"), [128] * 4)


class Start(AgentCase):
    def test_a_shadowed_sitecustomize_runs(self):
        with open(os.path.join(self.tree, "sitecustomize.py"), "w") as file:
            file.write("print('theirs')\n")
        process = subprocess.run([sys.executable, "-c", "pass"], env=job_env(PYTHONPATH=HOOK + ":" + self.tree), capture_output=True, text=True)
        self.assertEqual((process.stdout, process.stderr), ("theirs\n", ""))

    def test_a_process_without_torch_pays_little(self):
        code = "import sys\nprint(sorted(m for m in sys.modules if m == 'torch' or m.startswith('infrarsi_hook')))\n"
        process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                 env=job_env(PYTHONPATH=HOOK, INFRARSI_HOOK_SOCKET="/nowhere"))
        self.assertNotIn("'torch'", process.stdout)
        self.assertEqual(process.stderr, "")

    def test_explicit_use(self):
        with open(os.path.join(self.tree, "job.py"), "w") as file:
            file.write("import sys\nprint(__name__, sys.argv[1:], sys.path[0])\n")
        process = subprocess.run([sys.executable, "-m", "infrarsi_hook", "job.py", "a"], env=job_env(PYTHONPATH=HOOK), cwd=self.tree,
                                 capture_output=True, text=True)
        self.assertEqual(process.stdout, "__main__ ['a'] %s\n" % self.tree)


if __name__ == "__main__":
    unittest.main()
