"""Twelve published architectures by torch.compile and from_torch: right, how fast, and what the first call takes.

    python -m tools.torch_models --json=RECORD [--models=ResNet-50] [--ways=eager,compile] [--threads=1] [--seconds=5]
    python -m tools.torch_models --json=RECORD --first    CPU seconds of first calls, without and with kernels on disk
    python -m tools.torch_models --json=RECORD --table    the record as a table

All ways take turns in one process, so that they meet the same machine; a number is the median.  A record keeps what it
has of other models.  Needs torch, torchvision, timm and transformers, and inductor a C++ compiler.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from tools.torch_models.models import MODELS
from tools.torch_models.table import table
from tools.torch_models.ways import WAYS, call_by, first_call, relative_error

LEAST_ROUNDS = 5
OWN_WAYS = ("compile", "from_torch")
BYTECODE = Path("build", "bytecode").resolve()


def made(name: str) -> tuple[Any, tuple[Any, ...]]:
    """A module in evaluation mode and inputs, the same in every process."""
    import torch

    torch.manual_seed(0)
    module, inputs = MODELS[name]()
    return module.eval(), inputs


def speed(name: str, ways: list[str], threads: int, seconds: float) -> dict[str, Any]:
    """Milliseconds of a call by each way, and the error against eager."""
    import torch

    module, inputs = made(name)
    calls = {way: call_by(way, module, inputs, threads) for way in ways}
    wanted = module(*inputs)
    errors = {way: relative_error(call(*inputs), wanted) for way, call in calls.items() if way != "eager"}
    times: dict[str, list[float]] = {way: [] for way in ways}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[ways[0]]) < LEAST_ROUNDS:
        for way, call in calls.items():
            start = time.perf_counter()
            call(*inputs)
            times[way].append((time.perf_counter() - start) * 1e3)
    torch._dynamo.reset()
    return {"ms": {way: median(found) for way, found in times.items()}, "error": errors}


def first(name: str) -> dict[str, Any]:
    """CPU seconds of the first calls, each in a process of its own: without kernels on disk, then with them."""
    found: dict[str, Any] = {}
    peachpy = find_spec("peachpy")
    folders = ["asmdnn", *((peachpy and peachpy.submodule_search_locations) or ())]
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    compiled["PYTHONPYCACHEPREFIX"] = str(BYTECODE)  # an installed package has it
    subprocess.run([sys.executable, "-m", "compileall", "-q", *folders], env=compiled, check=True)
    for way in OWN_WAYS:
        with tempfile.TemporaryDirectory() as folder:
            for state in ("cold", "warm"):
                command = [sys.executable, "-m", "tools.torch_models", f"--models={name}", f"--alone={way}"]
                environment = compiled | {"ASMDNN_CACHE_DIR": folder}
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
                found[f"{way} {state}"] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.torch_models", description=__doc__)
    parser.add_argument("--models", help="names or parts of them, with | between")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0, help="of all ways of a model")
    parser.add_argument("--json", type=Path, help="the record that is read and written")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--alone", choices=OWN_WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    record = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    if options.table:
        print(table(record))
        return
    import torch

    torch.set_num_threads(options.threads)
    wanted = (options.models or "").split("|")
    with torch.no_grad():
        for name in [name for name in MODELS if any(part in name for part in wanted)]:
            if options.alone:
                print(json.dumps(first_call(options.alone, *made(name))))
                continue
            entry = record.setdefault(name, {})
            if options.first:
                entry["first"] = first(name)
            else:
                found = speed(name, options.ways.split(","), options.threads, options.seconds)
                entry[f"{options.threads} threads"] = found
            print(name, json.dumps(entry), flush=True)
            if options.json:
                options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
