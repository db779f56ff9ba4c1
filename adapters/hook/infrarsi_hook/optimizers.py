"""Sees when an optimizer steps, and reads gradients just before.

The bound `step` of the instance is wrapped, not the class and not torch's global hooks: some versions of torch remove
those when dynamo is first used, and the wrapper's own frame sees exceptions and nested steps rightly.
"""

import functools
import types

import torch

from .guard import guarded, not_traced

_depth = [0]


def watch(optimizer, rank):
    bound = optimizer.step
    function = getattr(bound, "__func__", None)
    if function is None:
        return
    before, after, inner = guarded(rank.before_step), guarded(rank.after_step), guarded(rank.is_inner)
    before, after, inner = not_traced(before), not_traced(after), not_traced(inner)

    @functools.wraps(function)
    def step(self, *args, **kwargs):
        _depth[0] += 1
        try:
            if _depth[0] > 1:
                inner(self)
                return function(self, *args, **kwargs)
            before(self)
            result = function(self, *args, **kwargs)
        finally:
            _depth[0] -= 1
        after(self)
        return result

    optimizer.step = types.MethodType(not_traced(step, recursive=False), optimizer)


def parameters(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


def has_gradient(optimizer):
    return any(p.grad is not None for p in parameters(optimizer))


@torch.no_grad()
def square_norms(optimizer):
    """Squared norms, one tensor a device, of the gradients as they are now."""
    by_device = {}
    for p in parameters(optimizer):
        if p.grad is not None:
            g = p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad
            g = g.coalesce().values() if g.is_sparse else g
            by_device.setdefault((g.device, g.dtype), []).append(g.detach())
    scale = getattr(optimizer, "grad_scale", None)      # fused optimizers unscale inside their step
    squares = []
    for gradients in by_device.values():
        norms = torch._foreach_norm(gradients) if hasattr(torch, "_foreach_norm") else [g.norm() for g in gradients]
        square = torch.stack(list(norms)).double().square().sum()
        squares.append(square / scale.double() ** 2 if isinstance(scale, torch.Tensor) else square)
    return squares


def norm_of(squares):
    return sum(float(s) for s in squares) ** 0.5 if squares else None


def was_skipped(optimizer):
    """A fused optimizer under a GradScaler is called even when the gradients overflowed, and then does nothing."""
    found = getattr(optimizer, "found_inf", None)
    return isinstance(found, torch.Tensor) and bool(found.item())
