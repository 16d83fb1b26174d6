"""`--deconv`: forward deconvolutions in f32, of 1, 2 and 3 spatial axes."""

import asmdnn as dnn
from asmdnn.bench.deconv_problem import parse_deconv_problem
from asmdnn.bench.driver import Driver
from asmdnn.bench.drivers.conv import OPTIONS, ConvSettings, ConvWork, completed

DECONVOLUTION_DIRECT = 0xA  # of oneDNN's C interface


class DeconvWork(ConvWork):
    description = dnn.DeconvolutionForward
    peer_function, peer_algorithm = "dnnl_deconvolution_forward_primitive_desc_create", DECONVOLUTION_DIRECT


DRIVER = Driver(
    "deconv",
    ConvSettings(),
    OPTIONS,
    parse_deconv_problem,
    DeconvWork,
    example="--mode=CP --dir=FWD_I --mb=1 --threads=1 --peer=onednn --batch=dcgan",
    notation='mb1ic64ih56oc32oh112kh2sh2ph0n"name"',
    bandwidth_bound=False,
    completed=completed,
)
