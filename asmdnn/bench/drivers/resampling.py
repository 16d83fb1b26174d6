"""`--resampling`: a tensor on a finer or a coarser grid."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains, typed
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.axis import AXES
from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.problem_text import LONGEST_QUOTE, count_in, entries
from asmdnn.bench.problems import DEFAULT_MB, FLOAT_BYTES, LARGEST_TENSOR_BYTES
from asmdnn.bench.values import decoded, poison
from asmdnn.bench.words import IMAGES, LAYOUT, Option, data_type, direction, one_of
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
class ResamplingSettings(AttributeSettings):
    """dt: of both, if it is given."""

    dir: str = "FWD_I"
    dt: str = ""
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
            desc_of((*images, *sizes), kind, case.settings.tag)
            for sizes, kind in ((problem.inner, case.settings.sdt), (problem.outer, case.settings.ddt))
        )
        self.attr = case.settings.attr(self.dst.dims)
        self.peer_slack = chains.peer_slack(self.attr)
        self.resampling = dnn.ResamplingForward(cast(ResamplingAlgorithm, self.alg), self.src, self.dst)

    @property
    def argument_bytes(self) -> int:
        return sum(math.prod(desc.padded_dims) * desc.dtype.size_bytes for desc in (self.src, self.dst))

    def describe(self) -> tuple[dnn.ResamplingForward, dnn.Attr]:
        return self.resampling, self.attr

    def data(self, exact: bool) -> TensorData:
        random = np.random.default_rng(1)
        src = typed.numbers(random, self.src.dims, self.src.dtype, -LARGEST_VALUE, LARGEST_VALUE)
        dst = poison(self.dst.dims, self.dst.dtype)
        if self.attr.reads_dst():
            dst = typed.numbers(random, self.dst.dims, self.dst.dtype, -1, 1)
        return TensorData({"src": src, "dst": dst, **chains.operands(self.attr, exact)}, exact)

    def answer(self, data: TensorData) -> Answer:
        """A product with a sparse matrix along each axis; within a rounding of weights, products and partial sums."""
        values = decoded(data.arrays["src"], self.src.dtype).astype(np.float64)
        size = np.abs(values)
        taps = 0
        for axis in range(self.src.ndims - 2):
            found = self.resampling.taps(axis)
            matrix = np.zeros((self.dst.dims[2 + axis], self.src.dims[2 + axis]))
            np.add.at(matrix, (np.arange(len(found))[:, None], found.indices), found.weights)
            taps += found.each + 2
            values = np.moveaxis(np.tensordot(matrix, values, (1, 2 + axis)), 0, 2 + axis)
            size = np.moveaxis(np.tensordot(np.abs(matrix), size, (1, 2 + axis)), 0, 2 + axis)
        error = 2 * taps * UNIT_ROUNDOFF * size
        return typed.answer(self.attr, values, error, data.arrays, self.dst.dtype)

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor

        if self.alg not in OF_ONEDNN:
            raise Unimplemented(f"oneDNN has no {self.alg} resampling")
        from asmdnn.bench.peers.onednn_attributes import tensors_of

        tensors = {"src": Tensor(SRC, self.src), "dst": Tensor(DST, self.dst), **tensors_of(self.attr)}
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        from asmdnn.bench.peers.onednn_attributes import attributes

        descs = peer.descs["src"], peer.descs["dst"]
        return peer.describe(
            peer.lib.dnnl_resampling_forward_primitive_desc_create,
            *(FORWARD_INFERENCE, OF_ONEDNN[self.alg], peer.null, *descs),
            attributes(peer, self.attr, ("sum", "eltwise", "binary")),
        )


def _completed(
    settings: ResamplingSettings, problem: ResamplingProblem
) -> tuple[ResamplingSettings, ResamplingProblem]:
    sdt, ddt = settings.dt or settings.sdt, settings.dt or settings.ddt
    return replace(settings, dt="", sdt=sdt, ddt=ddt, mb=0), replace(problem, mb=settings.mb or problem.mb)


def _alg(word: str) -> str:
    name = word.lower().removeprefix("resampling_")
    if name == "linear_no_shift":
        raise Unimplemented(f"{name} was a function of one version of oneDNN")
    return one_of(*ALGORITHMS)(name)


def _title(case: ResamplingCase) -> str:
    settings = case.settings
    kinds = "" if settings.sdt == settings.ddt == "f32" else f"{settings.sdt} to {settings.ddt} "
    return f"{settings.alg} {kinds}{settings.tag} {case.problem.name or case.problem}"


DRIVER = Driver(
    "resampling",
    ResamplingSettings(),
    {
        "dir": Option("dir", direction("FWD_D", "FWD_I"), "FWD_I inference (default), FWD_D training: the same", True),
        "dt": Option("dt", data_type(), "both data types, in older words", True, describes=False),
        "sdt": Option("sdt", data_type(), "data type of src: f32 (default), bf16, f16, s32, s8, u8", True),
        "ddt": Option("ddt", data_type(), "data type of dst: f32 (default), bf16, f16, s32, s8, u8", True),
        "tag": LAYOUT,
        "alg": Option("alg", _alg,
                      "nearest (default), linear, cubic", True),
        **options("linear:2:1, add:f32:per_oc, sum:0.5"),
        "mb": IMAGES,
    },
    parse_problem,
    ResamplingWork,
    example="--mode=CP --tag=axb,aBx8b --alg=linear --threads=1 --peer=onednn mb1ic256_ih20oh40",
    notation='mb1ic256_ih20oh40n"name"',
    title=_title,
    completed=_completed,
)  # fmt: skip
