"""Formats of src, dst and indices that ways of pooling take, or why they do not."""

from collections.abc import Mapping
from math import prod

from asmdnn.generators.pooling.pixel_words import UNROLLED
from asmdnn.isa.elements import element_of
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.pooling.formats import channels_are_dense, rows_are_dense
from asmdnn.primitives.pooling.request import PoolRequest, bytes_of
from asmdnn.primitives.pooling.windows import Row
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.primitives.shapes.words import in_words
from asmdnn.types import f32, s8, u8

PLAIN = ("src", "dst")
Tensors = Mapping[str, MemoryDesc]


def check_alone(request: PoolRequest) -> None:
    """Raise Refused unless src becomes a dst of its type, and nothing else is made."""
    src, dst = (request.tensors[name].dtype for name in PLAIN)
    if src != dst or request.has_post_ops or request.has_indices:
        raise Refused("dst has another type, or there are post-ops or indices")


def words(request: PoolRequest) -> Tensors:
    """Four bytes of channels a word."""
    check_alone(request)
    if not request.windows.is_max or request.tensors["src"].dtype not in (s8, u8):
        raise Refused("it finds maxima of s8 and u8")
    of_src, of_dst = (in_words(request.tensors[name]) for name in PLAIN)
    if of_src is None or of_dst is None or not channels_are_dense(of_src, of_dst):
        raise Refused("channels are not dense in fours")
    return {"src": of_src, "dst": of_dst}


def check_narrow(request: PoolRequest) -> None:
    """Raise Refused unless elements have 1 or 2 bytes and are f32 in registers."""
    check_alone(request)
    src = request.tensors["src"]
    element = element_of(src.dtype)
    if element.size_bytes == f32.size_bytes or not element.converts_alone:
        raise Refused(f"src is {src.dtype}, which is not brought to f32 in registers")


def narrow_channels(request: PoolRequest) -> Tensors:
    """Elements of 1 and 2 bytes."""
    check_narrow(request)
    if not channels_are_dense(request.tensors["src"], request.tensors["dst"]):
        raise Refused("channels are not dense")
    return request.tensors


def dense_rows(request: PoolRequest) -> Tensors:
    """As they are, if rows of pixels are dense."""
    src, dst = (request.tensors[name] for name in PLAIN)
    if request.has_indices:
        raise Refused("it finds no indices")
    if (src.dtype, dst.dtype) != (f32, f32) or channels_are_dense(src, dst) or not rows_are_dense(src, dst):
        raise Refused("src and dst are no f32 with dense rows")
    return request.tensors


def narrow_planes(request: PoolRequest) -> Tensors:
    """Elements of 1 and 2 bytes, if rows of pixels are dense."""
    check_narrow(request)
    src, dst = (request.tensors[name] for name in PLAIN)
    if channels_are_dense(src, dst) or not rows_are_dense(src, dst):
        raise Refused("src and dst have no dense rows")
    return request.tensors


def narrow_rows(request: PoolRequest) -> Tensors:
    """The same, if rows are not so short that reorders to dense channels cost less: of bf16 on Zen 4, 128x10x10 and
    160x12x12 by rows take 1.3 to 2 times as long."""
    tensors = narrow_planes(request)
    if is_near(request) and tensors["src"].dims[-1] <= lanes_of(request.isa):
        raise Refused("rows fill a vector at most, and reorders stay in L2")
    return tensors


def long_rows(request: PoolRequest) -> Tensors:
    """As they are, if rows of pixels are dense, and not so short that most lanes hold none of them.

    Beside half-empty vectors, and edges, reorders within L2 cost less.  On Emerald Rapids with AVX-512 a maximum of
    832x7x7 runs 1.7x faster with dense channels, a mean of 1280x8x8 1.76x; with AVX2 a maximum of 256x4x4 2.7x.
    """
    tensors, row = dense_rows(request), request.windows.row
    many = tensors["src"].dims[1] >= request.engine.tuning.pooling.short_rows_channels
    if row is not None and many and is_near(request) and is_short(row, request):
        raise Refused("rows are so short that dense channels cost less, and reorders stay in L2")
    return tensors


