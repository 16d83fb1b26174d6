"""Where other shapes than published ones are slow: `python -m tools.cliffs [DRIVER ...] [-- OPTIONS OF BENCH]`.

Random problems of each driver are timed beside oneDNN, and those that take much longer are listed with the way that was
chosen.  Problem sets have the layers of networks; what lies beside them can fall to a way that nobody has looked at:
groups of eight channels, a stride beyond the kernel and long kernels of bytes were 4 to 37 times slower than now.

What is slow is timed again, in other processes, and its best ratio counts: other programs come and go.

Example: python -m tools.cliffs --seed=7 conv deconv -- --dir=BWD_W --dt=bf16
"""

import json
import subprocess
import sys
from argparse import ArgumentParser, RawTextHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from math import exp, fsum, log
from typing import Any

from tools.random_problems import GENERATORS, problems


def timed(driver: str, words: Sequence[str]) -> list[Mapping[str, Any]]:
    """A row for each problem that both libraries have computed.  Ends the program where the bench refuses the words."""
    command = (sys.executable, "-m", "asmdnn", "bench", f"--{driver}", "--mode=F", "--threads=1", "--peer=onednn")
    done = subprocess.run((*command, "--json=-", *words), capture_output=True, text=True, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode and not rows:
        sys.exit(done.stderr.strip())
    return [row for row in rows if row.get("us") and row.get("peer_us")]


def ratio(row: Mapping[str, Any]) -> float:
    return float(row["peer_us"] / row["us"])


def confirmed(driver: str, found: Sequence[Mapping[str, Any]], below: float, repeats: int) -> list[Mapping[str, Any]]:
    """The rows, of which those below were timed so often again: each in the process where its ratio was best."""
    best = {row["args"]: row for row in found}
    for _ in range(repeats):
        slow = [args for args, row in best.items() if ratio(row) < below]
        words = [word for args in slow for word in ("--reset", *args.split()[1:])]
        for row in timed(driver, words) if slow else ():
            best[row["args"]] = max(best.get(row["args"], row), row, key=ratio)
    return list(best.values())


def lines(driver: str, found: Sequence[Mapping[str, Any]], below: float) -> Iterator[str]:
    """The mean of a driver, and what is slow, the slowest first."""
    ratios = sorted((ratio(row), number) for number, row in enumerate(found))
    if not ratios:
        yield f"{driver}: oneDNN has timed none"
        return
    mean = exp(fsum(log(times) for times, _ in ratios) / len(ratios))
    least = f"{ratios[0][0]:.2f} at least"
    yield f"{driver}: {len(ratios)} problems, {mean:.2f} times as fast as oneDNN in the mean, {least}"
    for times, number in ratios:
        row = found[number]
        if times < below:
            peer = f"{row['peer_us']:.1f} by {row['peer_impl']}"
            yield f"  {times:.2f}  {row['title']}  {row['impl']}  {row['us']:.1f} us, oneDNN {peer}"


def main(arguments: Sequence[str]) -> None:
    own, _, options = (" ".join(arguments)).partition(" -- ")
    parser = ArgumentParser(prog="python -m tools.cliffs", description=__doc__, formatter_class=RawTextHelpFormatter)
    parser.add_argument("drivers", nargs="*", metavar="DRIVER", help=", ".join(GENERATORS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40, help="problems of a driver")
    parser.add_argument("--below", type=float, default=0.7, help="the ratio below which a problem is listed")
    parser.add_argument("--repeats", type=int, default=2, help="how often what is slow is timed again")
    read = parser.parse_args(own.split())
    unknown = [driver for driver in read.drivers if driver not in GENERATORS]
    if unknown:
        parser.error(f"there are no problems of {unknown[0]}: take {', '.join(GENERATORS)}")
    for driver in read.drivers or GENERATORS:
        own_words = (word for problem in problems(driver, read.seed, read.count) for word in problem.split())
        words = [*options.split(), *own_words]
        found = confirmed(driver, timed(driver, words), read.below, read.repeats)
        for line in lines(driver, found, read.below):
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
