"""`--deconv`: deconvolutions, of 1, 2 and 3 spatial axes, forward and backward."""

from typing import Any, ClassVar

import asmdnn as dnn
from asmdnn.bench.conv_gradients import WRITTEN, Gradient, GradientWork
from asmdnn.bench.deconv_problem import parse_deconv_problem
from asmdnn.bench.driver import Driver, Work
from asmdnn.bench.drivers.conv import OPTIONS, ConvCase, ConvSettings, ConvWork, completed
from asmdnn.bench.words import Option
from asmdnn.errors import InvalidArguments, Unimplemented

ALGORITHMS, OF_ONEDNN = {"direct": dnn.Algorithm.deconvolution_direct}, {"direct": 0xA}
GRADIENT = Gradient(
    "deconvolution", (dnn.DeconvolutionBackwardData, dnn.DeconvolutionBackwardWeights), ALGORITHMS, OF_ONEDNN
)


class DeconvWork(ConvWork):
    description = dnn.DeconvolutionForward
    algorithms: ClassVar = ALGORITHMS
    peer_function, of_onednn = "dnnl_deconvolution_forward_primitive_desc_create", OF_ONEDNN


def _work(case: ConvCase) -> Work[Any]:
    settings = case.settings
    if settings.dir in WRITTEN:
        return GradientWork(GRADIENT, settings, settings.alg, case.problem)
    return DeconvWork(case)


def algorithm(word: str) -> str:
    name = word.lower().removeprefix("deconvolution_").removeprefix("convolution_")
    if name in ("wino", "winograd"):
        raise Unimplemented("only direct and auto are built")
    if name not in ("direct", "auto"):
        raise InvalidArguments("must be direct or auto")
    return "direct"


DRIVER = Driver(
    "deconv",
    ConvSettings(),
    {**OPTIONS, "alg": Option("alg", algorithm, "direct (default) or auto, which are the same", True)},
    parse_deconv_problem,
    _work,
    example="--mode=CP --dir=FWD_I --mb=1 --threads=1 --peer=onednn --batch=dcgan",
    notation='mb1ic64ih56oc32oh112kh2sh2ph0n"name"',
    bandwidth_bound=False,
    completed=completed,
)
