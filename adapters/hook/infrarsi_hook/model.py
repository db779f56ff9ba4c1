"""Finds the model that an optimizer trains, and names its tensors without the prefixes of wrappers."""

import gc
import hashlib
import weakref

import torch

WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")


def clean_name(name):
    parts = [p for p in name.split(".") if p not in WRAPPERS]
    while len(parts) > 1 and parts[0] == "module":
        parts = parts[1:]
    return ".".join(parts)


def outermost_with(parameters):
    """The module, in nobody's tree, that holds most of `parameters`; None if no module holds any. Scans the heap once."""
    wanted = {id(p) for p in parameters}
    modules = [o for o in gc.get_objects() if issubclass(type(o), torch.nn.Module) and "_modules" in o.__dict__]
    held = {id(child) for m in modules for child in m.__dict__["_modules"].values() if child is not None}
    best, best_count = None, 0
    for module in modules:
        if id(module) in held:
            continue
        count = sum(1 for p in module.parameters() if id(p) in wanted)
        if count > best_count:
            best, best_count = module, count
    return best


class Model:
    def __init__(self):
        self._root = None

    def root(self):
        return self._root() if self._root is not None else None

    def find(self, parameters):
        """The outermost module to observe, if it is another than before."""
        root = self.root()
        if root is not None and {id(p) for p in parameters} <= {id(p) for p in root.parameters()}:
            return None
        found = outermost_with(parameters)
        if found is None or found is root:
            return None
        self._root = weakref.ref(found)
        return found

    def parameters(self, optimizers):
        """{name: parameter}; parameters that no module holds are named by their place in the optimizers."""
        named, seen = {}, set()
        root = self.root()
        for name, p in root.named_parameters() if root is not None else []:
            named[clean_name(name)] = p
            seen.add(id(p))
        for i, optimizer in enumerate(optimizers):
            for j, group in enumerate(optimizer.param_groups):
                for k, p in enumerate(group["params"]):
                    if id(p) not in seen:
                        named["optimizer%d.group%d.%d" % (i, j, k)] = p
                        seen.add(id(p))
        return named

    def buffers(self):
        root = self.root()
        return {clean_name(n): b for n, b in root.named_buffers()} if root is not None else {}

    def message(self, optimizers):
        named = self.parameters(optimizers)
        digest, dtypes = hashlib.sha256(), {}
        for name in sorted(named):
            p = named[name]
            dtype = str(p.dtype).replace("torch.", "")
            dtypes[dtype] = dtypes.get(dtype, 0) + p.numel()
            digest.update(("%s|%s|%s|%d\n" % (name, "x".join(map(str, p.shape)), dtype, p.requires_grad)).encode())
        return {"k": "model", "params": sum(p.numel() for p in named.values() if p.requires_grad),
                "digest": digest.hexdigest(), "dtypes": dtypes}
