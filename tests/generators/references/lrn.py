"""What local response normalization computes, written from the generator's docstring, and data for it."""

import numpy as np

from asmdnn.corpus.conv import LANES
from asmdnn.generators.functions.lrn import LrnSpec
from asmdnn.generators.functions.lrn_channels import LrnChannelsSpec
from asmdnn.generators.functions.lrn_gradient import LrnGradientSpec
from asmdnn.generators.functions.tap_rows import TapRows
from asmdnn.types import DATA_TYPES
from tests.generators.case import UNIT_ROUNDOFF, Case, Reference
from tests.support.arena import Doubles, Elements, buffer_of, elements

ROUNDINGS = 16  # of the power, the product and the base
LARGEST = 16  # of elements


def lrn_case(spec: LrnSpec, random: np.random.Generator, integers: bool) -> Case:
    """Within a rounding for each square, which the power makes smaller, and some more."""
    memory = {name: elements(random, integers) for name in spec.frame}
    src = memory["src"]
    for r in range(spec.rows):
        x, sums = src.load(r * spec.src_row_bytes, spec.elements), sums_of(spec, src, r, 2)
        base = spec.k + spec.factor * sums
        if spec.has_workspace:
            memory["workspace"].store(r * spec.dst_row_bytes, base)
        memory["dst"].store(r * spec.dst_row_bytes, x * base**-spec.beta)
    size = {name: np.abs(memory[name].values).max() for name in spec.frame}
    bounds = {name: UNIT_ROUNDOFF * (ROUNDINGS + len(spec.taps)) * size[name] for name in spec.frame[1:]}
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, bounds)


def sums_of(spec: TapRows, src: Elements, r: int, power: int) -> Doubles:
    """Of powers of what the taps of a row's elements have; all that the kernel may read is loaded."""
    sums, places = np.zeros(spec.elements), np.arange(spec.elements)
    for tap in spec.taps:
        has = (places % spec.piece >= tap.first) & (places % spec.piece < tap.last)
        together = LANES[spec.isa] if tap.whole else 1  # vectors of which some lanes have the tap are loaded whole
        for e in places[np.isin(places // together, places[has] // together)]:
            value = src.load(r * spec.src_row_bytes + tap.offset_bytes + 4 * int(e), 1)[0] ** power
            sums[e] += value if has[e] else 0
    return sums


def gradient_case(spec: LrnGradientSpec, random: np.random.Generator, integers: bool) -> Case:
    """Within a rounding for each term, in the size of all."""
    memory, size = {name: elements(random, integers) for name in spec.frame}, 0.0
    for r in range(spec.rows):
        at = r * spec.dst_row_bytes
        memory["src"].load(r * spec.src_row_bytes, spec.elements)
        x, q = (memory[name].load(at, spec.elements) for name in ("x", "dst"))
        total = sums_of(spec, memory["src"], r, 1)
        memory["dst"].store(at, q - spec.factor * x * total)
        size = max(size, np.abs(q).max() + spec.factor * np.abs(x).max() * len(spec.taps) * LARGEST)
    bound = UNIT_ROUNDOFF * (ROUNDINGS + len(spec.taps)) * size
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {"dst": bound})


def channels_case(spec: LrnChannelsSpec, random: np.random.Generator, integers: bool) -> Case:
    """base is above 0, from less than 1 to some."""
    kinds = [DATA_TYPES[kind] for kind in spec.kinds]
    memory = {name: elements(random, integers, kind) for name, kind in zip(spec.frame, kinds, strict=True)}
    base, size = memory["base"], 0.0
    base.initial = base.values = np.float64(np.float32(0.5 + np.abs(base.values)))

    def load(name: str, argument: int, pixel: int) -> Doubles:
        return np.concatenate([memory[name].load(at, spec.block) for at in places(argument, pixel)])

    def places(argument: int, pixel: int) -> list[int]:
        starts = (pixel * spec.pixel_step + block * spec.block_step for block in range(spec.blocks))
        return [kinds[argument].size_bytes * at for at in starts]

    for pixel in range(spec.pixels):
        x, dy, b = (load(name, argument, pixel) for argument, name in ((0, "src"), (2, "diff"), (3, "base")))
        direct, shares = dy * b**-spec.beta, dy * x * b ** (-spec.beta - 1)
        total, sizes = (windowed(values, spec.window) for values in (shares, np.abs(shares)))
        result = direct - spec.factor * x * total
        size = max(size, (np.abs(direct) + spec.factor * np.abs(x) * sizes).max())
        for at, values in zip(places(1, pixel), np.split(result, spec.blocks), strict=True):
            memory["dst"].store(at, values)
    bound = UNIT_ROUNDOFF * (2 * ROUNDINGS + spec.window[1] - spec.window[0]) * size
    bound += {"bf16": 2.0**-8, "f16": 2.0**-11}.get(spec.kinds[1], 0) * size
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {"dst": bound})


def windowed(values: Doubles, window: tuple[int, int]) -> Doubles:
    """Of each, the sum of those in the window from it on."""
    count = len(values)
    found = [values[max(0, c + window[0]) : max(0, min(count, c + window[1]))].sum() for c in range(count)]
    return np.array(found)


CASES = {LrnSpec: lrn_case, LrnGradientSpec: gradient_case, LrnChannelsSpec: channels_case}
REFERENCES = {kind: Reference(make, rounds=True) for kind, make in CASES.items()}
