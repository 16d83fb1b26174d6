"""`--deconv`: deconvolutions, of 1, 2 and 3 spatial axes, forward and backward."""

from typing import ClassVar

import asmdnn as dnn
from asmdnn.bench.conv_work import CONV_OPTIONS, ConvSettings, ConvWork
from asmdnn.bench.deconv_problem import parse_deconv_problem
from asmdnn.bench.driver import Driver
from asmdnn.bench.words import option
from asmdnn.errors import InvalidArguments, Unimplemented


class DeconvWork(ConvWork):
    kind = "deconvolution"
    forms: ClassVar = (dnn.DeconvolutionForward, dnn.DeconvolutionBackwardData, dnn.DeconvolutionBackwardWeights)
    algorithms: ClassVar = {"direct": dnn.Algorithm.deconvolution_direct}
    of_onednn: ClassVar = {"direct": 0xA}


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
    {**CONV_OPTIONS, "alg": option(algorithm, "direct (default) or auto, which are the same")},
    parse_deconv_problem,
    DeconvWork,
    example="--mode=CP --dir=FWD_I --mb=1 --threads=1 --peer=onednn --batch=dcgan",
    notation='mb1ic64ih56oc32oh112kh2sh2ph0n"name"',
    bandwidth_bound=False,
)
