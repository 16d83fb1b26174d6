"""Where other shapes than published ones are slow: `python -m tools.cliffs [DRIVER ...] [-- OPTIONS OF BENCH]`.

Random problems of each driver are timed beside oneDNN, and those that take much longer are listed with the way that was
chosen.  Problem sets have the layers of networks; what lies beside them can fall to a way that nobody has looked at:
groups of eight channels, a stride beyond the kernel and long kernels of bytes were 4 to 37 times slower than now.

Example: python -m tools.cliffs --seed=7 conv deconv -- --dir=BWD_W --dt=bf16
"""

import json
import subprocess
import sys
from argparse import ArgumentParser, RawTextHelpFormatter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import exp, fsum, log
from random import Random
from typing import Any, Final

CHANNELS: Final = (1, 3, 8, 12, 16, 17, 24, 32, 33, 48, 64, 72, 96, 128, 144, 192, 256, 320, 512, 768)
SIZES: Final = (5, 7, 8, 10, 13, 14, 16, 20, 28, 32, 33, 52, 56, 64, 80, 112)
MOST_FLOPS, MOST_ELEMENTS = 2e9, 2e7


def grouped_channels(random: Random) -> tuple[int, int, int]:
    """(groups, channels of src, of dst): one group, depthwise, small groups, or several results of each channel."""
    kind = random.random()
    if kind < 0.5:
        return 1, random.choice(CHANNELS), random.choice(CHANNELS)
    if kind < 0.7:
        groups = random.choice(CHANNELS[2:])
        return groups, groups, groups * random.choice((1, 1, 2))
    groups, own = random.randint(2, 32), random.choice((2, 3, 4, 8, 10, 16, 24, 40))
    return groups, groups * own, groups * own


