"""The descriptions of backward batch and group normalization and PReLU, validated at once.  Names are oneDNN's."""

from asmdnn.errors import InvalidArguments, counted
from asmdnn.exact import exact
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.numbers import check_alg, check_flag
from asmdnn.primitives.core.backward import BackwardDesc
from asmdnn.primitives.elementwise.prelu import PReLUForward
from asmdnn.primitives.normalization.affine import checked_epsilon
from asmdnn.primitives.normalization.channel_description import (
    FUSIONS,
    NONE,
    NORM_ADD_RELU,
    BatchNormForward,
    Fusion,
    GroupNormForward,
    checked_groups,
)
from asmdnn.primitives.shapes.tensors import check_descs, check_tensor
from asmdnn.records import dataclass
from asmdnn.types import u8


@exact
@dataclass(frozen=True, slots=True)
class BatchNormBackward(BackwardDesc):
    """The gradients of a batch normalization of (n, c, ...), whose statistics of every channel were computed from src.

        diff_src = (g - mean of g - h * mean of g * h) * scale / sqrt(variance + epsilon),  g = diff_dst
        diff_scale = sum of diff_dst * h,  diff_shift = sum of diff_dst,   both over images and pixels

    with h = (src - mean) / sqrt(variance + epsilon).  use_global_stats: the statistics were given, so that diff_src =
    diff_dst * scale / sqrt(variance + epsilon).  src, diff_dst and diff_src have the same dims, in any formats, `any`
    too, of f32, bf16 or f16; mean, variance, scale, diff_scale, diff_shift: (c,), the last three or None.
    fuse: "norm_relu" or "norm_add_relu", as in the forward pass.  workspace: what that has left; where it is 0,
    diff_dst counts as 0.  diff_src_1: of "norm_add_relu", what diff_dst counts as, the gradient of the tensor that was
    added.  Raises InvalidArguments.
    """

    FORWARD = BatchNormForward

    src: MemoryDesc
    diff_dst: MemoryDesc
    diff_src: MemoryDesc
    mean: MemoryDesc
    variance: MemoryDesc
    epsilon: float = 1e-5
    scale: MemoryDesc | None = None
    diff_scale: MemoryDesc | None = None
    diff_shift: MemoryDesc | None = None
    use_global_stats: bool = False
    fuse: Fusion = "none"
    workspace: MemoryDesc | None = None
    diff_src_1: MemoryDesc | None = None

    def __post_init__(self) -> None:
        check_norm(self)
        check_fusion(self)

    @property
    def statistics_dims(self) -> tuple[int, ...]:
        return self.src.dims[1:2]

    def __str__(self) -> str:
        return said("batch norm", self)


@exact
@dataclass(frozen=True, slots=True)
class GroupNormBackward(BackwardDesc):
    """As BatchNormBackward, for every image and group of channels: `groups` of them, each of c / groups channels.

    Means are over the group's channels and pixels, of g = diff_dst * scale; sums for diff_scale and diff_shift over
    images and pixels.  mean, variance: (n, groups); scale, diff_scale, diff_shift: (c,), or None.  groups = c is
    instance normalization.  Raises InvalidArguments, also for groups that do not divide the channels.
    """

    FORWARD = GroupNormForward

    src: MemoryDesc
    diff_dst: MemoryDesc
    diff_src: MemoryDesc
    groups: int
    mean: MemoryDesc
    variance: MemoryDesc
    epsilon: float = 1e-5
    scale: MemoryDesc | None = None
    diff_scale: MemoryDesc | None = None
    diff_shift: MemoryDesc | None = None
    use_global_stats: bool = False

    def __post_init__(self) -> None:
        check_tensor("src", self.src)
        object.__setattr__(self, "groups", checked_groups(self.groups, self.src))
        check_norm(self)

    @property
    def statistics_dims(self) -> tuple[int, ...]:
        return (self.src.dims[0], self.groups)

    def __str__(self) -> str:
        return said(f"group norm of {self.groups} groups", self)


ChannelNormBackward = BatchNormBackward | GroupNormBackward


def check_norm(desc: ChannelNormBackward) -> None:
    """Raise InvalidArguments for tensors that do not fit."""
    owner = type(desc).__name__
    check_flag(f"{owner}.use_global_stats", desc.use_global_stats)
    object.__setattr__(desc, "epsilon", checked_epsilon(owner, desc.epsilon))
    check_tensor("src", desc.src)
    if desc.src.ndims < 2:
        raise InvalidArguments(f"src has {counted(desc.src.ndims, 'dim')}, images and channels are needed: 2")
    check_descs(desc, "diff_dst", "diff_src", dims=desc.src.dims)
    check_descs(desc, "mean", "variance", dims=desc.statistics_dims)
    check_descs(desc, optional=("scale", "diff_scale", "diff_shift"), dims=desc.src.dims[1:2])


def check_fusion(desc: BatchNormBackward) -> None:
    """Raise InvalidArguments for a fusion and its tensors that do not fit."""
    check_alg("BatchNormBackward.fuse", desc.fuse, FUSIONS)
    adds = desc.fuse == NORM_ADD_RELU
    for name, needed, owner in (("workspace", desc.fuse != NONE, "a fused relu"), ("diff_src_1", adds, NORM_ADD_RELU)):
        tensor = getattr(desc, name)
        if (tensor is not None) != needed:
            raise InvalidArguments(f"{name} is of {owner}: give both or none of them, not fuse {desc.fuse}")
        if tensor is not None:
            check_tensor(name, tensor, desc.src.dims)
    if desc.workspace is not None and desc.workspace.dtype != u8:
        raise InvalidArguments(f"workspace is {desc.workspace.dtype}, a mask is u8")


def said(what: str, desc: ChannelNormBackward) -> str:
    more = [name for name in ("scale", "diff_scale", "diff_shift") if getattr(desc, name) is not None]
    more += ["given statistics"] * desc.use_global_stats
    more += [desc.fuse] if isinstance(desc, BatchNormBackward) and desc.fuse != NONE else []
    with_more = f" with {', '.join(more)}" if more else ""
    return f"{what} backward of {desc.src}, {desc.diff_dst} to {desc.diff_src}{with_more}"


@dataclass(frozen=True, slots=True)
class PReLUBackward(BackwardDesc):
    """diff_src = diff_dst where src > 0, else weights * diff_dst; diff_weights = sum of src * diff_dst where src <= 0.

    src, diff_dst and diff_src have the same dims; those of weights and diff_weights are src's or 1, and what is 1 is
    summed over.  Any formats, `any` too.  Raises InvalidArguments.
    """

    FORWARD = PReLUForward

    src: MemoryDesc
    weights: MemoryDesc
    diff_dst: MemoryDesc
    diff_src: MemoryDesc
    diff_weights: MemoryDesc

    def __post_init__(self) -> None:
        check_descs(self, "src", "weights")
        check_descs(self, "diff_dst", "diff_src", dims=self.src.dims)
        fits = [n in (1, m) for n, m in zip(self.weights.dims, self.src.dims, strict=False)]
        if self.weights.ndims != self.src.ndims or not all(fits):
            raise InvalidArguments(
                f"weights has dims {self.weights.dims}, each must be 1 or that of src: {self.src.dims}"
            )
        check_tensor("diff_weights", self.diff_weights, self.weights.dims)

    def __str__(self) -> str:
        return f"prelu backward of {self.src}, {self.weights}, {self.diff_dst} to {self.diff_src}, {self.diff_weights}"
