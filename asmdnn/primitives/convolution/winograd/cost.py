"""What a Winograd convolution is expected to cost, in cycles of one thread; docs/winograd.md derives it."""

from dataclasses import dataclass
from typing import Final

from asmdnn.generators.winograd.forms import FORMS
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.cost import CALL_CYCLES, step_cycles
from asmdnn.planning.cuts import balanced, runs_of
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.winograd.cut import ROWS, Cut, sizes_of


@dataclass(frozen=True, slots=True)
class Transforms:
    """Cycles for one vector of a tile."""

    source: int
    products: int


TRANSFORM_CYCLES: Final = {
    ("avx2", 2): Transforms(43, 21),
    ("avx2", 4): Transforms(104, 78),
    ("avx512_core", 2): Transforms(75, 37),
    ("avx512_core", 4): Transforms(187, 105),
}
RATE: Final = 9.3  # bytes a cycle from behind L2
BUSY: Final = 0.97  # of the time that multiplies take


def cycles_of(g: ConvGeometry, cut: Cut, isa: str, l2_bytes: int) -> float:
    """The whole convolution."""
    lanes, sizes = lanes_of(isa), sizes_of(g, cut, lanes_of(isa), g.mb)
    rows, transforms = ROWS[isa][cut.vectors], TRANSFORM_CYCLES[isa, cut.m]
    blocks = -(-sizes.tiles // cut.block) if cut.is_fused else 1
    full, last = divmod(sizes.result_vectors, cut.vectors)
    multiplied = 0.0
    for size, times in runs_of(sizes.tiles, cut.block if cut.is_fused else sizes.tiles):
        each = sum(
            count * (CALL_CYCLES + g.ic * step_cycles(r, vectors, lanes))
            for vectors, count in ((cut.vectors, full), (last, 1))
            for r in balanced(size, rows)
            if vectors
        )
        multiplied += times * each * sizes.frequencies / BUSY
    far = sizes.weights_bytes if sizes.weights_bytes > l2_bytes / 2 else 0
    held = min(sizes.weights_bytes, l2_bytes // 2)
    calls = sizes.tiles * 2 * CALL_CYCLES
    total: float = calls + sizes.tiles * (
        transforms.source * sizes.source_vectors + transforms.products * sizes.result_vectors
    )
    total += max(multiplied, far * blocks / RATE)
    between = sizes.source_bytes + sizes.products_bytes
    if cut.is_fused:
        return total + 3 * blocks * max(0, between + held - l2_bytes) / RATE
    ends = 4 * lanes * g.mb * (sizes.source_vectors * g.src_pixels + sizes.result_vectors * g.rows * g.width)
    return total + 3 * max(0, between + ends + held - l2_bytes) / RATE


def direct_cycles(g: ConvGeometry, isa: str) -> float:
    """The same computed directly."""
    lanes = lanes_of(isa)
    return 9 * g.ic * -(-g.oc // lanes) * g.mb * g.rows * g.width / 2 / 0.93


def packing_cycles(g: ConvGeometry, m: int, lanes: int) -> float:
    """The transform of plain weights: they are written to panels, and the panels to (m + 2)^2 frequencies."""
    pairs = g.ic * -(-g.oc // lanes) * lanes
    return 4 * pairs * (2 * g.positions + 2 * FORMS[m].frequencies) / RATE
