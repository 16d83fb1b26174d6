"""What the sums of a shifted source start from: minus the shift, times the sum of the weights that a pixel meets.

Kernels shift s8 to u8, and a zero point is a shift of src as it is passed.  A pixel at an edge meets fewer weights: of
those that lie in the padding nothing is read, and nothing is taken away.  So there is a start for each set of kernel
positions that some pixel reaches: a phase sums the weights of every kernel position over the input channels, another
adds those of each set.  Where sums lie after the weights, the first one brings them into the order of panels instead.
"""

from collections.abc import Sequence

import numpy as np

from asmdnn.forking import importing
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.conv_shape import ARGUMENTS, TapGroup, blocks_of
from asmdnn.generators.dot.starts import ARGUMENTS as START_ARGUMENTS
from asmdnn.generators.dot.starts import StartsSpec
from asmdnn.isa.dot import U8S8, Types, dot_class, dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.summed import SummedDesc
from asmdnn.planning.cost import step_cycles
from asmdnn.planning.cuts import balanced
from asmdnn.planning.phase import NOTHING, Int64, Phase, View, records_of
from asmdnn.planning.plan import Plan
from asmdnn.planning.tuning import PhaseTuning, Tuning
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.taps import TAP_CHANNELS, rows_of_panel, weights_rows
from asmdnn.primitives.convolution.tiles import Pattern
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass, field, replace
from asmdnn.types import INTEGERS8, s32

SUMS, STARTS, ONES, POSITIONS, SETS = "weights sums", "starts", "ones", "positions", "sets of positions"
MOST_VECTORS = 4  # of starts made by one call
ONES_BYTES = 8


ZERO_POINTS = "src_zero_points"


def starts_of(g: ConvGeometry, width: int, attr: Attr, engine: Engine) -> "Starts | None":
    """None where src is multiplied as it is; width: output channels of a panel."""
    shift, has_zero_point = dot_class(g.types, engine.isa).shift, "src" in dict(attr.zero_points)
    if not shift and not has_zero_point:
        return None
    return Starts(g, engine.isa, width, shift, ZERO_POINTS * has_zero_point)


def zero_points_of(attr: Attr) -> dict[str, MemoryDesc]:
    """The argument that starts read, if src has a zero point."""
    return {ZERO_POINTS: MemoryDesc((1,), s32, "a")} if "src" in dict(attr.zero_points) else {}


