"""Attention: dst = softmax(query key^T * scale + mask) value, for every head."""

from typing import Any

from asmdnn.errors import InvalidArguments, counted
from asmdnn.exact import exact
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import desc_words, matrices
from asmdnn.primitives.attributes.numbers import FORWARD, check_flag, check_prop_kind, finite
from asmdnn.primitives.shapes.tensors import check_tensor
from asmdnn.records import dataclass
from asmdnn.types import PropKind, f32

NDIMS = 4


def check_logsumexp(desc: Any) -> None:
    """Raise InvalidArguments unless the logsumexp of a description of attention is f32, one for each row of a head."""
    if desc.logsumexp is None:
        return
    check_tensor("logsumexp", desc.logsumexp, (*desc.query.dims[:3], 1))
    if desc.logsumexp.dtype != f32:
        raise InvalidArguments(f"logsumexp is {desc.logsumexp.dtype}, it must be f32")


@exact
@dataclass(frozen=True, slots=True, eq=False)
class AttentionForward:
    """dst[n, h] = softmax(query[n, h] key[n, g]^T * scale + mask[n, h]) value[n, g].

    query: (n, heads, rows, d); key: (n, groups, keys, d); value: (n, groups, keys, e); dst: (n, heads, rows, e).
    groups divides heads, and g = h / (heads / groups): grouped-query attention (Ainslie et al. 2023); usually they are
    equal.  mask: every dim is that of (n, heads, rows, keys) or 1; None adds nothing.  scale: of the scores; 0 means
    1 / sqrt(d).  causal: row i sees keys up to i + keys - rows only, so that the last row sees all.
    logsumexp: f32 (n, heads, rows, 1), left for `AttentionBackward`: log of the sum of e^score of each row, with scale
    and mask; None leaves nothing.
    Source: Vaswani et al. 2017; torch's scaled_dot_product_attention.  Raises InvalidArguments.
    """

    prop_kind: PropKind
    query: MemoryDesc
    key: MemoryDesc
    value: MemoryDesc
    dst: MemoryDesc
    mask: MemoryDesc | None = None
    scale: float = 0.0
    causal: bool = False
    logsumexp: MemoryDesc | None = None

    def __post_init__(self) -> None:
        check_prop_kind(self.prop_kind, FORWARD)
        check_flag("AttentionForward.causal", self.causal)
        for name in ("query", "key", "value", "dst", *["mask"] * (self.mask is not None)):
            check_tensor(name, getattr(self, name))
            if getattr(self, name).ndims != NDIMS:
                raise InvalidArguments(
                    f"{name} has {counted(getattr(self, name).ndims, 'dim')}, attention is of {NDIMS}"
                )
        (n, heads, rows, d), (_, groups, keys, _) = self.query.dims, self.key.dims
        check_tensor("key", self.key, (n, groups, keys, d))
        check_tensor("value", self.value, (n, groups, keys, self.value.dims[3]))
        check_tensor("dst", self.dst, (n, heads, rows, self.value.dims[3]))
        if not groups or heads % groups:
            raise InvalidArguments(
                f"key has {counted(groups, 'head')}, they must divide the {counted(heads, 'head')} of query"
            )
        if not keys or not d:
            raise InvalidArguments(f"key has dims {self.key.dims}: without keys there is no attention")
        if self.mask is not None and any(
            m not in (1, size) for m, size in zip(self.mask.dims, (n, heads, rows, keys), strict=True)
        ):
            raise InvalidArguments(
                f"mask has dims {self.mask.dims}, each must be 1 or that of {(n, heads, rows, keys)}"
            )
        if self.causal and keys < rows:
            raise InvalidArguments(f"causal attention of {counted(rows, 'row')} needs as many keys, not {keys}")
        check_logsumexp(self)
        object.__setattr__(self, "scale", finite("AttentionForward.scale", self.scale) or d**-0.5)

    def letters(self, _: str, tensor: MemoryDesc) -> str:
        """What the dims of a tensor are called where its format is printed."""
        return matrices(tensor.ndims)

    def __str__(self) -> str:
        query, key, value, dst, *mask = (
            desc_words(desc, matrices(NDIMS))
            for desc in (self.query, self.key, self.value, self.dst, self.mask)
            if desc is not None
        )
        more = [*(f"mask {words}" for words in mask), *["causal"] * bool(self.causal)]
        more += ["logsumexp"] * (self.logsumexp is not None)
        return f"attention of {query}, {key}, {value} to {dst}" + "".join(f", {m}" for m in more)
