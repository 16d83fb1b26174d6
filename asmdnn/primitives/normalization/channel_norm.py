"""The plan of batch, group and instance normalization.

1. Moments of every channel, over all images for a batch: a tree of chunks (asmdnn/primitives/reduction/tree.py).
2. Of groups of channels, those of their channels merged.
3. factor = scale / sqrt(variance + epsilon), of every channel, of every image for groups; and the mean likewise.
4. dst = post-ops((src - mean) * factor + shift), an element-wise primitive, which reads and writes once; a fused relu
   is a part of it, and the mask that it leaves in training a second result.

With given statistics, 3 and 4 alone.
"""

from collections.abc import Iterable, Mapping
from math import prod

from asmdnn.generators.functions.merge_moments import MergeMomentsSpec
from asmdnn.generators.functions.postops import ExpressionOp, Operand, PostOp
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.loops import Box, Loop, cut_loop
from asmdnn.planning.phase import View, views
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.planning.unhindered import without_needless_barriers
from asmdnn.primitives.attributes.attr import Attr, refuse_scales
from asmdnn.primitives.attributes.chain import post_ops_of
from asmdnn.primitives.core.engine import NEVER, Engine
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.normalization.channel_description import (
    NONE,
    BatchNormForward,
    ChannelNorm,
    GroupNormForward,
)
from asmdnn.primitives.normalization.channel_kernels import Moments, identity, inverse_root, normalized
from asmdnn.primitives.normalization.channel_moments import PLAIN, ChannelMoments
from asmdnn.primitives.normalization.statistics import by_statistics
from asmdnn.primitives.normalization.units import of_unit, units_of
from asmdnn.primitives.reduction.tree import others
from asmdnn.primitives.reorder.copies import WORD, Reordering, add_reorder, between_reorders
from asmdnn.primitives.shapes.formats import like, of_type, row_major
from asmdnn.primitives.shapes.row_calls import phases_of
from asmdnn.primitives.shapes.tensors import check_tensors
from asmdnn.records import replace
from asmdnn.types import DATA_TYPES, FLOAT_NAMES, f32, u8

STATISTICS = ("mean", "variance")
FACTOR, CHANNEL_MEAN = "factor", "mean of channels"
OF_CHANNELS = ("means", "squares")  # before channels are merged to groups
TRANSPOSED = ("means by group", "squares by group")
NO_POST_OPS = Attr()


@by_statistics("batch_norm")
def plan_batch_norm(desc: BatchNormForward, attr: Attr, engine: Engine, way: str) -> Plan:
    """Plan a batch normalization.  Raises Refused, and InvalidArguments for post-ops that do not fit dst."""
    return ChannelPlan(desc, way, None, attr, engine).plan()


@by_statistics("group_norm")
def plan_group_norm(desc: GroupNormForward, attr: Attr, engine: Engine, way: str) -> Plan:
    """Plan a group normalization.  Raises Refused, and InvalidArguments for post-ops that do not fit dst."""
    return ChannelPlan(desc, way, desc.groups, attr, engine).plan()


