"""Winograd's convolution, 3x3 with stride 1, forward: as implementations of ConvolutionForward."""

from collections.abc import Iterator
from functools import partial
from types import MappingProxyType

from asmdnn.generators.winograd.arguments import ARGUMENTS
from asmdnn.isa.dot import F32
from asmdnn.isa.vectors import NARROWEST, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.winograd import WinogradDesc
from asmdnn.planning.phase import NOTHING, Phase, Repeat, View, flushing
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.convolution.direct import channels_of_dst, make_geometry, resolve_activations, scaled_dims
from asmdnn.primitives.convolution.ends import ends_of
from asmdnn.primitives.convolution.geometry import ConvGeometry, image_layout
from asmdnn.primitives.convolution.level import may_be_narrow
from asmdnn.primitives.convolution.refusals import check_weights
from asmdnn.primitives.convolution.reordered import between_reorders, name_of
from asmdnn.primitives.convolution.rounds import images_of_rounds, rounds_of
from asmdnn.primitives.convolution.tile_refusals import check_tensors
from asmdnn.primitives.convolution.winograd.checks import (
    check_channels,
    check_distances,
    check_types,
    check_window,
    is_demanded,
)
from asmdnn.primitives.convolution.winograd.choice import CutChoice, choose
from asmdnn.primitives.convolution.winograd.cut import WinogradCut, records_of_image, sizes_of
from asmdnn.primitives.convolution.winograd.job import WinogradJob
from asmdnn.primitives.convolution.winograd.schedule import (
    PanelChunks,
    Records,
    TileBlocks,
    fused,
    products,
    results,
    sources,
)
from asmdnn.primitives.convolution.winograd.tiles import make_tiles
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.core.implementation import Answer
from asmdnn.primitives.core.widening import level_that_rounds
from asmdnn.records import dataclass, replace
from asmdnn.types import Algorithm, f32

SOURCE, PRODUCTS = "transformed source", "products"  # scratch
# And the tensors whose formats each may choose, which are reordered where the caller's differ.
VARIANTS = MappingProxyType(
    {
        "winograd": (),
        "reorder+winograd": ("src", "dst"),
        "pack+winograd": ("weights",),
        "pack+reorder+winograd": ("weights", "src", "dst"),
    }
)


