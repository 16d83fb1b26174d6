"""Processes that share a command's work, and that Ctrl-C ends without a word of theirs."""

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any


@contextmanager
def workers(count: int) -> Iterator[Executor | None]:
    """`count` other processes; None for one, since this process does.  Whatever ends the block early ends them."""
    if count == 1:
        yield None
        return
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"))  # a fork would take over OpenMP's threads
    try:
        yield pool
    except BaseException:
        threading.excepthook = lambda _: None  # the pool's own thread, which misses them
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown()


def mapped(pool: Executor, function: Callable[[Any], Any], tasks: Sequence[Any], chunk: int) -> Iterator[Any]:
    """`function` of each task, in order.

    A terminal sends Ctrl-C to all processes of a command, and those that are just starting would answer with a
    traceback.  Children inherit which signals are blocked, and this process hears of it a moment later.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.map(function, tasks, chunksize=chunk)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
