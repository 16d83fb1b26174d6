"""The plan of backward batch normalization: element-wise functions, and reductions of what they leave.

Sums over images and pixels are there before diff_src is computed, so that every tensor is read twice.
"""

from collections.abc import Sequence
from functools import lru_cache

from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.row_programs import centred_sums, factor_program, same_program
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan, alike
from asmdnn.planning.refusal import Refused
from asmdnn.planning.unhindered import without_needless_barriers
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.channel_gradients.description import BatchNormBackward
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
from asmdnn.primitives.shapes.formats import like, of_type, pads_channels, with_padding
from asmdnn.primitives.shapes.nests import as_row_of
from asmdnn.primitives.shapes.tensors import check_tensors
from asmdnn.types import FLOAT_NAMES, f32, u8


@lru_cache
def slope_program(elements: int) -> Program:
    """By how much of x - mean dx is less, of the sum of dy * (x - mean) and the factor: its mean, normalized twice."""
    build = Builder(2)
    total, factor = build.inputs
    return build.finish(total * factor * (factor * (1.0 / elements)))


@lru_cache
def batch_norm_program(elements: int, masked: bool) -> Program:
    """diff_src of x, dy, the mask if there is one, mean, the factor with the scale, the slope, and the sum of dy."""
    build = Builder(6 + masked)
    x, dy, *mask, mean, factor, slope, total = build.inputs
    dy = build.where(mask[0] > 0.0, dy, 0.0) if mask else dy
    return build.finish((dy - total * (1.0 / elements) - (x - mean) * slope) * factor)


@lru_cache
def masked_program(scaled: bool) -> Program:
    """dy where the mask is not 0, times the factor if it is `scaled`."""
    build = Builder(2 + scaled)
    dy, mask, *factor = build.inputs
    return build.finish(build.where(mask > 0.0, dy * factor[0] if factor else dy, 0.0))


@by_statistics("batch_norm")
@of_f32_parameters
def plan_batch_norm(desc: BatchNormBackward, attr: Attr, engine: Engine, way: str) -> Plan:
    """Plan a backward batch normalization.  Raises Refused."""
    refuse_attr(attr, "a gradient")
    src = like(desc.diff_dst, desc.src)
    images = {"src": src, "diff_dst": like(src, desc.diff_dst), "diff_src": like(src, desc.diff_src)}
    mask = {"workspace": like(of_type(images["diff_dst"], u8), desc.workspace)} if desc.workspace else {}
    added = {"diff_src_1": like(images["diff_dst"], desc.diff_src_1)} if desc.diff_src_1 else {}
    names = ("mean", "variance", "scale", "diff_scale", "diff_shift")
    vectors = {name: vector_of(name, tensor) for name in names if (tensor := getattr(desc, name)) is not None}
    for name in ("diff_src", *added):
        check_tensors({**images, **added}, name, FLOAT_NAMES)
    check_vectors(vectors)
    tensors = {**images, **mask, **added, **vectors}
    name = f"{way}:{f32_level(engine.isa)}"
    results = ("diff_src", *added, *(name for name in ("diff_scale", "diff_shift") if name in vectors))
    if 0 in src.dims:
        if len(results) > 1 + len(added):
            raise Refused("src has no elements, of which there are no sums for diff_scale and diff_shift")
        return Assembly(engine.tuning, engine.isa).plan(name, tensors, results)
    wide = {name: as_channels(tensor, src.ndims) for name, tensor in vectors.items()}
    if have_padding([*images.values(), *mask.values(), *added.values()]):
        images, mask, added = ({n: with_padding(x) for n, x in some.items()} for some in (images, mask, added))
    steps = BatchSteps(engine, images["src"], {"diff_dst": images["diff_dst"]}, mask, added, wide)
    steps.add(images["diff_src"], desc, has_sums=len(results) > 1 + len(added))
    masked = (pair for output in added for pair in alike(tensors, ["diff_dst"], output))  # src is read after them
    return without_needless_barriers(steps.assembly.plan(name, tensors, results, (*replaceable(tensors), *masked)))


def have_padding(images: Sequence[MemoryDesc]) -> bool:
    """Whether all of them have channels of zeros, in the same blocks, which count as channels: their sums are 0."""
    blocked = {(tensor.padded_dims, tensor.inner_blocks) for tensor in images}
    return len(blocked) == 1 and pads_channels(images[0])


