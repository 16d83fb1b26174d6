"""`--lrn`: local response normalization, across channels and within them."""

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import Array, Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.image_problem import image_words, quoted, read_image
from asmdnn.bench.judge import Answer
from asmdnn.bench.problem_text import count_in
from asmdnn.bench.values import poison
from asmdnn.bench.words import IMAGES, LAYOUT, Option, Settings, data_type, direction, one_of
from asmdnn.primitives.attributes.words import number_word

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

PROP_KINDS = {"FWD_D": dnn.PropKind.forward_training, "FWD_I": dnn.PropKind.forward_inference}
LARGEST_VALUE = 8.0
UNIT_ROUNDOFF, ROUNDINGS = 2.0**-24, 16  # of the power, the base and the product
SIZE, ALPHA, BETA, K = 5, 2.0**-13, 0.75, 1.0  # benchdnn's defaults
# Numbers of oneDNN's C interface.
FORWARD = {"FWD_D": 64, "FWD_I": 96}
ALGS = {"ACROSS": 0xAFF, "WITHIN": 0xBFF}
SRC, DST, WORKSPACE = 1, 17, 64


@dataclass(frozen=True, slots=True)
class LrnProblem:
    """The dims of src, (n, c) and spatial ones, the sides of windows, the three numbers, and the problem's name."""

    dims: tuple[int, ...]
    size: int = SIZE
    alpha: float = ALPHA
    beta: float = BETA
    k: float = K
    name: str = ""

    @property
    def count(self) -> int:
        return count_in(self.name)

    def __str__(self) -> str:
        words = [("ls", self.size, SIZE), ("alpha", self.alpha, ALPHA), ("beta", self.beta, BETA), ("k", self.k, K)]
        numbers = "".join(f"{word}{number_word(value)}" for word, value, default in words if value != default)
        return f"{image_words(self.dims)}{'_' * bool(numbers)}{numbers}{quoted(self.name)}"


def parse(text: str) -> LrnProblem:
    """benchdnn's words.  Raises InvalidArguments."""
    dims, sizes, numbers, name = read_image(text, ("ls",), ("alpha", "beta", "k"))
    return LrnProblem(dims, sizes.get("ls", SIZE), **numbers, name=name)


@dataclass(frozen=True, slots=True)
class LrnSettings(Settings):
    dir: str = "FWD_D"
    dt: str = "f32"
    tag: str = "abx"
    alg: str = "ACROSS"
    mb: int = 0


LrnCase = Case[LrnSettings, LrnProblem]


def sums(x: Array, axes: tuple[int, ...], size: int) -> Array:
    """Of squares over windows along some axes, in float64; what is outside counts as zero."""
    before = (size - 1) // 2
    widths = [(before, size - 1 - before) if dim in axes else (0, 0) for dim in range(x.ndim)]
    padded, total = np.pad(x.astype(np.float64) ** 2, widths), np.zeros(x.shape)
    for at in product(range(size), repeat=len(axes)):
        starts = dict(zip(axes, at, strict=True))
        cuts = tuple(slice(starts.get(dim, 0), starts.get(dim, 0) + n) for dim, n in enumerate(x.shape))
        total += padded[cuts]
    return total


class LrnWork(Work[TensorData]):
    exactness = (False,)
    peer_slack = 10.0

    def __init__(self, case: LrnCase) -> None:
        self.settings, self.problem = case.settings, case.problem
        self.tensor = desc_of(self.problem.dims, "f32", self.settings.tag)
        self.is_across, self.is_training = self.settings.alg == "ACROSS", self.settings.dir == "FWD_D"
        self.internal = ("workspace",) * self.is_training

    @property
    def argument_bytes(self) -> int:
        return (2 + self.is_training) * 4 * math.prod(self.tensor.padded_dims)

    def describe(self) -> tuple[dnn.LRNForward, dnn.Attr]:
        problem, workspace = self.problem, self.tensor if self.is_training else None
        desc = dnn.LRNForward(
            PROP_KINDS[self.settings.dir], "lrn_across_channels" if self.is_across else "lrn_within_channel",
            self.tensor, self.tensor, problem.size, problem.alpha, problem.beta, problem.k, workspace,
        )  # fmt: skip
        return desc, dnn.Attr()

    def data(self, exact: bool) -> TensorData:
        random, dims = np.random.default_rng(1), self.tensor.dims
        src = random.uniform(-LARGEST_VALUE, LARGEST_VALUE, dims).astype(np.float32)
        return TensorData({"src": src, "dst": poison(dims, dnn.f32)}, exact)

    def answer(self, data: TensorData) -> Answer:
        """A rounding for each square of a window, which the power scales, and some more."""
        x, problem = data.arrays["src"], self.problem
        axes = (1,) if self.is_across else tuple(range(2, x.ndim))
        count = problem.size ** len(axes)
        values = x * (problem.k + problem.alpha / count * sums(x, axes, problem.size)) ** -problem.beta
        return Answer(values, UNIT_ROUNDOFF * (ROUNDINGS + problem.beta * count) * np.abs(values), "numpy")

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Storage, Tensor

        tensors = {"src": Tensor(SRC, self.tensor), "dst": Tensor(DST, self.tensor)}
        internal = {"workspace": WORKSPACE} if self.is_training else {}
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads, storage=Storage(internal))

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        problem = self.problem
        return peer.describe(
            peer.lib.dnnl_lrn_forward_primitive_desc_create,
            *(FORWARD[self.settings.dir], ALGS[self.settings.alg], peer.descs["src"], peer.descs["dst"]),
            *(problem.size, problem.alpha, problem.beta, problem.k, peer.null),
        )


def _title(case: LrnCase) -> str:
    settings = case.settings
    return f"{settings.dir} {settings.alg.lower()} {settings.tag} {case.problem.name or case.problem}"


def _completed(settings: LrnSettings, problem: LrnProblem) -> tuple[LrnSettings, LrnProblem]:
    return replace(settings, mb=0), replace(problem, dims=(settings.mb or problem.dims[0], *problem.dims[1:]))


DRIVER = Driver(
    "lrn",
    LrnSettings(),
    {
        "dir": Option("dir", direction(*PROP_KINDS), "FWD_D training, with a workspace (default), FWD_I", True),
        "dt": Option("dt", data_type("f32"), "data type: f32", True),
        "tag": LAYOUT,
        "alg": Option("alg", one_of(*ALGS), "ACROSS channels (default), WITHIN each", True),
        "mb": IMAGES,
    },
    parse,
    LrnWork,
    example="--mode=CP --dir=FWD_I --tag=abx,axb --threads=1 --peer=onednn mb1ic64ih56",
    notation="mb2ic64ih56_ls5alpha0.0001beta0.75k1",
    title=_title,
    completed=_completed,
)  # fmt: skip
