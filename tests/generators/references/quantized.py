"""What kernels of nibbles compute, written from the generators' docstrings, and data for them."""

import numpy as np
from numpy.typing import NDArray

from asmdnn.generators.dot.quantize import QuantizeSpec
from asmdnn.generators.dot.quantized import QuantizedProductSpec
from asmdnn.generators.dot.unpacked import UnpackedProductSpec
from asmdnn.isa.vectors import lanes_of
from asmdnn.types import DATA_TYPES, f32, s8, u8
from tests.generators.case import UNIT_ROUNDOFF, Case, Reference
from tests.generators.references.softmax import ROUNDOFF, chained
from tests.support.arena import Elements, buffer_of, elements

ROUNDINGS = 16  # of what is summed, beside one for each group
QUAD = 4
NIBBLE_BITS = 4
MAGNITUDES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
FLOATS = {  # of each code, from the OCP's MX specification and from the paper of QLoRA
    "f4_e2m1": np.concatenate([MAGNITUDES, -MAGNITUDES]),
    "nf4": np.float64(np.float32([
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
        -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
        0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
    ])),
}  # fmt: skip
F16_END = 65520.0  # from which on f16 rounds to infinity
AnySpec = QuantizedProductSpec | UnpackedProductSpec


def quantize_case(spec: QuantizeSpec, random: np.random.Generator, integers: bool) -> Case:
    """Bytes and scales bit for bit, as f32 rounds."""
    kinds = {"src": DATA_TYPES[spec.kind], "dst": s8}
    memory = {name: elements(random, integers, kinds.get(name, f32)) for name in spec.frame}
    groups = spec.elements // spec.group
    for r in range(spec.rows):
        row = memory["src"].load(r * spec.src_row_bytes, spec.elements).astype(np.float32)
        for g, x in enumerate(np.split(row, groups)):
            most = np.abs(x).max()
            scale = most * np.float32(1 / 127)
            octets = np.rint(x * (np.float32(127) / most))
            at = r * groups + g
            memory["dst"].store(at * spec.group, octets.astype(np.float64))
            memory["scales"].store(4 * at, np.array([scale], np.float64))
            memory["sums"].store(4 * at, np.array([octets.sum() * np.float64(scale) * spec.factor]))
    bound = 4 * UNIT_ROUNDOFF * 127 * spec.group * 8
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {"sums": bound})


def product_case(spec: QuantizedProductSpec, random: np.random.Generator, integers: bool) -> Case:
    kinds = {"src": s8, "weights": u8, "dst": DATA_TYPES[spec.kind]}
    memory = {name: elements(random, integers, kinds.get(name, f32)) for name in spec.frame}
    columns = spec.vectors * lanes_of(spec.isa)
    numbers = numbers_of(spec, memory["weights"], columns)
    nibbles = numbers.reshape(spec.groups, spec.group, columns)
    table = {
        name: np.array([memory[name].load(g * spec.panel_bytes, columns) for g in range(spec.groups)])
        for name in ("scales", *["offsets"] * spec.offsets)
    }
    sizes, results = [0.0], []
    for r in range(spec.rows):
        src = memory["src"].load(r * spec.depth, spec.depth).reshape(spec.groups, spec.group)
        scales, sums = (memory[n].load(4 * r * spec.groups, spec.groups)[:, None] for n in ("src_scales", "src_sums"))
        products = scales * np.einsum("gk,gkn->gn", src, nibbles)
        shift = -table["offsets"] * sums if spec.offsets else table["scales"] * sums
        found = (products * table["scales"] + shift).sum(0)[: spec.columns]
        sizes.append((np.abs(products * table["scales"]) + np.abs(shift)).sum(0).max())
        results.append(chained(spec.after, found, r, memory))
        memory["dst"].store(r * spec.dst_row_bytes, overflowing(results[-1], spec.kind))
    operands = max((np.abs(memory[n].initial).max() for n in spec.frame if n.startswith("operand")), default=0.0)
    bound = (ROUNDINGS + spec.groups) * UNIT_ROUNDOFF * (max(sizes) + 1) * (1 + operands)
    bound += ROUNDOFF[spec.kind] * max(np.abs(row).max() for row in results)
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {"dst": bound})