class ChannelPlan:
    """A plan as it comes together.  groups: of the channels of an image, None for statistics of all images."""

    def __init__(
        self,
        desc: ChannelNorm,
        way: str,
        groups: int | None,
        attr: Attr,
        engine: Engine,
        streams: bool | None = None,
    ) -> None:
        self.desc, self.groups, self.attr, self.engine, self.streams = desc, groups, attr, engine, streams
        self.isa = f32_level(engine.isa)
        self.name = f"{way}:{self.isa}"
        self.src = like(desc.dst, desc.src)
        self.dst = like(self.src, desc.dst)
        self.images, self.channels, *_ = self.src.dims
        self.fuse: str = NONE
        self.added: dict[str, MemoryDesc] = {}
        self.mask: dict[str, MemoryDesc] = {}
        if isinstance(desc, BatchNormForward):
            self.take_fusion(desc)
        self.assembly = Assembly(engine.tuning, engine.isa)
        optional = {name: getattr(desc, name) for name in (*STATISTICS, "scale", "shift")}
        # Of vectors any format is a plain one; elements that lie apart, or are not f32, are copied, before or after.
        passed = {name: row_major(t.dims, t) if t.is_any else t for name, t in optional.items() if t is not None}
        self.given = {name: of_type(row_major(t.dims, t), f32) for name, t in passed.items()}
        self.copied_tensors = {name: t for name, t in passed.items() if t != self.given[name]}

    def take_fusion(self, desc: BatchNormForward) -> None:
        self.fuse = desc.fuse
        if desc.src_1 is not None:
            self.added = {"src_1": like(self.dst, desc.src_1)}
        if desc.workspace is not None:
            self.mask = {"workspace": of_type(self.dst, u8)}
            if not desc.workspace.is_any and desc.workspace != self.mask["workspace"]:
                raise Refused(f"workspace is {desc.workspace}, it must be in dst's format: {self.mask['workspace']}")

    def plan(self) -> Plan:
        refuse_scales(self.attr)
        passed = {"src": self.src, "dst": self.dst, **self.added, **self.given}
        check_tensors(passed | self.copied_tensors, "dst", FLOAT_NAMES)
        passed |= post_ops_of(self.attr).operands(self.dst, DATA_TYPES.values())
        check_tensors(passed, "dst", tuple(DATA_TYPES))
        passed |= self.mask
        written = () if self.desc.use_global_stats else tuple(name for name in STATISTICS if name in self.given)
        outputs = ("dst", *written, *self.mask)
        for name in written:
            if name in self.copied_tensors and self.copied_tensors[name].may_overlap:
                raise Refused(f"elements of {name} overlap")
        if 0 in self.dst.dims:
            return self.assembly.plan(self.name, passed | self.copied_tensors, outputs)
        dense = self.by_units(passed, outputs) or self.in_phases(passed, outputs)
        return between_reorders(dense, {**dense.tensors, **self.copied_tensors}, self.engine.tuning, isa=self.isa)

    def in_phases(self, passed: Mapping[str, MemoryDesc], outputs: tuple[str, ...]) -> Plan:
        """Step after step."""
        if not self.desc.use_global_stats:
            self.add_statistics()
        self.add_factor()
        apply = self.application()
        self.assembly.add_plan(apply, {"mean of channel": View(self.mean_of_channel)})
        tensors = {**apply.tensors, **passed}
        del tensors["mean of channel"], tensors[FACTOR]
        # Where vectors are copied, the reorders outside say so.
        is_copied = apply.implementation.startswith(WORD) and not self.copied_tensors
        name = f"{WORD}+{self.name}" if is_copied else self.name
        in_place = tuple(pair for pair in apply.in_place if pair[0] == "src")
        return without_needless_barriers(self.assembly.plan(name, tensors, outputs, in_place))

    def by_units(self, passed: Mapping[str, MemoryDesc], outputs: tuple[str, ...]) -> Plan | None:
        """All steps of a unit, one unit after another; None where that is not faster, or takes copies."""
        if not isinstance(self.desc, GroupNormForward) or self.desc.use_global_stats:
            return None
        if any(tensor.dtype != f32 for tensor in passed.values()):
            return None
        total = sum(tensor.size_bytes for tensor in passed.values())
        streams = total >= self.engine.tuning.elementwise.streaming_bytes
        units = units_of(self.src, self.desc.groups, self.engine, streams)
        if units is None or not all(units.cuts(tensor) for tensor in passed.values() if tensor.ndims == self.src.ndims):
            return None
        desc, attr = units.desc(self.desc, passed), units.attr(self.attr, passed)
        first = {name: units.first(name, tensor) for name, tensor in passed.items()}
        read = {name: tensor for name, tensor in first.items() if name not in STATISTICS}
        one = ChannelPlan(desc, self.name, units.groups, attr, self.engine, streams).in_phases(read, outputs[:1])
        if PLAIN in one.scratch_bytes or one.implementation.startswith(WORD):
            return None
        statistics = [self.copied(of_unit(name), name, first[name]) for name in outputs[1:]]
        units.add(self.assembly, one, statistics, passed)
        tensors = {name: passed[name] for name in (*one.tensors, *outputs[1:])}
        return self.assembly.plan(self.name, tensors, outputs, one.in_place)

    def copied(self, source: str, target: str, desc: MemoryDesc) -> Plan:
        """What brings a tensor into another one of its format."""
        same = ExpressionOp(identity(), ())
        return schedule(Request(target, (source, desc), (target, desc), {}, lambda _: same), NO_POST_OPS, self.engine)

    @property
    def per_group(self) -> int:
        return self.channels // self.groups if self.groups else 1

    @property
    def statistics(self) -> tuple[int, ...]:
        """(images or 1, groups or channels)."""
        return (self.images, self.groups) if self.groups else (1, self.channels)

    def add_statistics(self) -> None:
        """Steps 1 and 2: `mean` and `variance`, which are scratch unless they are asked for."""
        self.add_scratch([name for name in STATISTICS if name not in self.given], self.statistics)
        moments = ChannelMoments(self.assembly, self.engine, self.src, of_images=self.groups is not None)
        if self.per_group == 1:
            moments.add(STATISTICS, divides=True)
            return
        self.add_scratch(OF_CHANNELS, (self.images, self.channels))
        moments.add(OF_CHANNELS, divides=False)
        if self.groups == 1:
            self.merge_channels(OF_CHANNELS)
            return
        self.add_scratch(TRANSPOSED, (self.images, self.channels))
        shape = (self.images, *self.statistics[1:], self.per_group)
        for source, target in zip(OF_CHANNELS, TRANSPOSED, strict=True):
            formats = (MemoryDesc(shape, f32, "abc"), MemoryDesc(shape, f32, "acb"))
            add_reorder(self.assembly, Reordering(source, formats[0], target, formats[1]))
        self.merge_channels(TRANSPOSED)

    def add_scratch(self, names: Iterable[str], dims: tuple[int, ...]) -> None:
        """Dense f32 tensors of these dims."""
        self.assembly.scratch |= dict.fromkeys(names, MemoryDesc(dims, f32, LETTERS[: len(dims)]).size_bytes)

    def merge_channels(self, source: tuple[str, str]) -> None:
        """Of the channels of every group, whose moments are there: of the first channel of each group, and so on."""
        assert self.groups is not None
        pixels, groups, lanes = prod(self.src.dims[2:]), self.groups, self.engine.tuning.reduction.lanes
        buffers = (*source, *STATISTICS)
        image = Loop(self.images, (*[groups * self.per_group] * len(source), *[groups] * len(STATISTICS)))
        row = Loop(groups, (1,) * len(buffers))
        box = Box((0,) * len(buffers), (image, row), padding=False)
        calls = [
            (self.merging(some.extent, pixels), piece, others(piece, some)) for piece, some in cut_loop(box, row, lanes)
        ]
        kernels = Moments(self.isa, STATISTICS, divides=True, dtype=f32)
        tuning = self.engine.tuning
        costs = {spec: kernels.cost(spec, tuning.reduction) for spec in dict.fromkeys(spec for spec, *_ in calls)}
        self.assembly.add(phases_of(calls, costs, views(buffers), tuning.phases))

    def merging(self, groups: int, pixels: int) -> MergeMomentsSpec:
        assert self.groups is not None
        row_bytes = f32.size_bytes * self.groups
        return MergeMomentsSpec(
            isa=self.isa, rows=self.per_group, elements=groups, row_bytes=row_bytes, count=pixels, last=pixels,
            divides=True,
        )  # fmt: skip

    def add_factor(self) -> None:
        """Step 3."""
        images, groups = self.statistics
        dims = (images, groups, self.per_group)
        dst, statistics = MemoryDesc(dims, f32, "abc"), MemoryDesc((images, groups, 1), f32, "abc")
        scale = {"scale": MemoryDesc((1, groups, self.per_group), f32, "abc")} if "scale" in self.given else {}
        epsilon = self.desc.epsilon

        def factor(operands: Mapping[str, Operand]) -> PostOp:
            return ExpressionOp(inverse_root(epsilon, bool(scale)), tuple(operands[name] for name in scale))

        self.assembly.scratch[FACTOR] = dst.size_bytes
        self.add_map(Request(FACTOR, ("variance", statistics), (FACTOR, dst), scale, factor))
        if self.per_group > 1:
            self.assembly.scratch[CHANNEL_MEAN] = dst.size_bytes
            same = ExpressionOp(identity(), ())
            self.add_map(Request(CHANNEL_MEAN, ("mean", statistics), (CHANNEL_MEAN, dst), {}, lambda _: same))

    def add_map(self, request: Request) -> None:
        self.assembly.add_plan(schedule(request, NO_POST_OPS, self.engine), {})

    @property
    def mean_of_channel(self) -> str:
        return CHANNEL_MEAN if self.per_group > 1 else "mean"

    def application(self) -> Plan:
        """Step 4, of src, dst, and tensors of channels."""
        further = (1,) * (self.src.ndims - 2)
        rows = MemoryDesc((self.statistics[0], self.channels, *further), f32, LETTERS[: self.src.ndims])
        others = {"mean of channel": rows, FACTOR: rows}
        if "shift" in self.given:
            others["shift"] = MemoryDesc((1, self.channels, *further), f32, LETTERS[: self.src.ndims])
        others |= self.added
        program = normalized("shift" in others, bool(self.added), self.fuse != NONE)

        def main(operands: Mapping[str, Operand]) -> PostOp:
            return ExpressionOp(program, tuple(operands[name] for name in others))

        mask = next(iter(self.mask.items()), None)
        request = Request("norm", ("src", self.src), ("dst", self.dst), others, main, mask)
        engine = self.engine if self.streams is None else streaming(self.engine, self.streams)
        return schedule(request, self.attr, engine)


def streaming(engine: Engine, streams: bool) -> Engine:
    """The engine, where element-wise functions write past the caches, or do not."""
    elementwise = replace(engine.tuning.elementwise, streaming_bytes=1 if streams else NEVER)
    return replace(engine, tuning=replace(engine.tuning, elementwise=elementwise))
