"""One rank: gathers what the watchers see of an update, reports it, and does what the agent answers.

An update ends when every training optimizer has stepped. The training optimizers are those that hold a gradient when the
first of them steps for the first time; should one step again before all have, those that did step are the set from then
on. An optimizer that is stepped from within another's step() (a wrapper's inner one) belongs to the outer. Steps skipped
by a GradScaler are none.
"""

import atexit
import os
import platform

import torch

from . import audit, client, inputs, knobs, losses, model, optimizers, state
from .guard import guarded
from .phases import Phases

GIB = float(1 << 30)
_ranks = []


def of_this_process():
    if not _ranks:
        _ranks.append(Rank())
        _ranks[0].start()
    return _ranks[0]


class Rank:
    def __init__(self):
        self.optimizers = []         # weak references, in order of construction
        self.inner = set()           # ids of optimizers that another one steps
        self.training = None         # ids of the training optimizers
        self.stepped = []            # ids, in this update
        self.updates = 0
        self.usual_micro_steps = 1   # of the update before: after so many backwards the gradients are whole
        self.opt_steps = 0
        self.audit = self.closing = None
        self.env_keys = []
        self.phases = None
        self.model = model.Model()
        self.inputs = inputs.Inputs(self)
        self.losses = losses.Losses(self)
        self._clear()

    def _clear(self):
        self.stepped = []
        self.square_norms = []
        self.unclipped_norms = None  # as backward left them; the job may clip before it steps
        self.lr = None
        self.inputs.clear()
        self.losses.clear()

    # -- the beginning

    def start(self):
        atexit.register(guarded(self._on_exit))

    def add_optimizer(self, reference):
        optimizer = reference()
        self.optimizers.append(reference)
        if self.phases is None:
            self._hello(optimizer)
            self.losses.watch()
            self.inputs.watch()
        found = self.model.find([p for o in self._alive() for p in optimizers.parameters(o)])
        if found is not None:
            self.inputs.attach(found)
        optimizers.watch(optimizer, self)

    def _hello(self, optimizer):
        device = next((p.device for p in optimizers.parameters(optimizer)), torch.device("cpu"))
        self.device = device
        self.phases = Phases(device)
        distributed = torch.distributed if torch.distributed.is_available() and torch.distributed.is_initialized() else None
        answer = client.ask({
            "k": "hello", "v": 1, "rank": distributed.get_rank() if distributed else int(os.environ.get("RANK", 0)),
            "world": distributed.get_world_size() if distributed else int(os.environ.get("WORLD_SIZE", 1)),
            "pid": os.getpid(), "python": platform.python_version(), "torch": torch.__version__,
            "device": str(device), "device_name": _device_name(device)})
        self.env_keys = [str(k) for k in answer.get("env_keys", [])]
        if answer.get("audit"):
            self._start_audit()

    def _alive(self):
        return [o for o in (r() for r in self.optimizers) if o is not None]

    # -- backward ended (called by losses.py)

    def after_backward(self):
        if self.losses.micro_steps < self.usual_micro_steps or self.losses.is_scaled:
            return
        training = [o for o in self._alive() if id(o) in self.training] if self.training else \
            [o for o in self._alive() if id(o) not in self.inner]
        self.unclipped_norms = [s for o in training for s in optimizers.square_norms(o)]

    # -- an optimizer steps (called by optimizers.py)

    def before_step(self, optimizer):
        key = id(optimizer)
        self.trace()
        if key in self.stepped:                  # an update that not all of them took part in
            self.training = list(self.stepped)
            self._end_update()
        if self.training is None:
            self.training = [id(o) for o in self._alive() if optimizers.has_gradient(o) and id(o) not in self.inner]
            client.send(self.model.message(self._alive()))
        if key in self.training:
            if self.unclipped_norms is None:
                self.square_norms += optimizers.square_norms(optimizer)
            if key == self.training[0]:
                self.lr = optimizer.param_groups[0].get("lr")
                self.lr = self.lr.clone() if isinstance(self.lr, torch.Tensor) else self.lr
        self.phases.begin("optimizer")

    def after_step(self, optimizer):
        self.phases.end()
        key = id(optimizer)
        if self.training is None or key not in self.training or optimizers.was_skipped(optimizer):
            return
        self.stepped.append(key)
        if key == self.training[0]:
            self.opt_steps += 1
        if all(k in self.stepped for k in self.training):
            self._end_update()

    def is_inner(self, optimizer):
        self.inner.add(id(optimizer))
        if self.training and id(optimizer) in self.training:
            self.training.remove(id(optimizer))

    # -- an update ends

    def _end_update(self):
        is_cuda = self.device.type == "cuda"
        if is_cuda:
            if torch.cuda.is_current_stream_capturing():
                return
            torch.cuda.synchronize()             # of the device: work left on another stream is part of the update
        phases = self.phases.close()
        self.updates += 1
        self.usual_micro_steps = max(1, self.losses.micro_steps)
        seen = self.inputs.result()
        message = {
            "k": "update", "n": self.updates, "tokens": seen["tokens"], "samples": seen["samples"], "seq_len": seen["seq_len"],
            "data": seen["data"], "loss": self.losses.total(), "grad_norm": optimizers.norm_of(self.unclipped_norms or self.square_norms),
            "lr": float(self.lr) if self.lr is not None else None, "opt_steps": self.opt_steps,
            "micro_steps": self.losses.micro_steps,
            "mem_alloc_gib": torch.cuda.max_memory_allocated() / GIB if is_cuda else None,
            "mem_reserved_gib": torch.cuda.max_memory_reserved() / GIB if is_cuda else None, "phases": phases}
        if self.audit is not None:
            client.send(dict(self.audit.finish(), k="audit", n=self.updates))
            self.closing, self.audit = self.audit, None
            self.trace()
        answer = client.ask(message)
        if answer.get("state"):
            answer = client.ask(self._state(str(answer["state"])))
        if self.updates == 1:
            client.send(knobs.message(self.env_keys))
        self._clear()
        if answer.get("audit"):
            self._start_audit()
        self.phases.restart()

    @guarded
    def _start_audit(self):
        self.audit = audit.Audit()
        self.audit.start()

    def trace(self):
        """Called when something of an update begins."""
        if self.closing is not None and self.closing.close():
            self.closing = None
        if self.audit is not None:
            self.audit.trace()

    def _state(self, nonce):
        try:
            return dict(state.project(self.model, self._alive(), nonce), k="state", n=self.updates)
        except Exception as error:               # the agent waits for a state message whatever happens
            from .guard import report
            report(error)
            return {"k": "state", "n": self.updates, "params": {}, "buffers": {}, "optimizer": {}}

    def _on_exit(self):
        client.send({"k": "exit", "updates": self.updates, "opt_steps": self.opt_steps})


def _device_name(device):
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
