"""Sees what the model is trained on: the inputs of the outermost module's calls while gradients are on.

The place of observation is always outside compiled code: the module itself if it runs eagerly, the OptimizedModule that
torch.compile made of it (or of a wrapper of it), or around the compiled implementation that module.compile() installed.
Where a compiled function calls the model, nothing is observed and the fields of the update are null. Not counted: calls
without gradients or in eval mode, and recomputation by activation checkpointing, which happens inside backward.
"""

import functools
import weakref

import torch

from . import digest
from .guard import guarded, not_traced

_is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)
_watching = []


# Functions of the module, not closures, so that a model that carries them can still be pickled and copied.

def before_call(module, args, kwargs=None):
    if not _is_compiling():
        _begin(module, args, kwargs)


def after_call(module, args, output):
    if not _is_compiling():
        _end(module)


def _begin(module, args, kwargs):
    if _watching:
        _watching[0].begin(module, args, kwargs or {})


def _end(module):
    if _watching:
        _watching[0].end(module)


_begin, _end = not_traced(guarded(_begin)), not_traced(guarded(_end))


def tensors_of(value):
    """Tensors in a call's arguments, in order; of mappings by sorted key. Activations (with a history) are no data."""
    if isinstance(value, torch.Tensor):
        return [value] if value.grad_fn is None and not value.requires_grad and value.dim() > 0 else []
    if isinstance(value, dict) or hasattr(value, "keys"):
        return [t for key in sorted(value.keys(), key=str) for t in tensors_of(value[key])]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_of(v)]
    return []


def heavy_chain(module):
    """The module, its child with more than half of its parameters, and so on; compiled modules end the chain."""
    chain = []
    while len(chain) < 4:
        if not isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict)):
            chain.append(module)
        children = module.__dict__.get("_modules", {})
        if module.__dict__.get("_compiled_call_impl") is not None or "_orig_mod" in children:
            break
        sizes = {name: sum(p.numel() for p in child.parameters()) for name, child in children.items() if child is not None}
        heaviest = max(sizes, key=sizes.get, default=None)
        if heaviest is None or sizes[heaviest] * 2 <= sum(p.numel() for p in module.parameters()):
            break
        module = children[heaviest]
    return chain


class Inputs:
    def __init__(self, rank):
        self._rank = rank
        self._places = []            # weak references to the observed modules, outermost first
        self._handles = []
        self.clear()

    def clear(self):
        self._tokens = self._samples = 0
        self._seq_len = None
        self._digests = []
        self._since_backward = 0
        self._open = None            # the module whose call is under way; calls inside it are part of it

    def watch(self):
        """Follows the model into the wrappers that compilation puts around it later."""
        _watching[:] = [self]
        if not hasattr(torch, "compile"):
            return
        attach, original = guarded(self._attach_if_outer), torch.compile

        @functools.wraps(original)
        def compile(model=None, *args, **kwargs):
            result = original(model, *args, **kwargs)
            if isinstance(model, torch.nn.Module) and isinstance(result, torch.nn.Module):
                attach(result)
            return result

        torch.compile = compile
        original_method = getattr(torch.nn.Module, "compile", None)
        if original_method is not None:
            @functools.wraps(original_method)
            def compile_in_place(self, *args, **kwargs):
                original_method(self, *args, **kwargs)
                attach(self)

            torch.nn.Module.compile = compile_in_place

    def _is_observed(self, module):
        return any(place() is module for place in self._places)

    def _attach_if_outer(self, module):
        if any(self._is_observed(m) for m in module.modules()):
            self.attach(module)

    def attach(self, module):
        """Observes `module`, and those in it that hold most of its parameters, since the outermost may be a container that
        is never called. All at once and once only: hooks that come and go would make dynamo compile again."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._places = [], []
        for place in heavy_chain(module):
            self._places.append(weakref.ref(place))
            implementation = place.__dict__.get("_compiled_call_impl")
            if implementation is not None:
                if not getattr(implementation, "_infrarsi_observed", False):
                    place._compiled_call_impl = _observed(implementation, weakref.ref(place))
                return
            try:
                self._handles.append(place.register_forward_pre_hook(before_call, with_kwargs=True))
            except TypeError:        # torch < 2.0
                self._handles.append(place.register_forward_pre_hook(before_call))
            self._handles.append(place.register_forward_hook(after_call))

    # -- called around each call of the observed module

    def begin(self, module, args, kwargs):
        if not self._is_observed(module) or not torch.is_grad_enabled() or not _is_training(module):
            return
        if self._open is not None and self._open is not module:
            return
        self._open = module
        self._rank.phases.begin("forward")
        self._rank.trace()
        if self._rank.audit is not None:
            self._rank.audit.note_autocast(self._rank.device.type)
        if self._rank.losses.in_backward and self._since_backward:
            return                   # recomputation
        self._since_backward += 1
        self._observe(tensors_of(args) + tensors_of(kwargs))

    def end(self, module):
        if module is self._open:
            self._open = None
            self._rank.phases.end()

    def after_backward(self):
        self._since_backward = 0

    @torch.no_grad()
    def _observe(self, tensors):
        if not tensors or (tensors[0].is_cuda and torch.cuda.is_current_stream_capturing()):
            return
        integers = [t for t in tensors if not t.is_floating_point() and not t.is_complex() and t.dtype != torch.bool]
        first = integers[0] if integers else tensors[0]
        batch = first.shape[0]
        self._samples += batch
        self._tokens += first.numel() if integers else batch
        self._seq_len = first.shape[-1] if integers and first.dim() > 1 else None
        self._digests.append(digest.samples([t for t in tensors if t.shape[0] == batch]))

    def result(self):
        if not self._digests:
            return {"tokens": None, "samples": None, "seq_len": None, "data": None}
        return {"tokens": self._tokens, "samples": self._samples, "seq_len": self._seq_len,
                "data": digest.to_hex(sum(int(d) for d in self._digests))}


def _is_training(module):
    return module.__dict__.get("_modules", {}).get("_orig_mod", module).training


def _observed(implementation, reference):
    @functools.wraps(implementation)
    def call(*args, **kwargs):
        if _is_compiling():
            return implementation(*args, **kwargs)
        module = reference()
        _begin(module, args, kwargs)
        try:
            return implementation(*args, **kwargs)
        finally:
            _end(module)

    call._infrarsi_observed = True
    return call
