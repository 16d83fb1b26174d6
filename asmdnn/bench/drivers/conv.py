"""`--conv`: convolutions of 1, 2 and 3 spatial axes, forward and backward."""

from asmdnn.bench.conv_work import CONV_OPTIONS, ConvSettings, ConvWork
from asmdnn.bench.driver import Driver
from asmdnn.bench.problems import parse_problem
from asmdnn.bench.words import option
from asmdnn.errors import InvalidArguments, resembling


def _alg(word: str) -> str:
    name = word.lower().removeprefix("convolution_")
    name = "wino" if name == "winograd" else name
    if name not in ConvWork.algorithms:
        known = ConvWork.algorithms
        raise InvalidArguments(f"must be one of {', '.join(known)}{resembling(word, (*known, 'winograd'))}")
    return name


DRIVER = Driver(
    "conv",
    ConvSettings(),
    {
        **CONV_OPTIONS,
        "alg": option(_alg, "direct (default), wino, or auto: the one that is expected to be faster"),
    },
    parse_problem,
    ConvWork,
    example="--mode=CP --dir=FWD_I --mb=1 --threads=1 --peer=onednn --batch=resnet_50",
    notation='mb1ic64ih56oc64oh56kh3ph1n"name"',
    bandwidth_bound=False,
)
