"""The descriptions of inner products (fully connected layers), forward and backward, validated at once.

    forward           dst[n, o] = bias[o] + sum over i of src[n, i] * weights[o, i]
    backward data     diff_src[n, i] = sum over o of diff_dst[n, o] * weights[o, i]
    backward weights  diff_weights[o, i] = sum over n of diff_dst[n, o] * src[n, i]
                      diff_bias[o] = sum over n of diff_dst[n, o]

i is an input channel, or a channel at a position: src (n, c, [[d,] h,] w) goes with weights (o, c, [[d,] h,] w), dst is
(n, o), bias (o,).  Every format may be "any".  n, o and sizes of i may be 0.  Names are oneDNN's (inner_product_*).
"""

from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import activations, desc_words, weights
from asmdnn.primitives.attributes.numbers import FORWARD, check_prop_kind
from asmdnn.primitives.core.backward import BackwardDesc
from asmdnn.primitives.core.description import WithFormats, asked
from asmdnn.primitives.shapes.tensors import check_descs
from asmdnn.records import dataclass
from asmdnn.types import PropKind

MOST_DIMS = 5


@dataclass(frozen=True, slots=True)
class _InnerProduct(WithFormats):
    """What the three have in common: tensors as fields, of which those with a bias in their name may be None."""

    def tensors(self) -> dict[str, MemoryDesc]:
        """The descriptors by argument name; without the bias if there is none."""
        return asked(self)

    def letters(self, name: str, tensor: MemoryDesc) -> str:
        """What the dims of a tensor are called where its format is printed."""
        if name.endswith("weights"):
            return weights(tensor.ndims)
        return activations(tensor.ndims) if name.endswith(("src", "dst")) else ""

    def __str__(self) -> str:
        tensors = ", ".join(
            f"{name} {desc_words(desc, self.letters(name, desc))}" for name, desc in self.tensors().items()
        )
        return f"{type(self).__name__} of {tensors}"


def check(description: _InnerProduct, src: str, weights: str, dst: str, bias: str = "") -> None:
    """Raise InvalidArguments unless the tensors of these names fit together."""
    check_descs(description, src, weights, dst, optional=(bias,) if bias else ())
    tensors = description.tensors()
    s, w, d = (tensors[name].dims for name in (src, weights, dst))
    if not 2 <= len(s) <= MOST_DIMS:
        raise InvalidArguments(f"{src} has {counted(len(s), 'dim')}, it must have 2 to {MOST_DIMS}: {s}")
    if s[1:] != w[1:]:
        raise InvalidArguments(f"{weights} has dims {w}, {src} {s}: all but the first must be equal")
    if d != (s[0], w[0]):
        raise InvalidArguments(f"{dst} has dims {d}, {src} and {weights} make it {(s[0], w[0])}")
    if bias in tensors and tensors[bias].dims != (w[0],):
        raise InvalidArguments(f"{bias} has dims {tensors[bias].dims}, it must be ({w[0]},), one for each of {weights}")


@dataclass(frozen=True, slots=True)
class InnerProductForward(_InnerProduct):
    """See the module.  Raises InvalidArguments if sizes do not fit together."""

    src: MemoryDesc
    weights: MemoryDesc
    dst: MemoryDesc
    bias: MemoryDesc | None = None
    prop_kind: PropKind = PropKind.forward_inference

    def __post_init__(self) -> None:
        check_prop_kind(self.prop_kind, FORWARD)
        check(self, "src", "weights", "dst", "bias")


@dataclass(frozen=True, slots=True)
class InnerProductBackwardData(_InnerProduct, BackwardDesc):
    """See the module.  Raises InvalidArguments if sizes do not fit together."""

    FORWARD = InnerProductForward
    PACKED = ("weights",)

    diff_src: MemoryDesc
    weights: MemoryDesc
    diff_dst: MemoryDesc

    def __post_init__(self) -> None:
        check(self, "diff_src", "weights", "diff_dst")


@dataclass(frozen=True, slots=True)
class InnerProductBackwardWeights(_InnerProduct, BackwardDesc):
    """See the module; diff_bias may be None.  Raises InvalidArguments if sizes do not fit together."""

    FORWARD = InnerProductForward
    PACKED = ("weights",)

    src: MemoryDesc
    diff_weights: MemoryDesc
    diff_dst: MemoryDesc
    diff_bias: MemoryDesc | None = None

    def __post_init__(self) -> None:
        check(self, "src", "diff_weights", "diff_dst", "diff_bias")
