"""The description of a backward local response normalization, validated at once."""

from asmdnn.errors import InvalidArguments
from asmdnn.exact import exact
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.core.backward import BackwardDesc
from asmdnn.primitives.normalization.lrn_description import LRNAlgorithm, LRNForward
from asmdnn.records import dataclass
from asmdnn.types import PropKind


@exact
@dataclass(frozen=True, slots=True, eq=False)
class LRNBackward(BackwardDesc):
    """The gradient of a local response normalization by its source: with b what the forward pass's power is of,

        diff_src = diff_dst * b^-beta - 2 beta alpha / n * src * sum of diff_dst * src * b^(-beta - 1)

    where the sum is over all elements that have this one in their window.  alg, local_size, alpha, beta and k are those
    of `LRNForward`.  src, diff_dst, diff_src: f32, bf16 or f16, of the same dims, in any formats.  workspace: b, as the
    forward pass in training has written it, of one of these types; None computes it anew.  Raises InvalidArguments.
    """

    FORWARD = LRNForward

    alg: LRNAlgorithm
    src: MemoryDesc
    diff_dst: MemoryDesc
    diff_src: MemoryDesc
    local_size: int = 5
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0
    workspace: MemoryDesc | None = None

    def __post_init__(self) -> None:
        forward = self.forward()
        for name in ("local_size", "alpha", "beta", "k"):
            object.__setattr__(self, name, getattr(forward, name))
        for name in ("diff_dst", "diff_src"):
            desc = getattr(self, name)
            if not isinstance(desc, MemoryDesc) or desc.dims != self.src.dims:
                shown = f"dims {desc.dims}" if isinstance(desc, MemoryDesc) else type(desc).__name__
                raise InvalidArguments(f"{name} has {shown}, it must have dims {self.src.dims}, those of src")

    def forward(self) -> LRNForward:
        """The forward pass, with a workspace.  Raises InvalidArguments."""
        numbers = self.local_size, self.alpha, self.beta, self.k
        kept = self.src if self.workspace is None else self.workspace
        return LRNForward(PropKind.forward_training, self.alg, self.src, self.src, *numbers, kept)

    @property
    def window(self) -> range:
        """How far from an element those are that have it in their window."""
        forward = self.forward().window
        return range(1 - forward.stop, 1 - forward.start)

    def __str__(self) -> str:
        words = [f"{self.alg} backward of {self.src}, {self.diff_dst} to {self.diff_src}, size {self.local_size}"]
        words += [f"alpha {self.alpha:g}, beta {self.beta:g}, k {self.k:g}"]
        return ", ".join(words + [f"workspace {self.workspace}"] * (self.workspace is not None))
