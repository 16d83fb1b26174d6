"""Recurrent problems and their strings, as benchdnn writes them: `l1t50mb16sic512slc512dhc512dic512n"name"`.

Keys: l layers (default 1), t time steps (1), mb sequences (2), and channels: sic of src_iter, slc of src_layer (sic),
dhc of the hidden state (sic), dic of dst_iter (dhc), which differs from dhc where an LSTM has a projection.
"""

import math

from asmdnn.bench.problem_text import (
    FLOAT_BYTES,
    LARGEST_TENSOR_BYTES,
    Named,
    check_given,
    entries,
    quoting,
)
from asmdnn.bench.problems import DEFAULT_MB
from asmdnn.errors import InvalidArguments
from asmdnn.records import dataclass

KEYS = ("l", "t", "mb", "sic", "slc", "dhc", "dic")


@dataclass(frozen=True, slots=True)
class RnnProblem(Named):
    layers: int
    steps: int
    mb: int
    sic: int
    slc: int
    dhc: int
    dic: int
    name: str = ""

    def __str__(self) -> str:
        channels = f"sic{self.sic}slc{self.slc}dhc{self.dhc}dic{self.dic}"
        return f"l{self.layers}t{self.steps}mb{self.mb}{channels}" + (f'n"{self.name}"' if self.name else "")


def rnn_problem(text: str) -> RnnProblem:
    """The problem that `text` describes.  Raises InvalidArguments that quotes it and says what is wrong."""
    with quoting(text):
        return _build(*entries(text, KEYS))


def _build(numbers: dict[str, int], name: str) -> RnnProblem:
    check_given(numbers, "sic")
    sic = numbers["sic"]
    dhc = numbers.get("dhc", sic)
    layers, steps, mb = numbers.get("l", 1), numbers.get("t", 1), numbers.get("mb", DEFAULT_MB)
    problem = RnnProblem(
        layers=layers,
        steps=steps,
        mb=mb,
        sic=sic,
        slc=numbers.get("slc", sic),
        dhc=dhc,
        dic=numbers.get("dic", dhc),
        name=name,
    )
    largest = max(steps * mb, 4 * layers * max(problem.slc, sic)) * max(problem.slc, 2 * dhc)
    if math.prod((largest, FLOAT_BYTES)) > LARGEST_TENSOR_BYTES:
        raise InvalidArguments("a tensor has more elements than memory can address")
    return problem
