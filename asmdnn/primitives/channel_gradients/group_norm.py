"""The plan of backward group and instance normalization.

1. Of every image and channel, the sums of diff_dst and of diff_dst times centred src, in one pass.
2. Of every image and group, their sums with scales; of these and 1 / sqrt(variance + epsilon), by what diff_src differs
   from scaled diff_dst: an offset, and a slope of centred src.
3. diff_scale and diff_shift, sums over images of what 1 has left.
4. diff_src, the second pass.

With given statistics, 4 alone is a product, and 1 is there for 3.
"""

from functools import lru_cache

from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.row_programs import centred_sums, factor_program, same_program
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.planning.unhindered import without_needless_barriers
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.channel_gradients.description import GroupNormBackward
from asmdnn.primitives.channel_gradients.steps import (
    FACTORS,
    GRADIENTS,
    PRODUCTS,
    SCALED,
    SLOPES,
    GradientSteps,
    Tensors,
    check_vectors,
    of_f32_parameters,
    product_program,
    replaceable,
    row_of_channels,
)
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.normalization.statistics import by_statistics
from asmdnn.primitives.reduction.gradient_sums import Summed, add_sums
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.shapes.formats import like, row_major
from asmdnn.primitives.shapes.tensors import check_tensors
from asmdnn.types import FLOAT_NAMES, f32

MEANS, OFFSETS = "means of channels", "offsets"  # scratch, of images and channels
OF_GROUPS = ("sums of gradients of groups", "sums of products of groups")
IMAGES = ("src", "diff_dst", "diff_src")
VECTORS = ("mean", "variance", "scale", "diff_scale", "diff_shift")
SUMS = ("diff_scale", "diff_shift")


@lru_cache
def scaled_sums(scaled: bool) -> Program:
    """What is summed over the channels of a group: sums of gradients and of products, scaled if they are `scaled`."""
    build = Builder(2 + scaled)
    gradients, products, *scale = build.inputs
    return build.finish(*(x * scale[0] if scale else x for x in (gradients, products)))


@lru_cache
def offset_program(elements: int) -> Program:
    """The mean of scaled gradients, normalized."""
    build = Builder(2)
    total, factor = build.inputs
    return build.finish(total * (factor * (1.0 / elements)))


@lru_cache
def slope_program(elements: int) -> Program:
    """By how much of x - mean dx is less, of the sum of scaled dy * (x - mean): its mean, normalized three times."""
    build = Builder(2)
    total, factor = build.inputs
    return build.finish(total * (factor * factor) * (factor * (1.0 / elements)))


@lru_cache
def group_norm_program() -> Program:
    """diff_src of x, dy, mean, the factor with the scale, the slope and the offset."""
    build = Builder(6)
    x, dy, mean, factor, slope, offset = build.inputs
    return build.finish(dy * factor - offset - (x - mean) * slope)


@lru_cache
def parameter_sums(results: tuple[str, ...]) -> Program:
    """What is summed over images, of sums of products, those of gradients, and the factor."""
    build = Builder(3)
    products, gradients, factor = build.inputs
    terms = {"diff_scale": products * factor, "diff_shift": gradients}
    return build.finish(*(terms[name] for name in results))


@by_statistics("group_norm")
@of_f32_parameters
def plan_group_norm(desc: GroupNormBackward, attr: Attr, engine: Engine, way: str) -> Plan:
    """Plan a backward group normalization.  Raises Refused."""
    refuse_attr(attr, "a gradient")
    src = like(desc.diff_dst, desc.src)
    passed = {name: like(src, getattr(desc, name)) for name in IMAGES}
    vectors = {name: tensor for name in VECTORS if (tensor := getattr(desc, name)) is not None}
    passed |= {name: row_major(tensor.dims, tensor) if tensor.is_any else tensor for name, tensor in vectors.items()}
    check_tensors({name: passed[name] for name in IMAGES}, "diff_src", FLOAT_NAMES)
    check_vectors({name: passed[name] for name in vectors})
    results = ("diff_src", *(name for name in SUMS if name in vectors))
    implementation = f"{way}:{f32_level(engine.isa)}"
    if 0 in src.dims:
        if len(results) > 1:
            raise Refused("src has no elements, of which there are no sums for diff_scale and diff_shift")
        return Assembly(engine.tuning, engine.isa).plan(implementation, passed, results)
    tensors = {name: t if name in IMAGES else row_major(t.dims, t) for name, t in passed.items()}
    steps = GroupSteps(desc, tensors, engine)
    steps.add(results[1:])
    images = {name: tensors[name] for name in IMAGES}
    whole = steps.assembly.plan(implementation, tensors, results, replaceable(images))
    dense = without_needless_barriers(whole)
    return between_reorders(dense, passed, engine.tuning, isa=engine.isa)


