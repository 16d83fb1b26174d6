"""The descriptions of backward softmax and layer normalization, validated at once.  Names are oneDNN's."""

from asmdnn.errors import InvalidArguments, counted
from asmdnn.exact import exact
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.numbers import check_alg, check_flag
from asmdnn.primitives.core.backward import BackwardDesc
from asmdnn.primitives.normalization.affine import checked_epsilon
from asmdnn.primitives.normalization.layer_description import LayerNormForward
from asmdnn.primitives.shapes.tensors import check_descs, check_tensor, checked_axis
from asmdnn.primitives.softmax.description import ALGORITHMS, SoftmaxAlgorithm, SoftmaxForward
from asmdnn.records import dataclass


@exact
@dataclass(frozen=True, slots=True)
class SoftmaxBackward(BackwardDesc):
    """diff_src = dst * (diff_dst - sum of diff_dst * dst), of "log" diff_dst - e^dst * sum of diff_dst, over `axis`.

    dst: the result of the forward pass.  All have the same dims, in any formats, `any` too; diff_src may be the memory
    of diff_dst or dst if they have one format.  With a scale or a mask in the forward pass, the gradient is that by
    scale * src + mask.  Raises InvalidArguments.
    """

    FORWARD = SoftmaxForward

    alg: SoftmaxAlgorithm
    dst: MemoryDesc
    diff_dst: MemoryDesc
    diff_src: MemoryDesc
    axis: int

    def __post_init__(self) -> None:
        check_alg("SoftmaxBackward.alg", self.alg, ALGORITHMS)
        check_tensor("dst", self.dst)
        check_descs(self, "diff_dst", "diff_src", dims=self.dst.dims)
        object.__setattr__(self, "axis", checked_axis(self.axis, self.dst))

    def __str__(self) -> str:
        what = "softmax" if self.alg == "accurate" else "logsoftmax"
        return f"{what} backward of {self.dst}, {self.diff_dst} to {self.diff_src}, axis {self.axis}"


@exact
@dataclass(frozen=True, slots=True)
class LayerNormBackward(BackwardDesc):
    """The gradients of a layer normalization over the last dim, of c elements, whose statistics were computed from src.

        diff_src = (g - mean of g - h * mean of g * h) / sqrt(variance + epsilon)
        diff_scale = sum over rows of diff_dst * h,  diff_shift = sum over rows of diff_dst

    with h = (src - mean) / sqrt(variance + epsilon) and g = diff_dst * scale.  rms: without mean, both here and in h.
    use_global_stats: the statistics were given, so that diff_src = g / sqrt(variance + epsilon).
    src, diff_dst and diff_src have the same dims, in any formats, `any` too; mean and variance src's dims but the last,
    as the forward pass in training has written them; scale, diff_scale, diff_shift: (c,), or None.
    Raises InvalidArguments.
    """

    FORWARD = LayerNormForward

    src: MemoryDesc
    diff_dst: MemoryDesc
    diff_src: MemoryDesc
    mean: MemoryDesc | None
    variance: MemoryDesc
    epsilon: float = 1e-5
    scale: MemoryDesc | None = None
    diff_scale: MemoryDesc | None = None
    diff_shift: MemoryDesc | None = None
    rms: bool = False
    use_global_stats: bool = False

    def __post_init__(self) -> None:
        for name in ("rms", "use_global_stats"):
            check_flag(f"LayerNormBackward.{name}", getattr(self, name))
        object.__setattr__(self, "epsilon", checked_epsilon("LayerNormBackward", self.epsilon))
        check_tensor("src", self.src)
        dims = self.src.dims
        if len(dims) < 2:
            raise InvalidArguments(
                f"src has {counted(len(dims), 'dim')}, a layer normalization needs rows and columns: 2"
            )
        if self.rms == (self.mean is not None):
            raise InvalidArguments(f"mean is {self.mean}: an RMS norm has none, every other norm has one")
        check_descs(self, "diff_dst", "diff_src", dims=dims)
        check_descs(self, "variance", optional=("mean",), dims=dims[:-1])
        check_descs(self, optional=("scale", "diff_scale", "diff_shift"), dims=dims[-1:])

    def __str__(self) -> str:
        what = "rms norm" if self.rms else "layer norm"
        more = [name for name in ("scale", "diff_scale", "diff_shift") if getattr(self, name) is not None]
        more += ["given statistics"] * self.use_global_stats
        with_more = f" with {', '.join(more)}" if more else ""
        return f"{what} backward of {self.src}, {self.diff_dst} to {self.diff_src}{with_more}"
