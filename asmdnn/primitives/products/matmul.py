"""The description of a matrix product, validated at once."""

from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import desc_words, matrices
from asmdnn.primitives.core.description import WithFormats
from asmdnn.primitives.shapes.tensors import check_descs
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class MatMul(WithFormats):
    """dst[.., m, n] = bias[.., m, n] + sum over k of src[.., m, k] * weights[.., k, n]

    2 to 12 dims, equally many of each tensor.  A batch dim (all but the last two) of src and of weights is dst's or 1,
    and 1 is broadcast; so is every dim of bias.  m, n, k and batch may be 0: then dst is empty, or the bias, or zero.
    Every format may be "any"; weights that are "any" get panels, which a reorder packs once.  `bias` is None if absent.
    Raises InvalidArguments if sizes do not fit together.  The fields are oneDNN's (matmul::primitive_desc).
    """

    src: MemoryDesc
    weights: MemoryDesc
    dst: MemoryDesc
    bias: MemoryDesc | None = None

    def __post_init__(self) -> None:
        check_descs(self, "src", "weights", "dst", optional=("bias",))
        for name, desc in self.tensors().items():
            if desc.ndims < 2 or desc.ndims != self.dst.ndims:
                raise InvalidArguments(
                    f"{name} has {counted(desc.ndims, 'dim')}, dst {self.dst.ndims}: all need as many, 2 to 12"
                )
        self._check_sizes()
        self._check_batch()

    def tensors(self) -> dict[str, MemoryDesc]:
        """The descriptors by argument name; without "bias" if there is none."""
        every = {"src": self.src, "weights": self.weights, "bias": self.bias, "dst": self.dst}
        return {name: desc for name, desc in every.items() if desc is not None}

    def letters(self, _: str, tensor: MemoryDesc) -> str:
        """What the dims of a tensor are called where its format is printed."""
        return matrices(tensor.ndims)

    def __str__(self) -> str:
        tensors = (f"{name} {desc_words(desc, self.letters(name, desc))}" for name, desc in self.tensors().items())
        return f"matmul of {', '.join(tensors)}"

    def _check_sizes(self) -> None:
        (sm, sk), (wk, wn), (m, n) = (d.dims[-2:] for d in (self.src, self.weights, self.dst))
        if sk != wk:
            raise InvalidArguments(
                f"weights has {counted(wk, 'row')}, src has {counted(sk, 'column')}: k of both must be equal"
            )
        if sm != m:
            raise InvalidArguments(f"dst has {m} rows, src has {sm}: m of both must be equal")
        if wn != n:
            raise InvalidArguments(f"dst has {counted(n, 'column')}, weights has {wn}: n of both must be equal")

    def _check_batch(self) -> None:
        dims = [d.dims[:-2] for d in (self.src, self.weights, self.dst)]
        for axis, (s, w, d) in enumerate(zip(*dims, strict=True)):
            wanted = w if s == 1 else s
            if w not in (wanted, 1):
                raise InvalidArguments(f"weights has dims[{axis}] of {w}, src of {s}: batch dims are equal or 1")
            if d != wanted:
                raise InvalidArguments(f"dst has dims[{axis}] of {d}, src and weights make it {wanted}")
        if self.bias is not None:
            for axis, (b, d) in enumerate(zip(self.bias.dims, self.dst.dims, strict=True)):
                if b not in (1, d):
                    raise InvalidArguments(f"bias has dims[{axis}] of {b}, it must be 1 or dst's {d}")
