"""`--attr-post-ops`, in benchdnn's words: post-ops joined by +, executed in order.

    sum[:SCALE[:ZERO_POINT[:TYPE]]]         adds SCALE * (dst - ZERO_POINT)
    ALG[:ALPHA[:BETA[:SCALE]]]              SCALE * f(x): relu, tanh, linear, ...
    ALG:TYPE[:DIMS[:TAG[:STRIDES]]]         add, mul, ... of x and a tensor; strides come before the tag
    prelu[:DIMS]                            x > 0: x, else weights * x
    dw:kKERNELsSTRIDEpPADDING               a depthwise convolution with bias, of convolutions alone: dw:k3s1p1

Raises Unimplemented for what oneDNN has beside: select, tensors of f8, sums and dw of other types.  Its older versions
joined post-ops by ; too, wrote dw_k3s1p1, and had other names for some functions: older.py.

DIMS says which dims of the tensor are dst's, the others are 1: common none, per_oc the channels (of a product the
columns), per_dim_0, per_dim_1, per_dim_01, ..., per_tensor all, or a number whose bit d stands for dim d.
What verbose lines print, such as eltwise_relu:0.1 and binary_add:f32:2:ab, are words too.
"""

import re
from collections.abc import Sequence
from typing import Any, cast

import asmdnn as dnn
from asmdnn.bench import older
from asmdnn.bench.dims import desc_of
from asmdnn.bench.quantization import real
from asmdnn.bench.values import TYPES
from asmdnn.bench.vocabulary import ALL_DATA_TYPES
from asmdnn.bench.words import show_strides, strides, tag
from asmdnn.definitions.elementwise import BINARY
from asmdnn.errors import InvalidArguments, Unimplemented, did_you_mean
from asmdnn.memory.tags import MAX_NDIMS
from asmdnn.primitives.attributes.numbers import parameters_of
from asmdnn.primitives.attributes.post_ops import MAX_POST_OPS, AnyPostOp
from asmdnn.primitives.attributes.words import post_op_word
from asmdnn.primitives.elementwise.eltwise import FORWARD_ALGS
from asmdnn.records import dataclass
from asmdnn.types import BinaryAlgorithm, EltwiseAlgorithm

CHANNELS = 1
NAMED = ("common", "per_oc", "per_tensor", "per_mb_spatial", "per_mb_w", "per_w")  # the last three in older files
OF_DST = "_dst"  # benchdnn's ending of functions whose gradient is taken from the result; forward they are the same
DEPTHWISE = re.compile(r"dw[:_]k(\d{1,4})s(\d{1,4})p(\d{1,4})(?::f32)*")
UNBUILT = re.compile("(dw|convolution)(_k|:k|_|:).*|select(:.*)?")
FORMS = "sum, an element-wise function, a binary operation and prelu"
_POLICY = re.compile(r"per_dim_(?=[0-3])(0?1?2?3?)")


@dataclass(frozen=True, slots=True)
class TensorWord:
    """A binary operation `alg`, or "prelu", with a tensor whose dims depend on dst's."""

    alg: str
    policy: str
    tag: str = "any"
    strides: tuple[int, ...] = ()
    dtype: str = "f32"

    def __str__(self) -> str:
        if self.alg == "prelu":
            return f"prelu:{self.policy}"
        layout = (self.tag, show_strides((self.strides,))) if self.strides else (self.tag,) * (self.tag != "any")
        return ":".join((self.alg, self.dtype, self.policy, *layout))

    def mask(self, ndims: int, channels: int) -> int:
        """The dims that the tensor has, as bits."""
        found = _POLICY.fullmatch(self.policy)
        if found:
            return sum(1 << int(dim) for dim in found[1])
        whole, last = (1 << ndims) - 1, 1 << ndims - 1
        named = {
            "common": 0,
            "per_oc": (1 << channels) & whole,
            "per_tensor": whole,
            "per_mb_spatial": whole & ~0b10,
            "per_mb_w": last | 1,
            "per_w": last,
        }
        return named[self.policy] if self.policy in NAMED else int(self.policy)

    def on(self, dims: Sequence[int], channels: int) -> AnyPostOp:
        """The post-op on a result of these dims.  Raises InvalidArguments."""
        mask = self.mask(len(dims), channels)
        if mask >> len(dims):
            raise InvalidArguments(f"post-op {self} has a tensor of more dims than the result, which has {len(dims)}")
        shape = tuple(size if mask >> dim & 1 else 1 for dim, size in enumerate(dims))
        if self.strides and len(self.strides) != len(dims):
            raise InvalidArguments(f"post-op {self} has {len(self.strides)} strides, the result has {len(dims)} dims")
        desc = desc_of(shape, self.dtype, self.tag, self.strides)
        return dnn.PReLU(desc) if self.alg == "prelu" else dnn.Binary(cast(BinaryAlgorithm, self.alg), desc)


