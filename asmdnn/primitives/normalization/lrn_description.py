"""Local response normalization."""

from math import prod
from typing import Literal

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.exact import exact
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.numbers import FORWARD, check_alg, check_prop_kind, finite
from asmdnn.primitives.shapes.tensors import check_descs, check_tensor
from asmdnn.primitives.shapes.windows import MAX_SIZE
from asmdnn.records import dataclass
from asmdnn.types import PropKind

LRNAlgorithm = Literal["lrn_across_channels", "lrn_within_channel"]
ACROSS, WITHIN = ALGORITHMS = ("lrn_across_channels", "lrn_within_channel")


@exact
@dataclass(frozen=True, slots=True, eq=False)
class LRNForward:
    """dst = src * (k + alpha / n * sum of src^2 over a window)^-beta, the window around each element.

    alg: "lrn_across_channels", n = local_size channels; "lrn_within_channel", local_size positions along each spatial
    axis, n of them altogether.  A window of c reaches from c - (local_size - 1) // 2 on, and what is outside of src
    counts as zero, and in n.  src, dst: (n, c, ...), within channels with one to three spatial axes; any formats.
    alpha, beta >= 0, k > 0, so that powers are of numbers above zero.  workspace, in training: what the power is of,
    f32 of src's dims.  Source: oneDNN's LRN; ONNX's is the one across channels.  Raises InvalidArguments.
    """

    prop_kind: PropKind
    alg: LRNAlgorithm
    src: MemoryDesc
    dst: MemoryDesc
    local_size: int = 5
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0
    workspace: MemoryDesc | None = None

    def __post_init__(self) -> None:
        check_prop_kind(self.prop_kind, FORWARD)
        check_alg("LRNForward.alg", self.alg, ALGORITHMS)
        for name in ("alpha", "beta", "k"):
            object.__setattr__(self, name, finite(f"LRNForward.{name}", getattr(self, name)))
        if min(self.alpha, self.beta) < 0 or self.k <= 0:
            numbers = f"alpha {self.alpha:g}, beta {self.beta:g}, k {self.k:g}"
            raise InvalidArguments(f"LRNForward has {numbers}: alpha and beta must be from 0 on, k above 0")
        self._check_size()
        check_tensor("src", self.src)
        check_tensor("dst", self.dst, self.src.dims)
        least = 2 if self.alg == ACROSS else 3
        if not least <= self.src.ndims <= 5:
            raise InvalidArguments(f"src must have {least} to 5 dims for {self.alg}, not {self.src.ndims}")
        check_descs(self, optional=("workspace",), dims=self.src.dims)
        if self.workspace is not None and self.prop_kind != PropKind.forward_training:
            raise InvalidArguments("workspace is of forward_training: leave it out")

    def _check_size(self) -> None:
        size = self.local_size
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size <= MAX_SIZE:
            raise InvalidArguments(f"LRNForward.local_size must be an integer of at least 1, not {shown(size)}")
        object.__setattr__(self, "local_size", int(size))

    @property
    def window(self) -> range:
        """How far from an element its neighbours are along an axis."""
        before = (self.local_size - 1) // 2
        return range(-before, self.local_size - before)

    @property
    def places(self) -> int:
        """n, of a window."""
        return prod([self.local_size] * (1 if self.alg == ACROSS else self.src.ndims - 2))

    @property
    def factor(self) -> float:
        """alpha / n."""
        return self.alpha / self.places

    def __str__(self) -> str:
        words = [f"{self.alg} of {self.src} to {self.dst}, size {self.local_size}, alpha {self.alpha:g}"]
        words += [f"beta {self.beta:g}", f"k {self.k:g}"]
        return ", ".join(words + [f"workspace {self.workspace}"] * (self.workspace is not None))
