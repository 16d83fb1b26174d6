"""Attributes for oneDNN: the same chain, scales and zero points through its C interface, tensors as arguments."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench.dims import desc_of
from asmdnn.bench.peers.onednn import DST, SCALES_OF, SRC, ZERO_POINTS_OF, OnednnPrimitive, Tensor
from asmdnn.bench.peers.onednn_library import load
from asmdnn.bench.peers.onednn_numbers import BINARY, ELTWISE
from asmdnn.errors import Unimplemented
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.attributes.words import mask_of
from asmdnn.types import FLOATS, INTEGERS8

ARGUMENTS = {"src": SRC, "weights": 33, "dst": DST}
MULTIPLE_POST_OP = 32768  # DNNL_ARG_ATTR_MULTIPLE_POST_OP(i) is (i + 1) times that
SRC_1, WEIGHTS, BIAS = 2, 33, 41
DEPTHWISE = 16384  # DNNL_ARG_ATTR_POST_OP_DW, added to the number of its weights and of its bias
EVERY_KIND = ("sum", "eltwise", "binary", "prelu", "dw")
F32 = 3  # the data type
WIDENED = (*INTEGERS8, dnn.s4, dnn.u4)  # integers that floats are multiplied by
FPMATH_MODES = ("strict", "bf16", "f16", "any", "tf32")  # in the order of its numbers
ACCUMULATION_MODES = ("strict", "relaxed", "any", "s32", "f32", "f16")
UNDEFINED_TYPE = 0  # of a sum: dst's own


def tensors_of(attr: dnn.Attr) -> dict[str, Tensor]:
    """What the chain reads, by this library's argument names.  Weights of prelu have the layout that oneDNN implies."""
    found = {}
    for i, number, op in _numbered(attr):
        if isinstance(op, dnn.Binary):
            found[f"binary_{i}"] = Tensor(MULTIPLE_POST_OP * (number + 1) | SRC_1, op.src1)
        elif isinstance(op, dnn.PReLU):
            weights = desc_of(op.weights.dims, "f32", "axb")
            found[f"prelu_{i}"] = Tensor(MULTIPLE_POST_OP * (number + 1) | WEIGHTS, weights)
        elif isinstance(op, dnn.Depthwise):
            numbers = {"dw_weights": WEIGHTS, "dw_bias": BIAS}
            found |= {f"{name}_{i}": Tensor(DEPTHWISE | numbers[name], desc) for name, desc in op.tensors.items()}
    return found


def quantities_of(arrays: Mapping[str, npt.NDArray[Any]], numbers: Mapping[str, int] = ARGUMENTS) -> dict[str, Tensor]:
    """Scales and zero points, as `src_scales` and so on; numbers: of the arguments that can have some."""
    found = {}
    for name, values in arrays.items():
        argument, _, kind = name.partition("_")
        base, dtype = (SCALES_OF, dnn.f32) if kind == "scales" else (ZERO_POINTS_OF, dnn.s32)
        found[name] = Tensor(base | numbers[argument], dnn.MemoryDesc((values.size,), dtype, "a"))
    return found


def attributes(
    peer: OnednnPrimitive,
    attr: dnn.Attr,
    kinds: Sequence[str] = EVERY_KIND,
    numbers: Mapping[str, int] = ARGUMENTS,
) -> Any:
    """The handle of oneDNN's attributes.  Raises Unimplemented for what it cannot express.

    kinds: the post-ops that oneDNN documents for a primitive; it takes others, and ignores them.  numbers: of the
    arguments that can have scales.
    """
    lib, check = peer.lib, load().check
    handle = peer.own(lib.dnnl_primitive_attr_create, lib.dnnl_primitive_attr_destroy)
    chain = peer.own(lib.dnnl_post_ops_create, lib.dnnl_post_ops_destroy)
    for i, _, op in _numbered(attr):
        if op.kind not in kinds:
            raise Unimplemented(f"onednn: this primitive has no post-op {op.kind}")
        check(_append(peer, chain, i, op), f"post-op {op.kind}")
    check(lib.dnnl_primitive_attr_set_post_ops(handle, chain), "post-ops")
    set_quantities(peer, handle, attr, numbers)
    set_modes(peer, handle, attr)
    return handle


