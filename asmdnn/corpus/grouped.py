"""The specs of rows of grouped convolutions: kernels, strides, edges, loops, tails, groups in a vector, post-ops."""

from collections.abc import Iterator
from typing import Any

from asmdnn.corpus.conv import LANES, LEAKY, RELU, SUM_HALF, of_levels
from asmdnn.generators.dot.grouped import GroupedRowsSpec
from asmdnn.generators.dot.grouped_shape import OTHER_REGISTERS
from asmdnn.generators.dot.row_cuts import Band, Segment
from asmdnn.generators.functions.postops import BinaryOp, EltwiseOp, Operand
from asmdnn.isa.vectors import vector_class
from asmdnn.records import replace

INSIDE = (Band(1, 0, 3),)
NUMBERS = (EltwiseOp("linear", 2.0, 1.0, 1.0), EltwiseOp("clip", -64.0, 96.0, 1.0), LEAKY)
EDGES = (Band(1, 2, 1), Band(2, 0, 3), Band(1, 0, 2), Band(1, 0, 0))


def whole(pixels: int, kernel: int = 3, stride: int = 1, dilation: int = 1, times: int = 1) -> Segment:
    """A segment whose windows are inside the image."""
    return Segment(pixels, 0, (pixels - 1) * stride + (kernel - 1) * dilation + 1, times)


def rows(isa: str, *segments: Segment, **fields: Any) -> GroupedRowsSpec:
    """Both tensors blocked by the vector, one vector of channels, one row with three kernel rows."""
    vector_bytes, kernel, group = 4 * LANES[isa], fields.get("kernel", 3), fields.get("group", 1)
    spec = GroupedRowsSpec(
        isa=isa,
        vectors=1,
        abreast=1,
        channels=LANES[isa],
        group=group,
        kernel=kernel,
        stride=1,
        dilation=1,
        padding=0,
        bands=INSIDE,
        segments=segments or (whole(2, kernel),),
        src_pixel_bytes=vector_bytes,
        src_row_bytes=40 * vector_bytes,
        src_tap_bytes=40 * vector_bytes,
        dst_pixel_bytes=vector_bytes,
        dst_row_bytes=30 * vector_bytes,
        weights_row_bytes=kernel * vector_bytes,
        weights_input_bytes=3 * kernel * vector_bytes,
        weights_vector_bytes=3 * group * kernel * vector_bytes,
        src_whole=True,
        dst_whole=True,
    )
    return replace(spec, **fields)


def channels_last(isa: str, vectors: int, channels: int) -> dict[str, Any]:
    """Fields of tensors whose pixels have all channels side by side and no padding; `channels` in the last vector."""
    pixel_bytes = 4 * ((vectors - 1) * LANES[isa] + channels + 3)
    whole_vectors = channels == LANES[isa]
    return {
        "vectors": vectors, "channels": channels, "src_pixel_bytes": pixel_bytes, "dst_pixel_bytes": pixel_bytes,
        "src_row_bytes": 9 * pixel_bytes, "src_tap_bytes": 9 * pixel_bytes, "dst_row_bytes": 9 * pixel_bytes,
        "src_whole": whole_vectors, "dst_whole": whole_vectors,
    }  # fmt: skip


def kernels(isa: str) -> Iterator[GroupedRowsSpec]:
    """Kernels as wide as registers allow, strides, dilations."""
    for kernel in (1, 2, 3, 5, 7, 9):
        most = vector_class(isa).count - max(OTHER_REGISTERS, kernel + 1)
        yield rows(isa, whole(most, kernel), kernel=kernel, bias=True)
    yield rows(isa, Segment(6, 4, 13), kernel=13, padding=4, bias=True)
    yield rows(isa, whole(3, 10), kernel=10, bands=(Band(1, 0, 1),), **channels_last(isa, 1, 3))
    for stride, dilation in ((2, 1), (3, 1), (1, 2), (2, 3)):
        yield rows(isa, whole(3, 3, stride, dilation), stride=stride, dilation=dilation)


def edges(isa: str) -> Iterator[GroupedRowsSpec]:
    """Columns and rows in the padding, some or all of a window; segments in a loop; other rows than those of taps."""
    left, right, nothing = Segment(3, 2, 5), Segment(2, 0, 3), Segment(2, 4, 4)
    yield rows(isa, left, whole(2, times=3), right, padding=2, bands=EDGES, bias=True)
    yield rows(isa, nothing, left, padding=6, bands=EDGES[1:], src_row_bytes=80 * 4 * LANES[isa])
    yield rows(isa, nothing, padding=8, bias=True)
    yield rows(isa, whole(1), whole(2, times=2), **channels_last(isa, 3, LANES[isa]), bands=EDGES[1:3], bias=True)


