#!/usr/bin/env python3
"""Checks that includes point downward (STYLE.md sections 1 and 4), so that a layer can be read and linked without
those above it.

Usage: include_direction.py [ROOT]. Prints one line for each include that is not allowed, and exits with 1 if there is
one. ROOT is the checkout; by default the one that this file stands in.
"""

import pathlib
import re
import sys

# A folder of core/ may include its own files and folders of lower rank.
RANKS = {
    "base": 0, "text": 0,
    "contract": 1, "mechanisms": 1, "measure": 1,
    "repo": 2, "exec": 2, "simulate": 2,
    "trial": 3,
    "verify": 4, "experience": 4,
    "propose": 5, "search": 5,
    "campaign": 6, "bench": 6,
    "report": 7,
}
# Folders of equal rank do not see each other, with two exceptions: text/ stands on base/, and what is measured follows
# from the contract (window, declared peak, where the log says what).
SAME_RANK_ALLOWED = {("text", "base"), ("measure", "contract")}
# Headers that hold only types, for the judges and the search; whoever is above rank 0 may name a candidate or a receipt.
TYPES_ONLY = {"core/trial/candidate.h", "core/trial/receipt.h"}
# Files that any folder may use because they themselves use nothing of ours (checked, .h and .cpp).
LEAVES = {"core/text/utf8"}

# Libraries that know of sockets, terminals or the wire; core/ computes, and the rim talks.
FORBIDDEN_IN_CORE = re.compile(r"^(CLI/|ncurses|readline/|boost/beast|boost/asio)")
# Asio is allowed where processes are waited for and language models are called.
ASIO_ALLOWED = {"exec", "propose"}
PROTOCOL_MAY_USE = {"base", "text"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def includes(path):
    """Yields (line number, quoted, included path) for each include of a file."""
    text = path.read_text(encoding="utf-8", errors="replace")
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(2)) + 1, match.group(1) == '"', match.group(2)


def core_folder(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "core" and len(parts) > 2 else None


def stem(path):
    return path.rsplit(".", 1)[0]


def why_not(source, included):
    """The sentence that says why `source` may not include `included` (both relative to the root), or None."""
    layer, target = source.split("/")[0], included.split("/")[0]
    folder, target_folder = core_folder(source), core_folder(included)
    if layer == "core":
        if target in ("server", "protocol"):
            return f"core/ may not know of {target}/"
        if FORBIDDEN_IN_CORE.match(included):
            if not (included.startswith("boost/asio") and folder in ASIO_ALLOWED):
                return "core/ may not include a terminal, socket or wire library"
            return None
        if folder == "testing" or target_folder is None:
            return None
        if stem(source) in LEAVES:
            return None if stem(included) == stem(source) else f"{stem(source)} is a leaf: it may use nothing of ours"
        if stem(included) in LEAVES:
            return None
        if target_folder == "testing":
            return "core/testing is for tests only"
        for name in (folder, target_folder):
            if name not in RANKS:
                return f"core/{name} has no rank: add it to RANKS in tests/lint/include_direction.py"
        if folder == target_folder or (folder, target_folder) in SAME_RANK_ALLOWED:
            return None
        if included in TYPES_ONLY and RANKS[folder] >= 1:
            return None
        if RANKS[target_folder] >= RANKS[folder]:
            return (f"core/{folder} has rank {RANKS[folder]}, core/{target_folder} has rank "
                    f"{RANKS[target_folder]}: only lower ranks may be included")
        return None
    if layer == "protocol":
        if target == "server":
            return "protocol/ may not know of server/"
        if target == "core" and target_folder not in PROTOCOL_MAY_USE:
            return "protocol/ may use core/base and core/text only"
    if layer in ("protocol", "server") and target_folder == "testing":
        return "core/testing is for tests only"
    return None


def check(root):
    """All findings below `root`, as lines for a person."""
    findings = []
    for layer in ("core", "protocol", "server"):
        for path in sorted((root / layer).rglob("*")):
            if path.suffix not in (".h", ".cpp"):
                continue
            source = path.relative_to(root).as_posix()
            for line, quoted, included in includes(path):
                if quoted and not (root / included).is_file():
                    # Resolved beside the including file; we write paths from the root, so that ranks can be seen.
                    findings.append(f"{source}:{line}: \"{included}\" is not a path from the root of the checkout")
                    continue
                reason = why_not(source, included)
                if reason:
                    findings.append(f"{source}:{line}: includes {included}: {reason}")
    return findings


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    findings = check(root)
    for finding in findings:
        print(finding)
    print(f"include direction: {len(findings)} finding(s)")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
