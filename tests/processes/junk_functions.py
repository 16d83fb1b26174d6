"""Valid calls of functions of arrays, in which junk is put in the place of every argument."""

import inspect

import numpy as np

import asmdnn as dnn
from tests.processes.junk import ENGINE, Arguments, Call, array
from tests.support.ops_calls import every_call


def functions() -> dict[str, Call]:
    """Functions of arrays."""
    return {
        **{f"ops.{name}": operation(name, given) for name, given in every_call().items()},
        **by_weights(),
        **gemms(),
    }


def operation(name: str, given: Arguments) -> Call:
    """With an engine, and what a call makes as the destination of others: of two results the first, but for topk."""
    function = getattr(dnn.ops, name)
    arguments = {**given, "engine": ENGINE}
    if "out" in inspect.signature(function).parameters:
        made = function(**arguments)
        arguments["out"] = made[0] if isinstance(made, tuple) and name != "topk" else made
    return function, lambda: dict(arguments)


def by_weights() -> dict[str, Call]:
    """Each of the weights that others take as a whole."""
    given = every_call()["pack_recurrent"]["weights"]
    return {
        "ops.lstm by weights": (
            lambda **weights: dnn.ops.lstm(array(2, 3, 5), weights, engine=ENGINE), lambda: dict(given)
        ),
        "ops.pack_recurrent by weights": (
            lambda **weights: dnn.ops.pack_recurrent("lstm", weights, ENGINE), lambda: dict(given)
        ),
        "PackedWeights": (
            dnn.PackedWeights,
            lambda: {"source": array(3, 4), "desc": dnn.MemoryDesc((3, 4), dnn.f32, "ba"), "engine": ENGINE,
                     "name": "w"},
        ),
    }  # fmt: skip


def gemms() -> dict[str, Call]:
    """The BLAS."""
    packed_size = dnn.gemm_pack_get_size("B", 2, 4, 3, ENGINE)
    return {
        "sgemm": (
            dnn.sgemm,
            lambda: {"transa": "N", "transb": "N", "alpha": 1.0, "a": array(2, 3), "b": array(3, 4), "beta": 0.5,
                     "c": array(2, 4), "engine": ENGINE},
        ),
        "gemm_pack_get_size": (
            dnn.gemm_pack_get_size, lambda: {"identifier": "B", "m": 2, "n": 4, "k": 3, "engine": ENGINE}
        ),
        "gemm_pack": (
            dnn.gemm_pack,
            lambda: {"identifier": "B", "trans": "N", "alpha": 1.0, "x": array(3, 4),
                     "out": np.zeros(packed_size, np.uint8), "engine": ENGINE},
        ),
        "gemm_compute": (
            dnn.gemm_compute,
            lambda: {"transa": "N", "transb": "N", "a": array(2, 3), "b": array(3, 4), "beta": 0.0, "c": array(2, 4),
                     "engine": ENGINE},
        ),
        "gemm_x8x8s32": (
            dnn.gemm_x8x8s32,
            lambda: {"transa": "N", "transb": "N", "offsetc": "R", "alpha": 1.0, "a": np.ones((2, 3), np.uint8),
                     "ao": -1, "b": np.ones((3, 4), np.int8), "bo": 2, "beta": 1.0, "c": np.ones((2, 4), np.int32),
                     "co": np.ones(4, np.int32), "engine": ENGINE},
        ),
        **{
            f"gemm_{words}": (function, lambda dtype=dtype: halves(dtype))  # type: ignore[misc]
            for words, function, dtype in (
                ("bf16bf16f32", dnn.gemm_bf16bf16f32, dnn.bf16), ("f16f16f32", dnn.gemm_f16f16f32, dnn.f16),
            )
        },
    }  # fmt: skip


def halves(dtype: dnn.DataType) -> Arguments:
    """Of a product of such matrices."""
    a, b = (dnn.Memory(dnn.MemoryDesc(dims, dtype, "ab")) for dims in ((2, 3), (3, 4)))
    return {"transa": "N", "transb": "N", "alpha": 1.0, "a": a, "b": b, "beta": 0.5, "c": array(2, 4), "engine": ENGINE}