def tails(isa: str) -> Iterator[GroupedRowsSpec]:
    """Channels that are fewer than lanes, with and without room for padding in src and in dst."""
    lanes = LANES[isa]
    for channels in (1, lanes // 2 + 1, lanes - 1):
        for src, dst in ((True, True), (False, False), (True, False), (False, True)):
            fields = channels_last(isa, 1, channels) | {"src_whole": src, "dst_whole": dst}
            yield rows(isa, whole(2), **fields, bias=True, post_ops=(RELU,))


def counted(isa: str) -> Iterator[GroupedRowsSpec]:
    """Segments of which words say how many there are, one or several; a second one that begins in the first, of one
    vector of channels, of several, abreast, in planes; with strides; none at an edge."""
    left, right = Segment(4, 1, 6), Segment(4, 0, 5)
    for times in (1, 3):
        between = replace(whole(4, times=times), is_counted=True)
        for overlap in (0, 3):
            fields: dict[str, Any] = {"padding": 1, "bands": EDGES, "bias": True, "overlap": overlap}
            yield rows(isa, left, between, right, **fields)
            several = channels_last(isa, 4, LANES[isa])
            yield rows(isa, left, between, **fields | several | {"abreast": times, "vectors": 3}, post_ops=(RELU,))
    strided = replace(whole(3, 5, 2, times=2), is_counted=True)
    yield rows(isa, whole(3, 5, 2), strided, kernel=5, stride=2, overlap=1, bands=(Band(2, 1, 2), Band(1, 0, 3)))
    planes = {"planes": 2, "src_plane_bytes": 1600 * LANES[isa], "weights_plane_bytes": 48 * LANES[isa]}
    yield rows(isa, left, right, overlap=2, padding=1, **planes, bands=EDGES)
    channel = Operand(5, 0, 0, False)
    yield rows(isa, left, right, overlap=1, padding=1, channels=3, post_ops=(BinaryOp("add", channel),))


def numbers(isa: str) -> Iterator[GroupedRowsSpec]:
    """Numbers of post-ops among the words: alone, beside operands and what dst held, of a tail, past the caches."""
    lanes = LANES[isa]
    yield rows(isa, Segment(3, 2, 5), whole(2, times=2), padding=2, bands=EDGES[:2], bias=True, post_ops=NUMBERS)
    yield rows(isa, whole(2), **channels_last(isa, 1, 3), post_ops=(SUM_HALF, *NUMBERS))
    chain = (BinaryOp("add", Operand(5, 0, 4 * lanes, False)), *NUMBERS)
    yield rows(isa, whole(2), whole(1), **channels_last(isa, 2, lanes), abreast=2, post_ops=chain)
    yield rows(isa, whole(3), bands=EDGES[:2], bias=True, post_ops=NUMBERS, streaming=True)


def groups(isa: str) -> Iterator[GroupedRowsSpec]:
    """Every size of a group; one that is followed by a tail; two vectors."""
    lanes = LANES[isa]
    for group in (2, 4, 8, 16):
        if group <= lanes:
            yield rows(isa, Segment(4, 1, 6), group=group, padding=1, bands=EDGES[:2], bias=True)
        if group < lanes:
            yield rows(isa, whole(2), group=group, **channels_last(isa, 1, lanes - group))
    abreast = channels_last(isa, 4, lanes) | {"abreast": 2}
    yield rows(isa, whole(2), Segment(3, 0, 4), **abreast, bands=EDGES[:2], bias=True, post_ops=(RELU,))
    yield rows(isa, whole(1), group=2, **abreast | {"vectors": 2})
    yield rows(isa, whole(2), whole(3), group=2, **channels_last(isa, 2, lanes), bands=EDGES[:2])


def results(isa: str) -> Iterator[GroupedRowsSpec]:
    """Several of an input channel, whose vectors read as many bytes of src less; several vectors, also abreast."""
    for number in (2, 4, 8, 16):
        if number <= LANES[isa]:
            yield rows(isa, whole(5), results=number, bias=True, post_ops=(RELU,))
            last = channels_last(isa, 4, LANES[isa])
            yield rows(isa, whole(3, 3, 2), stride=2, results=number, **last, abreast=2, bands=EDGES)


def ends(isa: str) -> Iterator[GroupedRowsSpec]:
    """Sums, and operands of every broadcast, which move with pixels and with channels."""
    lanes = LANES[isa]
    fields: dict[str, Any] = {**channels_last(isa, 2, lanes), "bands": (Band(2, 0, 3),), "bias": True}
    full, pixel = Operand(5, 4 * 2 * lanes, 4 * lanes, False), Operand(6, 4, 0, True)
    channel, one = Operand(7, 0, 4 * lanes, False), Operand(8, 0, 0, True)
    chain = tuple(map(BinaryOp, ("add", "mul", "max", "add"), (full, pixel, channel, one)))
    yield rows(isa, whole(2, times=2), whole(1), **fields, post_ops=(SUM_HALF, *chain))
    yield rows(isa, whole(2), abreast=2, **fields, post_ops=(SUM_HALF, *chain))
    yield rows(isa, whole(2), whole(1), post_ops=(LEAKY, replace(chain[0], operand=replace(full, vector_bytes=0))))
    tail: dict[str, Any] = {**channels_last(isa, 1, 3), "dst_whole": True, "bands": (Band(2, 0, 1),)}
    yield rows(isa, whole(2, times=2), **tail, post_ops=(chain[0], RELU, chain[1]))


def backwards(isa: str) -> Iterator[GroupedRowsSpec]:
    """Parts of deconvolutions: pixels apart, every second or third kernel position, from the end."""
    vector_bytes = 4 * LANES[isa]
    steps: dict[str, Any] = {"dst_pixel_bytes": 2 * vector_bytes, "weights_row_bytes": -8 * vector_bytes}
    steps |= {"weights_position_bytes": -2 * vector_bytes, "bands": EDGES[:2], "bias": True}
    yield rows(isa, Segment(4, 1, 5), whole(3, 2), kernel=2, padding=1, **steps)
    yield rows(isa, whole(2, 2, times=2), kernel=2, group=2, **steps, post_ops=(SUM_HALF, RELU))
    long = steps | {"weights_position_bytes": -3 * vector_bytes, "weights_row_bytes": -40 * vector_bytes}
    yield rows(isa, whole(3, 11), kernel=11, planes=2, src_plane_bytes=400 * vector_bytes, **long,
               weights_plane_bytes=-200 * vector_bytes)  # fmt: skip


def planes(isa: str) -> Iterator[GroupedRowsSpec]:
    """Kernel rows in several planes, in none, and of bands that reach some of each."""
    vector_bytes = 4 * LANES[isa]
    steps = {"src_plane_bytes": 400 * vector_bytes, "weights_plane_bytes": 12 * vector_bytes}
    for count in (0, 2, 3):
        yield rows(isa, whole(3), planes=count, **steps, bands=EDGES, bias=True)
    yield rows(isa, whole(2), planes=3, **steps, group=2, **channels_last(isa, 3, LANES[isa]), post_ops=(RELU,))


def streaming(isa: str) -> Iterator[GroupedRowsSpec]:
    """Stores past the caches: with padding after the channels, post-ops, segments in a loop; vectors abreast."""
    yield rows(isa, Segment(3, 2, 5), whole(2, times=2), padding=2, bands=EDGES[:2], bias=True, streaming=True)
    yield rows(isa, whole(2), channels=3, bias=True, post_ops=(RELU,), streaming=True)
    full, channel = Operand(5, 4 * LANES[isa], 0, False), Operand(6, 0, 0, False)
    chain = BinaryOp("add", full), BinaryOp("mul", channel)
    yield rows(isa, whole(3), whole(2), bands=(Band(2, 0, 3),), post_ops=chain, streaming=True)
    abreast = channels_last(isa, 4, LANES[isa]) | {"abreast": 2, "dst_pixel_bytes": 16 * LANES[isa]}
    yield rows(isa, whole(2), Segment(3, 0, 4), **abreast, bands=EDGES[:2], post_ops=(RELU,), streaming=True)


def ahead(isa: str) -> Iterator[GroupedRowsSpec]:
    """Lines of dst and of rows below that are prefetched: one row, or those of a stride; vectors abreast."""
    layout, strided = channels_last(isa, 4, LANES[isa]), whole(3, 3, 2)
    yield rows(isa, Segment(3, 2, 5), whole(2, times=2), padding=2, bands=EDGES[:2], bias=True, rows_ahead=1)
    yield rows(isa, strided, stride=2, **layout | {"abreast": 2}, post_ops=(RELU,), rows_ahead=2)
    yield rows(isa, whole(2), group=2, **channels_last(isa, 1, 3 * LANES[isa] // 4), rows_ahead=1)


FAMILIES = of_levels(
    "grouped",
    kernels=kernels,
    edges=edges,
    tails=tails,
    counted=counted,
    numbers=numbers,
    groups=groups,
    results=results,
    ends=ends,
    planes=planes,
    streaming=streaming,
    backwards=backwards,
    ahead=ahead,
)
