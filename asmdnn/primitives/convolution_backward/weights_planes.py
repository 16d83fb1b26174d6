"""Gradients of weights of few output channels: sums along the rows of planes,

    diff_weights[o, i, r, s, lane] = sum over n, v, vectors u of diff_dst[n, o, v, u] * src[n, i, v*sh + r*dh, u + s*dw]

and then over lanes.  Vectors of output channels, as other ways have them, leave lanes empty: of 8 channels and 16 lanes
half.  src and diff_dst have the pixels of a row beside each other (nchw).  With padding or strides rows of src are
copied, one place in the cell of strides after the other, between zeros.  Zeros of the padding are multiplied: where
diff_dst is infinite, they give NaN.
"""

from collections.abc import Iterator
from math import prod

from asmdnn.isa.dot import f32_dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Phase, View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.taps import NEAR_BYTES as NEAR
from asmdnn.primitives.convolution_backward import weights
from asmdnn.primitives.convolution_backward.data import AdjointConvolution
from asmdnn.primitives.convolution_backward.description import BackwardWeights
from asmdnn.primitives.convolution_backward.planes_calls import PlanesJob, blocks_of, cut_of, records, tiles_of
from asmdnn.primitives.convolution_backward.planes_rows import (
    ROWS,
    RowsOfPlaces,
    reads_rows,
    rows_in_place,
    rows_of_places,
)
from asmdnn.primitives.convolution_backward.weights import check, convolution_of, renamed
from asmdnn.primitives.convolution_backward.weights_tiles import LEAST_CHUNKS, LEAST_SHARES, NEAR_BYTES, TAPS
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.core.implementation import plan_of
from asmdnn.primitives.products.matrices import dense_matrix
from asmdnn.primitives.products.partial import PARTIAL, sum_of_rows
from asmdnn.primitives.products.plan import multiply
from asmdnn.primitives.products.target import target_of
from asmdnn.primitives.reduction import reduction
from asmdnn.primitives.reduction.bias import with_bias
from asmdnn.primitives.reduction.description import ReductionForward
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.records import replace
from asmdnn.types import f32

NAME = "planes"
VECTORS = "gradients of lanes"  # scratch
FULL = 4  # lanes are mostly full if less than one in so many is empty
WORTH = 0.9  # of the cycles of tiles: at 0.92 and 0.96 two groups of 10 and 12 channels took a Zen 5 1.25 times as long
MOST_ROWS = 8192  # of all images of a phase


