"""Layer normalization: rows of the last dim, by their own mean and variance."""

from asmdnn.errors import InvalidArguments, counted
from asmdnn.exact import exact
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import desc_words, matrices
from asmdnn.primitives.attributes.numbers import FORWARD, check_flag, check_prop_kind
from asmdnn.primitives.normalization.affine import check_statistics, checked_epsilon
from asmdnn.primitives.shapes.tensors import check_descs, check_tensor
from asmdnn.records import dataclass
from asmdnn.types import PropKind


@exact
@dataclass(frozen=True, slots=True, eq=False)
class LayerNormForward:
    """dst = (src - mean) / sqrt(variance + epsilon) * scale + shift, over the last dim, of c elements.

    src and dst have the same dims, in any formats, `any` too; in place if they have one format.  scale, shift: (c,), or
    None.  mean, variance: src's dims but the last, or None; they are written, or read with `use_global_stats`; the
    variance is that of all c elements (not c - 1).  rms: without mean, dst = src / sqrt(mean of src^2 + epsilon) and so
    on (Zhang and Sennrich 2019); `variance` is the mean of squares then.  Source: oneDNN's layer normalization.
    Raises InvalidArguments.
    """

    prop_kind: PropKind
    src: MemoryDesc
    dst: MemoryDesc
    epsilon: float = 1e-5
    scale: MemoryDesc | None = None
    shift: MemoryDesc | None = None
    mean: MemoryDesc | None = None
    variance: MemoryDesc | None = None
    use_global_stats: bool = False
    rms: bool = False

    def __post_init__(self) -> None:
        check_prop_kind(self.prop_kind, FORWARD)
        check_flag("LayerNormForward.rms", self.rms)
        object.__setattr__(self, "epsilon", checked_epsilon("LayerNormForward", self.epsilon))
        check_tensor("src", self.src)
        check_tensor("dst", self.dst, self.src.dims)
        if self.src.ndims < 2:
            raise InvalidArguments(
                f"src has {counted(self.src.ndims, 'dim')}, a layer normalization needs rows and columns: 2"
            )
        check_descs(self, optional=("scale", "shift"), dims=self.src.dims[-1:])
        check_descs(self, optional=("mean", "variance"), dims=self.src.dims[:-1])
        check_statistics("LayerNormForward", self.use_global_stats, self.mean, self.variance, not self.rms)

    def letters(self, _: str, tensor: MemoryDesc) -> str:
        """What the dims of a tensor are called where its format is printed."""
        return matrices(tensor.ndims)

    def __str__(self) -> str:
        what = "rms norm" if self.rms else "layer norm"
        more = [name for name in ("scale", "shift") if getattr(self, name) is not None]
        more += [("given" if self.use_global_stats else "written") + " statistics"] * (self.variance is not None)
        src, dst = (desc_words(desc, matrices(desc.ndims)) for desc in (self.src, self.dst))
        return f"{what} of {src} to {dst}" + (f" with {', '.join(more)}" if more else "")
