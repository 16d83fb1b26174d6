"""Whole models in other libraries: onnxruntime, and OpenVINO held to f32 or as it is installed."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.errors import InvalidArguments, did_you_mean

Array = npt.NDArray[Any]
TYPES = {
    "tensor(float)": "f4",
    "tensor(double)": "f8",
    "tensor(int32)": "i4",
    "tensor(int64)": "i8",
    "tensor(bool)": "?",
}
Model = Callable[[], dict[str, Array]]  # one run on arrays that are fixed; the outputs by name


def onnxruntime_model(path: str, feeds: Mapping[str, Any], threads: int) -> Model:
    """The model in onnxruntime.  Raises ImportError."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    arrays = {value.name: np.asarray(feeds[value.name], TYPES.get(value.type)) for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    return lambda: dict(zip(names, session.run(names, arrays), strict=True))


def openvino_model(path: str, feeds: Mapping[str, Any], threads: int, precision: str = "") -> Model:
    """The model in OpenVINO, for these dims, in a precision; "" is its own choice: bf16 where the CPU multiplies it.

    Raises ImportError.
    """
    import openvino

    model = openvino.Core().read_model(path)
    model.reshape({port.any_name: list(np.shape(feeds[port.any_name])) for port in model.inputs})
    hints = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "ENABLE_CPU_PINNING": False}
    hints |= {"INFERENCE_PRECISION_HINT": precision} if precision else {}
    request = openvino.Core().compile_model(model, "CPU", hints).create_infer_request()
    arrays = {port.any_name: np.asarray(feeds[port.any_name], port.element_type.to_dtype()) for port in model.inputs}
    names = [port.any_name for port in model.outputs]
    return lambda: dict(zip(names, request.infer(arrays).values(), strict=True))


PEERS: Mapping[str, Callable[[str, Mapping[str, Any], int], Model]] = {
    "onnxruntime": onnxruntime_model,
    "openvino": partial(openvino_model, precision="f32"),
    "openvino-default": openvino_model,
}
ROUNDING = {"openvino-default"}  # what computes in fewer bits than a model asks for


def check_peer(peer: str, is_needed: bool = False) -> None:
    """Raise InvalidArguments for a peer that is not known; is_needed: for one that is not installed, too."""
    if peer not in PEERS:
        raise InvalidArguments(f"--peer={peer} is not known: {did_you_mean(peer, PEERS)}")
    package = peer.partition("-")[0]
    if is_needed and find_spec(package) is None:
        raise InvalidArguments(f"--peer={peer} needs that package: pip install {package}")


def peer_model(peer: str, path: str, feeds: Mapping[str, Any], threads: int) -> Model | None:
    """The model in a peer, None if that is not installed.

    Raises InvalidArguments for a peer that is not known, or that does not take the model.
    """
    check_peer(peer)
    try:
        return PEERS[peer](path, feeds, threads)
    except ImportError:
        return None
    except Exception as error:  # whatever the peer says
        raise InvalidArguments(f"--peer={peer} does not take {path}: {' '.join(str(error).split())}") from None


NEAR = 1e-3  # of the largest value: rounding of deep networks, and no more
OF_A_STEP = 1 + 1e-3  # which floats of integers are rounded from


def agree(mine: Mapping[str, Array], theirs: Mapping[str, Array], steps: Callable[[], Mapping[str, float]]) -> bool:
    """Whether outputs are equal but for rounding.  steps: what is asked, where they differ by more, for the step of
    those that are integers of 8 bits, or floats of such: that may be rounded to either side."""
    worst, largest = difference(mine, theirs)
    if worst <= NEAR * largest:
        return True
    allowed = steps()
    off = {name: difference({name: mine[name]}, theirs)[0] for name in mine}
    return all(one <= max(NEAR * largest, OF_A_STEP * allowed.get(name, 0.0)) for name, one in off.items())


def difference(mine: Mapping[str, Array], theirs: Mapping[str, Array]) -> tuple[float, float]:
    """The largest difference between outputs, and their largest value."""
    wide = {name: (np.asarray(mine[name], float), np.asarray(theirs[name], float)) for name in mine}
    worst = max(float(np.abs(a - b).max(initial=0)) for a, b in wide.values())
    return worst, max(float(np.abs(b).max(initial=0)) for _, b in wide.values())
