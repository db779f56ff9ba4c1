"""Sees backward: which scalars it starts from (the losses of the micro-steps), and when it runs."""

import functools
import sys

import torch

from .guard import guarded, not_traced


class Losses:
    def __init__(self, rank):
        self._rank = rank
        self.in_backward = 0
        self.clear()

    def clear(self):
        self.micro_steps = 0
        self.is_scaled = False       # by a GradScaler: gradients are not yet what they mean
        self._scalars = []

    def total(self):
        return sum(float(s) for s in self._scalars) if self._scalars else None

    def watch(self):
        torch.Tensor.backward = self._around(torch.Tensor.backward)
        torch.autograd.backward = self._around(torch.autograd.backward)
        for scaler in _scalers():
            scaler.scale = _remember_unscaled(scaler.scale)

    def _around(self, original):
        begin, end = not_traced(guarded(self._begin)), not_traced(guarded(self._end))

        @functools.wraps(original)
        def backward(tensors, gradient=None, *args, **kwargs):
            if self.in_backward:
                return original(tensors, gradient, *args, **kwargs)
            begin(tensors, gradient if gradient is not None else kwargs.get("grad_tensors"))
            try:
                return original(tensors, gradient, *args, **kwargs)
            finally:
                end()

        return not_traced(backward, recursive=False)

    def _begin(self, tensors, gradients):
        self.in_backward += 1
        self._rank.phases.begin("backward")
        self._rank.trace()
        self.micro_steps += 1
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        if gradients is None or all(g is None for g in gradients):
            for tensor in tensors:
                if tensor.numel() == 1:
                    value = getattr(tensor, "_infrarsi_unscaled", tensor)
                    self.is_scaled = self.is_scaled or value is not tensor
                    self._scalars.append(value.detach().reshape(()).clone())

    def _end(self):
        self.in_backward = max(0, self.in_backward - 1)
        self._rank.phases.end()
        self._rank.inputs.after_backward()
        self._rank.after_backward()


def _scalers():
    found = []
    for place in ("torch.amp.grad_scaler", "torch.cuda.amp.grad_scaler"):
        module = sys.modules.get(place)
        scaler = getattr(module, "GradScaler", None)
        if scaler is not None and "scale" in scaler.__dict__:
            found.append(scaler)
    return found


def _remember_unscaled(original):
    """The loss of a job with a GradScaler is what went into scale(), not what backward starts from."""
    @functools.wraps(original)
    def scale(self, outputs):
        scaled = original(self, outputs)
        if isinstance(outputs, torch.Tensor) and isinstance(scaled, torch.Tensor) and scaled is not outputs:
            scaled._infrarsi_unscaled = outputs.detach()
        return scaled

    return not_traced(scale, recursive=False)
