"""Measure launch settings: run train.sh with each, and print seconds per update, memory and loss as a table.

    PYTHON=python3 python3 measure.py --updates 12 "--micro-batch-size 4 --grad-accum 4" "--threads 2"

Wall time is taken from the arrival of the step lines, CPU time and VmData (what `ulimit -d` caps) from /proc.
Linux only. On a busy machine trust the CPU time of the settings with one thread.
"""

import argparse
import os
import re
import statistics
import subprocess
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def watch_memory(process: subprocess.Popen, peak_kib: list) -> None:
    while process.poll() is None:
        try:
            found = re.search(r"VmData:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
        except OSError:
            return
        if found:
            peak_kib[0] = max(peak_kib[0], int(found[1]))
        time.sleep(0.01)


def measure(flags: str, updates: int, warmup: int) -> str:
    process = subprocess.Popen(
        ["bash", str(HERE / "train.sh"), "--updates", str(updates), *flags.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    peak_kib = [0]
    watcher = threading.Thread(target=watch_memory, args=(process, peak_kib))
    watcher.start()
    times, cpu, loss, problem = [], [], "", ""
    for line in process.stdout:
        if step := re.match(r"step \d+ \| loss (\S+)", line):
            times.append(time.perf_counter())
            cpu.append(cpu_seconds(process.pid))
            loss = step[1]
        if oom := re.search(r"you tried to allocate (\d+) bytes", line):
            problem = f"out of memory, {int(oom[1]) / 2**20:.1f} MiB asked for"
        elif "out of memory" in line or "Cannot allocate memory" in line or "MemoryError" in line:
            problem = problem or line.strip()[:80]
    code = process.wait()
    watcher.join()
    if code != 0 or len(times) < warmup + 2:
        return f"| `{flags}` | — | — | {peak_kib[0] / 1024:.0f} | {problem or f'exit code {code}'} |"
    wall = [b - a for a, b in zip(times[warmup - 1 :], times[warmup:])]
    cpu_per_update = (cpu[-1] - cpu[warmup - 1]) / (len(cpu) - warmup)
    return f"| `{flags}` | {statistics.median(wall):.3f} | {cpu_per_update:.3f} | {peak_kib[0] / 1024:.0f} | {loss} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--warmup", type=int, default=10, help="updates left out of the times")
    parser.add_argument("settings", nargs="+", help="flags for train.py, one setting an argument")
    args = parser.parse_args()
    print("| setting | s/update (wall, median) | CPU s/update | VmData peak, MiB | loss |\n| --- | --- | --- | --- | --- |")
    for flags in args.settings:
        print(measure(flags, args.updates, args.warmup), flush=True)


if __name__ == "__main__":
    main()
