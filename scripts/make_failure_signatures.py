#!/usr/bin/env python3
"""Make core/measure/failure_signatures.inc from the failure facts (data/failures.yaml).

    python3 scripts/make_failure_signatures.py FAILURES.yaml > core/measure/failure_signatures.inc

For each signature: identifier, class, rank (lower is closer to the root cause), severity, whether it usually follows
from another failure, the regular expression (RE2), and the literal texts of which every match contains at least one.
The literals are what makes scanning fast: the expression runs only on a line that holds one of them.
Needs PyYAML.
"""

import re
import re._constants as sre
import re._parser as parser
import sys

import yaml

# Where the facts are too wide or too narrow for judging a run by one line.
OVERRIDES = {
    # Megatron prints warnings with this name too; only the assertion is a failure.
    "cfg.max_connections": {"regex": r"AssertionError[^\n]*CUDA_DEVICE_MAX_CONNECTIONS"},
    # The device cannot run the code that was built: a kernel failure to whoever chose the kernel.
    "kernel.no_image": {"class": "kernel"},
    # Raised by the compiler backend, which is what the candidate switched on.
    "compile.triton_missing": {"class": "compile"},
    # Bare words that also occur in harmless lines ("Broken pipe" at the exit of a pager, a retried connection).
    "dist.peer_closed": {"regex": r"Connection (?:closed|reset) by peer|recvValue failed"},
    "env.hub": {"severity": "warning"},
    "oom.host.pinned": {"regex": r"cudaHostAlloc[^\n]*(?:out of memory|failed)|cudaHostRegister[^\n]*(?:out of memory|"
                                 r"failed)|pin_memory[^\n]*out of memory"},
    # The list may stand on the next line.
    "cfg.unknown_argument": {"regex": r"error: unrecognized arguments: |error: argument \S+: (?:invalid choice|invalid \w+ "
                                      r"value|expected)|Some specified arguments are not used by the HfArgumentParser: |"
                                      r"Unrecognized options?: "},
    # A loss or norm key must stand before the value; prose such as "no loss in nan-safe mode" does not.
    "num.loss_nan": {"regex": r"""(?i:(?:^|[\s|,{'"\[(/_])(?:loss|grad[_ ]?norm|norm)['"]?\s?[:= ]\s*['"]?"""
                              r"""[-+]?(?:nan|inf|infinity)['"]?(?:$|[\s|,;})\]]))"""},
}

EXTRA = [
    {"id": "python.traceback", "class": "traceback", "rank": 98, "severity": "fatal", "secondary": True,
     "regex": r"^\s*Traceback \(most recent call last\)"},
    {"id": "python.fatal", "class": "traceback", "rank": 60, "severity": "fatal", "secondary": True,
     "regex": r"Fatal Python error: "},
]


def best(a, b):
    """The set of literals whose shortest member is longer."""
    if a is None or b is None:
        return a if b is None else b
    return max(a, b, key=lambda s: (min(map(len, s)), -len(s)))


def required(tree):
    """A set of literals of which each match has at least one, or None."""
    found, run = None, ""
    for op, value in tree:
        if op is sre.LITERAL and (run or chr(value) != "\n"):
            run += chr(value)
            continue
        if run:
            found, run = best(found, {run}), ""
        part = None
        if op is sre.SUBPATTERN:
            add_flags, inner = value[1], value[3]
            part = None if add_flags & sre.SRE_FLAG_IGNORECASE else required(inner)
        elif op is sre.BRANCH:
            parts = [required(branch) for branch in value[1]]
            part = None if any(p is None for p in parts) else set().union(*parts)
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT) and value[0] >= 1:
            part = required(value[2])
        found = best(found, part)
    return best(found, {run}) if run else found


def literals(signature):
    if signature["id"] == "num.loss_nan":  # case does not matter there
        words = ("nan", "NaN", "NAN", "inf", "Inf", "INF")
        return sorted(before + word for word in words for before in (" ", ":", "=", "'", '"', "-", "+"))
    found = required(parser.parse(signature["regex"]))
    if found is None or min(map(len, found)) < 4:
        raise SystemExit(f"{signature['id']}: no literal to look for first: {found}")
    return sorted(found)


def cpp(text):
    return '"' + "".join(c if 32 <= ord(c) < 127 and c not in '"\\?' else f"\\{ord(c):03o}" for c in text) + '"'


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        signatures = yaml.safe_load(file)["failures"]
    print("// Made by scripts/make_failure_signatures.py; do not edit.")
    print("// {id, class, rank, severity, secondary, regex, literals (separated by \\n)}")
    for signature in signatures + EXTRA:
        signature = {**signature, **OVERRIDES.get(signature["id"], {})}
        re.compile(signature["regex"])
        regex = re.sub(r"\(\?P<\w+>", "(?:", signature["regex"])
        print(f"{{{cpp(signature['id'])}, {cpp(signature['class'])}, {signature['rank']}, "
              f"Severity::{signature['severity']}, {str(bool(signature['secondary'])).lower()},")
        print(f" {cpp(regex)},")
        print(f" {cpp(chr(10).join(literals(signature)))}}},")


if __name__ == "__main__":
    main()
