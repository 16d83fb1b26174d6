"""Random problems of the drivers of `asmdnn bench`, in its words, for cliffs.py: shapes that published layers have
not, and options of single problems where layouts, types or axes are the point."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final

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


def layouts(random: Random, tags: Sequence[str] = ("abx", "axb", "aBx8b", "aBx16b")) -> str:
    return random.choice(tags)


def types(random: Random) -> str:
    return random.choice(("f32", "f32", "bf16", "s8", "u8"))


def reorder(random: Random) -> str:
    """Of images, between formats of activations, or of matrices of two to five dims with dims in other places."""
    words = f"--sdt={types(random)} --ddt={types(random)}"
    if random.random() < 0.6:
        return f"{words} --stag={layouts(random)} --dtag={layouts(random)} {dims(random)}"
    sizes = [random.choice((1, 3, 8, 17, 32, 50)) for _ in range(random.randint(1, 4))] + [random.choice(SIZES)]
    letters = "abcde"[: len(sizes)]
    source, target = ("".join(random.sample(letters, len(letters))) for _ in "sd")
    return f"{words} --stag={source} --dtag={target} {'x'.join(map(str, sizes))}"


def concat(random: Random) -> str:
    sizes, axis = image(random), random.choice((1, 1, 2, 3))
    own = [random.choice(CHANNELS if axis == 1 else SIZES) for _ in range(random.randint(2, 4))]
    shapes = ":".join("x".join(map(str, [*sizes[:axis], each, *sizes[axis + 1 :]])) for each in own)
    return f"--sdt={types(random)} --stag={layouts(random, ('abx', 'axb'))} --axis={axis} {shapes}"


def total(random: Random) -> str:
    terms = ":".join(["f32"] * random.randint(2, 5))
    return f"--sdt={terms} --stag={layouts(random, ('abx', 'axb', 'aBx16b'))} {dims(random)}"


def reduction(random: Random) -> str:
    """Of some axes, most often the last ones."""
    sizes = image(random)
    kept = random.choice((1, 2, 2, 3)) if random.random() < 0.6 else 0
    made = [n if i < kept or (not kept and random.random() < 0.5) else 1 for i, n in enumerate(sizes)]
    words = f"--alg={random.choice(('sum', 'mean', 'max'))} --stag={layouts(random, ('abx', 'axb'))} --dtag=any"
    return f"{words} {'x'.join(map(str, sizes))}:{'x'.join(map(str, made))}"


def shuffle(random: Random) -> str:
    sizes = image(random)
    groups = [n for n in range(2, max(3, sizes[1])) if sizes[1] % n == 0] or [1]
    words = f"--dt={types(random)} --tag={layouts(random)} --group={random.choice(groups)}"
    return f"{words} {'x'.join(map(str, sizes))}"


def prelu(random: Random) -> str:
    sizes = image(random)
    weights = [1, sizes[1], 1, 1] if random.random() < 0.7 else [random.choice((n, 1)) for n in sizes]
    shapes = ":".join("x".join(map(str, each)) for each in (sizes, weights))
    return f"--dir=FWD_I --stag={layouts(random, ('abx', 'axb', 'aBx16b'))} {shapes}"


def ip(random: Random) -> str:
    images, size = random.choice((1, 2, 8, 32, 128)), random.choice((0, 0, 7, 5))
    inputs, outputs = random.choice(CHANNELS[4:]), random.choice((10, 17, 64, 100, 256, 1000))
    return f"--dir=FWD_B mb{images}ic{inputs}{f'ih{size}' if size else ''}oc{outputs}"


def rnn(random: Random) -> str:
    alg = random.choice(("VANILLA_RNN", "VANILLA_LSTM", "VANILLA_GRU", "LBR_GRU"))
    steps, images = random.choice((1, 5, 20)), random.choice((1, 2, 8, 16, 33, 64))
    inputs, units = (random.choice((17, 32, 64, 100, 128, 256)) for _ in "iu")
    side = random.choice(("left2right", "concat"))
    size = 2 * units if side == "concat" else units
    return f"--alg={alg} --direction={side} t{steps}mb{images}sic{units}slc{inputs}dhc{units}dic{size}"


def sdpa(random: Random) -> str:
    images, heads, width = random.choice((1, 1, 4)), random.choice((1, 4, 8, 12)), random.choice((32, 40, 64, 80, 128))
    rows, keys = (random.choice((1, 16, 50, 77, 128, 197, 300, 512)) for _ in "rk")
    batch = f"{images}x{heads}x"
    return f"--ktag=abdc {batch}{rows}x{width}:{batch}{width}x{keys}:{batch}{keys}x{width}"


def softmax(random: Random) -> str:
    """Of rows, or of one of the axes of images."""
    if random.random() < 0.5:
        return f"--stag=abx --axis=1 {rows(random)}"
    return f"--stag={layouts(random, ('abx', 'axb'))} --axis={random.choice((1, 2, 3))} {dims(random)}"


def rows(random: Random) -> str:
    return f"{random.choice((1, 8, 32, 128, 512, 4096))}x{random.choice((10, 49, 64, 197, 256, 512, 768, 1000, 4096))}"


def norm(random: Random) -> str:
    images, channels, size, _ = image(random)
    return f"mb{images}ic{channels}ih{size}"


GENERATORS: Final[Mapping[str, Callable[[Random], str | None]]] = {
    "conv": conv, "deconv": deconv, "pool": pool, "matmul": matmul, "ip": ip, "binary": binary, "eltwise": dims,
    "reorder": reorder, "resampling": resampling, "softmax": softmax, "lnorm": rows, "bnorm": norm, "lrn": norm,
    "concat": concat, "sum": total, "reduction": reduction, "shuffle": shuffle, "prelu": prelu, "rnn": rnn,
    "sdpa": sdpa,
}  # fmt: skip


def problems(driver: str, seed: int, count: int) -> list[str]:
    """So many different ones, the same for a seed, each with options of its own in front."""
    random, found = Random(f"{driver} {seed}"), dict[str, None]()
    while len(found) < count:
        problem = GENERATORS[driver](random)
        if problem:
            found[problem] = None
    return list(found)
