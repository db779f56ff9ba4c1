"""Traces the dtypes of every matrix operation of one update.

Inside compiled code a dispatch mode sees nothing, so compilation is set aside for the audited update (stance
"force_eager"): what was compiled stays compiled and is used again afterwards. The update's numbers differ by rounding.
"""

import functools

import torch
from torch.utils._python_dispatch import TorchDispatchMode

PARTS = ("mm", "bmm", "matmul", "linear", "convolution", "conv1d", "conv2d", "conv3d", "attention", "einsum", "addmv", "mv")


def is_matrix_operation(name):
    """Of an operator's name without namespace and overload: mm, addmm, bmm, baddbmm, _scaled_mm, _int_mm, _grouped_mm,
    convolution_backward, _scaled_dot_product_flash_attention_for_cpu and their like."""
    words = name.strip("_").split("_")
    return any(w in PARTS or w.endswith("mm") for w in words)


class _Tracer(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = {}
        self._is_matrix = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = self._is_matrix.get(func)
        if name is None:
            name = func._schema.name.split("::")[-1]
            name = self._is_matrix[func] = name if is_matrix_operation(name) else ""
        if name:
            self._count(name, args)
        return func(*args, **(kwargs or {}))

    def _count(self, name, args):
        try:
            flat = [a for arg in args for a in (arg if isinstance(arg, (list, tuple)) else [arg])]
            matrices = [a for a in flat if isinstance(a, torch.Tensor) and a.dim() > 1][:4]   # statistics come last
            dtypes = {str(a.dtype).replace("torch.", "") for a in matrices}
            for dtype in dtypes:
                row = self.calls.setdefault(name, {})
                row[dtype] = row.get(dtype, 0) + 1
        except Exception:        # an odd operator is not worth a job
            pass


class Audit:
    def __init__(self):
        self._tracer = _Tracer()
        self._is_tracing = False
        self._stance = None
        self._enter = None
        self._autocast = None

    def start(self):
        if hasattr(torch, "compiler") and hasattr(torch.compiler, "set_stance"):
            self._stance = torch.compiler.set_stance("force_eager")
            self._stance.__enter__()
        self._watch_autocast()

    def trace(self):
        """Begins to trace, when the first thing of the update happens. Not in start(): the step that ended the update
        before may be part of a compiled function, around which torch saves and restores the modes in force."""
        if not self._is_tracing:
            self._is_tracing = True
            self._tracer.__enter__()

    def finish(self):
        if self._is_tracing:
            self._tracer.__exit__(None, None, None)
        if self._enter is not None:
            torch.autocast.__enter__ = self._enter
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
        return {"matmul": self._tracer.calls, "autocast": self._autocast}

    def note_autocast(self, device_type):
        """Asked when the model is called, for an autocast that is already on."""
        try:
            if torch.is_autocast_enabled(device_type):
                self._autocast = str(torch.get_autocast_dtype(device_type)).replace("torch.", "")
        except (TypeError, AttributeError):      # older torch: one function a device type
            if torch.is_autocast_enabled():
                self._autocast = str(torch.get_autocast_gpu_dtype()).replace("torch.", "")

    def _watch_autocast(self):
        """Sees an autocast entered inside the model. Every enabled one counts; the last dtype is reported."""
        original = self._enter = torch.autocast.__enter__

        @functools.wraps(original)
        def enter(context):
            if getattr(context, "_enabled", False):
                self._autocast = str(getattr(context, "fast_dtype", None)).replace("torch.", "")
            return original(context)

        torch.autocast.__enter__ = enter
