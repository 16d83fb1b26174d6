"""Arrays in the bodies of requests and answers: JSON, or numpy's npy as it lies in memory.

Nothing that a body claims is believed: sizes are compared with the bytes that are there, before anything is allocated.
"""

import io
import json
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final

import numpy as np

import asmdnn as dnn
from examples.serve.peer import Peer

JSON, NPY = "application/json", "application/x-npy"
TYPES: Final = (JSON, NPY)
PARSING: Final = Lock()  # headers are literals, whose parser in Python 3.11 now and then fails in several threads
Arrays = dict[str, np.ndarray[Any, Any]]


class Refused(Exception):
    """A request that gets no answer: the status, and one sentence that says why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


def feeds_of(body: bytes, kind: str, net: dnn.Network | Peer) -> Arrays:
    """The arrays for the network's inputs.  Raises Refused with 400 or 415."""
    if kind == JSON:
        return _of_json(body, net)
    if len(net.inputs) != 1 or len(net.outputs) != 1:
        raise Refused(415, f"the network has several inputs or outputs: send {JSON}")
    ((name, (_, dtype)),) = net.inputs.items()
    array = npy_array(body)
    if array.dtype != dtype:
        raise Refused(400, f"{name} must be {dtype}, not {array.dtype}")
    return {name: array}


def body_of(results: Mapping[str, Any], kind: str) -> bytes:
    """The answer in the words of the request.  Raises Refused for JSON of what JSON has not."""
    if kind == NPY:
        (array,) = results.values()
        stream = io.BytesIO()
        np.save(stream, array, allow_pickle=False)
        return stream.getvalue()
    try:
        return json.dumps({"outputs": {k: v.tolist() for k, v in results.items()}}, allow_nan=False).encode()
    except ValueError:
        raise Refused(422, f"the result is not finite, which JSON cannot say: ask in {NPY}") from None


def npy_array(body: bytes) -> np.ndarray[Any, Any]:
    """The array in the bytes of an npy file.  Raises Refused."""
    stream = io.BytesIO(body)
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        with PARSING:
            shape, is_fortran, dtype = read(stream)
    except Exception as error:  # whatever its parser says of wrong bytes
        raise Refused(400, f"the body is no npy file: {' '.join(str(error).split())[:200]}") from None
    if dtype.hasobject or dtype.itemsize == 0 or any(dim < 0 for dim in shape):
        raise Refused(400, f"an npy file of {dtype} cannot be taken")
    size, there = dtype.itemsize, len(body) - stream.tell()
    for dim in shape:
        size *= dim  # Python's integers: no overflow
    if size != there:
        raise Refused(400, f"the npy file says {size} bytes of data, and has {there}")
    array = np.frombuffer(body, dtype, offset=stream.tell())
    return array.reshape(shape, order="F" if is_fortran else "C")


def _of_json(body: bytes, net: dnn.Network | Peer) -> Arrays:
    try:
        inputs = json.loads(body, parse_constant=_no_number)["inputs"]
        if not isinstance(inputs, dict):
            raise TypeError("inputs")
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Refused(400, 'the body must be JSON such as {"inputs": {"x": [[1, 2]]}}') from None
    if inputs.keys() != net.inputs.keys():
        given = ", ".join(map(repr, list(inputs)[:9])) or "none"
        raise Refused(400, f"inputs must be {', '.join(net.inputs)}, not {given[:200]}")
    return {name: _array(name, inputs[name], dtype) for name, (_, dtype) in net.inputs.items()}


def _array(name: str, value: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Nested lists as an array of the type, if that keeps their values; f32 rounds."""
    wanted = np.dtype(dtype)
    try:
        given = np.array(value)
        if given.dtype.kind in "biuf" or not given.size:
            with np.errstate(over="ignore", invalid="ignore"):
                array = given.astype(wanted)
            if np.isfinite(array).all() if wanted.kind == "f" else (array == given).all():
                return array
    except (ValueError, TypeError, OverflowError, RecursionError):
        pass
    raise Refused(400, f"{name} must be nested lists of equal lengths, of finite numbers that are {wanted}")


def _no_number(word: str) -> float:
    raise ValueError(word)