def set_quantities(peer: OnednnPrimitive, handle: Any, attr: dnn.Attr, numbers: Mapping[str, int]) -> None:
    """Which scales and zero points there are.  Raises Unimplemented for groups in a version that has none."""
    groups = dict(attr.groups)
    for kind, masks, dtype in (("scales", attr.scales, "f32"), ("zero_points", attr.zero_points, "s32")):
        for name, mask in masks:
            if name not in groups:
                set_mask = getattr(peer.lib, f"dnnl_primitive_attr_set_{kind}_mask")
                load().check(set_mask(handle, numbers[name], mask), kind)
                continue
            set_groups = added_later(peer, f"dnnl_primitive_attr_set_{kind}", f"{kind} by groups")
            sizes = (len(groups[name]), peer.dims(groups[name]), load().data_type(dtype))
            load().check(set_groups(handle, numbers[name], mask, *sizes), f"{kind} by groups")


def added_later(peer: OnednnPrimitive, function: str, what: str) -> Any:
    """A function that not all of version 3 have.  Raises Unimplemented where it is missing."""
    try:
        return getattr(peer.lib, function)
    except AttributeError:
        raise Unimplemented(f"onednn: version {load().version} has no {what}") from None


def set_modes(peer: OnednnPrimitive, handle: Any, attr: dnn.Attr) -> None:
    """What oneDNN may round and sum in.  Raises Unimplemented for a mode that it has not."""
    if attr.fpmath_mode not in FPMATH_MODES:
        raise Unimplemented(f"onednn: there is no fpmath mode {attr.fpmath_mode}")
    mode = FPMATH_MODES.index(attr.fpmath_mode)
    if peer.type_of("src") in FLOATS and peer.type_of("weights") in WIDENED:
        set_mode = added_later(peer, "dnnl_primitive_attr_set_fpmath_mode_v2", "products of floats by integers")
        load().check(set_mode(handle, mode, True), "fpmath mode")
    else:
        load().check(peer.lib.dnnl_primitive_attr_set_fpmath_mode(handle, mode), "fpmath mode")
    if attr.accumulation_mode != "strict":
        set_accumulation = added_later(peer, "dnnl_primitive_attr_set_accumulation_mode", "accumulation mode")
        load().check(set_accumulation(handle, ACCUMULATION_MODES.index(attr.accumulation_mode)), "accumulation mode")


def _numbered(attr: dnn.Attr) -> Iterator[tuple[int, int, AnyPostOp]]:
    """Post-ops with their numbers here and there, where a scale is a post-op of its own."""
    number = 0
    for i, op in enumerate(attr.post_ops):
        yield i, number, op
        number += 2 if isinstance(op, dnn.Eltwise) and op.scale != 1 else 1


def _append(peer: OnednnPrimitive, chain: Any, i: int, op: AnyPostOp) -> int:
    """oneDNN's status."""
    lib = peer.lib
    if isinstance(op, dnn.Sum):
        if not op.zero_point.is_integer():
            raise Unimplemented(f"onednn: zero points are integers, not {op.zero_point:g}")
        return int(lib.dnnl_post_ops_append_sum(chain, op.scale, int(op.zero_point), UNDEFINED_TYPE))
    if isinstance(op, dnn.Eltwise):
        if op.alg not in ELTWISE:
            raise Unimplemented(f"onednn: there is no function {op.alg}")
        status = int(lib.dnnl_post_ops_append_eltwise(chain, ELTWISE[op.alg], op.alpha, op.beta))
        if status or op.scale == 1:
            return status
        return int(lib.dnnl_post_ops_append_eltwise(chain, ELTWISE["linear"], op.scale, 0.0))
    if isinstance(op, dnn.Binary):
        if op.alg not in BINARY:
            raise Unimplemented(f"onednn: there is no operation {op.alg}")
        return int(lib.dnnl_post_ops_append_binary(chain, BINARY[op.alg], peer.descs[f"binary_{i}"]))
    if isinstance(op, dnn.PReLU):
        return int(lib.dnnl_post_ops_append_prelu(chain, mask_of(op.weights)))
    if isinstance(op, dnn.Depthwise):
        sizes = {(k, s, p) for k, s, p in zip(op.kernel, op.strides, op.padding_l, strict=True)}
        if len(sizes) > 1 or op.bias is None:
            raise Unimplemented("onednn: a depthwise post-op is the same along all axes, and has a bias")
        return int(lib.dnnl_post_ops_append_dw(chain, F32, F32, F32, *sizes.pop()))
    raise AssertionError(op)
