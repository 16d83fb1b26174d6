"""`--resampling`: a tensor on a finer or a coarser grid."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

import asmdnn as dnn
from asmdnn.bench.axis import AXES
from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.problem_text import LONGEST_QUOTE, count_in, entries
from asmdnn.bench.problems import DEFAULT_MB, FLOAT_BYTES, LARGEST_TENSOR_BYTES
from asmdnn.bench.values import poison, random_values
from asmdnn.bench.words import Option, Settings, data_type, direction, number, one_of, tag
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.primitives.resampling.description import ALGORITHMS, ResamplingAlgorithm

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

LARGEST_VALUE = 64
UNIT_ROUNDOFF = 2.0**-24
# Numbers of oneDNN's C interface.
OF_ONEDNN = {"nearest": 0x2FFF0, "linear": 0x2FFF1}
FORWARD_INFERENCE = 96
SRC, DST = 1, 17
_KEYS = ("mb", "ic", *(kind + axis for kind in "io" for axis in AXES))


@dataclass(frozen=True, slots=True)
class ResamplingProblem:
    """mb images of ic channels; inner and outer: src's and dst's sizes of each axis, outermost first."""

    mb: int
    ic: int
    inner: tuple[int, ...]
    outer: tuple[int, ...]
    name: str = ""

    @property
    def count(self) -> int:
        return count_in(self.name)

    def __str__(self) -> str:
        letters = AXES[-len(self.inner) :]
        sizes = (f"i{a}{i}o{a}{o}" for a, i, o in zip(letters, self.inner, self.outer, strict=True))
        return f"mb{self.mb}ic{self.ic}_{'_'.join(sizes)}" + (f'_n"{self.name}"' if self.name else "")


def parse_problem(text: str) -> ResamplingProblem:
    """`mb1ic64_ih20oh40`; axes that are not given repeat the ones before.  Raises InvalidArguments that quotes it."""
    try:
        numbers, name = entries(text, _KEYS)
        given = [a for a in AXES if f"i{a}" in numbers]
        if "ic" not in numbers or not given or any(f"o{a}" not in numbers for a in given):
            raise InvalidArguments("give ic, and for each axis i and o, such as ic64_ih20oh40")
        letters = AXES[AXES.index(given[0]) :]
        axes = [a if a in given else given[-1] for a in letters]
        inner, outer = (tuple(numbers[kind + a] for a in axes) for kind in "io")
        problem = ResamplingProblem(numbers.get("mb", DEFAULT_MB), numbers["ic"], inner, outer, name)
        if max(math.prod(inner), math.prod(outer)) * problem.mb * problem.ic * FLOAT_BYTES > LARGEST_TENSOR_BYTES:
            raise InvalidArguments("a tensor has more elements than memory can address")
        return problem
    except InvalidArguments as error:
        shown = text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "..."
        raise InvalidArguments(f"problem {shown!r}: {error}") from None


@dataclass(frozen=True, slots=True)
class ResamplingSettings(Settings):
    dir: str = "FWD_I"
    sdt: str = "f32"
    ddt: str = "f32"
    tag: str = "abx"
    alg: str = "nearest"
    mb: int = 0


ResamplingCase = Case[ResamplingSettings, ResamplingProblem]


class ResamplingWork(Work[TensorData]):
    exactness = (False,)

    def __init__(self, case: ResamplingCase) -> None:
        problem, self.alg = case.problem, case.settings.alg
        images = (problem.mb, problem.ic)
        self.src, self.dst = (
            desc_of((*images, *sizes), "f32", case.settings.tag) for sizes in (problem.inner, problem.outer)
        )
        self.resampling = dnn.ResamplingForward(cast(ResamplingAlgorithm, self.alg), self.src, self.dst)

    @property
    def argument_bytes(self) -> int:
        return 4 * (math.prod(self.src.padded_dims) + math.prod(self.dst.padded_dims))

    def describe(self) -> tuple[dnn.ResamplingForward, dnn.Attr]:
        return self.resampling, dnn.Attr()

    def data(self, exact: bool) -> TensorData:
        src = random_values(np.random.default_rng(1), self.src.dims, dnn.f32, LARGEST_VALUE, exact)
        return TensorData({"src": src, "dst": poison(self.dst.dims, dnn.f32)}, exact)

    def answer(self, data: TensorData) -> Answer:
        """A product with a sparse matrix along each axis; within a rounding of weights, products and partial sums."""
        values = data.arrays["src"].astype(np.float64)
        size = np.abs(values)
        taps = 0
        for axis in range(self.src.ndims - 2):
            found = self.resampling.taps(axis)
            matrix = np.zeros((self.dst.dims[2 + axis], self.src.dims[2 + axis]))
            for o, tap in enumerate(found):
                np.add.at(matrix[o], list(tap.indices), tap.weights)
            taps += len(found[0].indices) + 2
            values = np.moveaxis(np.tensordot(matrix, values, (1, 2 + axis)), 0, 2 + axis)
            size = np.moveaxis(np.tensordot(np.abs(matrix), size, (1, 2 + axis)), 0, 2 + axis)
        return Answer(values, 2 * taps * UNIT_ROUNDOFF * size, "numpy")

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor

        if self.alg not in OF_ONEDNN:
            raise Unimplemented(f"oneDNN has no {self.alg} resampling")
        tensors = {"src": Tensor(SRC, self.src), "dst": Tensor(DST, self.dst)}
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        return peer.describe(
            peer.lib.dnnl_resampling_forward_primitive_desc_create,
            *(FORWARD_INFERENCE, OF_ONEDNN[self.alg], peer.null, peer.descs["src"], peer.descs["dst"], peer.null),
        )


def _completed(
    settings: ResamplingSettings, problem: ResamplingProblem
) -> tuple[ResamplingSettings, ResamplingProblem]:
    return replace(settings, mb=0), replace(problem, mb=settings.mb or problem.mb)


def _title(case: ResamplingCase) -> str:
    return f"{case.settings.alg} {case.settings.tag} {case.problem.name or case.problem}"


DRIVER = Driver(
    "resampling",
    ResamplingSettings(),
    {
        "dir": Option("dir", direction("FWD_D", "FWD_I"), "FWD_I inference (default), FWD_D training: the same", True),
        "sdt": Option("sdt", data_type("f32"), "data type of src: f32", True),
        "ddt": Option("ddt", data_type("f32"), "data type of dst: f32", True),
        "tag": Option("tag", tag, "layout: abx (default), axb, aBx16b, nchw, nChw8c, ...", True),
        "alg": Option("alg", lambda word: one_of(*ALGORITHMS)(word.lower().removeprefix("resampling_")),
                      "nearest (default), linear, cubic", True),
        "mb": Option("mb", number(0), "images, instead of each problem's own (0, the default)", True),
    },
    parse_problem,
    ResamplingWork,
    example="--mode=CP --tag=axb,aBx8b --alg=linear --threads=1 --peer=onednn mb1ic256_ih20oh40",
    notation='mb1ic256_ih20oh40n"name"',
    title=_title,
    completed=_completed,
)  # fmt: skip
