"""Installs the hook when Python starts with this folder in PYTHONPATH and INFRARSI_HOOK_SOCKET set; else does nothing.

A sitecustomize that this file shadows (a distribution's, a user's) runs as if this one were not there.
"""

import os
import sys


def _install_hook():
    if os.environ.get("INFRARSI_HOOK_SOCKET"):
        try:
            import infrarsi_hook
            infrarsi_hook.install()
        except Exception:    # the job comes first: without its hook it is judged as unobserved, not broken
            pass


def _run_shadowed():
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec
    here = os.path.dirname(os.path.abspath(__file__))
    path = [p for p in sys.path if os.path.abspath(p or ".") != here]
    spec = PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_install_hook()
_run_shadowed()
