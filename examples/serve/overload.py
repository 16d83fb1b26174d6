"""Twice as many requests as can be answered, to this library and to onnxruntime behind the same service, in turns.

python -m examples.serve.overload MODEL.onnx --shape=1x3x48x192 [--requests=100000] [--rounds=4]

First one service answers as fast as it can: its capacity.  Then each round starts a service for either library and
sends it twice that rate.  Every answer is compared, bit by bit, with that of the same library in this process.  Exit
status 1 if an answer was wrong, failed, or came later than the service's timeout.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import asmdnn as dnn
from examples.serve.load import Tally, Target, exchanges, loaded
from examples.serve.peer import network_at
from examples.serve.server import PREFIX

ROOT: Final = Path(__file__).parents[2]
CAPACITY_S: Final = 3.0
TIMEOUT_S: Final = 5.0


@contextmanager
def serving(path: Path, workers: int) -> Iterator[str]:
    """The address of a service of the network "net", until the block ends."""
    words = [f"net={path.absolute()}", "--port=0", f"--workers={workers}", f"--timeout={TIMEOUT_S}"]
    command = [sys.executable, "-m", "examples.serve", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            if not line.startswith("serving "):
                raise dnn.InvalidArguments(f"the service of {path} did not begin")
            yield line.split()[-1]
        finally:
            process.terminate()


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m examples.serve.overload", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model", type=Path, help="an ONNX file with one input and one output")
    parser.add_argument("--shape", required=True, help="the input's dims, such as 1x3x48x192")
    parser.add_argument("--requests", type=int, default=100_000, help="to either library; default: 100000")
    parser.add_argument("--rounds", type=int, default=4, help="default: 4")
    parser.add_argument("--clients", type=int, default=48, help="connections; default: 48")
    parser.add_argument("--workers", type=int, default=2, help="threads that compute; default: 2")
    given = parser.parse_args(words)
    if not re.fullmatch(r"[1-9]\d{0,5}(x[1-9]\d{0,5})*", given.shape):
        parser.error(f"--shape={given.shape} has no dims such as 1x3x48x192")
    if not (given.requests >= given.rounds > 0 and 0 < given.clients <= 250 and given.workers > 0):
        parser.error("--rounds and --workers must be above 0, --requests at least --rounds, --clients from 1 to 250")
    try:
        return overload(given)
    except dnn.AsmdnnError as error:
        parser.error(str(error))


def overload(given: argparse.Namespace) -> int:
    """Raises AsmdnnError for a model that either library refuses."""
    (name,) = network_at(given.model, 1).inputs
    dims = tuple(map(int, given.shape.split("x")))
    with tempfile.TemporaryDirectory() as folder:
        pack = Path(folder) / "model.pack"
        dnn.load_onnx(given.model, shapes={name: dims}, engine=dnn.Engine(threads=1)).save(pack)
        files = {"asmdnn": pack, "onnxruntime": given.model}
        pairs = {library: exchanges(network_at(path, 1), dims) for library, path in files.items()}
        with serving(pack, given.workers) as host:
            tally, elapsed = loaded(target(host, 0.0, CAPACITY_S), pairs["asmdnn"], given.workers + 2)
        rate = 2 * len(tally.seconds) / elapsed
        print(f"capacity {rate / 2:.0f} a second; {rate:.0f} are sent", flush=True)
        totals = {library: Tally() for library in files}
        spent = dict.fromkeys(files, 0.0)
        for _ in range(given.rounds):
            for library, path in files.items():
                with serving(path, given.workers) as host:
                    asked = target(host, rate, given.requests / given.rounds / rate)
                    tally, elapsed = loaded(asked, pairs[library], given.clients)
                totals[library].add(tally)
                spent[library] += elapsed
                print(f"{library}: {tally.report(elapsed)}", flush=True)
    for library, total in totals.items():
        print(f"{library}, all rounds: {total.report(spent[library])}")
    return int(any(total.wrong or total.failed or total.longest > TIMEOUT_S for total in totals.values()))


def target(host: str, rate: float, seconds: float) -> Target:
    return Target(host, f"{PREFIX}/net", rate, seconds)


if __name__ == "__main__":
    raise SystemExit(main())
