"""The descriptions of recurrent layers, backward, validated at once: gradients of everything that a layer reads.

Arguments are those of the forward pass and, after diff_, gradients of the same dims; see description.py for both.

| argument | what it is |
|---|---|
| src_layer, src_iter, weights_.. , dst_layer | as the forward pass with PropKind.forward_training had them |
| workspace       | what it left; its format is the primitive's, `workspace_desc` |
| diff_dst_layer, diff_dst_iter, diff_dst_iter_c | gradients of the results; the last two are 0 if they are None |
| diff_src_layer, diff_src_iter, diff_src_iter_c | written; those of states may be None |
| diff_weights_layer, diff_weights_iter, diff_weights_peephole, diff_weights_projection | written, and not added to |
| diff_bias       | written, or None |

`lengths` are those of the forward pass.  Weights that are `any` are packed for the products of this pass, which
need other panels than the forward pass: a training step packs each weights tensor twice.  Names are oneDNN's
(lstm_backward and so on), whose gradients of weights are added to what they held, unless its flag
rnn_flags::diff_weights_overwrite is set, as is done here.
"""

from typing import Any, ClassVar

from asmdnn.errors import InvalidArguments, shown
from asmdnn.exact import exact
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.core.backward import DIFF, BackwardDesc
from asmdnn.primitives.recurrent.description import (
    GRUForward,
    LBRGRUForward,
    LSTMForward,
    RecurrentForward,
    VanillaRNNForward,
)
from asmdnn.primitives.recurrent.sizes import NDIMS, Sizes, argument_dims, letters_of, words_of
from asmdnn.primitives.shapes.tensors import check_tensor
from asmdnn.records import dataclass, fields
from asmdnn.types import PropKind, RNNActivation, RNNDirection

STATES = ("src_iter", "src_iter_c")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentBackward(BackwardDesc):
    """What all have in common; see the module."""

    FORWARD: ClassVar[type[RecurrentForward]]
    PACKED = ("weights_layer", "weights_iter", "weights_projection")
    KEEPS = True

    src_layer: MemoryDesc
    weights_layer: MemoryDesc
    weights_iter: MemoryDesc
    dst_layer: MemoryDesc
    diff_src_layer: MemoryDesc
    diff_weights_layer: MemoryDesc
    diff_weights_iter: MemoryDesc
    diff_dst_layer: MemoryDesc
    src_iter: MemoryDesc | None = None
    diff_src_iter: MemoryDesc | None = None
    diff_bias: MemoryDesc | None = None
    diff_dst_iter: MemoryDesc | None = None
    direction: RNNDirection = "unidirectional_left2right"
    lengths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        forward, tensors = self.forward, self.tensors()
        wanted = argument_dims(forward.sizes, forward.BIAS_ROWS)
        for name, desc in tensors.items():
            of = name.removeprefix(DIFF)
            if name != of and desc.dims != wanted[of]:
                raise InvalidArguments(f"{name} has dims {desc.dims}, those of {of} are {wanted[of]}")
            if name != of and of in STATES and of not in tensors:
                raise InvalidArguments(f"{name} is given, and {of} is None: a state that is not there has no gradient")

    @property
    def forward(self) -> RecurrentForward:
        """The training pass.  Raises InvalidArguments."""
        own = {field.name for field in fields(self.FORWARD)}
        given: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self) if field.name in own}
        return self.FORWARD(**given, prop_kind=PropKind.forward_training)

    @property
    def sizes(self) -> Sizes:
        return self.forward.sizes

    def tensors(self) -> dict[str, MemoryDesc]:
        """The descriptors by argument name, without those that are absent.  Raises InvalidArguments for other types."""
        found = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.removeprefix(DIFF) not in NDIMS or (value is None and field.default is None):
                continue
            check_tensor(field.name, value)
            found[field.name] = value
        return found

    def letters(self, name: str, tensor: MemoryDesc) -> str:
        """What the dims of a tensor are called where its format is printed."""
        return letters_of(name, tensor)

    def __str__(self) -> str:
        return f"{self.FORWARD.NAME} backward {self.direction} of {words_of(self.tensors())}"


@exact
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VanillaRNNBackward(RecurrentBackward):
    """See the module.  activation: relu with a slope alpha of 0 or more below zero, tanh or logistic."""

    FORWARD = VanillaRNNForward
    activation: RNNActivation = "tanh"
    alpha: float = 0.0

    def __post_init__(self) -> None:
        RecurrentBackward.__post_init__(self)
        if self.activation == "relu" and self.alpha < 0:
            raise InvalidArguments(f"alpha is {shown(self.alpha)}: the result of relu says its sign only from 0 on")


@dataclass(frozen=True, slots=True, kw_only=True)
class LSTMBackward(RecurrentBackward):
    """See the module."""

    FORWARD = LSTMForward
    src_iter_c: MemoryDesc | None = None
    weights_peephole: MemoryDesc | None = None
    weights_projection: MemoryDesc | None = None
    diff_src_iter_c: MemoryDesc | None = None
    diff_weights_peephole: MemoryDesc | None = None
    diff_weights_projection: MemoryDesc | None = None
    diff_dst_iter_c: MemoryDesc | None = None

    def __post_init__(self) -> None:
        RecurrentBackward.__post_init__(self)
        for name in ("weights_peephole", "weights_projection"):
            if (getattr(self, name) is None) != (getattr(self, DIFF + name) is None):
                raise InvalidArguments(f"{name} and {DIFF}{name} are given both, or neither")


@dataclass(frozen=True, slots=True, kw_only=True)
class GRUBackward(RecurrentBackward):
    """See the module."""

    FORWARD = GRUForward


@dataclass(frozen=True, slots=True, kw_only=True)
class LBRGRUBackward(RecurrentBackward):
    """See the module; the bias has a fourth row."""

    FORWARD = LBRGRUForward