def numbers_of(spec: AnySpec, weights: Elements, columns: int) -> NDArray[np.float64]:
    """Of all k and columns, in some dims; panels keep nibbles of 8 k, or bytes of 4, side by side."""
    rows = spec.depth // spec.block
    panel = np.array([weights.load(i * spec.panel_bytes, QUAD * columns) for i in range(rows)])
    octets = panel.reshape(-1, 1, columns, QUAD).swapaxes(2, 3)
    found: NDArray[np.float64] = np.concatenate((octets % 16, octets // 16), 1) if spec.bits == 4 else octets
    return found


def overflowing(row: NDArray[np.float64], kind: str) -> NDArray[np.float64]:
    """With infinities where f16 ends."""
    return np.where(np.abs(row) < F16_END, row, np.copysign(np.inf, row)) if kind == "f16" else row


def unpacked_case(spec: UnpackedProductSpec, random: np.random.Generator, integers: bool) -> Case:
    """Sums in double precision; what is summed is the bound's size."""
    kinds = {"weights": u8, "dst": DATA_TYPES[spec.kind]}
    memory = {name: elements(random, integers, kinds.get(name, f32)) for name in spec.frame}
    columns = spec.vectors * lanes_of(spec.isa)
    numbers = numbers_of(spec, memory["weights"], columns).reshape(spec.groups, spec.group, columns)
    if spec.in_order and spec.bits == NIBBLE_BITS:
        rows = spec.depth // spec.block
        octets = np.array([memory["weights"].load(i * spec.panel_bytes, QUAD * columns) for i in range(rows)])
        pairs = np.stack((octets % 16, octets // 16), -1).reshape(rows, columns, 2 * QUAD)
        numbers = pairs.swapaxes(1, 2).reshape(numbers.shape)
    steps = (spec.scales_row_bytes or spec.panel_bytes, spec.panel_bytes)
    if spec.signed:
        numbers = np.where(numbers >= 2 ** (spec.bits - 1), numbers - 2**spec.bits, numbers)
    if spec.table:
        numbers = FLOATS[spec.table][numbers.astype(int)]
    table = [
        np.array([memory[name].load(g * step, columns) for g in range(spec.groups)])[:, None]
        for name, step in zip(("scales", *["offsets"] * spec.offsets), steps, strict=False)
    ]
    scales, shift = table[0], table[1] if spec.offsets else table[0] * spec.zero_point
    shift = shift * scales if spec.unscaled else shift
    weights = (numbers * scales - shift).reshape(spec.depth, columns)
    sizes = (np.abs(numbers * scales) + np.abs(shift)).reshape(spec.depth, columns)
    size, results = 0.0, []
    for r in range(spec.rows):
        src = memory["src"].load(r * spec.src_row_bytes, spec.depth)
        size = max(size, (np.abs(src) @ sizes).max())
        results.append(chained(spec.after, (src @ weights)[: spec.columns], r, memory))
        memory["dst"].store(r * spec.dst_row_bytes, overflowing(results[-1], spec.kind))
    operands = max((np.abs(memory[n].initial).max() for n in spec.frame if n.startswith("operand")), default=0.0)
    bound = (ROUNDINGS + spec.depth) * UNIT_ROUNDOFF * (size + 1) * (1 + operands)
    bound += ROUNDOFF[spec.kind] * max(np.abs(row).max() for row in results)
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {"dst": bound})


REFERENCES = {
    QuantizeSpec: Reference(quantize_case, rounds=True),
    QuantizedProductSpec: Reference(product_case, rounds=True),
    UnpackedProductSpec: Reference(unpacked_case, rounds=True),
}
