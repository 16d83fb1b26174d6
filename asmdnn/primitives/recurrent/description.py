"""The descriptions of recurrent layers, forward, validated at once.

T time steps of N sequences, L stacked layers of D directions; a layer has SLC input channels, G gates, DHC hidden
channels and DIC output channels, which are DHC unless an LSTM has a projection.  Of one layer and direction, with
x = src_layer[t], h = dst_layer[t - 1] or src_iter, W = weights_layer, R = weights_iter, b = bias, s the logistic
function:

    vanilla RNN  h' = activation(x W + h R + b)
    LSTM         (i, f, c~, o) = x W + h R + b;  i, f += p_i c, p_f c;  c' = s(f) c + s(i) tanh(c~);  o += p_o c'
                 h' = s(o) tanh(c'), times weights_projection if there is one;  p = weights_peephole or 0
    GRU          (u, r) = x W + h R + b;  c~ = x W_c + (s(r) h) R_c + b_c;  h' = s(u) h + (1 - s(u)) tanh(c~)
    LBR GRU      (u, r) = x W + h R + b;  c~ = x W_c + b_c + s(r) (h R_c + b');  h' as in GRU; b' is the bias's 4th row

| argument | dims | what it is |
|---|---|---|
| src_layer  | T, N, SLC           | formats tnc, ntc, ..; or (sum of lengths, SLC), see below |
| src_iter, src_iter_c | L, D, N, SIC; L, D, N, DHC | h and an LSTM's c before the first step; None: zeros |
| weights_layer | L, D, SLC, G, DHC | formats ldigo, ldgoi, ..; any: packed for the kernels by a reorder, once |
| weights_iter  | L, D, SIC, G, DHC | likewise; SIC is DIC, but for one step (T is 1) of a vanilla RNN or an LSTM |
| weights_peephole, weights_projection | L, D, 3, DHC; L, D, DHC, DIC | of an LSTM, or None; the latter likewise |
| weights_layer_scales, weights_iter_scales | L, D, G, DHC | of an LSTM of s8 weights, or None |
| bias       | L, D, G, DHC        | or None; LBR GRU: 4 rows |
| dst_layer  | T, N, DLC           | DLC is DIC, of bidirectional_concat 2 DIC; with several layers it is SLC, too |
| dst_iter, dst_iter_c | L, D, N, DIC; L, D, N, DHC | the states after the last step, or None |

`lengths` gives every sequence its own number of steps.  With a src_layer of three dims it is padded: steps past a
sequence's end leave its state as it was, and are zeros in dst_layer.  With two dims the sequences are concatenated step
by step: first the rows of step 0 of all sequences, then those of step 1 of the sequences that have one, and so on;
lengths must be sorted then, the longest first.  From right to left a sequence starts at its own end.

LSTMs and GRUs also take weights of s8 and rows of u8, see qparams.py.

Names are oneDNN's (vanilla_rnn_forward, lstm_forward, gru_forward, lbr_gru_forward), and so is the order of gates.
"""

from typing import ClassVar, get_args

from asmdnn.errors import InvalidArguments, shown
from asmdnn.exact import exact
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.numbers import FORWARD, check_alg, check_prop_kind, finite
from asmdnn.primitives.core.description import WithFormats
from asmdnn.primitives.recurrent.qparams import checked_data, checked_scales
from asmdnn.primitives.recurrent.sizes import (
    NDIMS,
    Sizes,
    check_lengths,
    check_tensors,
    letters_of,
    sizes_of,
    words_of,
)
from asmdnn.records import dataclass
from asmdnn.types import PropKind, RNNActivation, RNNDirection

