"""`--shuffle`: one axis shuffled, in every type and layout."""

from typing import Any

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import FORWARD, NUMBERS, PROP_KINDS, Peer, TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.words import DT, LAYOUT, Settings, axis, direction, number, option
from asmdnn.definitions.moves import shuffled
from asmdnn.records import dataclass

KINDS = {**PROP_KINDS, "BWD_D": dnn.PropKind.backward_data}
LARGEST_VALUE = 1 << 15  # s8 and u8 hold less: all that they hold; bf16 has the nearest


@dataclass(frozen=True, slots=True)
class ShuffleSettings(Settings):
    dir: str = "FWD_D"
    dt: str = "f32"
    tag: str = "abx"
    axis: int = 1
    group: int = 1


class ShuffleWork(TensorWork):
    """Elements are moved, never computed, so one kind of data is enough."""

    exactness, largest = (True,), LARGEST_VALUE

    def __init__(self, case: Case[ShuffleSettings, DimsProblem]) -> None:
        settings = case.settings
        tensor = desc_of(case.problem.dims, settings.dt, settings.tag)
        self.descs = {"src": tensor, "dst": tensor}
        self.is_backward = settings.dir == "BWD_D"
        if self.is_backward:  # what is read and what is written, as forward
            self.numbers = {"src": NUMBERS["diff_dst"], "dst": NUMBERS["diff_src"]}
        self.forward_kind = FORWARD.get(settings.dir, FORWARD["FWD_D"])
        self.desc = self.shuffle = dnn.Shuffle(tensor, tensor, settings.axis, settings.group, KINDS[settings.dir])

    def answer(self, data: TensorData) -> Answer:
        x, axis, group = self.real(data, "src"), self.shuffle.axis, self.shuffle.group_size
        return Answer(shuffled(x, axis, group if self.is_backward else x.shape[axis] // group), 0.0, "numpy")

    def onednn(self, peer: Peer) -> Any:
        src, dst = peer.descs["src"], peer.descs["dst"]
        matrix = (self.shuffle.axis, self.shuffle.group_size)
        create = peer.lib.dnnl_shuffle_forward_primitive_desc_create
        forward = peer.describe(create, self.forward_kind, src, dst, *matrix, peer.null)
        if not self.is_backward:
            return forward
        # oneDNN's diff_src is what a backward pass writes: dst here.
        create = peer.lib.dnnl_shuffle_backward_primitive_desc_create
        return peer.describe(create, dst, src, *matrix, forward, peer.null)


DRIVER = Driver(
    "shuffle",
    ShuffleSettings(),
    {
        "dir": option(direction(*KINDS), "FWD_D training (default), FWD_I inference, BWD_D backward"),
        "dt": DT,
        "tag": LAYOUT,
        "axis": axis("the axis to shuffle (1)"),
        "group": option(number(1), "oneDNN's group_size (1), which divides the axis"),
    },
    dims_problem(1),
    ShuffleWork,
    example="--mode=CP --dt=u8 --tag=aBx16b --group=4 --threads=1 --peer=onednn 1x116x28x28",
    title=titled("{dt} {tag} {dims} axis {axis} group {group} {backward}"),
    synonyms={"fmt": "tag"},  # benchdnn's word of version 0
)  # fmt: skip
