"""The line to the agent: newline-delimited JSON over a Unix socket, opened when a process proves to be a rank.

Any trouble closes the line for good: the job then runs on unobserved.
"""

import json
import math
import os
import socket

ANSWER_LIMIT_S = 60.0
_line = {"socket": None, "pid": None, "closed": False, "buffer": b""}


def connect():
    """True when there is a line to the agent."""
    if _line["socket"] is not None:
        return is_open()
    path = os.environ.get("INFRARSI_HOOK_SOCKET")
    if _line["closed"] or not path:
        return False
    try:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.settimeout(ANSWER_LIMIT_S)
        line.connect(path)
    except OSError:
        _line["closed"] = True
        return False
    _line.update(socket=line, pid=os.getpid())
    return True


def is_open():
    """False also in a fork of the rank (a DataLoader worker): the line belongs to the rank alone."""
    return _line["socket"] is not None and not _line["closed"] and _line["pid"] == os.getpid()


def send(message):
    if not is_open():
        return
    try:
        _line["socket"].sendall((json.dumps(_plain(message), allow_nan=False) + "\n").encode())
    except OSError:
        _close()


def ask(message):
    """Sends and waits for the one answer line; {} when there is none."""
    send(message)
    try:
        while is_open() and b"\n" not in _line["buffer"]:
            data = _line["socket"].recv(4096)
            if not data:
                _close()
            _line["buffer"] += data
        if not is_open():
            return {}
        line, _line["buffer"] = _line["buffer"].split(b"\n", 1)
        answer = json.loads(line)
        return answer if isinstance(answer, dict) else {}
    except (OSError, ValueError):
        _close()
        return {}


def _close():
    _line["closed"] = True
    try:
        _line["socket"].close()
    except OSError:
        pass


def _plain(value):
    """Non-finite numbers as "nan", "inf", "-inf" (JSON has none); what JSON cannot hold as its text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else "nan" if value != value else "inf" if value > 0 else "-inf"
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(v) for v in value]
    return str(value)[:200]
