"""The hook: runs inside each rank of a training job and reports, once per optimizer update, what only the inside knows.

Messages and answers are specified in ../../README.md. Three rules hold everywhere here:

1. The job comes first. Whatever fails in the hook is reported once (`hook_error`) and the job goes on.
2. Nothing is imported, wrapped or connected before it is needed: a Python process without torch pays one finder on
   `sys.meta_path`, a process that makes no optimizer never connects.
3. Compiled code stays as it is: no hook runs inside a region that dynamo traces, and none adds a graph break.
"""


def install():
    """Arranges for the hook to be set up when torch (and argparse) are imported, or now if they are already."""
    from . import imports, knobs, setup
    imports.when_imported("argparse", knobs.watch_argparse)
    imports.when_imported("torch", setup.on_torch)
