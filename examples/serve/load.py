"""Loads a service at a stated rate and compares every answer, bit by bit, with the network's own.

python -m examples.serve.load http://127.0.0.1:8000 NAME FILE.pack --rate=200 --clients=4 --seconds=10

Request i is due at i / rate, whatever became of those before it, and its time counts from then: a service that stands
still for a second cannot hide it.  Without --rate each client sends the next request when it has the answer.
Exit status 1 if an answer is wrong.
"""

import argparse
import http.client
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np

import asmdnn as dnn
from examples.serve.bodies import NPY, body_of
from examples.serve.peer import Peer, network_at
from examples.serve.server import PREFIX

DIFFERENT: Final = 16  # requests, so that an answer to another one is seen
REPLY_S: Final = 30.0


@dataclass(slots=True)
class Tally:
    """What became of the requests.  seconds: of those that were answered, from when they were due; served: from when
    they were sent; longest: the same, of all replies."""

    busy: int = 0
    wrong: int = 0
    failed: int = 0
    longest: float = 0.0
    seconds: list[float] = field(default_factory=list)
    served: list[float] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        self.busy, self.wrong, self.failed = (
            self.busy + other.busy,
            self.wrong + other.wrong,
            self.failed + other.failed,
        )
        self.seconds += other.seconds
        self.served += other.served
        self.longest = max(self.longest, other.longest)

    def report(self, elapsed: float) -> str:
        due, served = (np.percentile(times or [0.0], (50, 99)) * 1e3 for times in (self.seconds, self.served))
        return (
            f"{len(self.seconds)} right, {self.busy} times 503, {self.failed} failed, {self.wrong} wrong; "
            f"{len(self.seconds) / elapsed:.0f} a second, p50 {due[0]:.2f} ms, p99 {due[1]:.2f} ms; "
            f"since they were sent {served[0]:.2f} and {served[1]:.2f} ms, no reply above {self.longest * 1e3:.0f} ms"
        )


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go, at which rate (0: as fast as answers come) and for how long."""

    host: str
    path: str
    rate: float
    seconds: float


def exchanges(net: dnn.Network | Peer, shape: Sequence[int] | None = None) -> list[tuple[bytes, bytes]]:
    """Bodies of requests, and what their answers must be; results have the same bits for every number of threads.
    shape: of the input; default: as the network says."""
    random = np.random.default_rng(0)
    ((name, (dims, dtype)),) = net.inputs.items()
    wanted = [n or 1 for n in dims] if shape is None else shape  # of an open dim, one
    inputs = [random.uniform(-1, 1, wanted).astype(dtype) for _ in range(DIFFERENT)]
    return [(body_of({name: x}, NPY), body_of(net.run({name: x}), NPY)) for x in inputs]


def loaded(target: Target, pairs: Sequence[tuple[bytes, bytes]], clients: int) -> tuple[Tally, float]:
    """What became of all requests, and the seconds that they took."""
    numbers, start, tallies = count(), perf_counter(), [Tally() for _ in range(clients)]
    threads = [threading.Thread(target=_client, args=(target, pairs, numbers, start, tally)) for tally in tallies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = Tally()
    for tally in tallies:
        total.add(tally)
    return total, perf_counter() - start


def _client(target: Target, pairs: Sequence[tuple[bytes, bytes]], numbers: Any, start: float, tally: Tally) -> None:
    connection = http.client.HTTPConnection(target.host, timeout=REPLY_S)
    while True:
        i = next(numbers)
        begun = start + i / target.rate if target.rate else perf_counter()
        if begun >= start + target.seconds:
            break
        sleep(max(0.0, begun - perf_counter()))
        body, wanted = pairs[i % len(pairs)]
        sent = perf_counter()
        try:
            connection.request("POST", target.path, body, {"Content-Type": NPY})
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            tally.failed += 1
            continue
        now = perf_counter()
        tally.longest = max(tally.longest, now - sent)
        if response.status == 503:
            tally.busy += 1
        elif response.status != 200:
            tally.failed += 1
        elif answer != wanted:
            tally.wrong += 1
        else:
            tally.seconds.append(now - begun)
            tally.served.append(now - sent)
    connection.close()


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m examples.serve.load", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("url", help="of the service, such as http://127.0.0.1:8000")
    parser.add_argument("name", help="of a network with one input and one output")
    parser.add_argument("pack", help="its file, for the right answers")
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second; default: as fast as answers come")
    parser.add_argument("--clients", type=int, default=4, help="connections; default: 4")
    parser.add_argument("--seconds", type=float, default=5.0, help="default: 5")
    given = parser.parse_args(words)
    if given.rate < 0 or not 0 < given.clients <= 1000 or not given.seconds > 0:
        parser.error("--rate must be at least 0, --clients from 1 to 1000, --seconds above 0")
    try:
        pairs = exchanges(network_at(Path(given.pack), threads=1))
    except (dnn.AsmdnnError, ValueError) as error:
        parser.error(f"{given.pack}: a network with one input and one output is needed: {error}")
    target = Target(urlsplit(given.url).netloc, f"{PREFIX}/{given.name}", given.rate, given.seconds)
    tally, elapsed = loaded(target, pairs, given.clients)
    print(tally.report(elapsed))
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
