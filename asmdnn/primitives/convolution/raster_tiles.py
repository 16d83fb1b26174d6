"""Convolutions of bf16 or bytes by tiles of AMX: a product for each row of output pixels, whose src is a raster.

    dst[pixel, o] = bias[o] + sum over r, s, c of src[pixel * stride + (r, s), c] * weights[(r, s, c), o]

Rows of the matrix are output pixels, which overlap in src; k lies in pieces, one for each row of the kernel, or for
each of its positions where these do not touch.  Weights are in panels with channels innermost: of the forms that were
timed it is the fastest but for bf16 at 7x7 (docs/low-precision.md).  A deconvolution is a product for each of its parts
(deconvolution/parts.py), which read some positions of the kernel from the end on, and write every s-th pixel of dst.
"""

from collections.abc import Callable, Iterator
from math import inf

from asmdnn.generators.dot.matmul_shape import RESULTS
from asmdnn.isa.dot import dot_level
from asmdnn.isa.tiles import TILE_COLUMNS
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.planning.steps import add_each, steps_of
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.convolution import direct
from asmdnn.primitives.convolution.description import ConvolutionForward, Desc
from asmdnn.primitives.convolution.direct import channels_of_dst, fit_of, scaled_dims
from asmdnn.primitives.convolution.lowered import add_lowered, add_ready, check_lowered, rows_desc
from asmdnn.primitives.convolution.multiplied import check_stored, level_of, types_of
from asmdnn.primitives.convolution.raster import Parts, Raster, add_raster, raster_of
from asmdnn.primitives.convolution.raster_job import RasterJob
from asmdnn.primitives.convolution.raster_products import Axes, channels_last, pixels, product_of
from asmdnn.primitives.convolution.raster_starts import add_starts
from asmdnn.primitives.convolution.reordered import any_format
from asmdnn.primitives.convolution.starts import zero_points_of
from asmdnn.primitives.convolution.winograd import plan as winograd
from asmdnn.primitives.convolution.winograd.checks import is_demanded
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.widening import level_of_tiles
from asmdnn.primitives.products.matrices import Matrix, panel_columns
from asmdnn.primitives.products.plan import Job, finished
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.starts import add_start
from asmdnn.primitives.products.target import Epilogue, target_of
from asmdnn.primitives.shapes.tensors import refuse_overlap
from asmdnn.records import replace
from asmdnn.types import Algorithm, f32, s32

BUSY = 0.75  # of threads' turns have an image, at least, where images are taken one by one
Others = Callable[[Desc, Engine], dict[str, float]]


