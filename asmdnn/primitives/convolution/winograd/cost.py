"""What a Winograd convolution is expected to cost, in cycles of one thread; docs/winograd.md derives it."""

from asmdnn.generators.winograd.forms import FORMS
from asmdnn.isa.cpu import CacheSizes
from asmdnn.isa.dot import multiplied
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.cost import step_cycles
from asmdnn.planning.cuts import runs_of
from asmdnn.planning.tuning import Tuning, WinogradTuning
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.multiplied import are_bytes_by_floats
from asmdnn.primitives.convolution.row_refusals import shares_vectors
from asmdnn.primitives.convolution.winograd.cut import (
    CutSizes,
    Form,
    WinogradCut,
    rows_of,
    sizes_of,
    steps_of,
    tiles_of,
)
from asmdnn.records import dataclass
from asmdnn.types import f32

KIB = 1024


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that come from beyond L2, or go there.

    weights: once a block of tiles.  unheld: of them, what L3 does not hold from call to call.  ends: src and dst.
    spilled: of what is between the steps of a block, what does not fit into its share of L2; near: into that of L1.
    phases: of what is between phases, what L3 does not bring in time.  reread: transformed tiles that are read again
    for each chunk of panels.
    """

    weights: int
    unheld: int
    ends: int
    spilled: int
    phases: int
    reread: int
    near: int


def tuning_of(g: ConvGeometry, tuning: Tuning) -> WinogradTuning:
    return tuning.winograd if g.groups == 1 else tuning.winograd_groups


def cycles_of(
    g: ConvGeometry, cut: WinogradCut, isa: str, caches: CacheSizes, tuning: Tuning, known: dict[object, float]
) -> float:
    """The whole convolution.  known: what multiplies take, which cuts have in common that hold more or fewer panels."""
    own, lanes, shares = tuning_of(g, tuning), lanes_of(isa), g.groups // cut.groups
    sizes = sizes_of(g, cut, isa, g.mb)
    traffic = traffic_of(g, cut, sizes, lanes, caches, tuning)
    calls = shares * sizes.tiles * (1 + -(-sizes.panels // cut.panels)) * tuning.phases.call_cycles
    transforms = (
        shares
        * sizes.tiles
        * (
            source_cycles(g, cut, lanes, tuning) * sizes.source_vectors
            + own.products_cycles(cut.m, lanes) * sizes.result_vectors
        )
    )
    alike = cut.m, cut.types, cut.vectors, cut.block
    if alike not in known:
        known[alike] = multiply_cycles(g, cut, sizes, isa, tuning)
    multiplied = max(known[alike], traffic.weights / own.far_bytes_per_cycle)
    multiplied = with_memory_cycles(multiplied, traffic.unheld, row_tiles(cut, sizes, isa), own)
    moved = (
        own.weights_kib_cycles * traffic.weights
        + own.ends_kib_cycles * traffic.ends
        + own.spilled_kib_cycles * traffic.spilled
        + own.phases_kib_cycles * traffic.phases
        + own.reread_kib_cycles * traffic.reread
        + own.near_kib_cycles * traffic.near
    )
    return calls + transforms + multiplied + moved / KIB + own.phases_cycles * (not cut.is_fused)


def with_memory_cycles(multiplied: float, unheld: int, row_tiles: int, own: WinogradTuning) -> float:
    """`multiplied` cycles of so many tiles of rows, whose weights come from memory: while products run, or before."""
    from_memory = unheld / own.memory_bytes_per_cycle
    if not own.memory_overlapped:
        return multiplied + from_memory
    first = multiplied / row_tiles if own.first_tile_waits else multiplied
    return multiplied - first + max(first, from_memory)


def row_tiles(cut: WinogradCut, sizes: CutSizes, isa: str) -> int:
    """Tiles of rows that read the same weights one after the other."""
    return -(-min(cut.block if cut.is_fused else sizes.tiles, sizes.tiles) // rows_of(isa, cut.types)[cut.vectors])


def multiply_cycles(g: ConvGeometry, cut: WinogradCut, sizes: CutSizes, isa: str, tuning: Tuning) -> float:
    """The products of all frequencies, if nothing has to be waited for."""
    lanes = lanes_of(isa)
    full, last = divmod(-(-g.oc // lanes), cut.vectors)
    total, own, steps = 0.0, tuning_of(g, tuning), steps_of(g, cut)
    share = own.load_share(lanes)
    for size, times in runs_of(sizes.tiles, cut.block if cut.is_fused else sizes.tiles):
        for vectors, count in ((cut.vectors, full), (last, 1)):
            for rows, alike in runs_of(size, rows_of(isa, cut.types)[cut.vectors]) if vectors else ():
                step = step_cycles(rows, vectors, lanes, tuning.phases, load_share=share)
                total += alike * times * count * (own.block_cycles + steps * step)
    return total * sizes.frequencies * g.groups


def least_cycles(g: ConvGeometry, form: Form, isa: str, tuning: Tuning) -> float:
    """What no cut of a form undercuts: the products of whole register blocks, and nothing else."""
    (m, types), lanes = form, lanes_of(isa)
    share = tuning_of(g, tuning).load_share(lanes)
    rate = min(
        step_cycles(rows, vectors, lanes, tuning.phases, load_share=share) / (rows * vectors)
        for widest, rows in rows_of(isa, types).items()
        for vectors in range(1, widest + 1)
    )
    products = g.groups * -(-g.oc // lanes) * -(-g.ic // types.group) * g.mb * tiles_of(g, m)
    return rate * FORMS[m].frequencies * products


def traffic_of(
    g: ConvGeometry, cut: WinogradCut, sizes: CutSizes, lanes: int, caches: CacheSizes, tuning: Tuning
) -> Traffic:
    """Of all blocks; weights that fit into their share of L2 cost nothing, and those of groups that are computed
    together come once if they do."""
    own, shares = tuning_of(g, tuning), g.groups // cut.groups
    held = own.weights_share * caches.l2_bytes
    blocks = -(-sizes.tiles // cut.block) if cut.is_fused else 1
    between = sizes.source_held_bytes + sizes.products_held_bytes
    beyond = max(0, between - int(own.between_share * caches.l2_bytes))
    near = max(0, between - int(own.near_share * caches.l1d_bytes))
    all_weights, together = g.groups * sizes.group_bytes, cut.groups * sizes.group_bytes
    weights = all_weights * (blocks if together > held else 1)
    return Traffic(
        weights=weights if all_weights > held else 0,
        unheld=weights if all_weights > own.held_share * caches.l3_bytes else 0,
        ends=lanes * shares * g.mb
        * (g.types.src.size_bytes * sizes.source_vectors * g.src_pixels
           + g.dst.element_bytes * sizes.result_vectors * g.rows * g.width),
        spilled=shares * blocks * beyond * cut.is_fused,
        phases=max(0, between - own.phases_near_bytes) * (not cut.is_fused),
        reread=shares * (-(-sizes.panels // cut.panels) - 1) * blocks * sizes.source_held_bytes,
        near=shares * blocks * near * cut.is_fused,
    )  # fmt: skip


def source_cycles(g: ConvGeometry, cut: WinogradCut, lanes: int, tuning: Tuning) -> int:
    """The transform of a vector of a tile of src, which is converted as it is loaded."""
    own = tuning_of(g, tuning)
    return own.source_cycles(cut.m, lanes) + (own.widen_cycles(cut.m, lanes) if g.types.src != f32 else 0)


def direct_cycles(g: ConvGeometry, isa: str, tuning: Tuning) -> float:
    """The same computed directly, of bytes by f32 as f32; small groups share vectors."""
    lanes, src = lanes_of(isa), f32 if are_bytes_by_floats(g.types) else g.types.src
    vectors = -(-g.groups * g.oc // lanes) if shares_vectors(g.ic, g.oc, lanes) else g.groups * -(-g.oc // lanes)
    at_once = multiplied(src, g.types.weights, isa).group
    depth = -(-g.ic // at_once)
    if at_once > 1:  # where that is slow, channels are widened and multiplied one by one
        depth = min(g.ic, int(depth * tuning.products.bf16_cycles))
    steps = 9 * depth * vectors * g.mb * g.rows * g.width / 2
    return steps / tuning_of(g, tuning).direct_busy


def packing_cycles(g: ConvGeometry, m: int, lanes: int, tuning: Tuning) -> float:
    """The transform of plain weights: they are written to panels, and the panels to (m + 2)^2 frequencies."""
    pairs = g.groups * g.ic * -(-g.oc // lanes) * lanes
    return f32.size_bytes * pairs * (2 * g.positions + 2 * FORMS[m].frequencies) / tuning.winograd.far_bytes_per_cycle
