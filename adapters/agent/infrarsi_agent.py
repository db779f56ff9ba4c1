#!/usr/bin/env python3
"""The trial agent: parent of one training job, its clock, its limits and its scribe.

    python3 infrarsi_agent.py SPEC.json

../README.md specifies the spec, the files written and the hook's messages. Standard library only, Python >= 3.8, one
file, so that it can be copied to any target. One thread and one selector: what arrives is stamped before anything else
is done with it, and there is no lock to hold.

The job is not trusted: what it sends is parsed defensively, what it leaves running is killed, and the number of updates
is counted here. Exit code: 0 when agent.json was written (whatever became of the job), else not 0.
"""

import ctypes
import errno
import json
import math
import os
import re
import resource
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

GIB = float(1 << 30)
LINE_CAP = 64 * 1024            # bytes; a longer line is split
MESSAGE_CAP = 64 * 1024 * 1024  # bytes; a state message names every tensor of a model
KILL_AFTER_S = 5.0              # from SIGTERM to SIGKILL
SETTLE_S = 0.5                  # what still runs this long after the job is a leftover
DRAIN_S = 2.0                   # to read what is left in the pipes
SAMPLE_S = 0.015
RESULT_RESERVE = 32 * 1024      # bytes kept on disk so that agent.json can be written when the disk is full
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


# ---- small things ----------------------------------------------------------------------------------------------------