@dataclass(frozen=True, slots=True)
class DepthwiseWord:
    """A depthwise convolution, the same along every axis."""

    kernel: int
    stride: int
    padding: int

    def __str__(self) -> str:
        return f"dw:k{self.kernel}s{self.stride}p{self.padding}"

    def on(self, dims: Sequence[int], channels: int) -> dnn.Depthwise:
        """The post-op on a result of these dims.  Raises InvalidArguments."""
        axes = len(dims) - 2
        if axes < 1 or not self.stride or min(dims[2:]) + 2 * self.padding < self.kernel:
            raise InvalidArguments(f"post-op {self} does not fit a result of {'x'.join(map(str, dims))}")
        weights = dnn.MemoryDesc((dims[channels], 1, 1, *[self.kernel] * axes), dnn.f32, "any")
        bias = dnn.MemoryDesc((dims[channels],), dnn.f32, "a")
        strides, padding = (self.stride,) * axes, (self.padding,) * axes
        return dnn.Depthwise(weights, bias, strides, padding_l=padding, padding_r=padding)


Word = dnn.Sum | dnn.Eltwise | TensorWord | DepthwiseWord


def chain(word: str) -> tuple[Word, ...]:
    """`sum:0.5+relu` as its post-ops.  Raises InvalidArguments that names the entry which is wrong."""
    entries = word.rstrip(";").replace(";", "+").split("+") if word else []
    if len(entries) > MAX_POST_OPS:
        raise InvalidArguments(f"has {len(entries)} post-ops, at most {MAX_POST_OPS} can be chained")
    return tuple(map(_entry, entries))


def joined(words: Sequence[Word]) -> str:
    """The canonical text of a chain: benchdnn's short names, defaults at the end left out."""
    return "+".join(map(_text_of, words))


def _text_of(word: Word) -> str:
    if isinstance(word, TensorWord | DepthwiseWord):
        return str(word)
    return post_op_word(word).removeprefix("eltwise_")


def attr_of(words: Sequence[Word], dims: Sequence[int], channels: int = CHANNELS, **others: Any) -> dnn.Attr:
    """The attributes of a primitive whose result has these dims; `others` are Attr's.  Raises InvalidArguments."""
    chain: list[AnyPostOp] = []
    for word in words:
        chain.append(word.on(dims, channels) if isinstance(word, TensorWord | DepthwiseWord) else word)
        dims = dims_after(chain[-1:], dims)
    return dnn.Attr(chain, **others)


def dims_after(chain: Sequence[AnyPostOp], dims: Sequence[int]) -> tuple[int, ...]:
    """Of the result of a chain on a result of these dims."""
    for op in chain:
        if isinstance(op, dnn.Depthwise):
            dims = op.result_dims(tuple(dims))
    return tuple(dims)