def plans(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """Of every variant; nothing where another algorithm is demanded."""
    if desc.algorithm == Algorithm.convolution_direct and not is_demanded(desc):
        return
    try:
        check_window(desc)  # before all else: every other convolution of a network asks, too
    except Refused as reason:
        yield from (Refusal(name_of(name, engine), str(reason)) for name in VARIANTS)
        return
    for name, roles in VARIANTS.items():
        try:
            yield planned(desc, attr, engine) if not roles else around(name, roles, desc, attr, engine)
        except Refused as reason:
            yield Refusal(name_of(name, engine), str(reason))


def around(name: str, roles: tuple[str, ...], desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """The plan between reorders."""
    if isinstance(desc.weights, WinogradDesc) and "weights" in roles:
        raise Refused("weights need not be packed")
    inner = partial(planned, packs="weights" in roles)
    return between_reorders(name, roles, desc, attr, engine, inner)


def planned(desc: ConvolutionForward, attr: Attr, engine: Engine, packs: bool = False) -> Plan:
    """Plan `desc`; `packs`: its weights are transformed with every call.  Raises Refused."""
    fit = fastest(desc, level_of(desc, engine), packs)
    return with_cut(fit.desc, attr, fit.engine, fit.g, fit.choice.cut)


@dataclass(frozen=True, slots=True)
class WinogradFit:
    """What a level makes of a convolution: `desc` with formats of activations, and the best cut."""

    desc: ConvolutionForward
    g: ConvGeometry
    engine: Engine
    choice: CutChoice


def fit(desc: ConvolutionForward, engine: Engine, packs: bool) -> WinogradFit:
    """With the level of the engine.  Raises Refused."""
    resolved, g = prepared(desc, engine)
    return WinogradFit(resolved, g, engine, choose(g, Algorithm(desc.algorithm), desc.weights, engine, packs))


def fastest(desc: ConvolutionForward, engine: Engine, packs: bool) -> WinogradFit:
    """With narrow vectors where wide ones would be half empty and are expected to take longer, as Winograd's algorithm
    or directly.  Raises Refused."""
    fits = []
    for each in (engine, at_level(engine, NARROWEST)) if may_be_narrow(desc, engine) else (engine,):
        try:
            fits.append(fit(desc, each, packs))
        except Refused as error:
            reason = error
    if not fits:
        raise reason
    wide, narrow = fits[0], fits[-1]
    cost = engine.tuning.convolution.narrow_cost
    if narrow is not wide and cost * narrow.choice.cycles < min(wide.choice.cycles, wide.choice.direct_cycles):
        narrow.choice.check()
        return narrow
    wide.choice.check()
    return wide


def level_of(desc: ConvolutionForward, engine: Engine) -> Engine:
    """The engine with the level of the kernels."""
    return level_that_rounds((tensor.dtype for tensor in desc.tensors().values()), engine)


def prepared(desc: ConvolutionForward, engine: Engine) -> tuple[ConvolutionForward, ConvGeometry]:
    """The description with formats of activations, and its geometry.  Raises Refused where no cut takes it."""
    lanes = lanes_of(engine.isa)
    check_types(desc)
    check_window(desc)
    tag = f"aBx{lanes}b" if desc.src.dtype == f32 else "axb"  # as direct convolution of other types likes it
    src, dst = (MemoryDesc(x.dims, x.dtype, tag) if x.is_any else x for x in (desc.src, desc.dst))
    resolved = resolve_activations(desc.with_formats({"src": src, "dst": dst}), lanes)
    of_src, of_dst = image_layout(resolved.src), image_layout(resolved.dst)
    if of_src is None or of_dst is None:
        raise Refused("src and dst must be plain, or blocked once and by channels")
    check_tensors(resolved, of_src, of_dst, F32, engine)
    check_channels(resolved, of_src, of_dst, lanes)
    # Channels are transformed one by one: as elements, whatever a multiply takes together.
    g = make_geometry(resolved, of_src, of_dst)
    return resolved, replace(g, ic=desc.src.dims[1] // desc.groups, src=of_src)


def with_cut(desc: ConvolutionForward, attr: Attr, engine: Engine, g: ConvGeometry, cut: WinogradCut) -> Plan:
    """The plan for a prepared description and the level of its kernels.  Raises Refused."""
    lanes = lanes_of(engine.isa)
    check_distances(g, cut, engine.isa)
    weights = WinogradDesc(desc.weights.dims, cut.types.weights, cut.m, cut.vectors * lanes)
    check_weights(desc, weights)
    return scheduled(desc.with_formats({"weights": weights}), attr, engine, g, cut)


def scheduled(desc: ConvolutionForward, attr: Attr, engine: Engine, g: ConvGeometry, cut: WinogradCut) -> Plan:
    """The plan for resolved formats."""
    lanes = lanes_of(engine.isa)
    chain = chain_of(attr, desc.tensors(), scaled_dims(desc), channels_of_dst(desc))
    channels = desc.dst.dims[1]
    width = cut.vectors * lanes if g.groups == 1 else channels  # whose vectors lie at one distance
    ends = ends_of(chain, desc.dst, ARGUMENTS, lanes, channels, width=width)
    images, rounds = g.mb, 1
    if cut.is_fused:
        images, rounds = images_of_rounds(g.mb, records_of_image(g, cut, engine.isa), engine.tuning.convolution)
    sizes = sizes_of(g, cut, engine.isa, images)
    vectors = sizes.source_vectors * lanes
    whole = vectors if desc.src.padded_dims[1] >= vectors else cut.groups * g.ic
    whole_vectors = desc.dst.padded_dims[1] % lanes == 0
    tensors = {**desc.tensors(), **ends.arguments}
    bias = ends.starts_from_bias(tensors)
    job = WinogradJob(
        isa=engine.isa,
        tuning=engine.tuning,
        g=g,
        cut=cut,
        sizes=sizes,
        readable=whole,
        whole_vectors=whole_vectors,
        bias=bias,
        post_ops=ends.post_ops,
        places=ends.places,
        dst_type=desc.dst.dtype,
        operand_types=ends.types,
    )
    buffers = dict(zip(ARGUMENTS, (SOURCE, "weights", "bias" * bias, PRODUCTS, "weights", "src", "dst"), strict=True))
    arguments = tuple(View(name) if name else NOTHING for name in (*buffers.values(), *ends.operands))
    scratch = {SOURCE: sizes.source_bytes, PRODUCTS: sizes.products_bytes}
    moves = moves_of_images(job)
    made = []
    for begin, end, repeats in rounds_of(g.mb, images, rounds, moves):
        made += steps_of(job, begin, end, (*repeats_of_groups(job), *repeats))
    kernels = tuple(job.specs)
    phases = (replace(phase, kernels=kernels, arguments=arguments) for phase in made)
    name = f"winograd:{engine.isa}"
    per_part = tuple(scratch) if cut.is_fused else ()
    plan = Plan(name, flushing(phases), tensors, {}, scratch, ("dst",), per_part=per_part)
    return ends.around(plan, engine)


def moves_of_images(job: WinogradJob) -> tuple[int, ...]:
    """How far every argument moves from an image to the next one."""
    g = job.g
    moves = {"src": g.src.image_bytes, "dst": g.dst.image_bytes}
    moves |= {name: place.layout.image_bytes for name, place in job.places.items()}
    return tuple(moves.get(name, 0) for name in (*ARGUMENTS, *job.places))


def repeats_of_groups(job: WinogradJob) -> tuple[Repeat, ...]:
    """What computes some groups, for all: the next ones lie after them."""
    g, cut, sizes = job.g, job.cut, job.sizes
    if cut.groups == g.groups:
        return ()
    out, weights = cut.groups * g.oc, cut.groups * sizes.group_bytes
    moves = {"weights": weights, "prefetched": weights, "bias": f32.size_bytes * out}
    moves |= {"src": g.src.channel(cut.groups * g.ic), "dst": g.dst.channel(out)}
    moves |= {name: 0 if place.operand.element else place.layout.channel(out) for name, place in job.places.items()}
    return (Repeat(g.groups // cut.groups, tuple(moves.get(name, 0) for name in (*ARGUMENTS, *job.places))),)


def steps_of(job: WinogradJob, begin: int, end: int, repeats: tuple[Repeat, ...]) -> list[Phase]:
    """The phases of some images, without kernels and arguments yet."""
    tiles = make_tiles(job.g, job.cut.m, begin, end)
    if job.cut.is_fused:
        (records, cycles), groups = fused(job, tiles)
        return [Phase((), (), records, cycles, repeats=repeats, groups=groups)]
    every, panels = TileBlocks(slice(0, len(tiles.first)), len(tiles.first)), PanelChunks(0, job.sizes.panels)
    steps: list[Records] = [
        sources(job, tiles, every),
        products(job, len(tiles.first), panels),
        results(job, tiles, every, panels),
    ]
    return [Phase((), (), records, cycles) for records, cycles in steps]