def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def prctl(option, value):
    return ctypes.CDLL(None, use_errno=True).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def read_text(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def clean(value, depth=0):
    """The value as strict JSON can hold it: non-finite numbers as "nan", "inf", "-inf", no lone surrogates."""
    if depth > 64:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {clean(str(k)): clean(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(v, depth + 1) for v in value]
    return value


def to_json(value):
    return json.dumps(clean(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def write_atomically(path, text, reserve=None):
    """Writes by rename, fsynced. `reserve` is a file whose blocks are already on disk and are used in place."""
    part = reserve or path + ".part"
    data = text.encode("utf-8")
    with open(part, "r+b" if reserve else "wb") as file:
        file.write(data)
        file.truncate(len(data))
        file.flush()
        os.fsync(file.fileno())
    os.rename(part, path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def is_inside(path, folder):
    return path == folder or path.startswith(folder.rstrip("/") + "/")


# ---- lines -----------------------------------------------------------------------------------------------------------

class LineSplitter:
    """Bytes to (time, text) lines. \\n, \\r\\n and \\r end a line, so each state of a progress bar is a line. A line's time
    is the arrival of its last byte of content: the text of a progress bar arrives long before the \\r that ends it."""

    def __init__(self):
        self._held = bytearray()
        self._held_at = 0
        self._after_cr = False

    def feed(self, data, t):
        lines = []
        for piece in re.split(rb"(\r|\n)", data):
            if piece == b"\n":
                if not self._after_cr:
                    self._end(lines, t)
                self._after_cr = False
            elif piece == b"\r":
                if self._held:
                    self._end(lines, t)
                    self._after_cr = True      # a \n that follows belongs to it
            elif piece:
                self._after_cr = False
                self._held += piece
                self._held_at = t
                while len(self._held) > LINE_CAP:
                    self._emit(lines, self._cut())
        return lines

    def finish(self):
        lines = []
        if self._held:
            self._end(lines, self._held_at)
        return lines

    def _cut(self):
        end = LINE_CAP
        while end > LINE_CAP - 4 and self._held[end] & 0xC0 == 0x80:   # not inside a UTF-8 sequence
            end -= 1
        piece = bytes(self._held[:end])
        del self._held[:end]
        return piece

    def _end(self, lines, t):
        if not self._held:
            self._held_at = t
        piece = bytes(self._held)
        self._held.clear()
        self._emit(lines, piece)

    def _emit(self, lines, piece):
        lines.append((self._held_at, piece.decode("utf-8", "replace")))


# ---- out of memory ---------------------------------------------------------------------------------------------------

UNITS = {"bytes": 1.0, "b": 1.0, "kib": 1024.0, "mib": 1024.0 ** 2, "gib": GIB, "tib": GIB * 1024, "kb": 1e3, "mb": 1e6, "gb": 1e9}
SIZE = r"([0-9][0-9.]*)\s*(bytes|B|KiB|MiB|GiB|TiB|KB|MB|GB)\b"
OOM_TEXTS = [   # (kind, pattern with the size if the text has one)
    ("device", re.compile(r"(?:CUDA|HIP|XPU|NPU) out of memory\.? Tried to allocate " + SIZE, re.I)),
    ("device", re.compile(r"OutOfMemoryError: .*?Tried to allocate " + SIZE, re.I)),
    ("device", re.compile(r"CUDA(?: driver)? error: out of memory|CUBLAS_STATUS_ALLOC_FAILED")),
    ("host", re.compile(r"DefaultCPUAllocator: can't allocate memory: you tried to allocate " + SIZE)),
    ("host", re.compile(r"DefaultCPUAllocator: not enough memory: you tried to allocate " + SIZE)),
    ("host", re.compile(r"\bUnable to allocate " + SIZE + r" for an array")),
    ("host", re.compile(r"^\W*MemoryError\b")),
    ("host", re.compile(r"std::bad_alloc|Cannot allocate memory|failed to map segment from shared object")),
]
DEVICE_IN_USE = [re.compile(r"this process has " + SIZE + r" memory in use", re.I), re.compile(SIZE + r" already allocated")]


def to_gib(number, unit):
    try:
        return float(number) * UNITS[unit.lower()] / GIB
    except (ValueError, KeyError):
        return None


def oom_in_text(text):
    """None, or (kind, tried_gib or None, in_use_gib or None) of a line that reports a failed allocation."""
    for kind, pattern in OOM_TEXTS:
        match = pattern.search(text)
        if not match:
            continue
        tried = to_gib(*match.groups()[:2]) if match.groups() else None
        in_use = None
        if kind == "device":
            for pattern_in_use in DEVICE_IN_USE:
                found = pattern_in_use.search(text)
                if found:
                    in_use = to_gib(*found.groups()[:2])
                    break
        return kind, tried, in_use
    return None


def kernel_oom_kills():
    match = re.search(r"^oom_kill (\d+)", read_text("/proc/vmstat"), re.M)
    return int(match.group(1)) if match else None


def cpu_stall_s():
    match = re.search(r"^some .*total=(\d+)", read_text("/proc/pressure/cpu"), re.M)
    return int(match.group(1)) / 1e6 if match else None


# ---- the job's processes ---------------------------------------------------------------------------------------------

def children_of(pid):
    found = []
    try:
        tasks = os.listdir("/proc/%d/task" % pid)
    except OSError:
        return found
    for task in tasks:
        found += [int(p) for p in read_text("/proc/%d/task/%s/children" % (pid, task)).split()]
    return found


def descendants_by_scan(root):
    """For kernels without /proc/PID/task/TID/children."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            line = read_text("/proc/%s/stat" % name)
            fields = line[line.rfind(")") + 2:].split()
            if len(fields) > 1:
                parents.setdefault(int(fields[1]), []).append(int(name))
    return walk(root, lambda pid: parents.get(pid, []))


def walk(root, children):
    found, todo = [], [root]
    while todo:
        for pid in children(todo.pop()):
            if pid not in found:
                found.append(pid)
                todo.append(pid)
    return found


def descendants(root):
    if os.path.exists("/proc/self/task/%d/children" % os.getpid()):
        return walk(root, children_of)
    return descendants_by_scan(root)


def is_running(pid):
    line = read_text("/proc/%d/stat" % pid)
    return bool(line) and line[line.rfind(")") + 2:][:1] not in ("Z", "X", "")


def start_ticks(pid):
    line = read_text("/proc/%d/stat" % pid)
    return int(line[line.rfind(")") + 2:].split()[19])


class MemoryWatch:
    """The largest VmData of any process of the job. The agent is a subreaper, so the job is exactly what descends from
    it; the list of processes is refreshed rarely enough to cost at most 1 % of a core."""

    def __init__(self, not_the_job):
        self.peak_gib = 0.0
        self.peak_rss_gib = 0.0
        self.current_gib = 0.0
        self.processes = []
        self._not_the_job = not_the_job
        self._refresh_at = 0.0

    def sample(self):
        now = time.monotonic()
        if now >= self._refresh_at:
            self.processes = [p for p in descendants(os.getpid()) if p not in self._not_the_job]
            took = time.monotonic() - now
            self._refresh_at = now + max(0.1, 100 * took)
        current = 0.0
        for pid in self.processes:
            text = read_text("/proc/%d/status" % pid)
            data = self._field(text, "VmData:")
            current = max(current, data)
            self.peak_rss_gib = max(self.peak_rss_gib, self._field(text, "VmHWM:"))
        if current:
            self.current_gib = current
        self.peak_gib = max(self.peak_gib, current)

    @staticmethod
    def _field(text, name):
        at = text.find("\n" + name)
        return int(text[at + len(name) + 1:].split(None, 1)[0]) * 1024 / GIB if at >= 0 else 0.0


class DeviceWatch:
    """What nvidia-smi shows per device, where there is one: a long-lived child that is not part of the job."""

    def __init__(self):
        self.peak_gib = None
        self.process = None
        self._text = b""
        program = shutil.which("nvidia-smi")
        if program:
            try:
                self.process = subprocess.Popen(
                    [program, "--query-gpu=index,memory.used", "--format=csv,noheader,nounits", "-lms", "500"],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                os.set_blocking(self.process.stdout.fileno(), False)
            except OSError:
                self.process = None

    def feed(self, data):
        *lines, self._text = (self._text + data).split(b"\n")
        for line in lines:
            match = re.match(rb"\s*(\d+)\s*,\s*(\d+)\s*$", line)
            if match:
                self.peak_gib = self.peak_gib or {}
                device = match.group(1).decode()
                self.peak_gib[device] = max(self.peak_gib.get(device, 0.0), int(match.group(2)) / 1024.0)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()


# ---- the sandbox -----------------------------------------------------------------------------------------------------

def bwrap_argv(spec, program, temp_dir, visible, hidden):
    """The bubblewrap command line up to the job's own words.

    `visible`: what the job must see whatever is hidden (hook, socket, this file). Mounts are made from the outside in,
    so that a frozen file in a writable folder in a hidden folder ends up right. Folders between a writable folder and a
    frozen path become mounts of their own: a mounted file cannot be renamed, but the folder that holds it could be.
    """
    sandbox = spec["sandbox"]
    writable = [os.path.realpath(p) for p in sandbox.get("writable", []) if os.path.exists(p)]
    readonly = [os.path.realpath(p) for p in sandbox.get("readonly", []) if os.path.exists(p)]
    hidden = [os.path.realpath(p) for p in list(sandbox.get("hidden", [])) + hidden if os.path.exists(p)]
    cwd = os.path.realpath(spec["cwd"])

    argv = [program, "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--as-pid-1", "--cap-drop", "ALL"]
    if sandbox.get("network", "inherit") == "none":
        argv.append("--unshare-net")
    argv += ["--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--tmpfs", "/dev/shm", "--proc", "/proc"]
    argv += ["--tmpfs", "/run"]       # sockets of the machine's daemons
    for path in ("/run/systemd/resolve", "/run/nvidia-persistenced"):
        argv += ["--ro-bind-try", path, path]
    for path in ("/tmp", "/var/tmp"):
        if os.path.isdir(path) and not os.path.islink(path):
            place = os.path.join(temp_dir, path.strip("/").replace("/", "-"))
            os.mkdir(place)
            os.chmod(place, 0o1777)
            argv += ["--bind", place, path]

    for path in readonly:
        roof = max([w for w in writable if is_inside(path, w) and path != w], key=len, default=None)
        between = os.path.dirname(path)
        while roof and is_inside(between, roof) and between != roof:
            if between not in readonly:
                writable.append(between)
            between = os.path.dirname(between)

    private = ["/tmp", "/var/tmp", "/run"]
    shown = writable + visible + readonly + [cwd]
    hidden = [p for p in hidden if any(is_inside(p, s) for s in shown) or not any(is_inside(p, t) and p != t for t in private)]
    masked = hidden + private
    mounts = [(p, 0, "--ro-bind") for p in visible + [cwd] if os.path.exists(p) and any(is_inside(p, m) for m in masked)]
    mounts += [(p, 1, "--bind") for p in writable] + [(p, 2, "--ro-bind") for p in readonly] + [(p, 3, "hide") for p in hidden]
    last = {}
    for path, strength, action in sorted(set(mounts), key=lambda m: (m[0].count("/"), m[0], m[1])):
        last[path] = action               # at one path the strongest wins
    for path, action in last.items():
        if action != "hide":
            argv += [action, path, path]
        elif os.path.isdir(path):
            argv += ["--tmpfs", path]
        else:
            argv += ["--ro-bind", "/dev/null", path]
    return argv + ["--chdir", spec["cwd"]], readonly


def paths_to_keep_visible(spec):
    """What the job's interpreter needs and a private /tmp would hide."""
    keep = [sys.prefix, sys.base_prefix]
    env_path = spec["env"].get("PATH", "").split(":")
    for folder in env_path + [os.path.dirname(a) for a in spec["argv"][:1] if os.path.isabs(a)]:
        if os.path.isabs(folder):
            parent = os.path.dirname(folder.rstrip("/"))
            keep.append(parent if os.path.exists(os.path.join(parent, "pyvenv.cfg")) else folder)
    # By the name that the job uses, which may lead over a symbolic link, and by the one that it stands for.
    keep = list(dict.fromkeys([os.path.abspath(p) for p in keep] + [os.path.realpath(p) for p in keep]))
    return [p for p in keep if p not in ("/", "/tmp", "/var/tmp", "/run", "/var", "/usr")]


def run_as_init(status_fd, readonly, argv):
    """Process 1 of the sandbox: starts the job, waits for it, and tells the agent what neither bwrap nor the kernel
    would: how the job really ended and how many processes it left behind."""
    def tell(**fields):
        os.write(status_fd, (json.dumps(fields) + "\n").encode())

    read_only_bit = getattr(os, "ST_RDONLY", 1)
    frozen = all(os.statvfs(p).f_flag & read_only_bit for p in readonly if os.path.exists(p))
    os.set_inheritable(status_fd, False)
    tell(started=True, frozen_readonly=frozen)

    def reset_signals():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        job = subprocess.Popen(argv, preexec_fn=reset_signals)
    except (OSError, subprocess.SubprocessError) as error:
        tell(error="could not start %r: %s" % (argv[0], getattr(error, "strerror", None) or error))
        return 127
    status = None
    while status is None:
        pid, raw = os.wait()
        if pid == job.pid:
            status = raw
    tell(status=status)
    deadline = time.monotonic() + SETTLE_S
    left = set()
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        left = {int(n) for n in os.listdir("/proc") if n.isdigit() and int(n) != 1 and is_running(int(n))}
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.01)
    tell(leftover=len(left))
    return 0      # the end of process 1 is the end of all of them


# ---- the hook's connections ------------------------------------------------------------------------------------------

class Connection:
    def __init__(self, sock):
        self.sock = sock
        self.buffer = bytearray()
        credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        self.pid = struct.unpack("3i", credentials)[0]     # in the agent's own numbering, also out of a sandbox
        self.rank = 0
        self.is_rank = False
        self.updates = 0
        self.waits_for_state = False
        self.is_open = True

    def messages(self, data):
        """The messages that `data` completes; ConnectionError when an answer to one could not be sent."""
        self.buffer += data
        *lines, rest = self.buffer.split(b"\n")
        self.buffer = bytearray(rest)
        if len(self.buffer) > MESSAGE_CAP:
            raise ValueError("a message is larger than %d bytes" % MESSAGE_CAP)
        for line in lines:
            if not self.is_open:
                raise ConnectionError("an answer could not be sent")
            if line.strip():
                message = json.loads(line.decode("utf-8", "replace"))
                if not isinstance(message, dict) or not isinstance(message.get("k"), str):
                    raise ValueError("a message is not an object with a kind")
                yield message

    def answer(self, value):
        """Never waits: who has not read what fills a socket's buffer reads no answers, and would hold the agent."""
        line = (json.dumps(value) + "\n").encode()
        try:
            self.is_open = self.sock.send(line, socket.MSG_DONTWAIT) == len(line)
        except OSError:
            self.is_open = False


# ---- the agent -------------------------------------------------------------------------------------------------------

class Agent:
    def __init__(self, spec, spec_path):
        self.spec = spec
        self.spec_path = os.path.realpath(spec_path)
        self.out = os.path.realpath(spec["out"])
        self.hook = spec.get("hook") or None
        self.kind = (spec.get("sandbox") or {}).get("kind", "none")
        self.selector = selectors.DefaultSelector()
        self.started_ns = now_ns()
        self.last_sign = time.monotonic()
        self.stopping = None            # why the job is being ended
        self.kill_at = self.grace_until = None
        self.job = None
        self.job_status = None          # as waitpid gives it
        self.inner = {}                 # what process 1 of the sandbox told
        self.inner_text = b""
        self.connections = []
        self.updates_of = {}            # rank -> updates
        self.world = None
        self.oom_seen = None
        self.open_pipes = 0
        self.leftover = 0
        self.progress_at = 0.0
        self.temp_dir = self.socket_dir = self.listener = self.socket_path = None
        self.why = ""
        self.error = None
        self.wall_start = time.time()
        self.stall = self.kernel_oom = self.reserve = self.ended_ns = None
        self.frozen_readonly = False
        self.files = {}

    # -- start

    def prepare(self):
        os.makedirs(self.out, exist_ok=True)
        stale = os.path.join(self.out, "agent.json")
        if os.path.exists(stale):
            os.unlink(stale)
        self.reserve = os.path.join(self.out, "agent.json.part")
        with open(self.reserve, "wb") as file:
            file.write(b"\n" * RESULT_RESERVE)
            file.flush()
            os.fsync(file.fileno())
        write_atomically(os.path.join(self.out, "agent.pid"), to_json({"pid": os.getpid(), "start_ticks": start_ticks(os.getpid())}))
        for name in ("stdout.log", "stderr.log", "output.jsonl", "hook.jsonl"):
            self.files[name] = open(os.path.join(self.out, name), "wb", buffering=0)
        self.show_progress("starting")

        wake_read, wake_write = os.pipe()
        for fd in (wake_read, wake_write):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wake_write)
        signal.signal(signal.SIGTERM, self.on_cancel)
        signal.signal(signal.SIGINT, self.on_cancel)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector.register(wake_read, selectors.EVENT_READ, lambda: self.drain(wake_read))
        if self.hook:
            self.listen()
        self.device = DeviceWatch()
        not_the_job = set()
        if self.device.process:
            not_the_job.add(self.device.process.pid)
            self.selector.register(self.device.process.stdout, selectors.EVENT_READ, self.on_device)
        self.memory = MemoryWatch(not_the_job)

    def listen(self):
        path = os.path.join(self.out, "hook.sock")
        if len(path.encode()) > 100:
            self.socket_dir = tempfile.mkdtemp(prefix="infrarsi-")
            path = os.path.join(self.socket_dir, "hook.sock")
        if os.path.lexists(path):
            os.unlink(path)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        os.chmod(path, 0o600)
        self.listener.listen(128)
        self.socket_path = path
        self.selector.register(self.listener, selectors.EVENT_READ, self.on_connect)

    def environment(self):
        env = {str(k): str(v) for k, v in self.spec.get("env", {}).items()}
        if self.hook:
            env["INFRARSI_HOOK_SOCKET"] = self.socket_path
            old = env.get("PYTHONPATH", "")
            env["PYTHONPATH"] = self.hook["dir"] + (":" + old if old else "")
        return env

    def start(self):
        argv = [str(a) for a in self.spec["argv"]]
        if self.kind == "bwrap":
            program = shutil.which("bwrap")
            if not program:
                self.fall_back("bwrap is not installed")
            else:
                visible = [os.path.realpath(__file__)] + paths_to_keep_visible(self.spec)
                if self.hook:
                    visible += [os.path.realpath(self.hook["dir"]), os.path.realpath(self.socket_path)]
                self.temp_dir = os.path.join(self.out, "tmp")
                shutil.rmtree(self.temp_dir, ignore_errors=True)
                os.mkdir(self.temp_dir)
                hidden = [self.spec_path]
                writable = [os.path.realpath(p) for p in self.spec["sandbox"].get("writable", [])]
                if not any(is_inside(p, self.out) for p in writable + [os.path.realpath(self.spec["cwd"])]):
                    hidden.append(self.out)
                prefix, readonly = bwrap_argv(self.spec, program, self.temp_dir, visible, hidden)
                status_read, status_write = os.pipe()
                os.set_blocking(status_read, False)
                inner = [sys.executable, "-I", "-S", os.path.realpath(__file__), "--init", str(status_write), json.dumps(readonly)]
                self.spawn(prefix + ["--"] + inner + argv, (status_write,))
                os.close(status_write)
                self.selector.register(status_read, selectors.EVENT_READ, lambda: self.on_inner(status_read))
                return
        self.spawn(argv, ())

    def fall_back(self, why):
        self.kind, self.why, self.frozen_readonly = "none", why, False

    def spawn(self, argv, pass_fds):
        cap = self.spec.get("memory_cap_gib")
        libc = ctypes.CDLL(None, use_errno=True)
        parent = os.getpid()
        sandboxed = bool(pass_fds)

        def in_the_child():
            os.setpgid(0, 0)
            libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)   # no orphan if the agent is killed
            if os.getppid() != parent:
                os._exit(1)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            if sandboxed:      # the end of bwrap would be SIGKILL for the job: it must outlive a SIGTERM to the group
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            if cap:
                limit = int(float(cap) * GIB)
                resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

        self.started_ns = now_ns()
        self.wall_start = time.time()
        self.last_sign = time.monotonic()
        self.job_status = None
        try:
            self.job = subprocess.Popen(argv, cwd=self.spec["cwd"], env=self.environment(), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=in_the_child,
                                        pass_fds=pass_fds, bufsize=0)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            what = self.spec["cwd"] if getattr(error, "filename", None) == self.spec["cwd"] else argv[0]
            self.error = "could not start %r: %s" % (what, getattr(error, "strerror", None) or error)
            return
        for stream, mark, name in ((self.job.stdout, "o", "stdout.log"), (self.job.stderr, "e", "stderr.log")):
            os.set_blocking(stream.fileno(), False)
            self.open_pipes += 1
            self.selector.register(stream, selectors.EVENT_READ, self.reader_of(stream, mark, name, LineSplitter()))

    # -- what arrives

    def reader_of(self, stream, mark, name, splitter):
        def read():
            try:
                data = os.read(stream.fileno(), 1 << 16)
            except BlockingIOError:
                return
            t = now_ns() - self.started_ns
            lines = splitter.feed(data, t) if data else splitter.finish()
            if data:
                self.last_sign = time.monotonic()
                self.files[name].write(data)
            else:
                self.selector.unregister(stream)
                stream.close()
                self.open_pipes -= 1
            text = ""
            for at, line in lines:
                text += to_json({"t": at, "s": mark, "l": line}) + "\n"
                found = oom_in_text(line)
                if found:
                    self.note_oom(found[0], found[1], found[2], line)
            if text:
                self.files["output.jsonl"].write(text.encode("utf-8"))
        return read

    def on_inner(self, fd):
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            self.selector.unregister(fd)
            os.close(fd)
            return
        *lines, self.inner_text = (self.inner_text + data).split(b"\n")
        for line in lines:
            try:
                self.inner.update(json.loads(line))
            except (ValueError, TypeError):
                continue
        if "status" in self.inner and self.ended_ns is None:
            self.ended_ns = now_ns()         # process 1 still looks for leftovers
        if self.inner.get("started"):
            self.frozen_readonly = bool(self.inner.get("frozen_readonly")) and bool(self.spec["sandbox"].get("readonly"))

    def on_device(self):
        try:
            data = os.read(self.device.process.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if data:
            self.device.feed(data)
        else:
            self.selector.unregister(self.device.process.stdout)

    def on_connect(self):
        sock, _ = self.listener.accept()
        connection = Connection(sock)
        self.connections.append(connection)
        self.selector.register(sock, selectors.EVENT_READ, lambda: self.on_hook(connection))

    def on_hook(self, connection):
        try:
            data = connection.sock.recv(1 << 18)
        except OSError:
            data = b""
        t = now_ns() - self.started_ns
        if not data:
            self.forget(connection)
            return
        self.last_sign = time.monotonic()
        try:
            for message in connection.messages(data):
                self.on_message(connection, message, t)
        except ConnectionError:
            self.forget(connection)
        except (ValueError, RecursionError) as error:
            self.record(connection, {"k": "hook_error", "message": "the agent could not read the hook: %s" % error}, t)
            self.forget(connection)

    def forget(self, connection):
        if connection in self.connections:
            self.connections.remove(connection)
            self.selector.unregister(connection.sock)
            connection.sock.close()

    def record(self, connection, message, t):
        message.pop("t", None)
        row = {"t": t, "rank": connection.rank, "pid": connection.pid}
        row.update({k: v for k, v in message.items() if k not in row})
        self.files["hook.jsonl"].write((to_json(row) + "\n").encode("utf-8"))

    def on_message(self, connection, message, t):
        kind = message["k"]
        if kind == "hello":
            rank, world = message.get("rank"), message.get("world")
            if isinstance(rank, int) and isinstance(world, int) and 0 <= rank < world <= 1 << 20:
                connection.rank, connection.is_rank = rank, True
                self.world = max(world, self.world or 1)
                self.updates_of.setdefault(rank, 0)
            self.record(connection, message, t)
            answer = {"env_keys": list(self.hook.get("env_keys", []))}
            if self.hook.get("audit_at") == 1:
                answer["audit"] = True
            connection.answer(answer)
        elif kind == "update" and connection.is_rank:
            connection.updates += 1
            self.updates_of[connection.rank] = max(self.updates_of[connection.rank], connection.updates)
            if connection.updates in self.hook.get("state_at", []):
                connection.waits_for_state = True
                connection.answer({"state": self.hook["nonce"]})
            else:
                connection.answer(self.next_answer(connection))
            self.record(connection, message, t)      # after the answer: the job does not wait for the disk
        elif kind == "state" and connection.waits_for_state:
            connection.waits_for_state = False
            connection.answer(self.next_answer(connection))
            self.record(connection, message, t)
        else:
            if kind == "exception":
                tried, in_use = message.get("tried_gib"), message.get("in_use_gib")
                text = "%s: %s" % (message.get("type"), message.get("message"))
                found = oom_in_text(text)
                if isinstance(tried, (int, float)) or found:
                    number = lambda v: float(v) if isinstance(v, (int, float)) else None
                    self.note_oom(found[0] if found else "host", number(tried) or (found and found[1]),
                                  number(in_use) or (found and found[2]), text.splitlines()[0] if text else "", sure=True)
            self.record(connection, message, t)

    def next_answer(self, connection):
        return {"audit": True} if self.hook.get("audit_at") == connection.updates + 1 else {}

    def note_oom(self, kind, tried, in_use, line, sure=False):
        if self.oom_seen and self.oom_seen["sure"] and not sure:
            return
        if self.oom_seen and not sure and self.oom_seen["tried_gib"] is not None:
            return                                   # the first report with a size; repeats come from other ranks
        if in_use is None and kind == "host":
            in_use = self.memory.current_gib
        need = in_use + tried if in_use is not None and tried is not None else None
        self.oom_seen = {"kind": kind, "in_use_gib": in_use, "tried_gib": tried, "need_gib": need, "line": line[:2000], "sure": sure}

    # -- the course of the job

    def updates_seen(self):
        if not self.updates_of:
            return 0
        if len(self.updates_of) < (self.world or 1):
            return 0
        return min(self.updates_of.values())

    def show_progress(self, phase, force=True):
        now = time.monotonic()
        if not force and now < self.progress_at + 0.25:
            return
        self.progress_at = now
        path = os.path.join(self.out, "progress.json")
        with open(path + ".part", "w") as file:
            file.write(to_json({"updates": self.updates_seen(), "t": now_ns() - self.started_ns, "phase": phase}))
        os.rename(path + ".part", path)

    def on_cancel(self, *_):
        self.stop("cancelled")

    def stop(self, why):
        if self.stopping is None:
            self.stopping = why
            self.kill_at = time.monotonic() + KILL_AFTER_S
            self.signal_job(signal.SIGTERM)

    def signal_job(self, number):
        if self.job and self.job_status is None:
            try:
                os.killpg(self.job.pid, number)
            except OSError:
                pass

    def reap(self):
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                if self.job and pid == self.job.pid:
                    self.job_status = status
                    self.job.returncode = status        # so that Popen does not wait for it again
        except ChildProcessError:
            pass

    def watch_limits(self):
        now = time.monotonic()
        if self.stopping:
            if self.kill_at and now >= self.kill_at:
                self.kill_at = None
                self.signal_job(signal.SIGKILL)
                for pid in descendants(os.getpid()):    # those that left the group
                    if pid not in self.memory._not_the_job:
                        self.kill(pid)
            return
        if self.spec.get("timeout_s") and now_ns() - self.started_ns > float(self.spec["timeout_s"]) * 1e9:
            self.stop("wall")
        elif self.grace_until is not None:
            if now >= self.grace_until:
                self.stop("after_updates")
        elif self.spec.get("silence_s") and now - self.last_sign > float(self.spec["silence_s"]):
            self.stop("silence")
        if self.grace_until is None and self.spec.get("stop_after_updates") and self.spec.get("updates"):
            if self.updates_seen() >= int(self.spec["updates"]) and not any(c.waits_for_state for c in self.connections):
                self.grace_until = now + float(self.spec.get("grace_s", 20.0))

    @staticmethod
    def kill(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass

    def turn(self):
        for key, _ in self.selector.select(SAMPLE_S):
            key.data()

    def follow(self):
        while self.job_status is None:
            self.turn()
            self.memory.sample()
            self.reap()
            self.watch_limits()
            self.show_progress("stopping" if self.stopping else "running", force=False)
        if self.ended_ns is None:
            self.ended_ns = now_ns()

    def clear_leftovers(self, turn=None):
        """Kills what the job left behind, by descent: neither a new session nor a new group escapes it."""
        deadline = time.monotonic() + SETTLE_S
        killed = set()
        give_up = deadline + 10.0
        while time.monotonic() < give_up:
            self.reap()
            left = [p for p in descendants(os.getpid()) if p not in self.memory._not_the_job]
            if not left:
                break
            if time.monotonic() >= deadline or self.stopping:
                for pid in left:
                    if is_running(pid):
                        killed.add(pid)
                    self.kill(pid)
            (turn or self.turn)()
        self.leftover += len(killed - {self.job.pid if self.job else None})

    def drain(self, fd):
        try:
            while os.read(fd, 4096):
                pass
        except BlockingIOError:
            pass

    def empty_pipes(self):
        deadline = time.monotonic() + DRAIN_S
        while (self.open_pipes or self.connections) and time.monotonic() < deadline:
            self.turn()

    def run(self):
        stall = cpu_stall_s()
        kills = kernel_oom_kills()
        if not self.stopping:      # a cancel may come before there is a job
            self.start()
        if self.job:
            self.follow()
            self.clear_leftovers()
            self.empty_pipes()
            if self.kind == "bwrap" and not self.inner.get("started") and not self.stopping:
                text = read_text(os.path.join(self.out, "stderr.log")).strip()
                self.fall_back("bwrap could not make the sandbox: %s" % (text[-500:] or "exit status %s" % self.job_status))
                for name in ("stdout.log", "stderr.log", "output.jsonl"):
                    self.files[name].seek(0)
                    self.files[name].truncate()
                self.oom_seen = self.ended_ns = None
                self.start()
                if self.job and not self.error:
                    self.follow()
                    self.clear_leftovers()
                    self.empty_pipes()
        self.stall = None if stall is None else (cpu_stall_s() or stall) - stall
        self.kernel_oom = None if kills is None else (kernel_oom_kills() or kills) - kills

    # -- the end

    def result(self):
        ended = self.ended_ns or now_ns()
        status = self.job_status
        if self.kind == "bwrap" and "status" in self.inner:
            status = self.inner["status"]
        error = self.error or self.inner.get("error")
        exit_code = number = None
        if status is not None and not error:
            if os.WIFSIGNALED(status):
                number = os.WTERMSIG(status)
            else:
                exit_code = os.WEXITSTATUS(status)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {
            "schema": "infrarsi-agent-v1", "exit_code": exit_code, "signal": number,
            "timed_out": self.stopping if self.stopping in ("wall", "silence") else None,
            "cancelled": self.stopping == "cancelled",
            "stopped": "after_updates" if self.stopping == "after_updates" else None,
            "wall_start_s": self.wall_start, "wall_end_s": time.time(), "duration_s": (ended - self.started_ns) / 1e9,
            "updates_seen": self.updates_seen(),
            "memory": {"peak_gib": self.memory.peak_gib, "peak_rss_gib": self.memory.peak_rss_gib,
                       "cap_gib": self.spec.get("memory_cap_gib"), "source": "VmData", "device_peak_gib": self.device.peak_gib},
            "oom": self.oom(exit_code, number),
            "sandbox": {"kind": self.kind, "frozen_readonly": self.frozen_readonly,
                        "network": (self.spec.get("sandbox") or {}).get("network", "inherit") if self.kind != "none" else "inherit",
                        "why": self.why},
            "cpu": {"user_s": used.ru_utime, "sys_s": used.ru_stime, "stall_s": self.stall},
            "leftover_killed": self.leftover + int(self.inner.get("leftover", 0)), "error": error}

    def oom(self, exit_code, number):
        """A failed allocation counts only if the job failed and nobody ended it: a job may survive one on purpose."""
        if self.stopping or exit_code == 0:
            return None
        if self.oom_seen:
            return {k: v for k, v in self.oom_seen.items() if k != "sure"}
        was_killed = number == signal.SIGKILL or exit_code == 128 + signal.SIGKILL
        if was_killed and self.kernel_oom != 0:
            return {"kind": "host", "in_use_gib": self.memory.current_gib, "tried_gib": None, "need_gib": None,
                    "line": "ended by SIGKILL, and the kernel's oom_kill counter grew" if self.kernel_oom else "ended by SIGKILL"}
        return None

    def finish(self):
        """Writes agent.json. The job is over by now; a full disk may still be in the way."""
        try:
            self.show_progress("done")
            for file in self.files.values():
                os.fsync(file.fileno())
        except OSError as error:
            self.error = self.error or "could not write to %s: %s" % (self.out, error.strerror or error)
        write_atomically(os.path.join(self.out, "agent.json"), to_json(self.result()), self.reserve)

    def abandon(self, error):
        """The agent itself failed (a full disk, most likely): ends the job without writing anything."""
        what = "could not write to %s: %s" % (self.out, error.strerror) if isinstance(error, OSError) and error.errno in (
            errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS) else "%s: %s" % (type(error).__name__, error)
        self.error = "the agent failed: " + what
        sys.stderr.write("infrarsi_agent: %s\n" % self.error)
        self.stopping = self.stopping or "error"
        self.signal_job(signal.SIGKILL)
        self.ended_ns = now_ns()
        self.clear_leftovers(turn=lambda: time.sleep(0.01))

    def clean_up(self):
        self.device.stop()
        for folder in (self.temp_dir, self.socket_dir):
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
        for path in (self.socket_path, self.reserve):
            if path and os.path.lexists(path):
                try:
                    os.unlink(path)
                except OSError:
                    pass


def supervise(spec, spec_path):
    agent = Agent(spec, spec_path)
    try:
        agent.prepare()
    except OSError as error:
        sys.stderr.write("infrarsi_agent: could not write to %s: %s\n" % (agent.out, error.strerror or error))
        return 3
    try:
        agent.run()
    except Exception as error:    # whatever fails here, the job must not outlive the agent, and the result must say so
        agent.abandon(error)
    code = 0
    try:
        agent.finish()
    except OSError as error:
        sys.stderr.write("infrarsi_agent: could not write agent.json to %s: %s\n" % (agent.out, error.strerror or error))
        code = 3
    agent.clean_up()
    return code


def enter_own_session():
    """A leader of a group cannot make a session: then a child becomes the agent and this process only waits for it."""
    try:
        os.setsid()
    except OSError:
        if os.getsid(0) == os.getpid():
            return
        child = os.fork()
        if child:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda n, _: os.kill(child, n))
            status = os.waitpid(child, 0)[1]
            os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
        os.setsid()


def main():
    if len(sys.argv) > 3 and sys.argv[1] == "--init":
        return run_as_init(int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4:])
    if len(sys.argv) != 2:
        sys.stderr.write("usage: infrarsi_agent.py SPEC.json\n")
        return 2
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            spec = json.load(file)
        if spec.get("schema") != "infrarsi-trial-spec-v1":
            raise ValueError("the schema is %r, not 'infrarsi-trial-spec-v1'" % spec.get("schema"))
        for key in ("argv", "cwd", "out"):
            if not spec.get(key):
                raise ValueError("it lacks %r" % key)
    except (OSError, ValueError, AttributeError) as error:
        sys.stderr.write("infrarsi_agent: could not read the spec %s: %s\n" % (sys.argv[1], error))
        return 2
    enter_own_session()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    return supervise(spec, sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