def _entry(entry: str) -> Word:
    name, *fields = entry.split(":")
    name = name.lower().removeprefix("eltwise_").removeprefix("binary_")
    if found := DEPTHWISE.fullmatch(entry.lower()):
        return DepthwiseWord(*map(int, found.groups()))
    if UNBUILT.fullmatch(":".join((name, *fields))):
        raise Unimplemented(f"has '{entry}', a post-op that is not built yet")
    if name.removesuffix(OF_DST) in FORWARD_ALGS:
        name = name.removesuffix(OF_DST)
    if name == "user":
        raise InvalidArguments(f"has '{entry}': a post-op written in Python has no word, give it in Python")
    if name == "sum":
        return _sum(entry, fields)
    if name in FORWARD_ALGS or name in older.FUNCTIONS:
        return _eltwise(name, entry, fields)
    if name == "prelu" and len(fields) <= 1:
        return TensorWord(name, _policy(entry, *fields))
    if name in BINARY and len(fields) <= 4:
        return _binary(name, entry, fields)
    if name == "prelu" or name in BINARY:
        form = "prelu[:DIMS] or ALG:f32[:DIMS[:TAG[:STRIDES]]]"
        raise InvalidArguments(f"has '{entry}' with too many numbers: write {form}")
    known = ("sum", "prelu", *FORWARD_ALGS, *BINARY)
    raise InvalidArguments(f"has '{entry}'; post-ops are {FORMS}, joined by +: {did_you_mean(name, known)}")


def _sum(entry: str, fields: Sequence[str]) -> dnn.Sum:
    if len(fields) > 3:
        raise InvalidArguments(f"has '{entry}' with too many numbers: write sum[:SCALE[:ZERO_POINT[:f32]]]")
    _only_f32(entry, fields[2] if len(fields) == 3 else "f32")
    return dnn.Sum(*map(real, fields[:2]))


def _binary(alg: str, entry: str, fields: Sequence[str]) -> TensorWord:
    dtype, policy, layout, apart = (*fields, *("f32", "common", "any", "")[len(fields) :])
    if dtype.lower() not in TYPES:
        _only_f32(entry, dtype)
    if layout == "grouped":
        raise Unimplemented(f"has '{entry}', a tensor in groups, which is not built yet")
    found = strides(1)(apart)
    kind = dtype.lower() if dtype.lower() in TYPES else "f32"
    return TensorWord(alg, _policy(entry, policy), tag(layout), found[0] if found else (), kind)


def _eltwise(alg: str, entry: str, fields: Sequence[str]) -> dnn.Eltwise:
    if len(fields) > 3:
        raise InvalidArguments(f"has '{entry}' with too many numbers: write {alg}[:ALPHA[:BETA[:SCALE]]]")
    alpha = older.SOFT_RELU_ALPHA if alg == "soft_relu" else 0.0
    given = (*map(real, fields), *(alpha, 0.0, 1.0)[len(fields) :])
    alg, *values = older.function(alg, *given[:2])
    numbers = dict(zip(("alpha", "beta", "scale"), (*values, given[2]), strict=True))
    unused = {"alpha", "beta"}.difference(parameters_of(alg))  # oneDNN's files give them, and it ignores them
    try:
        return dnn.Eltwise(cast(EltwiseAlgorithm, alg), **{n: v for n, v in numbers.items() if n not in unused})
    except InvalidArguments as error:
        raise InvalidArguments(f"has '{entry}': {error}") from None


def _only_f32(entry: str, dtype: str) -> None:
    if dtype.lower() not in ALL_DATA_TYPES:
        raise InvalidArguments(f"has '{entry}' of type '{dtype}', it must be f32")
    if dtype.lower() not in ("f32", "undef"):
        raise Unimplemented(f"has '{entry}' of type {dtype}, only f32 is built yet")


def _policy(entry: str, word: str = "common") -> str:
    """A name as it is, a mask without leading zeros."""
    if word.lower() in NAMED or _POLICY.fullmatch(word.lower()):
        return word.lower()
    if word.isascii() and word.isdecimal() and len(word) <= 5 and int(word) < 1 << MAX_NDIMS:
        return str(int(word))
    raise InvalidArguments(
        f"has '{entry}' with the dims '{word}': write common, per_oc, per_dim_0, per_dim_01, per_tensor or a mask"
    )
