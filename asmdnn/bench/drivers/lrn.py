"""`--lrn`: local response normalization, across channels and within them."""

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import Array, Case, Data, Driver, TensorData, by_direction
from asmdnn.bench.gradients import GradientWork
from asmdnn.bench.judge import Answer
from asmdnn.bench.lrn_problem import LrnProblem, parse
from asmdnn.bench.peers.onednn_numbers import LRN
from asmdnn.bench.tensor_work import FORWARD, PROP_KINDS, TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.typed import numbers
from asmdnn.bench.values import decoded
from asmdnn.bench.words import IMAGES, LAYOUT, Settings, data_type, direction, one_of, option
from asmdnn.definitions.normalization import local_base, local_response, local_response_error, local_response_gradient
from asmdnn.primitives.normalization.lrn_description import LRNAlgorithm
from asmdnn.records import dataclass
from asmdnn.types import FLOAT_NAMES

ALGS: dict[str, LRNAlgorithm] = {"ACROSS": "lrn_across_channels", "WITHIN": "lrn_within_channel"}
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
        settings, p = case.settings, case.problem
        tensor, trains = desc_of(p.dims, settings.dt, settings.tag), settings.dir == "FWD_D"
        self.axes, self.window = axes_of(case), (p.size, p.alpha, p.beta, p.k)
        self.descs, self.internal = {"src": tensor, "dst": tensor}, ("workspace",) * trains
        self.takes = FORWARD[settings.dir], LRN[settings.alg], "src", "dst", *self.window
        kept = desc_of(p.dims, "f32", settings.tag) if trains else None
        self.desc = dnn.LRNForward(PROP_KINDS[settings.dir], ALGS[settings.alg], tensor, tensor, *self.window, kept)

    @property
    def argument_bytes(self) -> int:
        return super().argument_bytes + len(self.internal) * dnn.f32.size_bytes * self.descs["dst"].nelems()

    def answer(self, data: TensorData) -> Answer:
        size, _, beta, _ = self.window
        values = local_response(self.real(data, "src"), self.axes, *self.window)
        return self.judged(data, values, local_response_error(values, size ** len(self.axes), beta))


class LrnGradientWork(GradientWork):
    """diff_src of src, diff_dst and the workspace, which the forward pass has left."""

    peer_slack = 10.0
    primitive, reads, forward_tensors = "lrn", ("src",), ("src", "dst")

    def __init__(self, case: LrnCase) -> None:
        settings, p = case.settings, case.problem
        self.tensor, base = (desc_of(p.dims, dt, settings.tag) for dt in (settings.dt, "f32"))
        if settings.dt != "f32":
            self.peer_slack = HALVES_SLACK
        self.axes, self.window = axes_of(case), (p.size, p.alpha, p.beta, p.k)
        self.descs = {"src": self.tensor, "diff_dst": self.tensor, "workspace": base, "diff_src": self.tensor}
        self.forward_takes = LRN[settings.alg], "src", "dst", *self.window
        self.desc = dnn.LRNBackward(ALGS[settings.alg], self.tensor, self.tensor, self.tensor, *self.window, base)

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        x, d = (numbers(random, self.tensor.dims, self.tensor.dtype, -8, 8) for _ in range(2))
        real = decoded(x, self.tensor.dtype).astype(np.float64)
        size, alpha, _, k = self.window
        base = local_base(real, self.axes, size, alpha, k)
        return {"src": x, "diff_dst": d, "workspace": base.astype(np.float32)}

    def answer(self, data: TensorData) -> Answer:
        x, d, (terms, _, beta, _) = self.real(data, "src"), self.real(data, "diff_dst"), self.window
        values, size = local_response_gradient(x, d, self.axes, *self.window)
        error = local_response_error(size, 4 * terms ** len(self.axes), beta + 1)
        return self.gradients({"diff_src": (values, error)})

    def forward_data(self, data: Data) -> TensorData:
        return TensorData({"src": data.arrays["src"], "dst": data.arrays["diff_src"]}, False)


def axes_of(case: LrnCase) -> tuple[int, ...]:
    """Of a window."""
    return (1,) if case.settings.alg == "ACROSS" else tuple(range(2, len(case.problem.dims)))


DRIVER = Driver(
    "lrn",
    LrnSettings(),
    {
        "dir": option(direction(*PROP_KINDS, "BWD_D"),
                      "FWD_D training, with a workspace (default), FWD_I, BWD_D backward"),
        "dt": option(data_type(*FLOAT_NAMES), "data type: f32 (default), bf16, f16"),
        "tag": LAYOUT,
        "alg": option(one_of(*ALGS), "ACROSS channels (default), WITHIN each"),
        "mb": IMAGES,
    },
    parse,
    by_direction(LrnWork, LrnGradientWork),
    example="--mode=CP --dir=FWD_I --tag=abx,axb --threads=1 --peer=onednn mb1ic64ih56",
    notation="mb2ic64ih56_ls5alpha0.0001beta0.75k1",
    title=titled("{dir} {types}{alg} {tag} {problem}"),
)  # fmt: skip
