"""The service as one process, or as several on one port, and the signals that they take."""

import argparse
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import asmdnn as dnn
from examples.serve.server import Limits, Service
from examples.serve.work import Crew, Shelf

WAIT_S = 0.5  # between looks at the processes


def service(given: argparse.Namespace) -> Service:
    """Networks loaded, port taken.  Raises AsmdnnError for packs, OSError for the port."""
    shelf = Shelf({name: Path(path) for name, path in given.paths.items()}, given.threads)
    workers = given.workers or max(1, dnn.Engine().threads // given.threads)
    limits = Limits(given.read_timeout, given.timeout, given.body_bytes)
    return Service((given.host, given.port), shelf, Crew(workers, given.waiting), limits)


def reload(shelf: Shelf) -> None:
    try:
        shelf.reload()
    except (dnn.AsmdnnError, OSError) as error:
        print(f"the old networks stay: {error}", file=sys.stderr, flush=True)


def serve(given: argparse.Namespace) -> None:
    """One process of the service, until SIGTERM or SIGINT."""
    try:
        running = service(given)
    except (dnn.AsmdnnError, OSError) as error:
        sys.exit(f"serve: {error}")
    end = threading.Event()
    signal.signal(signal.SIGHUP, lambda *_: threading.Thread(target=reload, args=(running.shelf,)).start())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: end.set())
    threading.Thread(target=running.serve_forever, daemon=True).start()
    if parent := multiprocessing.parent_process():  # whose death, however sudden, ends this process, too
        threading.Thread(target=follow, args=(parent, end), daemon=True).start()
    print(f"serving {', '.join(given.paths)} on {given.host}:{running.server_address[1]}", flush=True)
    end.wait()
    running.stop()


def follow(parent: Any, end: threading.Event) -> None:
    parent.join()
    end.set()


def hang_up(children: Iterable[Any]) -> None:
    """Have every process load its packs again; one that has just died will when it starts."""
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGHUP)


def supervise(given: argparse.Namespace) -> None:
    """Several processes on one port; one that dies is started again.  By spawn: a forked one has a single thread."""
    held = socket.socket()  # keeps the port between the processes; it does not listen
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind((given.host, given.port))
    given.port = held.getsockname()[1]
    context, end, children = multiprocessing.get_context("spawn"), threading.Event(), list[Any]()
    signal.signal(signal.SIGHUP, lambda *_: hang_up(children))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: end.set())
    failed = False
    while not end.is_set():
        for child in [child for child in children if not child.is_alive()]:
            children.remove(child)
            if child.exitcode == 1:  # it could not begin, and will not the next time
                failed = True
                end.set()
        while len(children) < given.processes and not end.is_set():
            children.append(context.Process(target=serve, args=(given,)))
            children[-1].start()
        end.wait(WAIT_S)
    for child in children:
        child.terminate()
    for child in children:
        child.join()
    held.close()
    if failed:
        sys.exit("serve: a process could not begin")
