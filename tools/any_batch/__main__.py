"""Whether networks give an item the bits that it has alone, in batches of 1 to 64 on 1 to 3 threads; what that costs.

    python -m tools.any_batch --json=RECORD [--networks=ResNet]          bits, and whether plans are other ones
    python -m tools.any_batch --json=RECORD --cost [--networks=ResNet]   times of those with other plans, in turns
    python -m tools.any_batch --json=RECORD --plans [--networks=ResNet]  whether plans are other ones, alone
    python -m tools.any_batch --json=RECORD --table                      the record as a table
    python -m tools.any_batch.problems [--cost] [SET ...]                the same of problem sets

A record keeps what it has of other networks.  Networks need torch, torchvision, timm, transformers, onnx, and the
models of `python -m examples.models`.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import asmdnn as dnn
from tools.any_batch.listed import NETWORKS
from tools.any_batch.networks import MOST, Array, Items

BATCHES, THREADS = (64, 16, 8, 5, 3, 2, 1), (1, 2, 3)
TIMED = ((1, 1), (8, 1), (1, 2), (8, 2))  # batch, threads
LEAST_ROUNDS = 7


def asking(threads: int) -> dnn.Engine:
    return replace(dnn.Engine(threads=threads), deterministic="batch")


def fed(net: dnn.Network, items: list[Array], batch: int) -> dict[str, Array]:
    return {name: data[:batch] for name, data in zip(net.inputs, items, strict=True)}


def differing(items: Items) -> list[str]:
    """The batches and threads with an item of other bits than among MOST on one thread, and by how much."""
    of_batch, data = items
    whole: dict[str, Array] = {}
    found: list[str] = []
    for batch in BATCHES:
        for threads in THREADS:
            net = of_batch(batch, asking(threads))
            outputs = net.run(fed(net, data, batch))
            whole = whole or outputs
            for name, array in outputs.items():
                wanted = whole[name][:batch] if len(whole[name]) == MOST else whole[name]
                if not np.array_equal(array.view(np.uint8), np.ascontiguousarray(wanted).view(np.uint8)):
                    found.append(f"{name} of {batch} on {threads}: {np.abs(array - wanted).max()}")
    return found


def others(items: Items) -> list[int]:
    """The batches whose plan is another one with deterministic="batch"."""
    return [batch for batch in (1, 8) if not items[0](batch, dnn.Engine(threads=1)).any_batch]


def cost(items: Items, batch: int, threads: int, seconds: float) -> float:
    """The time with deterministic="batch" over that without, medians of runs in turns."""
    nets = [items[0](batch, on) for on in (asking(threads), dnn.Engine(threads=threads))]
    feeds = [fed(net, items[1], batch) for net in nets]
    times: list[list[float]] = [[], []]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < LEAST_ROUNDS:
        for net, given, taken in zip(nets, feeds, times, strict=True):
            start = time.perf_counter()
            net.run(given)
            taken.append(time.perf_counter() - start)
    return median(times[0]) / median(times[1])


def table(record: dict[str, Any]) -> str:
    """A row for each network; a cost of 1 without a point is that of equal plans."""
    rows = [
        "| network | bits | batch 1, 1 thread | batch 8 | batch 1, 2 threads | batch 8 |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for name, entry in record.items():
        bits = entry.get("refused") or ("equal" if not entry["differing"] else "; ".join(entry["differing"]))
        costs = [entry.get("cost", {}).get(f"{batch}, {threads}") for batch, threads in TIMED]
        same = [batch not in entry.get("others", []) for batch, _ in TIMED]
        shown = ["1" if equal else "" if c is None else f"{c:.2f}" for c, equal in zip(costs, same, strict=True)]
        rows.append(f"| {name} | {bits} | {' | '.join(shown)} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.any_batch", description=__doc__)
    parser.add_argument("--networks", default="", help="names or parts of them, with | between")
    parser.add_argument("--json", type=Path, required=True, help="the record that is read and written")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each cost")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--plans", action="store_true")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    record = json.loads(options.json.read_text()) if options.json.exists() else {}
    if options.table:
        print(table(record))
        return
    wanted = options.networks.split("|")
    for name in [name for name in NETWORKS if any(part in name for part in wanted)]:
        entry = record.setdefault(name, {})
        items = NETWORKS[name]()
        if options.cost:
            batches = [(batch, threads) for batch, threads in TIMED if batch in entry["others"]]
            entry["cost"] = {f"{b}, {t}": cost(items, b, t, options.seconds) for b, t in batches}
        elif options.plans:
            entry["others"] = others(items)
        else:
            try:
                entry["differing"], entry["others"] = differing(items), others(items)
            except dnn.Unimplemented as error:
                entry["refused"] = str(error)
        print(name, json.dumps(entry), flush=True)
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
