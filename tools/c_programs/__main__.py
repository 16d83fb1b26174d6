"""Ten published networks as shared libraries beside Python: bits, the first and a later `create`, calls on one and two
threads in one process; and what a call takes beside its kernels.  On one thread both take turns; teams of two work one
after the other, since the threads of a team that waits spin in the way of the other.

    python -m tools.c_programs --json=RECORD [--networks=voice] [--seconds=2]
    python -m tools.c_programs --json=RECORD --table

A record keeps what it has of other networks.  Needs cc, and the models of `python -m examples.models`.
"""

import argparse
import ctypes
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import asmdnn as dnn
from tests.export.published import FILES, loaded

THREADS = (1, 2)
LEAST_ROUNDS = 9
CREATES = 20
SMALL_CALLS = """
#include <stdio.h>
#include <time.h>
#include "small.h"
int main(void) {
    static float x[16], y[16];
    struct small_tensors tensors = {.x = x, .y = y};
    struct timespec a, b;
    asmdnn_context *context;
    if (small_create(&context, 1)) return 1;
    double least = 1e9;
    for (int round = 0; round < 20; round++) {
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int i = 0; i < 100000; i++) if (small_run(context, &tensors)) return 1;
        clock_gettime(CLOCK_MONOTONIC, &b);
        double us = ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / 1e8;
        if (us < least) least = us;
    }
    printf("%g\\n", least);
    return 0;
}
"""


class Program:
    """A shared library that was exported, with a context for each number of threads."""

    def __init__(self, path: Path, feeds: dict[str, Any], results: dict[str, Any]) -> None:
        self._own = ctypes.CDLL(str(path))
        self._network = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self._own, "some_network")))
        for function in ("asmdnn_create", "asmdnn_run", "asmdnn_destroy"):
            getattr(self._own, function).restype = ctypes.c_char_p
        self.results = {name: np.empty_like(array) for name, array in results.items()}
        pointers = [array.ctypes.data for array in (*feeds.values(), *self.results.values())]
        self._tensors = (ctypes.c_void_p * len(pointers))(*pointers)

    def create(self, threads: int) -> tuple[ctypes.c_void_p, float]:
        """A context, and the microseconds that it took."""
        context = ctypes.c_void_p()
        start = time.perf_counter()
        wrong = self._own.asmdnn_create(ctypes.byref(context), self._network, threads, None)
        took = (time.perf_counter() - start) * 1e6
        assert wrong is None, wrong
        return context, took

    def call(self, context: ctypes.c_void_p) -> None:
        wrong = self._own.asmdnn_run(context, self._tensors)
        assert wrong is None, wrong

    def destroy(self, context: ctypes.c_void_p) -> None:
        self._own.asmdnn_destroy(context)


def measured(name: str, seconds: float) -> dict[str, Any]:
    """Of one network."""
    nets = {threads: loaded(name, dnn.Engine(threads=threads)) for threads in THREADS}
    feeds = nets[2][1]
    wanted = nets[2][0].run(feeds)
    with tempfile.TemporaryDirectory() as folder:
        *_, shared = dnn.export_c(nets[2][0], folder, "some")
        program = Program(Path(shared), feeds, wanted)
    context, first = program.create(1)
    contexts, later = {1: context}, []
    for _ in range(CREATES):
        one, took = program.create(1)
        later.append(took)
        program.destroy(one)
    contexts[2], _ = program.create(2)
    equal = True
    for context in contexts.values():
        for array in program.results.values():
            array.view(np.uint8)[...] = 0xEE
        program.call(context)
        equal = equal and all(a.tobytes() == wanted[key].tobytes() for key, a in program.results.items())
    ways: dict[str, Callable[[], Any]] = {}
    for threads in THREADS:
        ways[f"Python {threads}"] = partial(nets[threads][0].run, feeds)
        ways[f"C {threads}"] = partial(program.call, contexts[threads])
    times: dict[str, list[float]] = {}
    for group in (("Python 1", "C 1"), ("Python 2",), ("C 2",)):
        times |= in_turns({way: ways[way] for way in group}, seconds)
    ms, least = ({way: of(found) for way, found in times.items()} for of in (median, min))
    return {"equal": equal, "first create us": first, "create us": median(later), "ms": ms, "least ms": least}


def in_turns(ways: dict[str, Callable[[], Any]], seconds: float) -> dict[str, list[float]]:
    """Calls, in milliseconds."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or any(len(found) < LEAST_ROUNDS for found in times.values()):
        for way, call in ways.items():
            start = time.perf_counter()
            call()
            times[way].append((time.perf_counter() - start) * 1e3)
    return times


def small_call_us() -> float:
    """A call of a network of one kernel and 16 elements, the least of twenty means."""
    graph = dnn.Graph("small")
    x = graph.input("x", (1, 16))
    net = graph.compile(engine=dnn.Engine(threads=1), y=graph.apply("Relu", x))
    with tempfile.TemporaryDirectory() as folder:
        dnn.export_c(net, folder, "small")
        Path(folder, "main.c").write_text(SMALL_CALLS)
        words = ("cc", "-O2", "main.c", "asmdnn_runtime.c", "small.o", "-pthread", "-o", "main")
        subprocess.run(words, cwd=folder, check=True)
        done = subprocess.run(Path(folder, "main"), capture_output=True, text=True, check=True)
    return float(done.stdout)


def table(record: dict[str, Any]) -> str:
    """A row for each network: medians on one thread, the best calls of teams, which other programs disturb."""
    rows = [
        "| network | bits | `create`, first; later, us | C, 1 thread, ms | of Python's | C, 2 threads | of Python's | "
        "faster with 2: C; Python |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, one in record.items():
        if not isinstance(one, dict):
            continue
        ms, least = {**one["least ms"], "C 1": one["ms"]["C 1"], "Python 1": one["ms"]["Python 1"]}, one["least ms"]
        shares = [f"{ms[f'C {n}'] / ms[f'Python {n}']:.2f}" for n in THREADS]
        gains = "; ".join(f"{least[f'{way} 1'] / least[f'{way} 2']:.2f}" for way in ("C", "Python"))
        bits = "equal" if one["equal"] else "differ"
        creates = f"{one['first create us']:.0f}; {one['create us']:.0f}"
        timed = " | ".join(f"{ms[f'C {n}']:.3g} | {share}" for n, share in zip(THREADS, shares, strict=True))
        rows.append(f"| {name} | {bits} | {creates} | {timed} | {gains} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.c_programs", description=__doc__)
    parser.add_argument("--networks", default="", help="names or parts of them, with | between")
    parser.add_argument("--json", type=Path, required=True, help="the record that is read and written")
    parser.add_argument("--seconds", type=float, default=2.0, help="of the calls of each network")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    record = json.loads(options.json.read_text()) if options.json.exists() else {}
    if options.table:
        print(table(record))
        return
    wanted = options.networks.split("|")
    for name in [name for name in FILES if any(part in name for part in wanted)]:
        record[name] = measured(name, options.seconds)
        print(name, json.dumps(record[name]), flush=True)
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    record["a call of one kernel, us"] = small_call_us()
    options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
