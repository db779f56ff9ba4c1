"""Reports an uncaught exception, with the memory in use and the size of the allocation that failed, if one did."""

import os
import re
import sys

from . import client
from .guard import guarded

GIB = float(1 << 30)
UNITS = {"bytes": 1.0, "KiB": 2.0 ** 10, "MiB": 2.0 ** 20, "GiB": 2.0 ** 30, "TiB": 2.0 ** 40}
TRIED = re.compile(r"(?:tried to allocate|Unable to allocate) ([0-9.]+) (bytes|KiB|MiB|GiB|TiB)", re.I)


def watch():
    previous = sys.excepthook
    tell = guarded(_tell)

    def excepthook(kind, error, trace):
        tell(kind, error)
        previous(kind, error, trace)

    sys.excepthook = excepthook


def _tell(kind, error):
    if not client.connect():
        return
    text = str(error)
    match = TRIED.search(text)
    tried = float(match.group(1)) * UNITS.get(match.group(2), 1.0) / GIB if match else None
    client.send({"k": "exception", "type": kind.__name__, "message": text[:4000], "in_use_gib": _in_use(kind), "tried_gib": tried,
                 "rank": int(os.environ.get("RANK", 0))})


def _in_use(kind):
    torch = sys.modules.get("torch")
    if "OutOfMemory" in kind.__name__ and torch is not None and torch.cuda.is_initialized():
        return torch.cuda.memory_allocated() / GIB
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024 / GIB
    return None