def short_rows(request: PoolRequest) -> Tensors:
    """As they are, if rows of pixels are dense, and so short that most of the time goes into their ends."""
    tensors, row = dense_rows(request), request.windows.row
    if row is None or not is_short(row, request):
        raise Refused("rows are not so short that dense channels cost less, or windows along them are no neighbours")
    tuning = request.engine.tuning.pooling
    if tensors["src"].dims[1] < tuning.short_rows_channels:
        raise Refused(f"there are fewer than {tuning.short_rows_channels} channels")
    if tuning.near_l3_share * bytes_of(tensors) > request.l3_bytes:
        raise Refused("src and dst come from too far for rows of copies")
    return tensors


def typed_rows(request: PoolRequest) -> Tensors:
    """Those that are no f32, if rows of pixels are dense: copies of some channels are."""
    src, dst = (request.tensors[name] for name in PLAIN)
    if request.has_post_ops or request.has_indices:
        raise Refused("there are post-ops or indices")
    if (src.dtype, dst.dtype) == (f32, f32):
        raise Refused("src and dst are f32")
    if channels_are_dense(src, dst) or not rows_are_dense(src, dst):
        raise Refused("src and dst have no dense rows")
    if request.engine.tuning.pooling.near_l3_share * bytes_of(request.tensors) > request.l3_bytes:
        raise Refused("src and dst come from too far for rows of copies")
    return request.tensors


def is_short(row: Row, request: PoolRequest) -> bool:
    """Whether half of a vector would be empty; or windows reach beyond edges, or have strides, and are few; or have
    strides that rows as they lie do not take: 3x3 with stride 3 of 256x28x28 1.36x, of 64x111x111 1.06x.

    A vector of windows at an edge has masks of its own, which take as long for a result as for many: on Zen 5 256x7x7
    to 4x4, padded 3x3 of stride 2, runs 2.9x faster with dense channels, 13x13 of stride 1 1.16x, 5x5 there 1.45x.
    """
    tuning, unrolled = request.engine.tuning.pooling, prod(request.windows.most_inside) <= UNROLLED
    if row.columns == 1:
        return False
    if row.stride == 1:
        half = lanes_of(request.isa) // 2
        return row.results <= max(half, tuning.padded_results if row.padding and unrolled else 0)
    most = tuning.padded_strided_results if row.padding else tuning.strided_results
    return unrolled and row.results <= most


def is_near(request: PoolRequest) -> bool:
    """Whether reorders of src and dst stay in L2."""
    size_bytes = sum(request.tensors[name].size_bytes for name in PLAIN)
    return request.engine.tuning.pooling.short_rows_share * size_bytes <= request.engine.l2_bytes


def dense_channels(request: PoolRequest) -> Tensors:
    """As they are, if they are f32 with dense channels; else the format that is."""
    wanted = {name: t if name == "indices" else of_type(t, f32) for name, t in request.tensors.items()}
    src, dst = wanted["src"], wanted["dst"]
    same_places = "indices" not in wanted or of_type(wanted["indices"], f32) == dst
    are_f32 = all(request.tensors[name].dtype == f32 for name in PLAIN)
    if are_f32 and same_places and channels_are_dense(src, dst):
        return wanted
    block = next((b for b in (src, dst) if channels_are_dense(b, b) and b.inner_blocks), None)
    tag = f"aBx{block.blocks[1]}b" if block else "axb"
    return {name: MemoryDesc(t.dims, t.dtype, tag) for name, t in wanted.items()}


def channels_alone(request: PoolRequest) -> Tensors:
    if request.has_indices:
        raise Refused("it finds no indices")
    return dense_channels(request)


def channels_with_indices(request: PoolRequest) -> Tensors:
    if not request.has_indices:
        raise Refused("there are no indices")
    found = dense_channels(request)
    if not found["indices"].has_padding:
        return found
    return {name: MemoryDesc(t.dims, t.dtype, "axb") for name, t in found.items()}  # padding has places, but no zeros
