"""A convolution of bf16 or bytes by tiles of AMX: a product for each row of output pixels, whose src is a raster.

    dst[pixel, o] = bias[o] + sum over r, s, c of src[pixel * stride + (r, s), c] * weights[(r, s, c), o]

Rows of the matrix are output pixels, which overlap in src; k lies in pieces, one for each row of the kernel, or for
each of its positions where these do not touch.  Weights are in panels with channels innermost: of the forms that were
timed it is the fastest but for bf16 at 7x7 (docs/low-precision.md).
"""

from collections.abc import Iterator
from functools import partial
from math import inf, prod

from asmdnn.generators.dot.matmul_shape import RESULTS
from asmdnn.isa.dot import GROUP_BYTES, dot_level
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.tiles import TILE_COLUMNS
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.convolution.direct import channels_of_dst, fit_of, one_part, scaled_dims
from asmdnn.primitives.convolution.multiplied import check_stored, level_of, types_of
from asmdnn.primitives.convolution.raster import Raster, add_raster, raster_of
from asmdnn.primitives.convolution.reordered import any_format
from asmdnn.primitives.convolution.starts import zero_points_of
from asmdnn.primitives.convolution.winograd import plan as winograd
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import level_of_tiles
from asmdnn.primitives.products.matmul_tiles import check_overlap
from asmdnn.primitives.products.matrices import Matrix, Panels, matrix_of, panel_columns
from asmdnn.primitives.products.plan import Job, answers
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.starts import add_start
from asmdnn.primitives.products.strategies import TILE_STRATEGIES
from asmdnn.primitives.products.target import Epilogue, target_of
from asmdnn.records import replace
from asmdnn.types import Algorithm, f32, s32