class GroupSteps(GradientSteps):
    """The steps, of dense vectors.  each, of_groups: a number for every image and channel, or every image and group, as
    (images, groups, channels of a group); row: the former as it broadcasts to src."""

    def __init__(self, desc: GroupNormBackward, tensors: Tensors, engine: Engine) -> None:
        super().__init__(engine)
        self.desc, self.tensors, self.src = desc, tensors, tensors["src"]
        n, groups = self.src.dims[0], desc.groups
        per_group = self.src.dims[1] // groups
        self.each, self.of_groups, self.of_channels = (
            MemoryDesc(dims, f32, "abc") for dims in ((n, groups, per_group), (n, groups, 1), (1, groups, per_group))
        )
        self.row = row_of_channels(self.src, n)
        self.elements = self.src.nelems() // (n * groups)  # of a group

    def add(self, sums: tuple[str, ...]) -> None:
        """All steps; sums: the results beside diff_src."""
        scale = {"scale": self.of_channels} if "scale" in self.tensors else {}
        self.fill(factor_program(self.desc.epsilon), {"variance": self.of_groups}, FACTORS, self.of_groups)
        if scale:
            self.fill(product_program(), {FACTORS: self.of_groups, **scale}, SCALED, self.each)
        else:
            self.fill(same_program(1), {FACTORS: self.of_groups}, SCALED, self.each)
        if sums or not self.desc.use_global_stats:
            self.sums_of_channels()
        if sums:
            self.sums_of_parameters(sums)
        read = {"diff_dst": self.tensors["diff_dst"], SCALED: self.row}
        program = product_program()
        if not self.desc.use_global_stats:
            self.offsets(scale)
            program, others = group_norm_program(), dict.fromkeys((MEANS, SCALED, SLOPES, OFFSETS), self.row)
            read = {"src": self.src, "diff_dst": self.tensors["diff_dst"], **others}
        self.apply(program, read, "diff_src", self.tensors["diff_src"])

    def fill(self, program: Program, read: Tensors, name: str, tensor: MemoryDesc) -> None:
        self.apply(program, read, name, self.scratch(name, tensor))

    def sums_of_channels(self) -> None:
        self.fill(same_program(1), {"mean": self.of_groups}, MEANS, self.each)
        images = {name: self.tensors[name] for name in ("src", "diff_dst")}
        self.sum("groupnormback", centred_sums(), images, {MEANS: self.row}, self.row, (GRADIENTS, PRODUCTS))

    def sums_of_parameters(self, sums: tuple[str, ...]) -> None:
        self.fill(same_program(1), {FACTORS: self.of_groups}, "factors of channels", self.each)
        read, factors = dict.fromkeys((PRODUCTS, GRADIENTS), self.each), {"factors of channels": self.each}
        add_sums(
            self.assembly, Summed("parameters", parameter_sums(sums), read, factors, dst=self.of_channels, results=sums)
        )

    def offsets(self, scale: Tensors) -> None:
        read = dict.fromkeys((GRADIENTS, PRODUCTS), self.each)
        self.sum("groups", scaled_sums(bool(scale)), read, scale, self.of_groups, OF_GROUPS)
        programs = (OFFSETS, offset_program), (SLOPES, slope_program)
        for of_group, (name, program) in zip(OF_GROUPS, programs, strict=True):
            both = dict.fromkeys((of_group, FACTORS), self.of_groups)
            self.fill(program(self.elements), both, name, self.each)

    def sum(
        self, what: str, program: Program, images: Tensors, others: Tensors, dst: MemoryDesc, results: tuple[str, ...]
    ) -> None:
        """Sums of what the program makes, into scratch."""
        for name in results:
            self.scratch(name, dst)
        add_sums(self.assembly, Summed(what, program, images, others, dst=dst, results=results))
