"""Batch, group and instance normalization: statistics of channels, which are dim 1."""

from typing import Literal

import numpy as np

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.exact import exact
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.numbers import FORWARD, check_alg, check_prop_kind
from asmdnn.primitives.normalization.affine import check_statistics, checked_epsilon
from asmdnn.primitives.shapes.tensors import check_descs, check_tensor
from asmdnn.records import dataclass
from asmdnn.types import PropKind, u8

Fusion = Literal["none", "norm_relu", "norm_add_relu"]
NONE, NORM_RELU, NORM_ADD_RELU = FUSIONS = ("none", "norm_relu", "norm_add_relu")


@exact
@dataclass(frozen=True, slots=True, eq=False)
class BatchNormForward:
    """dst = (src - mean) / sqrt(variance + epsilon) * scale + shift, for every channel, which are dim 1 of src.

    src and dst: (n, c) and any further dims, the same, in any formats, `any` too; in place if they have one format.
    scale, shift: (c,), or None.  mean, variance: (c,), or None; they are written, or read with `use_global_stats`; the
    variance is that of all elements of a channel (not of one less).  fuse: "norm_relu", relu after it, or
    "norm_add_relu", src_1, a tensor as src, added and then relu.  workspace, in training with relu: u8 of src's dims in
    dst's format, which becomes 1 where relu passes its argument on, else 0.  Post-ops follow.  Source: oneDNN's batch
    normalization.  Raises InvalidArguments.
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
    fuse: Fusion = "none"
    src_1: MemoryDesc | None = None
    workspace: MemoryDesc | None = None

    def __post_init__(self) -> None:
        check_channel_norm(self)
        check_fusion(self)

    @property
    def statistics_dims(self) -> tuple[int, ...]:
        return (self.src.dims[1],)

    def __str__(self) -> str:
        return said("batch norm", self)


@exact
@dataclass(frozen=True, slots=True, eq=False)
class GroupNormForward:
    """As BatchNormForward, for every image and group of channels: `groups` of them, each of c / groups channels.

    mean, variance: (n, groups), or None.  groups = c is instance normalization.  Source: oneDNN's group normalization;
    Wu and He 2018.  Raises InvalidArguments, also for groups that do not divide the channels.
    """

    prop_kind: PropKind
    src: MemoryDesc
    dst: MemoryDesc
    groups: int
    epsilon: float = 1e-5
    scale: MemoryDesc | None = None
    shift: MemoryDesc | None = None
    mean: MemoryDesc | None = None
    variance: MemoryDesc | None = None
    use_global_stats: bool = False

    def __post_init__(self) -> None:
        check_tensor("src", self.src)
        object.__setattr__(self, "groups", checked_groups(self.groups, self.src))
        check_channel_norm(self)

    @property
    def statistics_dims(self) -> tuple[int, ...]:
        return (self.src.dims[0], self.groups)

    def __str__(self) -> str:
        return said(f"group norm of {self.groups} groups", self)


ChannelNorm = BatchNormForward | GroupNormForward


def checked_groups(groups: object, src: MemoryDesc) -> int:
    """So many groups of src's channels.  Raises InvalidArguments."""
    if isinstance(groups, bool) or not isinstance(groups, int | np.integer) or groups < 1:
        raise InvalidArguments(f"groups must be a whole number from 1 on, not {shown(groups)}")
    if src.ndims > 1 and src.dims[1] % groups:
        raise InvalidArguments(
            f"groups is {shown(groups)}, it must divide the {counted(src.dims[1], 'channel')} of src"
        )
    return int(groups)


def check_channel_norm(desc: ChannelNorm) -> None:
    """Raise InvalidArguments for tensors that do not fit."""
    owner = type(desc).__name__
    check_prop_kind(desc.prop_kind, FORWARD)
    object.__setattr__(desc, "epsilon", checked_epsilon(owner, desc.epsilon))
    check_tensor("src", desc.src)
    check_tensor("dst", desc.dst, desc.src.dims)
    if desc.src.ndims < 2:
        raise InvalidArguments(f"src has {counted(desc.src.ndims, 'dim')}, it needs images and channels: 2")
    check_descs(desc, optional=("scale", "shift"), dims=desc.src.dims[1:2])
    check_descs(desc, optional=("mean", "variance"), dims=desc.statistics_dims)
    check_statistics(owner, desc.use_global_stats, desc.mean, desc.variance)
    if not desc.use_global_stats and desc.mean is not None and 0 in desc.src.dims and 0 not in desc.statistics_dims:
        raise InvalidArguments(f"src has dims {desc.src.dims}: without elements leave mean and variance out")


def check_fusion(desc: BatchNormForward) -> None:
    """Raise InvalidArguments for a fusion and its tensors that do not fit."""
    check_alg("BatchNormForward.fuse", desc.fuse, FUSIONS)
    if (desc.src_1 is not None) != (desc.fuse == NORM_ADD_RELU):
        raise InvalidArguments(f"src_1 is what {NORM_ADD_RELU} adds: give both or none of them, not fuse {desc.fuse}")
    check_descs(desc, optional=("src_1", "workspace"), dims=desc.src.dims)
    if desc.workspace is not None:
        if desc.prop_kind != PropKind.forward_training or desc.fuse == NONE:
            raise InvalidArguments("workspace is of forward_training with a fused relu: leave it out")
        if desc.workspace.dtype != u8:
            raise InvalidArguments(f"workspace is {desc.workspace.dtype}, a mask is u8")


def said(what: str, desc: ChannelNorm) -> str:
    more = [name for name in ("scale", "shift") if getattr(desc, name) is not None]
    kind = "given" if desc.use_global_stats else "written" if desc.variance is not None else ""
    more += [f"{kind} statistics"] * bool(kind)
    if isinstance(desc, BatchNormForward):
        more += [desc.fuse] * (desc.fuse != NONE) + ["a workspace"] * (desc.workspace is not None)
    return f"{what} of {desc.src} to {desc.dst}" + (f" with {', '.join(more)}" if more else "")