def window(random: Random, kernels: Sequence[int]) -> tuple[int, int, int, int, int, int]:
    """(size, results, kernel, stride, padding, dilation) along an axis, with nothing that no window reads."""
    kernel, stride = random.choice(kernels), random.choice((1, 1, 2, 3))
    dilation = random.choice((0, 0, 0, 1, 3)) if kernel > 1 else 0
    reach = (kernel - 1) * (dilation + 1) + 1
    padding = random.choice((0, (reach - 1) // 2))
    results = (random.choice(SIZES) + 2 * padding - reach) // stride + 1
    return (results - 1) * stride + reach - 2 * padding, results, kernel, stride, padding, dilation


def conv(random: Random) -> str | None:
    groups, src, dst = grouped_channels(random)
    size, results, kernel, stride, padding, dilation = window(random, (1, 1, 2, 3, 3, 5, 7, 11))
    images = random.choice((1, 2, 4))
    if min(size, results) < 1 or 2 * images * src * dst / groups * (kernel * results) ** 2 > MOST_FLOPS:
        return None
    front = f"g{groups}" if groups > 1 else ""
    return f"{front}mb{images}ic{src}ih{size}oc{dst}oh{results}kh{kernel}sh{stride}ph{padding}dh{dilation}"


def deconv(random: Random) -> str | None:
    groups, src, dst = grouped_channels(random)
    results, size, kernel, stride, padding, dilation = window(random, (1, 2, 3, 4, 5))
    if min(size, results) < 1 or dilation or 2 * src * dst / groups * (kernel * size) ** 2 > MOST_FLOPS:
        return None
    front = f"g{groups}" if groups > 1 else ""
    return f"{front}mb1ic{src}ih{size}oc{dst}oh{results}kh{kernel}sh{stride}ph{padding}"


def pool(random: Random) -> str | None:
    size, results, kernel, stride, padding, dilation = window(random, (2, 3, 3, 5, 7, 13))
    channels, images = random.choice(CHANNELS), random.choice((1, 2, 8))
    if min(size, results) < 1 or dilation or images * channels * size**2 > MOST_ELEMENTS:
        return None
    return f"mb{images}ic{channels}ih{size}oh{results}kh{kernel}sh{stride}ph{padding}"


def matmul(random: Random) -> str | None:
    m, k, n = (random.choice((1, 5, 16, 33, 64, 100, 128, 197, 256, 384, 512, 1000, 2048, 3072)) for _ in "mkn")
    batches = random.choice((1, 1, 2, 12))
    front = f"{batches}x" if batches > 1 else ""
    return f"{front}{m}x{k}:{front}{k}x{n}" if 2 * batches * m * k * n < MOST_FLOPS else None


def image(random: Random) -> list[int]:
    return [random.choice((1, 2, 8)), random.choice(CHANNELS), random.choice(SIZES), random.choice(SIZES)]


def dims(random: Random) -> str:
    return "x".join(map(str, image(random)))


def binary(random: Random) -> str:
    first = image(random)
    return ":".join("x".join(map(str, sizes)) for sizes in (first, [random.choice((n, n, 1)) for n in first]))


def resampling(random: Random) -> str:
    images, channels, size, _ = image(random)
    results = random.choice((2 * size, 3 * size, max(1, size // 2), random.choice(SIZES)))
    return f"mb{images}ic{channels}_ih{size}oh{results}_iw{size}ow{results}"


def rows(random: Random) -> str:
    return f"{random.choice((1, 8, 32, 128, 512, 4096))}x{random.choice((10, 49, 64, 197, 256, 512, 768, 1000, 4096))}"


def norm(random: Random) -> str:
    images, channels, size, _ = image(random)
    return f"mb{images}ic{channels}ih{size}"


GENERATORS: Final[Mapping[str, Callable[[Random], str | None]]] = {
    "conv": conv, "deconv": deconv, "pool": pool, "matmul": matmul, "binary": binary, "eltwise": dims, "reorder": dims,
    "resampling": resampling, "softmax": rows, "lnorm": rows, "bnorm": norm, "lrn": norm,
}  # fmt: skip


def problems(driver: str, seed: int, count: int) -> list[str]:
    """So many different ones, the same for a seed."""
    random, found = Random(f"{driver} {seed}"), dict[str, None]()
    while len(found) < count:
        problem = GENERATORS[driver](random)
        if problem:
            found[problem] = None
    return list(found)


def timed(driver: str, words: Sequence[str]) -> list[Mapping[str, Any]]:
    """A row for each problem that both libraries have computed.  Ends the program where the bench refuses the words."""
    command = (sys.executable, "-m", "asmdnn", "bench", f"--{driver}", "--mode=F", "--threads=1", "--peer=onednn")
    done = subprocess.run((*command, "--json=-", *words), capture_output=True, text=True, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode and not rows:
        sys.exit(done.stderr.strip())
    return [row for row in rows if row.get("us") and row.get("peer_us")]


def lines(driver: str, found: Sequence[Mapping[str, Any]], below: float) -> Iterator[str]:
    """The mean of a driver, and what is slow, the slowest first."""
    ratios = sorted(((row["peer_us"] / row["us"], number) for number, row in enumerate(found)))
    if not ratios:
        yield f"{driver}: oneDNN has timed none"
        return
    mean = exp(fsum(log(ratio) for ratio, _ in ratios) / len(ratios))
    least = f"{ratios[0][0]:.2f} at least"
    yield f"{driver}: {len(ratios)} problems, {mean:.2f} times as fast as oneDNN in the mean, {least}"
    for ratio, number in ratios:
        row = found[number]
        if ratio < below:
            peer = f"{row['peer_us']:.1f} by {row['peer_impl']}"
            yield f"  {ratio:.2f}  {row['title']}  {row['impl']}  {row['us']:.1f} us, oneDNN {peer}"


def main(arguments: Sequence[str]) -> None:
    own, _, options = (" ".join(arguments)).partition(" -- ")
    parser = ArgumentParser(prog="python -m tools.cliffs", description=__doc__, formatter_class=RawTextHelpFormatter)
    parser.add_argument("drivers", nargs="*", metavar="DRIVER", help=", ".join(GENERATORS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40, help="problems of a driver")
    parser.add_argument("--below", type=float, default=0.7, help="the ratio below which a problem is listed")
    read = parser.parse_args(own.split())
    unknown = [driver for driver in read.drivers if driver not in GENERATORS]
    if unknown:
        parser.error(f"there are no problems of {unknown[0]}: take {', '.join(GENERATORS)}")
    for driver in read.drivers or GENERATORS:
        words = [*options.split(), *problems(driver, read.seed, read.count)]
        for line in lines(driver, timed(driver, words), read.below):
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