def plans(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """Says nothing where no tiles multiply these types."""
    types = types_of(desc)
    level = level_of_tiles(types, engine)
    if level is None:
        return
    passed = desc.with_formats(formats_of(desc, engine))
    for answer in answers(partial(job_of, passed, attr, engine), level, TILE_STRATEGIES):
        if isinstance(answer, Refusal):
            yield Refusal(f"direct+{answer.implementation}", answer.reason)
            continue
        name = answer.implementation
        others = {"vectors": vector_cycles(desc, engine), "Winograd's algorithm": winograd_cycles(desc, engine)}
        other = min(others, key=others.__getitem__)
        if answer.cycles >= others[other]:
            yield Refusal(name, f"{answer.cycles} cycles are expected, {others[other]:.0f} of {other}")
        else:
            yield answer


def formats_of(desc: ConvolutionForward, engine: Engine) -> dict[str, MemoryDesc]:
    """What `any` becomes: channels last, and panels."""
    tags = {"src": "axb", "dst": "axb", "bias": "a"}
    found = {name: x for name, x in desc.tensors().items() if x.is_any}
    return {
        name: panels_desc(desc, engine) if name == "weights" else MemoryDesc(x.dims, x.dtype, tags[name])
        for name, x in found.items()
    }


def panels_desc(desc: ConvolutionForward, engine: Engine) -> MemoryDesc:
    """Weights in panels of output channels, in each every kernel position, and there its groups of input channels:
    AcdB32a2b, and AcdB32a4b for bytes."""
    types, first, letters = types_of(desc), int(desc.has_groups), LETTERS[: desc.weights.ndims]
    groups, out, into, kernel = letters[:first], letters[first], letters[first + 1], letters[first + 2 :]
    columns = panel_columns(desc.dst.dims[1] // desc.groups, lanes_of(dot_level(types, engine.isa)))
    tag = f"{groups}{out.upper()}{kernel}{into.upper()}{columns}{out}{types.group}{into}"
    return MemoryDesc(desc.weights.dims, desc.weights.dtype, tag)


def job_of(passed: ConvolutionForward, attr: Attr, engine: Engine) -> Job:
    """The product of rows.  Raises Refused."""
    types, weights = types_of(passed), panels_desc(passed, engine)
    check(passed)
    desc = passed.with_formats({"weights": weights, "dst": channels_last(passed.dst)})
    bias = channels_of_dst(desc)
    chain = chain_of(attr, passed.tensors(), scaled_dims(desc), bias, types.sums, types.sums == s32)
    others = chain.operands(passed.dst, RESULTS)
    read = {operand: channels_last(tensor) for operand, tensor in others.items()}
    assembly, raster = Assembly(engine.tuning, engine.isa), raster_of(desc)
    assembly.add((), "direct")
    p = product_of(desc, raster)
    start = None if bias is None or chain.adds_bias else pixels("bias", bias, desc)
    if "src" in dict(attr.zero_points):
        if raster.copy and any(box.dims[1] == raster.channels for box in raster.copy.around()):
            raise Refused("src has a zero point that is not known yet, and padding, which would have to hold it")
        outputs = (2 << desc.has_groups) - 1  # the mask of groups and their output channels
        start = add_start(assembly, weights, engine.isa, 0, True, outputs)
        assert start
        start = replace(start, batch_bytes=(*start.batch_bytes, *[0] * (desc.src.ndims - 2)))
    add_raster(assembly, desc.src, raster)
    operands = tuple(pixels(name, tensor, desc) for name, tensor in read.items())
    p = replace(p, bias=start, post_op_operands=operands)
    tensors = desc.tensors() | chain.arguments(read) | zero_points_of(attr)
    as_passed = passed.tensors() | chain.arguments(others) | zero_points_of(attr)
    target = target_of(engine, Epilogue(chain), types, tiled=True)
    return Job(assembly, p, target, tensors, as_passed, reads=("dst",) * chain.reads_dst)


def check(desc: ConvolutionForward) -> None:
    """Raise Refused for what has no elements, groups of few channels, and what kernels do not store."""
    check_overlap(desc.tensors(), ("dst",))
    check_stored(desc.tensors())
    if 0 in desc.dst.dims or 0 in desc.weights.dims:
        raise Refused("there is nothing to multiply")
    into, out = (x.dims[1] // desc.groups for x in (desc.src, desc.dst))
    group = types_of(desc).group
    if desc.groups > 1 and (into % group or min(into, out) < TILE_COLUMNS):
        least = f"tiles take {TILE_COLUMNS} or more, and of src a multiple of {group}"
        raise Refused(f"groups have {into} and {out} channels, {least}")


def channels_last(tensor: MemoryDesc) -> MemoryDesc:
    """The tensor, or a copy of it where its elements are in blocks, or channels lie apart."""
    if not tensor.inner_blocks and (tensor.strides[1] == 1 or tensor.dims[1] == 1):
        return tensor
    return MemoryDesc(tensor.dims, tensor.dtype, "axb")


def pixels(name: str, tensor: MemoryDesc, desc: ConvolutionForward) -> Matrix:
    """Rows of pixels as matrices: of a batch of groups, images and all axes but the last."""
    order = (0, *range(2, tensor.ndims), 1)
    x = matrix_of(name, tensor.permute_axes([order.index(dim) for dim in range(tensor.ndims)]))
    group = tensor.dims[1] // desc.groups * x.column_bytes
    return replace(x, batch_bytes=(*[group] * desc.has_groups, *x.batch_bytes))


def product_of(desc: ConvolutionForward, raster: Raster) -> Product:
    """Without a bias.  Raises Refused for rows of an image that displacements do not reach."""
    types, weights = types_of(desc), desc.weights
    size, group_channels = types.src.size_bytes, raster.channels // desc.groups
    outer = [stride * step for stride, step in zip(desc.strides, raster.axis_bytes, strict=True)]
    steps = (*[group_channels * size] * desc.has_groups, raster.image_bytes, *outer[:-1])
    src = Matrix(
        buffer=raster.buffer,
        start_bytes=raster.start_bytes,
        batch_bytes=steps,
        row_bytes=outer[-1],
        column_bytes=GROUP_BYTES,
        dtype=types.src,
        group=types.group,
    )
    mb, _, *rows, m = desc.dst.dims
    dst = pixels("dst", desc.dst, desc)
    if max(raster.image_bytes, *dst.batch_bytes) > MAX_OFFSET:
        raise Refused(f"images are larger than {MAX_OFFSET} bytes")
    (_, columns), *_ = weights.inner_blocks
    panels = Panels(
        buffer="weights",
        start_bytes=size * weights.offset0,
        batch_bytes=(*[size * weights.strides[0]] * desc.has_groups, *[0] * (1 + len(rows))),
        row_bytes=columns * GROUP_BYTES,
        panel_bytes=size * weights.strides[desc.has_groups],
        columns=columns,
        dtype=types.weights,
        group=types.group,
    )
    return Product(
        batch=(*[desc.groups] * desc.has_groups, mb, *rows),
        m=m,
        n=desc.dst.dims[1] // desc.groups,
        k=prod(desc.kernel) * group_channels // types.group,
        src=src,
        weights=panels,
        dst=dst,
        types=types,
        pieces=pieces_of(desc, raster),
    )


def pieces_of(desc: ConvolutionForward, raster: Raster) -> tuple[tuple[int, int], ...]:
    """The loops over kernel positions, but over those that lie side by side."""
    steps = [(d + 1) * step for d, step in zip(desc.dilations, raster.axis_bytes, strict=True)]
    loops = [loop for loop in zip(desc.kernel, steps, strict=True) if loop[0] > 1]
    touch = desc.groups == 1 and steps[-1] == raster.channels * desc.src.dtype.size_bytes
    return tuple(loops[:-1] if touch and desc.kernel[-1] > 1 else loops)


def vector_cycles(desc: ConvolutionForward, engine: Engine) -> float:
    """What direct convolution is expected to take with vectors, in the formats that it likes best; those of bf16 count
    as multiplies of f32."""
    types = types_of(desc)
    formats = {name: any_format(tensor) for name, tensor in desc.tensors().items() if name != "bias"}
    try:
        fit = fit_of(desc.with_formats(formats), level_of(types, engine), one_part)
    except Refused:
        return inf
    multiply = engine.tuning.products.bf16_cycles if types.sums == f32 else 1
    return desc.src.dims[0] * desc.groups * fit.cycles * multiply


def winograd_cycles(desc: ConvolutionForward, engine: Engine) -> float:
    """What Winograd's algorithm is expected to take, where it may be chosen."""
    if desc.algorithm != Algorithm.convolution_auto:
        return inf
    demanded = replace(desc, algorithm=Algorithm.convolution_winograd)
    try:
        return winograd.fit(demanded, winograd.level_of(desc, engine), packs=False).choice.cycles
    except Refused:
        return inf