@dataclass(frozen=True, slots=True)
class Starts:
    """The starts of a convolution, a row for each set of kernel positions, which are numbered as they come.

    shift: what kernels add to src; zero_point: the argument with src's, or "".  columns: of a row, all panels of all
    groups.  packed: weights with sums after them; None: they have none.
    """

    g: ConvGeometry
    isa: str
    width: int
    shift: int
    zero_point: str
    sets: dict[tuple[int, ...], int] = field(default_factory=dict)
    packed: SummedDesc | None = None

    @property
    def panels(self) -> int:
        """Of a group."""
        return -(-self.g.oc_stored // self.width)

    @property
    def group_columns(self) -> int:
        return self.panels * self.width

    @property
    def row_bytes(self) -> int:
        return s32.size_bytes * self.g.groups * self.group_columns

    def of_pixels(self, g: ConvGeometry, pattern: Pattern) -> tuple[int, ...]:
        """How far after the first row the start of each pixel of a tile lies; g: what the tile is of, a part."""
        met: list[set[int]] = [set() for _ in pattern.src_pixel_bytes]
        packed = [axis.all_positions for axis in g.axes]
        for pixels, positions in pattern.positions:
            at = [[of.first + x * of.step for of, x in zip(packed, p, strict=True)] for p in positions]
            numbers = np.ravel_multi_index(np.array(at).T, tuple(of.size for of in packed)).tolist()
            for pixel in pixels:
                met[pixel].update(numbers)
        return tuple(self.sets.setdefault(tuple(sorted(each)), len(self.sets)) * self.row_bytes for each in met)

    def with_sums(self, weights: MemoryDesc, has_groups: bool) -> "Starts":
        """The same for weights, s8 [groups,] o, i, kernel positions, with sums after them; self where panels have more
        columns than weights, or more positions."""
        g, channels = self.g, 2 if has_groups else 1
        summed = SummedDesc(weights, (1 << weights.ndims) - 1 - (1 << channels))
        is_whole = self.group_columns == -(-g.oc // self.width) * self.width
        fits = is_whole and summed.sums.nelems() == g.groups * g.oc * g.packed_positions
        return replace(self, packed=summed) if fits else self

    def in_front_of(self, plan: Plan, group_bytes: int, tuning: Tuning) -> Plan:
        """`plan`, whose kernels start from these, after what makes them; group_bytes: of the weights of a group."""
        lists, taps = self.lists(), [] if self.packed else self.taps()
        ones = np.ones(ONES_BYTES // self.summed.src.size_bytes, self.summed.src.numpy)
        constants = {SETS: np.concatenate(lists)}
        scratch = {SUMS: self.g.packed_positions * self.row_bytes, STARTS: len(self.sets) * self.row_bytes}
        if self.packed:
            sums = self.brought(self.packed, tuning)
        else:
            constants |= {ONES: ones.view(np.int64), POSITIONS: np.concatenate(taps)}
            sums = [self.sums(begins(taps), group_bytes, tuning.phases)]
        phases = (*sums, self.starts(begins(lists), tuning.phases), *plan.phases)
        return replace(
            plan,
            phases=phases,
            constants={**plan.constants, **constants},
            scratch_bytes={**plan.scratch_bytes, **scratch},
        )

    def brought(self, packed: SummedDesc, tuning: Tuning) -> list[Phase]:
        """Sums after weights, a row for each output channel, as rows for each position."""
        with importing():  # the kernels of reorders, which most plans do without
            from asmdnn.primitives.reorder.schedule import reorder_phases

        g, first = self.g, packed.begins[1] // s32.size_bytes
        dims, positions = (g.packed_positions, g.groups, g.oc), g.packed_positions
        src = MemoryDesc(dims, s32, strides=(1, g.oc * positions, positions), offset0=first)
        dst = MemoryDesc(dims, s32, f"abC{self.width}c")
        return list(reorder_phases(src, dst, ("weights", SUMS), tuning, isa=self.isa))

    @property
    def summed(self) -> Types:
        """Of products with ones, which are bytes that no level shifts, or words."""
        return U8S8 if self.g.types.src in INTEGERS8 else self.g.types

    @property
    def positions(self) -> list[int]:
        """How many the calls sum that sum weights."""
        return balanced(self.g.packed_positions, blocks_of(self.summed, self.isa)[self.width // lanes_of(self.isa)])

    def taps(self) -> list[Int64]:
        """The tap list of each of these calls: of every position runs of channels, all of them times ones."""
        rows, row_bytes = weights_rows(self.g.steps, self.g.parts), self.summed.weights_bytes * self.width
        steps = np.arange(0, rows * -(-self.g.steps // rows), min(rows, TAP_CHANNELS))
        found, first = [], 0
        for count in self.positions:
            position = np.arange(first, first + count)[:, None]
            at = row_bytes * ((steps // rows * self.g.packed_positions + position) * rows + steps % rows)
            pairs = np.stack((0 * at, at), -1).reshape(count, -1)
            found.append(np.concatenate([np.full((count, 1), len(steps)), pairs], 1).ravel())
            first += count
        return found

    def lists(self) -> list[Int64]:
        """Of each set, in order, the rows of its positions' sums."""
        return [np.array((len(each), *(at * self.row_bytes for at in each))) for each in self.sets]

    def sums(self, taps: Int64, group_bytes: int, tuning: PhaseTuning) -> Phase:
        """Sums each position's weights over the input channels: products with ones."""
        g, counts = self.g, np.array(self.positions)
        specs = {count: number for number, count in enumerate(sorted({*self.positions}))}
        shape = (g.groups, self.panels, len(counts))
        group, panel, call = (x.ravel() for x in np.indices(shape))
        first = np.cumsum([0, *counts[:-1]])[call]
        columns = {
            "weights": group * group_bytes + panel * rows_of_panel(g) * self.summed.weights_bytes * self.width,
            "dst": first * self.row_bytes + s32.size_bytes * (group * self.group_columns + panel * self.width),
            "taps": taps[call],
        }
        records = records_of(ARGUMENTS, columns, np.array([specs[count] for count in self.positions])[call])
        vectors = self.width // lanes_of(self.isa)
        dot = dot_class(self.summed, self.isa)
        of_position = g.steps * step_cycles(1, vectors, lanes_of(self.isa), tuning, dot)
        cycles = tuning.call_cycles + counts[call] * of_position
        places = {"src": View(ONES), "weights": View("weights"), "dst": View(SUMS), "taps": View(POSITIONS)}
        views = tuple(places.get(name, NOTHING) for name in ARGUMENTS)
        return Phase(tuple(map(self.sums_spec, specs)), views, records, cycles.astype(np.int32))

    def sums_spec(self, positions: int) -> ConvTileSpec:
        """A tile with a pixel for each position, all of which read the same ones."""
        lanes, run = lanes_of(self.isa), min(TAP_CHANNELS, weights_rows(self.g.steps, self.g.parts))
        return ConvTileSpec(
            isa=dot_level(self.summed, self.isa),
            vectors=self.width // lanes,
            channels=self.width,
            src_pixel_bytes=(0,) * positions,
            src_channel_bytes=0,
            weights_row_bytes=self.summed.weights_bytes * self.width,
            dst_pixel_bytes=self.row_bytes,
            dst_vector_bytes=s32.size_bytes * lanes,
            whole_vectors=True,
            groups=tuple(TapGroup((p,), run * self.summed.group) for p in range(positions)),
            types=self.summed,
        )

    def starts(self, lists: Int64, tuning: PhaseTuning) -> Phase:
        """Adds the sums of each set of positions, some vectors of channels a call."""
        lanes, length = lanes_of(self.isa), np.array([len(each) for each in self.sets])
        vectors = np.array(balanced(self.g.groups * self.group_columns // lanes, MOST_VECTORS))
        numbers = {count: number for number, count in enumerate(sorted({*vectors.tolist()}))}
        of_set, call = (x.ravel() for x in np.indices((len(self.sets), len(vectors))))
        first = s32.size_bytes * lanes * np.cumsum([0, *vectors[:-1]])[call]
        columns = {"sums": first, "rows": lists[of_set], "starts": of_set * self.row_bytes + first}
        records = records_of(START_ARGUMENTS, columns, np.array([numbers[x] for x in vectors.tolist()])[call])
        has_zero_point = bool(self.zero_point)
        words = {"has_zero_point": has_zero_point, "negated": self.packed is not None}
        specs = (StartsSpec(isa=self.isa, vectors=x, shift=self.shift, **words) for x in numbers)
        zero_point = View(self.zero_point) if self.zero_point else NOTHING
        views = (View(SUMS), View(SETS), zero_point, View(STARTS))
        cycles = tuning.call_cycles + length[of_set] * vectors[call]
        return Phase(tuple(specs), views, records, cycles.astype(np.int32))


def begins(lists: Sequence[Int64]) -> Int64:
    """Where each begins when they lie one after the other, in bytes."""
    return np.cumsum([0, *(each.nbytes for each in lists[:-1])])
