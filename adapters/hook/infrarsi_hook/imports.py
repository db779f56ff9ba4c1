"""Calls a function when a module has finished its import, without importing it."""

import sys

_watched = {}


class _Finder:
    """First on sys.meta_path. Lets the others find a watched module and adds a call after the module's own code."""

    def find_spec(self, name, path=None, target=None):
        if name not in _watched:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                _call_after(spec, name)
                return spec
        return None


def _call_after(spec, name):
    loader = spec.loader
    run = getattr(loader, "exec_module", None)
    if run is None:
        return

    def exec_module(module):
        try:
            del loader.exec_module       # the loader is as it was before the module's code sees it
        except AttributeError:
            pass
        run(module)
        callback = _watched.pop(name, None)
        if callback:
            callback()

    try:
        loader.exec_module = exec_module
    except AttributeError:               # a loader with slots: not watched
        pass


def when_imported(name, callback):
    from .guard import guarded
    callback = guarded(callback)
    if name in sys.modules:
        callback()
        return
    _watched[name] = callback
    if not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
