"""Runs the kernels of the avx2 suite, then the library itself, on the emulated CPU, and says what was executed."""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from tools.isa_matrix.machines import CPU, Missing, compile_loader, emulated, fetch_qemu, qemu

MOST_FAILURES = 20  # shown
ROOT = Path(__file__).parents[2]
LIBRARY = """
import numpy as np, asmdnn as dnn
x, w = (np.arange(n, dtype=np.float32).reshape(s) % 5 - 2 for n, s in ((2352, (1, 12, 14, 14)), (2160, (20, 12, 3, 3))))
y = dnn.ops.conv2d(x, w, padding=1)
padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
wanted = np.einsum("nchwij,ocij->nohw", windows, w)
print(dnn.Engine(threads=1).isa, bool(np.array_equal(y, wanted)))
"""


def main(arguments: Sequence[str]) -> int:
    """1 when a kernel fails or the library does not choose avx2, 2 when a program is missing."""
    parser = argparse.ArgumentParser(prog="python -m tools.isa_matrix", description=__doc__)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth kernel")
    parser.add_argument("--isa", default="avx2", help="another level's kernels, to see them fault")
    parser.add_argument("--native", action="store_true", help="run the loader on this CPU, without the emulator")
    parser.add_argument("--no-library", action="store_true", help="only the kernels, not the library itself")
    parser.add_argument("--fetch-qemu", action="store_true", help="get qemu into build/qemu first; needs no root")
    options = parser.parse_args(arguments)
    try:
        if options.fetch_qemu:
            fetch_qemu()
        status = run_kernels(options.isa, options.every, options.native)
        only_kernels = options.no_library or options.native or options.isa != "avx2"
        return status if only_kernels else status or run_library()
    except Missing as missing:
        print(f"isa_matrix: {missing}", file=sys.stderr)
        return 2


def run_kernels(isa: str, every: int, native: bool) -> int:
    from asmdnn.corpus.families import kernel_specs
    from tools.isa_matrix.case_file import write_cases

    specs = [spec for spec in kernel_specs() if spec.isa == isa][::every]
    where = "this CPU" if native else f"{qemu().name} -cpu {CPU}"
    with tempfile.TemporaryDirectory() as folder:
        loader, cases = compile_loader(Path(folder)), Path(folder) / "cases"
        slack = write_cases(cases, specs, emulated=not native)
        within = f" ({slack} with masked loads: guard pages a vector away)" if slack else ""
        print(f"{len(specs)} {isa} kernels on {where}{within}", flush=True)
        command, start = [str(loader), str(cases)], perf_counter()
        done = subprocess.run(command if native else emulated(command), stdout=subprocess.PIPE, text=True)
        lines, status = done.stdout.splitlines(), done.returncode
        print("\n".join([*lines[:-1][:MOST_FAILURES], *lines[-1:]]), flush=True)
    print(f"{perf_counter() - start:.1f} s, exit status {status}", flush=True)
    return min(abs(status), 1)


def run_library() -> int:
    """asmdnn under the emulator: it must find avx2, and compute with it."""
    start = perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment.pop("ASMDNN_MAX_CPU_ISA", None)
    done = subprocess.run(
        emulated([sys.executable, "-c", LIBRARY]), env=environment, capture_output=True, text=True, cwd=ROOT
    )
    answer = done.stdout.strip() or " ".join(done.stderr.split())[-300:]
    print(f"asmdnn on {CPU}: isa and equality of a convolution: {answer} ({perf_counter() - start:.1f} s)")
    return int(answer != "avx2 True")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
