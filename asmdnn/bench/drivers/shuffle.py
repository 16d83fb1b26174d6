"""`--shuffle`: one axis shuffled, in every type and layout."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.values import decoded, poison, random_values
from asmdnn.bench.words import LAYOUT, Option, Settings, data_type, direction, number
from asmdnn.memory.tags import MAX_NDIMS
from asmdnn.types import DATA_TYPES

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

PROP_KINDS = {
    "FWD_D": dnn.PropKind.forward_training,
    "FWD_I": dnn.PropKind.forward_inference,
    "BWD_D": dnn.PropKind.backward_data,
}
LARGEST_VALUE = 1 << 15  # s8 and u8 hold less: all that they hold; bf16 has the nearest
# Numbers of oneDNN's C interface.
FORWARD = {"FWD_D": 64, "FWD_I": 96, "BWD_D": 64}
SRC, DST, DIFF_SRC, DIFF_DST = 1, 17, 129, 145


@dataclass(frozen=True, slots=True)
class ShuffleSettings(Settings):
    dir: str = "FWD_D"
    dt: str = "f32"
    tag: str = "abx"
    axis: int = 1
    group: int = 1


ShuffleCase = Case[ShuffleSettings, DimsProblem]


class ShuffleWork(Work[TensorData]):
    """Elements are moved, never computed, so one kind of data is enough."""

    exactness = (True,)

    def __init__(self, case: ShuffleCase) -> None:
        settings = case.settings
        self.tensor = desc_of(case.problem.dims, settings.dt, settings.tag)
        self.is_backward = settings.dir == "BWD_D"
        self.forward_kind = FORWARD[settings.dir]
        self.shuffle = dnn.Shuffle(self.tensor, self.tensor, settings.axis, settings.group, PROP_KINDS[settings.dir])

    @property
    def argument_bytes(self) -> int:
        return 2 * math.prod(self.tensor.padded_dims) * self.tensor.dtype.size_bytes

    def describe(self) -> tuple[dnn.Shuffle, dnn.Attr]:
        return self.shuffle, dnn.Attr()

    def data(self, exact: bool) -> TensorData:
        dims, dtype = self.tensor.dims, self.tensor.dtype
        src = random_values(np.random.default_rng(1), dims, dtype, LARGEST_VALUE, exact)
        return TensorData({"src": src, "dst": poison(dims, dtype)}, exact)

    def answer(self, data: TensorData) -> Answer:
        """The axis as a matrix of `group` columns, or rows when going back, transposed."""
        shuffle, src = self.shuffle, data.arrays["src"]
        sides = (-1, shuffle.group_size) if not self.is_backward else (shuffle.group_size, -1)
        before, after = src.shape[: shuffle.axis], src.shape[shuffle.axis + 1 :]
        matrix = src.reshape(math.prod(before), *sides, math.prod(after)) if src.size else src
        moved = matrix.swapaxes(1, 2).reshape(src.shape) if src.size else src
        return Answer(decoded(moved, self.tensor.dtype), 0.0, "numpy")

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor

        numbers = (DIFF_DST, DIFF_SRC) if self.is_backward else (SRC, DST)
        tensors: Mapping[str, Tensor] = {
            name: Tensor(argument, self.tensor) for name, argument in zip(("src", "dst"), numbers, strict=True)
        }
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        src, dst = peer.descs["src"], peer.descs["dst"]
        matrix = (self.shuffle.axis, self.shuffle.group_size)
        forward = peer.describe(
            peer.lib.dnnl_shuffle_forward_primitive_desc_create, self.forward_kind, src, dst, *matrix, peer.null
        )
        if not self.is_backward:
            return forward
        # oneDNN's diff_src is what a backward pass writes: dst here.
        return peer.describe(
            peer.lib.dnnl_shuffle_backward_primitive_desc_create, dst, src, *matrix, forward, peer.null
        )


def _title(case: ShuffleCase) -> str:
    settings, dims = case.settings, "x".join(map(str, case.problem.dims))
    backward = " backward" if settings.dir == "BWD_D" else ""
    return f"{settings.dt} {settings.tag} {dims} axis {settings.axis} group {settings.group}{backward}"


DRIVER = Driver(
    "shuffle",
    ShuffleSettings(),
    {
        "dir": Option("dir", direction(*PROP_KINDS),
                      "FWD_D training (default), FWD_I inference, BWD_D backward", True),
        "dt": Option("dt", data_type(), f"data type: {', '.join(DATA_TYPES)}", True),
        "tag": LAYOUT,
        "axis": Option("axis", number(-MAX_NDIMS, MAX_NDIMS - 1), "the axis to shuffle (1)", True),
        "group": Option("group", number(1), "oneDNN's group_size (1), which divides the axis", True),
    },
    dims_problem(1),
    ShuffleWork,
    example="--mode=CP --dt=u8 --tag=aBx16b --group=4 --threads=1 --peer=onednn 1x116x28x28",
    notation="1x116x28x28",
    title=_title,
    synonyms={"fmt": "tag"},  # benchdnn's word of version 0
)  # fmt: skip
