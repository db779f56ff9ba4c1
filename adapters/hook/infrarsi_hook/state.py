"""A checksum of everything an update changes: one seeded projection a tensor, of parameters, buffers, optimizer state.

The signs come from SHA-256(nonce, name), so a job cannot prepare them before it is asked, and the names carry no prefix
of a wrapper, so that eager, compiled and distributed runs of one job agree. Sharded tensors are projected in their local part.
"""

import hashlib

import torch

CHUNK = 1 << 20      # elements; a multiple of 8


def _sign_table(device):
    bits = (torch.arange(256).unsqueeze(1) >> torch.arange(8)) & 1
    return (bits.to(torch.float64) * 2 - 1).to(device)


@torch.no_grad()
def projection(tensor, nonce, name, tables):
    """Sum of +-x over the tensor in float64; the signs are the bits of bytes drawn from the seeded generator."""
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    tensor = tensor.detach()
    if tensor.is_sparse or getattr(tensor, "is_quantized", False):
        tensor = tensor.to_dense() if tensor.is_sparse else tensor.dequantize()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    flat = tensor.reshape(-1)
    seed = int.from_bytes(hashlib.sha256((nonce + "\0" + name).encode()).digest()[:8], "big") >> 1
    generator = torch.Generator().manual_seed(seed)
    if str(flat.device) not in tables:
        tables[str(flat.device)] = _sign_table(flat.device)
    table, total = tables[str(flat.device)], 0.0
    for at in range(0, flat.numel(), CHUNK):
        part = flat[at:at + CHUNK].to(torch.float64)
        drawn = torch.randint(0, 256, ((part.numel() + 7) // 8,), generator=generator, dtype=torch.uint8)
        signs = table[drawn.to(flat.device).to(torch.int64)].reshape(-1)[:part.numel()]
        total += float((part * signs).sum())
    return total


def _leaves(value, name):
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (bool, int, float)):
        yield name, torch.tensor(float(value), dtype=torch.float64)
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _leaves(value[key], "%s.%s" % (name, key))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _leaves(item, "%s.%d" % (name, i))


def project(model, optimizers, nonce):
    tables = {}
    named = model.parameters(optimizers)
    names = {id(p): name for name, p in named.items()}
    result = {
        "params": {name: projection(p, nonce, name, tables) for name, p in named.items()},
        "buffers": {name: projection(b, nonce, name, tables) for name, b in model.buffers().items()},
        "optimizer": {}}
    for optimizer in optimizers:
        for p, entries in list(optimizer.state.items()):
            if not isinstance(p, torch.Tensor):
                continue
            for name, tensor in _leaves(entries, names.get(id(p), "unnamed")):
                result["optimizer"][name] = projection(tensor, nonce, name, tables)
    return result
