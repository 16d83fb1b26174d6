"""What a service holds: networks by name, and threads that run them after a queue with an end.

A queue without an end answers everybody too late.  This one refuses at once what it could not begin soon.
"""

import queue
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import asmdnn as dnn
from examples.serve.peer import Peer, network_at


class Shelf:
    """Networks by name, each from its file.

    A file that is replaced changes nothing until `reload`, and a request keeps the network that it began with: the old
    file stays mapped while somebody uses it.
    """

    def __init__(self, paths: Mapping[str, Path], threads: int = 1) -> None:
        """Raises InvalidArguments for a file that is no network."""
        self.paths, self.threads = dict(paths), threads
        self._networks: dict[str, dnn.Network | Peer] = {}
        self.reload()

    def reload(self) -> None:
        """Load all files again; if one of them is refused, InvalidArguments, and everything stays as it was."""
        found = {name: network_at(path, self.threads) for name, path in self.paths.items()}
        for net in found.values():
            net.prepare_to_run()
        self._networks = found  # one assignment: nobody sees half of it

    def get(self, name: str) -> dnn.Network | Peer | None:
        return self._networks.get(name)

    def described(self) -> dict[str, Any]:
        """Dims and types of inputs and outputs, for clients."""
        return {
            name: {
                side: {key: {"dims": list(dims), "type": str(dtype)} for key, (dims, dtype) in values.items()}
                for side, values in (("inputs", net.inputs), ("outputs", net.outputs))
            }
            for name, net in self._networks.items()
        }


Job = tuple[Callable[..., Any], tuple[Any, ...], "Future[Any]"]


class Crew:
    """Threads that run functions, in the order in which these came; native code runs beside the GIL."""

    def __init__(self, workers: int, waiting: int) -> None:
        self._jobs: queue.Queue[Job | None] = queue.Queue(waiting)
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Raises queue.Full when as many wait as may.  A future that is cancelled before its turn costs nothing."""
        future: Future[Any] = Future()
        self._jobs.put_nowait((function, arguments, future))
        return future

    @property
    def waiting(self) -> int:
        return self._jobs.qsize()

    def close(self) -> None:
        """Return when all that was submitted is done."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while job := self._jobs.get():
            function, arguments, future = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(*arguments))
                except Exception as error:  # of the request: the thread lives on
                    future.set_exception(error)
            del job, function, arguments, future  # or the last arrays stay until the next request
