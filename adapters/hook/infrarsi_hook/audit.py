"""Traces the dtypes of every matrix operation of one update.

Inside compiled code a dispatch mode sees nothing, so compilation is set aside for the audited update (stance
"force_eager"): what was compiled stays compiled and is used again afterwards. The update's numbers differ by rounding.
"""

import functools
import sys

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


def compiled_region():
    """The frame of the innermost compiled call under way on this thread, or None. Such a call saves the modes in force and
    restores them at its end, so a mode must leave in the region in which it entered."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if "callback" in code.co_freevars and code.co_filename.endswith("_dynamo/eval_frame.py"):
            return frame
        frame = frame.f_back
    return None


class Audit:
    def __init__(self):
        self._tracer = _Tracer()
        self._is_tracing = False
        self._region = None
        self._stance = None
        self._enter = None
        self._autocast = None

    def start(self):
        if hasattr(torch, "compiler") and hasattr(torch.compiler, "set_stance"):
            self._stance = torch.compiler.set_stance("force_eager")
            self._stance.__enter__()
        self._watch_autocast()

    def trace(self):
        """Begins to trace when the first thing of the update happens, and again when a compiled region has ended since."""
        region = compiled_region()
        if self._is_tracing and (region is not None or self._region is None):
            return
        if self._is_tracing:
            self._tracer.__exit__(None, None, None)
        self._is_tracing, self._region = True, region
        self._tracer.__enter__()

    def finish(self):
        """What was traced. The tracing itself ends with close(), which may have to wait."""
        return {"matmul": {op: dict(row) for op, row in self._tracer.calls.items()}, "autocast": self._autocast}

    def close(self):
        """Back to how things were; False if not possible here, inside a compiled call that began after the tracing."""
        if self._is_tracing:
            region = compiled_region()
            if region is not None and region is not self._region:
                return False
            self._tracer.__exit__(None, None, None)
        self._is_tracing, self._region = False, None
        if self._enter is not None:
            torch.autocast.__enter__ = self._enter
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
        return True

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
