"""The values that knobs really have in this rank: arguments, globals of the script, environment, threads, workers."""

import functools
import os
import sys

from .guard import guarded

MOST = 1000
_namespaces = []         # as argparse returned them, oldest first
_workers = []


def watch_argparse():
    import argparse
    original = argparse.ArgumentParser.parse_known_args
    keep = guarded(_namespaces.append)

    @functools.wraps(original)
    def parse_known_args(self, *args, **kwargs):
        result = original(self, *args, **kwargs)     # parse_args and the intermixed ones come through here
        if isinstance(result, tuple) and not any(result[0] is n for n in _namespaces):
            keep(result[0])
        return result

    argparse.ArgumentParser.parse_known_args = parse_known_args


def watch_dataloader():
    from torch.utils.data import dataloader
    original = dataloader.DataLoader.__init__
    note = guarded(lambda loader: _workers.append(int(loader.num_workers)))

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        note(self)

    dataloader.DataLoader.__init__ = __init__
    _time_batches(dataloader._BaseDataLoaderIter)


def _time_batches(iterator):
    original = iterator.__next__

    @functools.wraps(original)
    def __next__(self):
        phases = _phases()
        if phases is None:
            return original(self)
        phases.begin("data")
        try:
            return original(self)
        finally:
            phases.end()

    iterator.__next__ = __next__


def _phases():
    rank = sys.modules.get("infrarsi_hook.rank")
    ranks = rank._ranks if rank is not None else []
    return ranks[0].phases if ranks else None


def _scalar(value):
    return value is None or isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) <= 500)


def _arguments():
    """As the namespaces are now: a script may correct what argparse returned, and the corrected value is the effective one."""
    found = {}
    for namespace in _namespaces:
        for name, value in vars(namespace).items():
            is_list = isinstance(value, (list, tuple)) and len(value) <= 100 and all(map(_scalar, value))
            if _scalar(value) or is_list:
                found[name] = list(value) if is_list else value
            elif value is not None and not callable(value):
                found[name] = str(value)[:500]
    return dict(list(found.items())[:MOST])


def _globals():
    names = vars(sys.modules.get("__main__", sys))
    found = {n: v for n, v in names.items() if not n.startswith("_") and v is not None and _scalar(v)}
    return dict(list(found.items())[:MOST])


def _compiled_frames():
    utils = sys.modules.get("torch._dynamo.utils")
    return int(utils.counters["frames"]["ok"]) if utils is not None else 0


def message(env_keys):
    import torch
    return {"k": "knobs", "args": _arguments(), "globals": _globals(), "env": {k: os.environ.get(k) for k in env_keys},
            "threads": torch.get_num_threads(), "compiled_frames": _compiled_frames(),
            "workers": max(_workers) if _workers else None}
