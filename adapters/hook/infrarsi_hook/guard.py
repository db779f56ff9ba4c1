"""What keeps an error of the hook out of the job."""

import functools
import sys
import threading

_reported = []
_inside = threading.local()


def report(error):
    """Sends the first internal error to the agent; later ones are dropped."""
    if _reported:
        return
    _reported.append(error)
    try:
        from . import client
        frame = error.__traceback__
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        place = " (%s:%d)" % (frame.tb_frame.f_code.co_filename.rsplit("/", 1)[-1], frame.tb_lineno) if frame else ""
        client.send({"k": "hook_error", "message": "%s: %s%s" % (type(error).__name__, str(error)[:500], place)})
    except Exception:
        pass


def guarded(function):
    """The function, with every error reported in place of raised; returns None then."""
    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            report(error)
            return None
    return call



def not_traced(function, recursive=True):
    """The function as dynamo must leave it alone: without this, dynamo would compile the hook's own frames when they are
    called between two pieces of a compiled function. With recursive=False only this frame is left alone."""
    import torch
    disable = getattr(torch, "_disable_dynamo", None)
    if disable is None:
        return function
    try:
        return disable(function, recursive=recursive)
    except TypeError:
        return function
