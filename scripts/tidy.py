#!/usr/bin/env python3
"""Runs clang-tidy-19 over every unit of the dev build, in parallel, and remembers the units that were clean.

A unit that was clean stays so until its command, one of the project's files that it includes, .clang-tidy or
clang-tidy itself changes; the memory (file names are digests of all these) lies in build/tidy and, so that a fresh
clone on the same machine profits, may be put elsewhere by INFRARSI_TIDY_CACHE. Prints findings as they come; exits
with 1 if there is one. Expects that the dev preset is built: the precompiled headers are used as they are.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "dev"
CACHE = pathlib.Path(os.environ.get("INFRARSI_TIDY_CACHE", ROOT / "build" / "tidy"))
TIDY = "clang-tidy-19"


def own_units():
    """The project's own C++ units as compile_commands.json lists them, each with its command and its object."""
    units = []
    for entry in json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(entry["file"])
        if path.suffix == ".cpp" and ROOT in path.parents and BUILD not in path.parents:
            units.append((path, entry["command"]))
    return sorted(units)


def recorded_includes():
    """{object: files of the checkout that it was built from}, from ninja's record of the last build."""
    listing = subprocess.run(["ninja", "-C", str(BUILD), "-t", "deps"], capture_output=True, text=True, check=True).stdout
    includes, current = {}, None
    for line in listing.splitlines():
        if not line.strip():
            current = None
        elif not line.startswith(" "):
            current = includes.setdefault(line.split(":")[0], [])
        elif current is not None:
            path = pathlib.Path(line.strip())
            path = path if path.is_absolute() else BUILD / path
            if ROOT in path.parents and BUILD not in path.parents:
                current.append(path)
    return includes


class Digests:
    """SHA-256 of files, each read once."""

    def __init__(self):
        self._known = {}

    def of(self, path):
        if path not in self._known:
            self._known[path] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"
        return self._known[path]


def configs(unit):
    """The .clang-tidy files that may apply to a unit: those of its folder and of all folders above it."""
    folders = [folder for folder in unit.parents if folder == ROOT or ROOT in folder.parents]
    return [folder / ".clang-tidy" for folder in folders if (folder / ".clang-tidy").is_file()]


def key_of(unit, command, includes, digests, version):
    arguments = command.split()
    made = arguments[arguments.index("-o") + 1]
    parts = [version, command.replace(str(ROOT), "")]
    for path in [unit, *configs(unit), *sorted(includes.get(made, []))]:
        parts.append(f"{path.relative_to(ROOT)} {digests.of(path)}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def tidy(unit):
    done = subprocess.run([TIDY, "-p", str(BUILD), "--quiet", str(unit)], capture_output=True, text=True, check=False)
    noise = (" warnings generated.", " warning generated.")
    errors = "\n".join(line for line in done.stderr.splitlines() if not line.endswith(noise))
    return done.returncode, done.stdout.strip(), errors


def main():
    version = subprocess.run([TIDY, "--version"], capture_output=True, text=True, check=True).stdout
    includes, digests = recorded_includes(), Digests()
    CACHE.mkdir(parents=True, exist_ok=True)
    keys = {unit: key_of(unit, command, includes, digests, version) for unit, command in own_units()}
    open_units = [unit for unit, key in keys.items() if not (CACHE / key).exists()]
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for unit, (status, output, errors) in zip(open_units, pool.map(tidy, open_units)):
            if status == 0 and not output:
                (CACHE / keys[unit]).touch()
                continue
            bad += 1
            print(output or errors, flush=True)
    print(f"clang-tidy: {len(keys)} units, {len(open_units)} looked at, {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
