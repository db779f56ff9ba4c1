"""Where the time of an update goes. One label is current at any time, so that the phases add up to the whole.

On CUDA a change of label records an event and the differences are read once the update is synchronised; elsewhere it
reads the clock. The hook's own work between two updates is in no phase.
"""

import time

import torch

NAMES = ("forward", "backward", "optimizer", "data", "other")


class Phases:
    def __init__(self, device):
        self._is_cuda = device.type == "cuda"
        self.restart()

    def restart(self):
        self._stack = []
        self._marks = [("other", self._mark())]

    def begin(self, name):
        self._stack.append(self._marks[-1][0])
        self._marks.append((name, self._mark()))

    def end(self):
        if self._stack:
            self._marks.append((self._stack.pop(), self._mark()))

    def close(self):
        """{phase: seconds} since restart. On CUDA the device must have been synchronised up to the last change."""
        self._marks.append((None, self._mark()))
        if self._is_cuda:
            self._marks[-1][1].synchronize()
        seconds = dict.fromkeys(NAMES, 0.0)
        for (name, a), (_, b) in zip(self._marks, self._marks[1:]):
            seconds[name] += a.elapsed_time(b) / 1000.0 if self._is_cuda else b - a
        return seconds

    def _mark(self):
        if not self._is_cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event