class BatchSteps(GradientSteps):
    """The steps.  gradient: diff_dst, until it is masked and stored as `added`; mask: the workspace, while diff_dst is
    not masked; wide: vectors of channels as they broadcast to src, or to what of it is no padding."""

    def __init__(
        self, engine: Engine, src: MemoryDesc, gradient: Tensors, mask: Tensors, added: Tensors, wide: Tensors
    ) -> None:
        super().__init__(engine)
        self.src, self.gradient, self.mask, self.added, self.wide = src, gradient, mask, added, wide
        self.whole_row = row_of_channels(src)
        self.row = MemoryDesc(wide["mean"].dims, f32, LETTERS[: src.ndims])
        self.mean: Tensors = {}  # as it lies beside images

    def beside_images(self, vectors: Tensors) -> Tensors:
        """Vectors of channels as they broadcast to src: with zeros for its padding."""
        if self.row == self.whole_row:
            return vectors
        return self.padded(vectors, self.src.blocks[1])

    def add(self, diff_src: MemoryDesc, desc: BatchNormBackward, has_sums: bool) -> None:
        """All of them."""
        row, wide, given = self.row, self.wide, desc.use_global_stats
        elements = self.src.nelems() // self.src.dims[1]
        self.apply(factor_program(desc.epsilon), {"variance": wide["variance"]}, FACTORS, self.scratch(FACTORS, row))
        if has_sums or not given:
            self.add_sums()
        elif self.added:
            self.store()
        if "scale" in wide:
            read = {"scale": wide["scale"], FACTORS: row}
            self.apply(product_program(), read, SCALED, self.scratch(SCALED, row))
        factor = self.beside_images({SCALED if "scale" in wide else FACTORS: row})
        if given:
            program = masked_program(True) if self.mask else product_program()
            self.apply(program, {**self.gradient, **self.mask, **factor}, "diff_src", diff_src)
            return
        self.apply(slope_program(elements), {PRODUCTS: row, FACTORS: row}, SLOPES, self.scratch(SLOPES, row))
        slopes = self.beside_images({SLOPES: row})
        of_channels = {**self.mean, **factor, **slopes, GRADIENTS: self.whole_row}
        read = {"src": self.src, **self.gradient, **self.mask, **of_channels}
        self.apply(batch_norm_program(elements, bool(self.mask)), read, "diff_src", diff_src)

    def store(self) -> None:
        """Masked gradients, which are read from there after this step."""
        (stored,) = self.added.items()
        self.apply(masked_program(False), {**self.gradient, **self.mask}, *stored)
        self.gradient, self.mask = self.added, {}

    def summed(self, stored: tuple[str, MemoryDesc] | None) -> Summed:
        """What is summed, of masked gradients that are stored meanwhile."""
        read = {"src": self.src, **self.gradient, **self.mask}
        program = centred_sums(bool(self.mask), stored is not None)
        results = (GRADIENTS, PRODUCTS)
        return Summed("batchnormback", program, read, self.mean, dst=self.whole_row, results=results, stored=stored)

    def add_sums(self) -> None:
        """The sums of gradients and of products with centred src, into scratch; the results that are made of them."""
        row, wide, sums = self.row, self.wide, (GRADIENTS, PRODUCTS)
        self.mean = self.beside_images({"mean": wide["mean"]})
        for name in sums:
            self.scratch(name, self.whole_row)
        summed = self.summed(next(iter(self.added.items()), None))
        if self.added and summed.source(summed.images) is None:  # copies are summed, and nothing is stored beside
            self.store()
            summed = self.summed(None)
        add_sums(self.assembly, summed)
        if self.added:
            self.gradient, self.mask = self.added, {}
        if "diff_scale" in wide:
            self.apply(product_program(), {PRODUCTS: row, FACTORS: row}, "diff_scale", wide["diff_scale"])
        if "diff_shift" in wide:
            self.apply(same_program(1), {GRADIENTS: row}, "diff_shift", wide["diff_shift"])


def vector_of(name: str, tensor: MemoryDesc) -> MemoryDesc:
    """Of the channels, plain.  Raises Refused."""
    if tensor.inner_blocks:
        raise Refused(f"{name} is blocked, it must be a vector")
    return MemoryDesc(tensor.dims, tensor.dtype, "a") if tensor.is_any else tensor


def as_channels(tensor: MemoryDesc, ndims: int) -> MemoryDesc:
    wide = as_row_of(tensor, ndims, 1)
    assert wide is not None, "vectors are plain"
    return wide