def plans(desc: BackwardWeights, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plan, where it is expected to take less than one of tiles."""
    p, names = convolution_of(desc)
    engine = at_level(engine, f32_dot_level(engine.isa))
    name = f"{NAME}:{engine.isa}"
    try:
        check(desc, attr)
        check_channels(p, lanes_of(engine.isa))
        plan = renamed(planned(p, engine), names)
        whole = with_bias(plan, desc.diff_bias, engine)
    except Refused as reason:
        yield Refusal(name, str(reason))
        return
    others = weights.plans(replace(desc, diff_bias=None), attr, engine)  # beside which a bias takes little
    tiles = next((x for x in others if isinstance(x, Plan)), None)
    if tiles and plan.cycles >= WORTH * tiles.cycles:
        yield Refusal(name, f"{plan.cycles} cycles are expected, {tiles.cycles} of {tiles.implementation}")
    else:
        yield whole


def check_channels(p: AdjointConvolution, lanes: int) -> None:
    """Raise Refused where vectors of output channels are mostly full, and where there are no elements."""
    if not p.src.nelems() or not p.dst.nelems() or not p.weights.nelems():
        raise Refused("there are no elements")
    out = p.dst.dims[1] // p.groups
    if FULL * out > lanes * (FULL - 1):
        raise Refused(f"{out} output channels nearly fill {lanes} lanes, or more")


def planned(p: AdjointConvolution, engine: Engine) -> Plan:
    """Between reorders of what has no rows.  Raises Refused."""
    if weights.picks_pixels(p):
        return weights.of_picked_pixels(p.with_formats({"src": no_blocks(p.src)}), planned, engine)
    own = p.with_formats({"src": in_rows(p.src) if reads_rows(p) else no_blocks(p.src), "dst": in_rows(p.dst)})
    given = {name: tensor for name, tensor in p.tensors().items() if not tensor.is_any}
    return between_reorders(sums(own, engine), given, engine.tuning, isa=engine.isa)


def no_blocks(tensor: MemoryDesc) -> MemoryDesc:
    """As it is, if elements of an axis are at one distance; else plain."""
    return MemoryDesc(tensor.dims, tensor.dtype, "abx") if tensor.is_any or tensor.inner_blocks else tensor


def in_rows(tensor: MemoryDesc) -> MemoryDesc:
    """As it is, if pixels of a row are contiguous; else plain."""
    if tensor.is_any or tensor.inner_blocks or tensor.strides[-1] != 1:
        return MemoryDesc(tensor.dims, tensor.dtype, "abx")
    return tensor


def sums(p: AdjointConvolution, engine: Engine) -> Plan:
    """The plan for tensors of rows, into plain weights: some images at a time, and then over lanes.  Raises Refused."""
    copy = None if reads_rows(p) else rows_of_places(p)
    source = copy.rows() if copy else rows_in_place(p)
    images, isa = p.src.dims[0], engine.isa
    job = PlanesJob(p, isa, source, at_once(p, copy), cut_of(*of_group(p), prod(p.kernel), isa))
    check_near(job)
    assembly = Assembly(engine.tuning, isa)
    parts = parts_of(job)
    total = assembly.room(VECTORS, job.weights_bytes)
    made = assembly.room(PARTIAL, parts * job.weights_bytes) if parts > 1 else total
    first = records(job, parts, accumulate=False)
    more = records(job, parts, accumulate=True) if images > job.images else first
    copies = copy.copies(job.images, engine) if copy else ()
    for n in range(0, images, job.images):
        if copy:
            copy.add_copies(assembly, copies, n, job.images)
        src = View(ROWS) if copy else View("src", n * source.image_bytes)
        arguments = (src, View("dst", n * job.dst_strides[0]), View(made), View(TAPS))
        kernels, made_records, cycles, groups, _ = more if n else first
        goes_on = n > 0 and copy is None
        assembly.add([Phase(kernels, arguments, made_records, cycles, groups=groups, continues=goes_on)])
    assembly.constants[TAPS] = first.words
    if parts > 1:
        size = job.weights_bytes // f32.size_bytes
        rows = sum_of_rows(assembly, dense_matrix(made, size), parts, size, dense_matrix(total, size))
        multiply(assembly, rows, target_of(engine))
    add_sums_of_lanes(assembly, job, engine)
    weights = MemoryDesc(p.weights.dims, f32, LETTERS[: p.weights.ndims])
    return assembly.plan(f"{NAME}:{isa}", {"src": p.src, "weights": weights, "dst": p.dst}, ("weights",))


def parts_of(job: PlanesJob) -> int:
    """Of blocks, whose sums are apart, where there are few tiles: by the shape alone."""
    shares = len(tiles_of(job)) * job.p.groups
    return min(max(1, len(list(blocks_of(job))) // LEAST_CHUNKS), -(-LEAST_SHARES // shares))


def at_once(p: AdjointConvolution, copy: RowsOfPlaces | None) -> int:
    """Images of a phase: those whose copies are in L2, and few enough for a short schedule."""
    images, rows = p.src.dims[0], prod(p.dst.dims[2:-1])
    most = MOST_ROWS // rows
    if copy:
        most = min(most, NEAR_BYTES // (f32.size_bytes * copy.desc(1).strides[0]))
    return max(n for n in range(1, max(1, min(most, images)) + 1) if images % n == 0)


def check_near(job: PlanesJob) -> None:
    """Raise Refused where displacements in code do not reach all planes of a tile."""
    source, channels = job.source, job.cut.together
    reach = (job.out * job.dst_strides[1], channels * source.channel_bytes, *source.positions)
    if max(map(abs, reach)) > NEAR:
        raise Refused("planes are too far from one another for displacements in code")


def of_group(p: AdjointConvolution) -> tuple[int, int]:
    """Channels in and out."""
    return p.src.dims[1] // p.groups, p.dst.dims[1] // p.groups


def add_sums_of_lanes(assembly: Assembly, job: PlanesJob, engine: Engine) -> None:
    lanes = lanes_of(job.isa)
    count = job.weights_bytes // (f32.size_bytes * lanes)
    rows, each = MemoryDesc((count, lanes), f32, "ab"), MemoryDesc((count, 1), f32, "ab")
    plan = plan_of((reduction.plans,), ReductionForward("sum", rows, each), engine)
    assembly.add_plan(plan, {"src": View(VECTORS), "dst": View("weights")})
