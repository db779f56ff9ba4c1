"""Sets the hook up in two moments: torch has been imported; the first optimizer is made, so this process is a rank."""

import functools
import sys
import weakref

from . import client, failures, imports, knobs
from .guard import guarded


def on_torch():
    import torch
    failures.watch()
    imports.when_imported("torch.utils.data.dataloader", knobs.watch_dataloader)
    original = torch.optim.Optimizer.__init__
    make = guarded(_on_optimizer)

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        make(self)

    torch.optim.Optimizer.__init__ = __init__


def _on_optimizer(optimizer):
    if not _is_rank():
        return
    from . import rank
    rank.of_this_process().add_optimizer(weakref.ref(optimizer))


def _is_rank():
    data = sys.modules.get("torch.utils.data")
    if data is not None and data.get_worker_info() is not None:
        return False
    return client.connect()
