"""Recurrent layers on arrays: one layer, in one direction or in both."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, not_one_of, resembling, shown
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.memory.sequences import items
from asmdnn.memory.tags import LETTERS
from asmdnn.ops.arguments import F32, AnyArray, aligned
from asmdnn.ops.calls import ArrayCall, calls, kept_call, layout_of
from asmdnn.ops.packed_weights import PackedWeights
from asmdnn.ops.typed import kind_of, numpy_type, typed
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.numbers import check_alg, check_flag
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine, engine_key
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.primitives.recurrent.description import (
    DIRECTIONS,
    GRUForward,
    LBRGRUForward,
    LSTMForward,
    QuantizedRecurrent,
    RecurrentForward,
    VanillaRNNForward,
)
from asmdnn.primitives.recurrent.qparams import SCALES, as_tuple
from asmdnn.types import FpMathMode, RNNActivation, RNNDirection, f32, s8, u8

Kind = type[RecurrentForward]
KINDS: dict[str, Kind] = {"rnn": VanillaRNNForward, "lstm": LSTMForward, "gru": GRUForward, "lbr_gru": LBRGRUForward}
NEEDED = ("weights_layer", "weights_iter")
PACKED = (*NEEDED, "weights_projection")
KNOWN = (*PACKED, "bias", "weights_peephole", *SCALES)
LEFT2RIGHT: RNNDirection = "unidirectional_left2right"

MANY = 32  # sequences, for which weights are packed


def rnn(
    src: Any,
    weights: Mapping[str, Any],
    src_iter: Any = None,
    *,
    activation: RNNActivation = "tanh",
    alpha: float = 0.0,
    direction: RNNDirection = LEFT2RIGHT,
    lengths: Sequence[int] = (),
    fpmath_mode: FpMathMode = "strict",
    engine: Engine | None = None,
) -> tuple[AnyArray, AnyArray]:
    """A vanilla RNN layer: (dst_layer, dst_iter).  See `lstm`; activation and alpha as in VanillaRNNForward."""
    more = {"activation": activation, "alpha": alpha}
    arguments = {"src_layer": src, **weights_of("rnn", weights), "src_iter": src_iter}
    dst, h = run("rnn", arguments, direction, lengths, engine, more, fpmath_mode=fpmath_mode)
    return dst, h


def gru(
    src: Any,
    weights: Mapping[str, Any],
    src_iter: Any = None,
    *,
    linear_before_reset: bool = False,
    direction: RNNDirection = LEFT2RIGHT,
    lengths: Sequence[int] = (),
    rnn_data_qparams: Sequence[float] = (),
    rnn_weights_qparams: Sequence[float] = (),
    fpmath_mode: FpMathMode = "strict",
    engine: Engine | None = None,
) -> tuple[AnyArray, AnyArray]:
    """A GRU layer: (dst_layer, dst_iter).  See `lstm`; torch's GRU is one with linear_before_reset, of no bytes."""
    check_flag("linear_before_reset", linear_before_reset)
    cell = "lbr_gru" if linear_before_reset else "gru"
    arguments = {"src_layer": src, **weights_of(cell, weights), "src_iter": src_iter}
    more = qparams(cell, rnn_data_qparams, rnn_weights_qparams)
    dst, h = run(cell, arguments, direction, lengths, engine, more, fpmath_mode=fpmath_mode)
    return dst, h


