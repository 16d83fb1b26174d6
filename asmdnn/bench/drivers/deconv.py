"""`--deconv`: forward deconvolutions in f32, of 1, 2 and 3 spatial axes."""

from typing import ClassVar

import asmdnn as dnn
from asmdnn.bench.deconv_problem import parse_deconv_problem
from asmdnn.bench.driver import Driver
from asmdnn.bench.drivers.conv import OPTIONS, ConvSettings, ConvWork, completed
from asmdnn.bench.words import Option
from asmdnn.errors import InvalidArguments, Unimplemented


class DeconvWork(ConvWork):
    description = dnn.DeconvolutionForward
    algorithms: ClassVar = {"direct": dnn.Algorithm.deconvolution_direct}
    peer_function, of_onednn = "dnnl_deconvolution_forward_primitive_desc_create", {"direct": 0xA}


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
    DeconvWork,
    example="--mode=CP --dir=FWD_I --mb=1 --threads=1 --peer=onednn --batch=dcgan",
    notation='mb1ic64ih56oc32oh112kh2sh2ph0n"name"',
    bandwidth_bound=False,
    completed=completed,
)