def plans(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """Of a convolution; nothing where no tiles multiply these types, or Winograd's algorithm is demanded."""
    if is_demanded(desc) or level_of_tiles(types_of(desc), engine) is None:
        return iter(())
    return by_parts(desc, attr, engine, [direct.axes_of(desc)], others)


def by_parts(desc: Desc, attr: Attr, engine: Engine, parts: Parts, others: Others[Desc]) -> Iterator[Plan | Refusal]:
    """others: what other algorithms are expected to take."""
    level = level_of_tiles(types_of(desc), engine)
    if level is None:
        return
    try:
        plan = fastest(desc, attr, engine, parts)
        cycles = others(desc, engine)
        least = min(cycles, key=cycles.__getitem__)
        if plan.cycles >= cycles[least]:
            raise Refused(f"{plan.cycles} cycles are expected, {cycles[least]:.0f} of {least}")
        yield plan
    except Refused as reason:
        yield Refusal(f"direct+amx:{level}", str(reason))


def fastest(desc: Desc, attr: Attr, engine: Engine, parts: Parts) -> Plan:
    """Of the plans with and without windows as rows of a matrix.  Raises Refused if there is neither."""
    found, reason = list[Plan](), None
    for lowers in (False, True):
        try:
            passed = desc.with_formats(formats_of(desc, engine, lowers))
            found.append(planned(passed, attr, engine, parts, lowers))
        except Refused as refused:
            reason = reason or refused
    if not found:
        assert reason is not None
        raise reason
    return min(found, key=lambda plan: plan.cycles)


def formats_of(desc: Desc, engine: Engine, lowers: bool) -> dict[str, MemoryDesc]:
    """What `any` becomes: channels last, and panels."""
    tags = {"src": "axb", "dst": "axb", "bias": "a"}
    found = {name: x for name, x in desc.tensors().items() if x.is_any}
    return {
        name: weights_desc(desc, engine, lowers) if name == "weights" else MemoryDesc(x.dims, x.dtype, tags[name])
        for name, x in found.items()
    }


def weights_desc(desc: Desc, engine: Engine, lowers: bool) -> MemoryDesc:
    """Those that are multiplied.  Raises Refused."""
    if not lowers:
        return panels_desc(desc, engine)
    check_lowered(desc)
    return rows_desc(desc, engine)


def panels_desc(desc: Desc, engine: Engine) -> MemoryDesc:
    """Weights in panels of output channels, in each every kernel position, and there its groups of input channels:
    AcdB32a2b, and AcdB32a4b for bytes."""
    types, first, letters = types_of(desc), int(desc.has_groups), LETTERS[: desc.weights.ndims]
    groups, out, into, kernel = letters[:first], letters[first], letters[first + 1], letters[first + 2 :]
    columns = panel_columns(desc.dst.dims[1] // desc.groups, lanes_of(dot_level(types, engine.isa)))
    tag = f"{groups}{out.upper()}{kernel}{into.upper()}{columns}{out}{types.group}{into}"
    return MemoryDesc(desc.weights.dims, desc.weights.dtype, tag)


def planned(passed: Desc, attr: Attr, engine: Engine, parts: Parts, lowers: bool) -> Plan:
    """Raises Refused."""
    weights = weights_desc(passed, engine, lowers)
    check(passed, weights)
    desc = passed.with_formats({"weights": weights, "dst": channels_last(passed.dst)})
    sums, bias = types_of(passed).sums, channels_of_dst(desc)
    chain = chain_of(attr, passed.tensors(), scaled_dims(desc), bias, sums, sums == s32 and len(parts) == 1)
    operands = chain.operands(passed.dst, RESULTS)
    read = {operand: channels_last(tensor) for operand, tensor in operands.items()}
    target = target_of(engine, Epilogue(chain), types_of(passed), tiled=True)
    assembly = Assembly(engine.tuning, engine.isa)
    assembly.add((), "direct")
    start = None
    if "src" in dict(attr.zero_points):
        if lowers:
            raise Refused("src has a zero point, which zeros around windows do not stand for")
        start = add_sums(assembly, desc, raster_of(desc, parts), parts[0], engine)
    biased = None if chain.adds_bias else bias
    job = RasterJob(desc=desc, parts=parts, read=read, start=start, bias=biased, target=target, lowers=lowers)
    p = add_images(assembly, job, engine)
    numbers = zero_points_of(attr)
    return finished(
        Job(
            assembly=assembly,
            product=p,
            target=target,
            tensors=desc.tensors() | chain.arguments(read) | numbers,
            passed=passed.tensors() | chain.arguments(operands) | numbers,
            reads=("dst",) * chain.reads_dst,
        ),
        assembly,
    )


def add_images(assembly: Assembly, job: RasterJob, engine: Engine) -> Product:
    """All images at once; or one after the other, each on one thread, where their copies together would leave L2.
    Returns the product of the last part."""
    images, raster = job.desc.src.dims[0], raster_of(job.desc, job.parts, dense=job.lowers)
    turns = -(-images // engine.threads)
    are_near = raster.image_bytes <= engine.l2_bytes < images * raster.image_bytes
    if raster.copy is None or not are_near or images < BUSY * turns * engine.threads:
        return add_products(assembly, job, raster, engine)
    one, single = Assembly(engine.tuning, engine.isa), job.of_one_image()
    p = add_products(one, single, raster_of(single.desc, single.parts, dense=job.lowers), engine)
    places = {name: f"{name} of an image" for name in one.scratch}
    own = {places[name]: size for name, size in one.scratch.items()}
    add_each(assembly, steps_of(one.plan(one.name, {}, ()), places), job.image_bytes(), (images,), own)
    assembly.add((), *one.words)
    assembly.constants |= one.constants
    return p


def add_products(assembly: Assembly, job: RasterJob, raster: Raster, engine: Engine) -> Product:
    """The copy of src, if there is one, and the products of all parts, the last of which is returned.  Raises Refused
    where vectors are expected to be faster."""
    add_raster(assembly, job.desc.src, raster)
    if job.lowers:
        return add_lowered(assembly, job, raster, engine)
    for number, axes in enumerate(job.parts):
        bias = job.start if job.bias is None else pixels("bias", job.bias, job.desc, axes)
        operands = tuple(pixels(name, tensor, job.desc, axes) for name, tensor in job.read.items())
        p = replace(product_of(job.desc, raster, axes), bias=bias, post_op_operands=operands)
        done = len(assembly.phases)
        add_ready(assembly, p, job.target)
        if number:
            assembly.phases[done] = replace(assembly.phases[done], independent=True)
    return p


def add_sums(assembly: Assembly, desc: Desc, raster: Raster, axes: Axes, engine: Engine) -> Matrix:
    """What sums start from where src has a zero point: padding would have to hold it, and a part may not read all
    positions."""
    if raster.has_padding or any(axis.k < axis.all_positions.size for axis in axes):
        return add_starts(assembly, desc, axes, engine)
    outputs = (2 << desc.has_groups) - 1  # the mask of groups and their output channels
    start = add_start(assembly, desc.weights, engine.isa, 0, True, outputs)
    assert start is not None
    return replace(start, batch_bytes=(*start.batch_bytes, *[0] * (desc.src.ndims - 2)))


def check(desc: Desc, weights: MemoryDesc) -> None:
    """Raise Refused for what has no elements, or no such weights, groups of few channels, and what kernels do
    not store.  weights: as they are multiplied."""
    refuse_overlap(dst=desc.dst)
    check_stored(desc.tensors())
    if not desc.weights.holds_elements and desc.weights != weights:
        raise Refused("weights are transformed already")
    if 0 in desc.dst.dims or 0 in desc.weights.dims:
        raise Refused("there is nothing to multiply")
    into, out = (x.dims[1] // desc.groups for x in (desc.src, desc.dst))
    group = types_of(desc).group
    if desc.groups > 1 and (into % group or min(into, out) < TILE_COLUMNS):
        least = f"tiles take {TILE_COLUMNS} or more, and of src a multiple of {group}"
        raise Refused(f"groups have {into} and {out} channels, {least}")


def others(desc: ConvolutionForward, engine: Engine) -> dict[str, float]:
    """Vectors, and Winograd's algorithm where it may be chosen."""
    found = {"vectors": vector_cycles(desc, engine, direct.one_part)}
    if desc.algorithm == Algorithm.convolution_auto:
        demanded = replace(desc, algorithm=Algorithm.convolution_winograd)
        try:
            fit = winograd.fit(demanded, winograd.level_of(desc, engine), packs=False)
        except Refused:
            return found
        found["Winograd's algorithm"] = fit.choice.cycles
    return found


def vector_cycles(desc: Desc, engine: Engine, parts: direct.Parts[Desc]) -> float:
    """Of the parts, with vectors, in the formats that they like best; those of bf16 count as multiplies of f32."""
    types = types_of(desc)
    formats = {name: any_format(tensor) for name, tensor in desc.tensors().items() if name != "bias"}
    try:
        fit = fit_of(desc.with_formats(formats), level_of(types, engine), parts, types)
    except Refused:
        return inf
    multiply = engine.tuning.products.bf16_cycles if types.sums == f32 else 1
    return desc.src.dims[0] * desc.groups * fit.cycles * multiply