ACTIVATIONS: tuple[str, ...] = get_args(RNNActivation)
NEEDED = ("src_layer", "weights_layer", "weights_iter", "dst_layer")
DIRECTIONS: tuple[str, ...] = get_args(RNNDirection)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrent(WithFormats):
    """What all have in common; see the module.  GATES: G; BIAS_ROWS: of the bias; KEEPS_WIDTH: h' is made of h, so that
    SIC is DIC.  A state, workspace and all beside the first four may be absent."""

    GATES: ClassVar[int]
    BIAS_ROWS: ClassVar[int]
    NAME: ClassVar[str]  # oneDNN's of the algorithm
    KEEPS_WIDTH: ClassVar[bool] = False

    src_layer: MemoryDesc
    weights_layer: MemoryDesc
    weights_iter: MemoryDesc
    dst_layer: MemoryDesc
    src_iter: MemoryDesc | None = None
    bias: MemoryDesc | None = None
    dst_iter: MemoryDesc | None = None
    direction: RNNDirection = "unidirectional_left2right"
    prop_kind: PropKind = PropKind.forward_inference
    lengths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_prop_kind(self.prop_kind, FORWARD)
        check_alg("direction", self.direction, DIRECTIONS)
        check_lengths(self.lengths, self.src_layer)
        check_tensors(self.tensors(), self.sizes, self.BIAS_ROWS)

    @property
    def sizes(self) -> Sizes:
        """The sizes that the arguments agree on.  Raises InvalidArguments naming the first that does not fit."""
        return sizes_of(self.tensors(), self.GATES, self.direction, self.lengths, self.KEEPS_WIDTH)

    @property
    def is_training(self) -> bool:
        """Whether a workspace is written for the backward pass."""
        return self.prop_kind is PropKind.forward_training

    def tensors(self) -> dict[str, MemoryDesc]:
        """The descriptors by argument name, without those that are absent.  Raises InvalidArguments."""
        found = {}
        for name in NDIMS:
            value = getattr(self, name, None)
            if value is None and name not in NEEDED:
                continue
            if not isinstance(value, MemoryDesc):
                raise InvalidArguments(f"{name} must be a MemoryDesc, not {shown(value)}")
            found[name] = value
        return found

    def letters(self, name: str, tensor: MemoryDesc) -> str:
        """What the dims of a tensor are called where its format is printed."""
        return letters_of(name, tensor)

    def __str__(self) -> str:
        return f"{self.NAME} {self.prop_kind.value} {self.direction} of {words_of(self.tensors())}"


@exact
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VanillaRNNForward(Recurrent):
    """See the module.  activation: relu (alpha is the slope below zero), tanh or logistic."""

    GATES, BIAS_ROWS, NAME = 1, 1, "vanilla_rnn"
    activation: RNNActivation = "tanh"
    alpha: float = 0.0

    def __post_init__(self) -> None:
        check_alg("activation", self.activation, ACTIVATIONS)
        finite("alpha", self.alpha)
        Recurrent.__post_init__(self)


@exact
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuantizedRecurrent(Recurrent):
    """Layers whose weights may be s8; see qparams.py for both fields, which are oneDNN's attributes of these names."""

    rnn_data_qparams: tuple[float, ...] = ()
    rnn_weights_qparams: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        Recurrent.__post_init__(self)
        object.__setattr__(self, "rnn_data_qparams", checked_data(self.rnn_data_qparams))
        scales = checked_scales(self.rnn_weights_qparams, self.GATES * self.sizes.hidden)
        object.__setattr__(self, "rnn_weights_qparams", scales)


@exact
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LSTMForward(QuantizedRecurrent):
    """See the module.  Gates: i, f, c~, o; peephole weights: i, f, o.

    With weights_layer_scales and weights_iter_scales weights are s8, for a byte times the scale, and rows f32, which
    are rounded to u8 as they come: src_layer by the range of all its elements, h by that of every step; see qparams.py.
    """

    GATES, BIAS_ROWS, NAME = 4, 4, "vanilla_lstm"
    src_iter_c: MemoryDesc | None = None
    weights_peephole: MemoryDesc | None = None
    weights_projection: MemoryDesc | None = None
    dst_iter_c: MemoryDesc | None = None
    weights_layer_scales: MemoryDesc | None = None
    weights_iter_scales: MemoryDesc | None = None


@exact
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GRUForward(QuantizedRecurrent):
    """See the module.  Gates: u, r, c~."""

    GATES, BIAS_ROWS, NAME = 3, 3, "vanilla_gru"
    KEEPS_WIDTH = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LBRGRUForward(Recurrent):
    """See the module.  Gates: u, r, c~; the bias has a fourth row, b'."""

    GATES, BIAS_ROWS, NAME = 3, 4, "lbr_gru"
    KEEPS_WIDTH = True


RecurrentForward = VanillaRNNForward | LSTMForward | GRUForward | LBRGRUForward
