"""What a Winograd convolution is expected to cost, in cycles of one thread; docs/winograd.md derives it."""

from asmdnn.generators.winograd.forms import FORMS
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.cost import step_cycles
from asmdnn.planning.cuts import balanced, runs_of
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.winograd.cut import ROWS, Cut, sizes_of


def cycles_of(g: ConvGeometry, cut: Cut, isa: str, l2_bytes: int, tuning: Tuning) -> float:
    """The whole convolution."""
    lanes, sizes = lanes_of(isa), sizes_of(g, cut, lanes_of(isa), g.mb)
    rows, own, call = ROWS[isa][cut.vectors], tuning.winograd, tuning.phases.call_cycles
    blocks = -(-sizes.tiles // cut.block) if cut.is_fused else 1
    full, last = divmod(sizes.result_vectors, cut.vectors)
    multiplied = 0.0
    for size, times in runs_of(sizes.tiles, cut.block if cut.is_fused else sizes.tiles):
        each = sum(
            count * (call + g.ic * step_cycles(r, vectors, lanes, tuning.phases))
            for vectors, count in ((cut.vectors, full), (last, 1))
            for r in balanced(size, rows)
            if vectors
        )
        multiplied += times * each * sizes.frequencies / own.busy
    far = sizes.weights_bytes if sizes.weights_bytes > l2_bytes / 2 else 0
    held = min(sizes.weights_bytes, l2_bytes // 2)
    calls = sizes.tiles * 2 * call
    total: float = calls + sizes.tiles * (
        own.source_cycles(cut.m, lanes) * sizes.source_vectors
        + own.products_cycles(cut.m, lanes) * sizes.result_vectors
    )
    total += max(multiplied, far * blocks / own.far_bytes_per_cycle)
    between = sizes.source_bytes + sizes.products_bytes
    if cut.is_fused:
        return total + 3 * blocks * max(0, between + held - l2_bytes) / own.far_bytes_per_cycle
    ends = 4 * lanes * g.mb * (sizes.source_vectors * g.src_pixels + sizes.result_vectors * g.rows * g.width)
    return total + 3 * max(0, between + ends + held - l2_bytes) / own.far_bytes_per_cycle


def direct_cycles(g: ConvGeometry, isa: str, tuning: Tuning) -> float:
    """The same computed directly."""
    lanes = lanes_of(isa)
    return 9 * g.ic * -(-g.oc // lanes) * g.mb * g.rows * g.width / 2 / tuning.winograd.direct_busy


def packing_cycles(g: ConvGeometry, m: int, lanes: int, tuning: Tuning) -> float:
    """The transform of plain weights: they are written to panels, and the panels to (m + 2)^2 frequencies."""
    pairs = g.ic * -(-g.oc // lanes) * lanes
    return 4 * pairs * (2 * g.positions + 2 * FORMS[m].frequencies) / tuning.winograd.far_bytes_per_cycle
