"""`--ip`: inner products of all types forward, of floats backward."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

import asmdnn as dnn
from asmdnn.bench.driver import Case, Driver
from asmdnn.bench.ip_problem import IpProblem, ip_problem
from asmdnn.bench.product_work import Arrays, Doubles, product_options
from asmdnn.bench.weights_work import CHANNELS, LAYER_DIRECTION, WeightsSettings, WeightsWork
from asmdnn.bench.words import IMAGES
from asmdnn.definitions.products import product, product_size


class IpWork(WeightsWork):
    kind = "inner_product"
    forms: ClassVar = (dnn.InnerProductForward, dnn.InnerProductBackwardData, dnn.InnerProductBackwardWeights)

    def __init__(self, case: Case[WeightsSettings, IpProblem]) -> None:
        settings, p = case.settings, case.problem
        self.set_tensors(settings, p, {})
        if not self.written:
            dims = {"src": p.src_dims, "weights": p.weights_dims, "dst": p.dst_dims}
            self.set_attributes(settings, dims, CHANNELS)
        self.set_description()
        self.reduction = {"src": p.oc, "weights": p.mb}.get((self.written or ("dst",))[0], p.inputs)
        self.flops = 2 * p.mb * p.oc * p.inputs

    def sums(self, x: Arrays) -> Sequence[Doubles]:
        bias = [x["diff_dst"].sum(axis=0, dtype=np.float64)] if "bias" in self.written else []
        return [product(*self._factors(x)).reshape(self.descs[self.results[0]].dims), *bias]

    def sizes(self, x: Arrays) -> Sequence[Doubles]:
        bias = [np.abs(x["diff_dst"]).sum(axis=0, dtype=np.float64)] if "bias" in self.written else []
        return [product_size(*self._factors(x)).reshape(self.descs[self.results[0]].dims), *bias]

    def _factors(self, x: Arrays) -> tuple[Any, Any]:
        """As matrices, a row an image or an output channel."""
        flat = {name: array.reshape(len(array), int(np.prod(array.shape[1:]))) for name, array in x.items()}
        if not self.written:
            return flat["src"], flat["weights"].T
        return (flat["diff_dst"], flat["weights"]) if "src" in self.written else (flat["diff_dst"].T, flat["src"])


DRIVER = Driver(
    "ip",
    WeightsSettings(),
    {
        "dir": LAYER_DIRECTION,
        **product_options("layout of src or diff_src: any (default), ab, abcd, acdb, aBcd8b, ...",
                          "layout of weights or diff_weights: any (default), ab, ba, ...",
                          "layout of dst or diff_dst: any (default), ab, ba",
                          "f32, s32, ...: a bias in every forward direction; undef (default)"),
        "mb": IMAGES,
    },
    ip_problem,
    IpWork,
    example="--mode=CP --dir=FWD_B,BWD_D,BWD_WB --threads=1 --peer=onednn mb16ic1024oc1000",
    notation='mb16ic256ih7oc1000n"name"',
    bandwidth_bound=False,
)  # fmt: skip
