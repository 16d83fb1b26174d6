"""onnxruntime in the place of a network: one service answers from either, and one client loads both."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

import asmdnn as dnn

SUFFIX: Final = ".onnx"
TYPES: Final = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}


class Peer:
    """A session of onnxruntime with the few methods of a Network that the service uses."""

    def __init__(self, path: Path, threads: int) -> None:
        """Raises InvalidArguments for a file that it refuses, and for types beside f32, s32 and s64."""
        try:
            import onnxruntime
        except ImportError:
            raise dnn.InvalidArguments(f"{path}: onnxruntime serves .onnx files, and it is not installed") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = max(1, threads), 1
        try:
            self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # of types that its module does not export
            raise dnn.InvalidArguments(f"{path}: onnxruntime says {' '.join(str(error).split())[:200]}") from None
        self.inputs = {value.name: described(path, value) for value in self.session.get_inputs()}
        self.outputs = {value.name: described(path, value) for value in self.session.get_outputs()}

    def prepare_to_run(self) -> None:
        """It is prepared."""

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Raises InvalidArguments for feeds that it refuses."""
        try:
            return dict(zip(self.outputs, self.session.run(None, dict(feeds)), strict=True))
        except Exception as error:  # of types that its module does not export
            raise dnn.InvalidArguments(" ".join(str(error).split())[:200]) from None


def described(path: Path, value: Any) -> tuple[tuple[int | None, ...], Any]:
    """Dims, None where they are open, and type.  Raises InvalidArguments."""
    if value.type not in TYPES:
        raise dnn.InvalidArguments(f"{path}: {value.name} is {value.type}: f32, s32 and s64 can be served")
    return tuple(n if isinstance(n, int) else None for n in value.shape), np.dtype(TYPES[value.type])


def network_at(path: Path, threads: int) -> "dnn.Network | Peer":
    """A saved network; or, of an ONNX file, onnxruntime's.  Raises InvalidArguments."""
    return Peer(path, threads) if path.suffix == SUFFIX else dnn.load_network(path, threads)
