"""An order-free digest of samples, computed where the tensors are.

A row (one sample) is hashed by a weighted sum of its mixed elements in int64 arithmetic, which wraps modulo 2^64; the
hashes of all tensors of a sample are bound together, finished with splitmix64 and added up. Addition makes the digest of
an update the same however it is split into micro-batches or ranks; the finisher makes a change of a sample visible.
"""

import torch

MASK = (1 << 64) - 1
MOST_AT_ONCE = 1 << 22      # elements
_weights = {}


def _signed(value):
    value &= MASK
    return value - (1 << 64) if value >> 63 else value


GOLDEN = _signed(0x9E3779B97F4A7C15)
MIX_1 = _signed(0xBF58476D1CE4E5B9)
MIX_2 = _signed(0x94D049BB133111EB)
SEED = _signed(0x1F83D9ABFB41BD6B)


def _shift(x, bits):
    """Logical right shift: >> keeps the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def finish(x):
    """The finisher of splitmix64."""
    x = (x ^ _shift(x, 30)) * MIX_1
    x = (x ^ _shift(x, 27)) * MIX_2
    return x ^ _shift(x, 31)


def _weights_for(count, device):
    key = (count, str(device))
    if key not in _weights:
        if len(_weights) > 16:
            _weights.clear()
        index = torch.arange(1, count + 1, dtype=torch.int64, device=device)
        _weights[key] = finish(index * GOLDEN + SEED) | 1
    return _weights[key]


def _as_int64(tensor):
    """The values of integers, the bits of floats; half precision widened first, which changes no value."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if tensor.dtype == torch.float64:
        return tensor.contiguous().view(torch.int64)
    if tensor.is_floating_point():
        return tensor.to(torch.float32).contiguous().view(torch.int32).to(torch.int64)
    return tensor.to(torch.int64)


def rows(tensor):
    """int64 [B]: one hash a row of a tensor [B, ...]. In pieces, as the arithmetic takes several times the tensor's memory."""
    at_once = max(1, MOST_AT_ONCE * tensor.shape[0] // max(1, tensor.numel()))
    if tensor.shape[0] > at_once:
        return torch.cat([rows(piece) for piece in tensor.split(at_once)])
    x = _as_int64(tensor.detach()).reshape(tensor.shape[0], -1)
    w = _weights_for(x.shape[1], x.device)
    x = (x + GOLDEN) * MIX_1          # so that zeros count, and equal elements in swapped places differ
    x = x ^ _shift(x, 29)
    return finish((x * w).sum(1) + x.shape[1])


def samples(tensors):
    """A 0-dim int64 tensor: the sum over rows of the bound hashes of `tensors`, which share their first dimension."""
    bound = None
    for tensor in tensors:
        h = rows(tensor)
        bound = h if bound is None else finish(bound * 3 + h.to(bound.device) + GOLDEN)
    return finish(bound).sum()


def to_hex(value):
    return "%016x" % (int(value) & MASK)