def lstm(
    src: Any,
    weights: Mapping[str, Any],
    src_iter: Any = None,
    src_iter_c: Any = None,
    *,
    direction: RNNDirection = LEFT2RIGHT,
    lengths: Sequence[int] = (),
    rnn_data_qparams: Sequence[float] = (),
    rnn_weights_qparams: Sequence[float] = (),
    fpmath_mode: FpMathMode = "strict",
    engine: Engine | None = None,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """An LSTM layer: (dst_layer, dst_iter, dst_iter_c), new arrays of src's type, dst_iter_c of f32.

    src: (steps, sequences, channels), or with lengths (rows, channels), as LSTMForward has them, of f32, bf16 or f16.
    weights: arrays of these types, all that are multiplied of one, by the names of LSTMForward's arguments, whose first
    dim, layers, is 1: what `asmdnn.recurrent` makes of torch's and ONNX's; or what `pack_recurrent` made of them.
    Plain ones are packed in every call.  src_iter, src_iter_c: (1, directions, sequences, channels), zeros if absent.
    rnn_data_qparams, rnn_weights_qparams: scale and shift of src of u8, scales of weights of s8, as LSTMForward has
    them.  With weights_layer_scales and weights_iter_scales among the weights of s8, src of f32 is rounded to bytes.
    fpmath_mode: what f32 may be rounded to before it is multiplied, as Attr has it; h and results are, too.
    Raises InvalidArguments for what does not fit, Unimplemented without AVX2.
    """
    arguments = {"src_layer": src, **weights_of("lstm", weights), "src_iter": src_iter, "src_iter_c": src_iter_c}
    more = qparams("lstm", rnn_data_qparams, rnn_weights_qparams)
    dst, h, c = run("lstm", arguments, direction, lengths, engine, more, fpmath_mode=fpmath_mode)
    return dst, h, c


def qparams(cell: str, data: Any, weights: Any) -> dict[str, Any]:
    """What bytes stand for, if that is said.  Raises InvalidArguments for a cell that takes none."""
    given = {"rnn_data_qparams": data, "rnn_weights_qparams": weights}
    pairs = {name: as_tuple(value) for name, value in given.items()}
    found = {name: given[name] if pair is None else pair for name, pair in pairs.items() if pair != ()}
    if found and cell == "lbr_gru":
        raise InvalidArguments(f"{next(iter(found))} is given with linear_before_reset=True, which takes no bytes")
    return found


def weights_of(cell: str, weights: Mapping[str, Any]) -> dict[str, Any]:
    """The weights, which must be of names that the cell has, and if they are packed, be those of their arrays."""
    if not isinstance(weights, Mapping):
        raise InvalidArguments(f"weights must map names to arrays, not {shown(weights)}")
    known = KNOWN if cell == "lstm" else (*NEEDED, "bias")
    for name in weights:
        if name not in known:
            near = resembling(name, known)
            raise InvalidArguments(f"weights has {shown(name)}, of {cell} it may have {', '.join(known)}{near}")
    for name in NEEDED:
        if weights.get(name) is None:
            raise InvalidArguments(f"weights has no {name}, it must have {' and '.join(NEEDED)}")
    return {name: value.memory if type(value) is PackedWeights else value for name, value in weights.items()}


def run(
    cell: str,
    arguments: Mapping[str, Any],
    direction: RNNDirection,
    lengths: Sequence[int],
    engine: Engine | None,
    more: Mapping[str, Any],
    *,
    fpmath_mode: FpMathMode,
) -> list[AnyArray]:
    """dst_layer and the last states, of arguments that may be None.  Raises InvalidArguments."""
    given = {
        name: argument_of(name, value) for name, value in arguments.items() if value is not None or name == "src_layer"
    }
    arrays: list[AnyArray] = [array for array, _ in given.values()]
    try:
        steps = items(lengths)
    except Exception:  # whatever the caller's object does
        raise InvalidArguments(f"lengths must be a sequence of integers, not {shown(lengths)}") from None
    layouts = tuple((name, layout) for name, (_, layout) in given.items())
    key = (cell, layouts, direction, steps, tuple(more.items()), fpmath_mode, engine_key(engine))
    call = kept_call(key)
    if not isinstance(call, RecurrentCall):
        fields, attr = {"direction": direction, "lengths": steps, **more}, Attr(fpmath_mode=fpmath_mode)
        call = prepare(KINDS[cell], arguments, given, fields, attr, engine)
        calls.put(key, call)
    types = [array.dtype for array in arrays]
    states = [allocated(np.empty, desc.dims, F32 if desc.dtype == f32 else desc.dtype.numpy) for desc in call.more]
    dst = call([*arrays, *states])
    descs = (call.target, *call.more)
    found = zip((dst, *states), descs, strict=True)
    return [x if desc.dtype == f32 else x.view(numpy_type(desc.dtype, types)) for x, desc in found]


def argument_of(name: str, value: Any) -> tuple[AnyArray, object]:
    """The storage of an argument, and what a call depends on: the format of packed ones, else shape, strides, type."""
    if type(value) is Memory:
        return value.array, value.desc
    label = "src" if name == "src_layer" else name  # as callers know it
    array = aligned(label, typed(label, value))
    plain = array.shape, array.strides
    return array, plain if array.dtype is F32 else (*plain, array.dtype)


class RecurrentCall(ArrayCall):
    """A call whose last arrays but for the destination are the last states; more: their descs."""

    __slots__ = ("more",)

    more: tuple[MemoryDesc, ...]


def prepare(
    kind: Kind,
    arguments: Mapping[str, Any],
    given: Mapping[str, tuple[AnyArray, object]],
    more: Mapping[str, Any],
    attr: Attr,
    engine: Engine | None,
) -> RecurrentCall:
    """The call for arguments of these shapes and strides.  Raises InvalidArguments, Unimplemented."""
    check_alg("direction", more["direction"], DIRECTIONS)
    descs, copied = dict[str, MemoryDesc](), []
    for i, (name, (array, _)) in enumerate(given.items()):
        value = arguments[name]
        descs[name], is_copied = (value.desc, False) if type(value) is Memory else layout_of(name, array)
        copied += [i] * is_copied
    inputs = tuple(descs)
    outputs = outputs_of(kind, descs, more)
    fields: dict[str, Any] = {**descs, **outputs, **more}
    desc = kind(**fields)
    dst, *states = outputs.values()
    names = [*inputs, *[name for name in outputs if name != "dst_layer"], "dst_layer"]
    primitive = Primitive(primitive_desc(desc, attr, engine))
    call = RecurrentCall(primitive, names, names, [*descs.values(), *states, dst], copied)
    call.more = tuple(states)
    return call


def outputs_of(kind: Kind, descs: Mapping[str, MemoryDesc], more: Mapping[str, Any]) -> dict[str, MemoryDesc]:
    """dst_layer and the last states, dense."""
    weights, src, projection = descs["weights_layer"], descs["src_layer"], descs.get("weights_projection")
    if weights.ndims != 5 or not 2 <= src.ndims <= 3:
        raise InvalidArguments(f"weights_layer has dims {weights.dims}, src {src.dims}: they must have 5, and 2 or 3")
    layers, directions, _, _, hidden = weights.dims
    out = projection.dims[-1] if projection is not None else hidden
    sequences = len(more["lengths"]) if src.ndims == 2 else src.dims[1]
    found = {
        "dst_layer": (*src.dims[:-1], out * (2 if more["direction"] == "bidirectional_concat" else 1)),
        "dst_iter": (layers, directions, sequences, out),
    }
    found |= {"dst_iter_c": (layers, directions, sequences, hidden)} if kind is LSTMForward else {}
    types = dict.fromkeys(found, src.dtype) | {"dst_iter_c": f32}
    return {name: MemoryDesc(dims, types[name], LETTERS[: len(dims)]) for name, dims in found.items()}


def pack_recurrent(
    cell: str, weights: Mapping[str, Any], engine: Engine | None = None, *, fpmath_mode: FpMathMode = "strict"
) -> dict[str, Any]:
    """The weights of a cell, "rnn", "lstm", "gru" or "lbr_gru", for `rnn`, `lstm` and `gru` to use without packing.

    weights_layer, weights_iter and weights_projection, of f32, bf16, f16 or s8, become PackedWeights, whose `memory`
    can be saved and mapped back as `pack_weights` says; the rest stays.  With an fpmath_mode, which may make bf16 of
    f32, they are for layers that are called with it.  Whoever changes the arrays calls `repack()` of
    each; a layer that is called before raises InvalidArguments, see PackedWeights.  Raises InvalidArguments.
    """
    if not isinstance(cell, str) or cell not in KINDS:
        raise InvalidArguments(not_one_of("cell", cell, KINDS))
    plain = {name: value for name, value in weights_of(cell, weights).items() if value is not None}
    arrays = {name: typed(name, value) for name, value in plain.items() if name in PACKED}
    formats = packed_formats(KINDS[cell], arrays, engine, Attr(fpmath_mode=fpmath_mode))
    packed = {name: PackedWeights(plain[name], formats[name], engine, name=name) for name in arrays}
    return plain | packed


def packed_formats(
    kind: Kind, arrays: Mapping[str, AnyArray], engine: Engine | None, attr: Attr
) -> dict[str, MemoryDesc]:
    """The formats that a layer of these weights, and rows of their type, chooses for many sequences; they serve any
    number of steps and sequences."""
    descs = {name: MemoryDesc(array.shape, kind_of(array), "any") for name, array in arrays.items()}
    weights = descs["weights_layer"]
    if weights.ndims != 5:
        raise InvalidArguments(f"weights_layer has dims {weights.dims}, it must have 5")
    _, directions, src, _, _ = weights.dims
    descs["src_layer"] = MemoryDesc((1, MANY, src), u8 if weights.dtype == s8 else weights.dtype, "abc")
    more = {"direction": LEFT2RIGHT if directions == 1 else "bidirectional_concat", "lengths": ()}
    fields: dict[str, Any] = {**descs, "dst_layer": outputs_of(kind, descs, more)["dst_layer"], **more}
    if weights.dtype == s8 and issubclass(kind, QuantizedRecurrent):  # formats depend on no scale
        fields |= {"rnn_data_qparams": (1.0, 0.0), "rnn_weights_qparams": (1.0,)}
    return dict(primitive_desc(kind(**fields), attr, engine).plan.tensors)
