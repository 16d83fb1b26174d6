"""`--lrn`: local response normalization, across channels and within them."""

from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import completed, desc_of
from asmdnn.bench.driver import Array, Case, Data, Driver, TensorData
from asmdnn.bench.gradients import GradientWork
from asmdnn.bench.judge import Answer
from asmdnn.bench.lrn_problem import LrnProblem, parse
from asmdnn.bench.tensor_work import FORWARD, PROP_KINDS, Peer, TensorWork
from asmdnn.bench.typed import numbers
from asmdnn.bench.values import decoded
from asmdnn.bench.words import IMAGES, LAYOUT, Option, Settings, data_type, direction, one_of
from asmdnn.definitions.normalization import local_base, local_response, local_response_error, local_response_gradient
from asmdnn.primitives.normalization.lrn_description import LRNAlgorithm
from asmdnn.records import dataclass
from asmdnn.types import FLOAT_NAMES

ALGS = {"ACROSS": 0xAFF, "WITHIN": 0xBFF}  # oneDNN's numbers
HALVES_SLACK = 1e6  # oneDNN's workspace is of the type of src


@dataclass(frozen=True, slots=True)
class LrnSettings(Settings):
    dir: str = "FWD_D"
    dt: str = "f32"
    tag: str = "abx"
    alg: str = "ACROSS"
    mb: int = 0


LrnCase = Case[LrnSettings, LrnProblem]


class LrnWork(TensorWork):
    exactness = (False,)
    bounds = (-8, 8)
    peer_slack = 10.0
    function = "lrn_forward"

    def __init__(self, case: LrnCase) -> None:
        settings, p = self.settings, self.problem = case.settings, case.problem
        tensor, trains = desc_of(p.dims, settings.dt, settings.tag), settings.dir == "FWD_D"
        self.is_across = settings.alg == "ACROSS"
        self.descs, self.internal = {"src": tensor, "dst": tensor}, ("workspace",) * trains
        alg: LRNAlgorithm = "lrn_across_channels" if self.is_across else "lrn_within_channel"
        numbers, kept = (p.size, p.alpha, p.beta, p.k), desc_of(p.dims, "f32", settings.tag) if trains else None
        self.desc = dnn.LRNForward(PROP_KINDS[settings.dir], alg, tensor, tensor, *numbers, kept)

    @property
    def argument_bytes(self) -> int:
        return super().argument_bytes + len(self.internal) * dnn.f32.size_bytes * self.descs["dst"].nelems()

    def answer(self, data: TensorData) -> Answer:
        x, p = self.real(data, "src"), self.problem
        axes = (1,) if self.is_across else tuple(range(2, x.ndim))
        values = local_response(x, axes, p.size, p.alpha, p.beta, p.k)
        return self.judged(data, values, local_response_error(values, p.size ** len(axes), p.beta))

    def peer_arguments(self, peer: Peer) -> tuple[Any, ...]:
        p, descs = self.problem, (peer.descs["src"], peer.descs["dst"])
        return FORWARD[self.settings.dir], ALGS[self.settings.alg], *descs, p.size, p.alpha, p.beta, p.k


class LrnGradientWork(GradientWork):
    """diff_src of src, diff_dst and the workspace, which the forward pass has left."""

    peer_slack = 10.0
    primitive, forward_tensors = "lrn", ("src", "dst")

    def __init__(self, case: LrnCase) -> None:
        settings, p = self.settings, self.problem = case.settings, case.problem
        self.tensor, base = (desc_of(p.dims, dt, settings.tag) for dt in (settings.dt, "f32"))
        if settings.dt != "f32":
            self.peer_slack = HALVES_SLACK
        self.is_across = settings.alg == "ACROSS"
        self.axes = (1,) if self.is_across else tuple(range(2, len(p.dims)))
        self.window = p.size, p.alpha, p.beta, p.k
        self.descs = {"src": self.tensor, "diff_dst": self.tensor, "workspace": base, "diff_src": self.tensor}
        alg: LRNAlgorithm = "lrn_across_channels" if self.is_across else "lrn_within_channel"
        self.desc = dnn.LRNBackward(alg, self.tensor, self.tensor, self.tensor, *self.window, base)

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        x, d = (numbers(random, self.tensor.dims, self.tensor.dtype, -8, 8) for _ in range(2))
        real = decoded(x, self.tensor.dtype).astype(np.float64)
        base = local_base(real, self.axes, self.problem.size, self.problem.alpha, self.problem.k)
        return {"src": x, "diff_dst": d, "workspace": base.astype(np.float32)}

    def answer(self, data: TensorData) -> Answer:
        x, d, p = self.real(data, "src"), self.real(data, "diff_dst"), self.problem
        values, size = local_response_gradient(x, d, self.axes, *self.window)
        error = local_response_error(size, 4 * p.size ** len(self.axes), p.beta + 1)
        return self.gradients({"diff_src": (values, error)})

    def forward_data(self, data: Data) -> TensorData:
        return TensorData({"src": data.arrays["src"], "dst": data.arrays["diff_src"]}, False)

    def forward_arguments(self, peer: Peer, src: Any, dst: Any) -> tuple[Any, ...]:
        return ALGS[self.settings.alg], src, dst, *self.window

    def peer_arguments(self, peer: Peer) -> tuple[Any, ...]:
        descs = (peer.descs[name] for name in ("diff_src", "diff_dst", "src"))
        return ALGS[self.settings.alg], *descs, *self.window


def _work(case: LrnCase) -> TensorWork:
    return LrnGradientWork(case) if case.settings.dir == "BWD_D" else LrnWork(case)


def _title(case: LrnCase) -> str:
    settings = case.settings
    kind = f"{settings.dt} " if settings.dt != "f32" else ""
    return f"{settings.dir} {kind}{settings.alg.lower()} {settings.tag} {case.problem.name or case.problem}"


DRIVER = Driver(
    "lrn",
    LrnSettings(),
    {
        "dir": Option(
            "dir",
            direction(*PROP_KINDS, "BWD_D"),
            "FWD_D training, with a workspace (default), FWD_I, BWD_D backward",
            True,
        ),
        "dt": Option("dt", data_type(*FLOAT_NAMES), "data type: f32 (default), bf16, f16", True),
        "tag": LAYOUT,
        "alg": Option("alg", one_of(*ALGS), "ACROSS channels (default), WITHIN each", True),
        "mb": IMAGES,
    },
    parse,
    _work,
    example="--mode=CP --dir=FWD_I --tag=abx,axb --threads=1 --peer=onednn mb1ic64ih56",
    notation="mb2ic64ih56_ls5alpha0.0001beta0.75k1",
    title=_title,
    completed=completed,
)
