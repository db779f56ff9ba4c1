"""python -m infrarsi_hook [-m] train.py args...: runs a script or module with the hook, for use without PYTHONPATH."""

import os
import runpy
import sys

import infrarsi_hook


def main():
    words = sys.argv[1:]
    if not words or words == ["-m"]:
        sys.exit("usage: python -m infrarsi_hook [-m] SCRIPT_OR_MODULE [arguments]")
    if os.environ.get("INFRARSI_HOOK_SOCKET"):
        infrarsi_hook.install()
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
