"""The description of backward attention, validated at once."""

from asmdnn.exact import exact
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attention.description import AttentionForward
from asmdnn.primitives.core.backward import BackwardDesc
from asmdnn.primitives.shapes.tensors import check_descs
from asmdnn.records import dataclass
from asmdnn.types import PropKind


@exact
@dataclass(frozen=True, slots=True, eq=False)
class AttentionBackward(BackwardDesc):
    """The gradients of an attention by query, key and value, for the gradient of its result: with P the probabilities,

        dP = diff_dst value^T,   dS = P * (dP - sum of P * dP over a row) * scale
        diff_query = dS key,   diff_key = dS^T query,   diff_value = P^T diff_dst

    query, key, value, mask, scale, causal: those of `AttentionForward`; P is computed anew.  logsumexp: what the
    forward pass has left: then P is one function of the scores, else of their maxima and sums.  It is no use where a
    mask of -1e9, say, hides whole rows: beside such numbers the log of a sum is rounded away.  diff_dst: dst's dims;
    diff_query, diff_key, diff_value: those of query, key and value, where heads of a group add up.  Types may differ;
    all is computed in f32, but what tiles of AMX multiply where all is bf16.  A mask has no gradient.
    Raises InvalidArguments.
    Source: Dao et al., FlashAttention, 2022, algorithm 4.
    """

    FORWARD = AttentionForward

    query: MemoryDesc
    key: MemoryDesc
    value: MemoryDesc
    diff_dst: MemoryDesc
    diff_query: MemoryDesc
    diff_key: MemoryDesc
    diff_value: MemoryDesc
    mask: MemoryDesc | None = None
    scale: float = 0.0
    causal: bool = False
    logsumexp: MemoryDesc | None = None

    def __post_init__(self) -> None:
        check_descs(self, "query", "key", "value", "diff_dst")
        object.__setattr__(self, "scale", self.forward().scale)
        for name in ("query", "key", "value"):
            check_descs(self, f"diff_{name}", dims=getattr(self, name).dims)

    def forward(self) -> AttentionForward:
        """The forward pass, whose result lies as diff_dst.  Raises InvalidArguments."""
        tensors = self.query, self.key, self.value, self.diff_dst, self.mask
        return AttentionForward(PropKind.forward_training, *tensors, self.scale, self.causal, self.logsumexp)

    @property
    def prop_kind(self) -> PropKind:
        """As oneDNN calls it: key and value may be data or parameters."""
        return PropKind.backward

    def __str__(self) -> str:
        return f"backward {self.forward()}"
