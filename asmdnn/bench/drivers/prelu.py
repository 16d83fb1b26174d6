"""`--prelu`: src where it is positive, else weights times src."""

import numpy as np

import asmdnn as dnn
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Case, Driver, TensorData, by_direction
from asmdnn.bench.gradients import GradientWork
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import FORWARD, PROP_KINDS, TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.words import INPLACE, data_type, direction, of_two, option, tag, words_of_each
from asmdnn.definitions.elementwise import prelu, prelu_gradient
from asmdnn.definitions.normalization import sum_roundings
from asmdnn.definitions.rounding import UNIT, gamma
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class PreluSettings(AttributeSettings):
    dir: str = "FWD_D"
    sdt: str = "f32"
    stag: str = "abx"
    inplace: bool = False


PreluCase = Case[PreluSettings, DimsProblem]


class PreluWork(TensorWork):
    exactness = (False,)
    bounds = (-2, 2)
    peer_slack = 10.0
    function = "prelu_forward"

    def __init__(self, case: PreluCase) -> None:
        settings, (tensor, slopes) = case.settings, _descs(case)
        self.descs = {"src": tensor, "weights": slopes, "dst": tensor}
        self.in_place = {"dst": "src"} if settings.inplace else {}
        self.attr, self.takes = settings.attr(tensor.dims), (FORWARD[settings.dir], *self.descs)
        self.desc = dnn.PReLUForward(PROP_KINDS[settings.dir], tensor, slopes, tensor)

    def answer(self, data: TensorData) -> Answer:
        values = prelu(self.real(data, "src"), self.real(data, "weights"))
        return self.judged(data, values, UNIT * np.abs(values))


class PreluGradientWork(GradientWork):
    """diff_src and diff_weights of src, weights and diff_dst."""

    bounds = (-2, 2)
    peer_slack = 10.0
    primitive, results = "prelu", ("diff_src", "diff_weights")
    takes, forward_takes = ("src", "weights", "diff_src", "diff_weights", "diff_dst"), ("src", "weights", "dst")

    def __init__(self, case: PreluCase) -> None:
        settings, (tensor, slopes) = case.settings, _descs(case)
        self.descs = {"src": tensor, "weights": slopes, "diff_dst": tensor, "diff_src": tensor, "diff_weights": slopes}
        self.in_place = {"diff_src": "diff_dst"} if settings.inplace else {}
        self.attr = settings.attr(tensor.dims)
        self.desc = dnn.PReLUBackward(*self.descs.values())

    def answer(self, data: TensorData) -> Answer:
        x, weights, d = (self.real(data, name) for name in ("src", "weights", "diff_dst"))
        values, terms = prelu_gradient(x, weights, d)
        summed = tuple(axis for axis, n in enumerate(weights.shape) if n == 1)
        total, size = terms.sum(summed, keepdims=True), np.abs(terms).sum(summed, keepdims=True)
        error = size * gamma(1 + sum_roundings(terms.size // total.size))
        both = (values, UNIT * np.abs(values)), (total, error)
        return self.gradients(dict(zip(self.results, both, strict=True)))


def _descs(case: PreluCase) -> tuple[dnn.MemoryDesc, dnn.MemoryDesc]:
    """Of src and of weights."""
    settings, (src, weights) = case.settings, case.problem.tensors
    (kind, of_weights), (layout, weights_layout) = words_of_each(settings.sdt, 2), words_of_each(settings.stag, 2)
    slopes = desc_of(weights, of_weights, weights_layout)
    if slopes.padded_dims != weights:  # blocks of few channels
        slopes = desc_of(weights, of_weights, "abx")
    return desc_of(src, kind, layout), slopes


DRIVER = Driver(
    "prelu",
    PreluSettings(),
    {
        "dir": option(direction(*PROP_KINDS, "BWD_DW"),
                      "FWD_D training (default), FWD_I inference, BWD_DW both gradients"),
        "sdt": option(of_two(data_type(), "u8:f32"), "types of src and dst, and of weights: f32 (default), u8:f32"),
        "stag": option(of_two(tag, "axb:abx"), "layouts: abx (default), axb, ..., or of src and weights, axb:abx"),
        **options("linear:2:1, add:f32:per_oc, sum:0.5"),
        "inplace": INPLACE,
    },
    dims_problem(2),
    by_direction(PreluWork, PreluGradientWork),
    example="--mode=CP --stag=abx,axb --threads=1 --peer=onednn 1x64x112x112:1x64x1x1",
    title=titled("{backward}{types}{stag} {dims}"),
)  # fmt: skip
