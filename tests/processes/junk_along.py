"""Valid calls of what works along an axis, in which junk is put in the place of every argument."""

import asmdnn as dnn
from tests.processes.junk import ENGINE, Arguments, Call, array, desc


def described() -> dict[str, Call]:
    """What describes them."""
    indices = dnn.MemoryDesc((2, 1), dnn.s32, "ab")
    return {
        "TopKForward": (
            dnn.TopKForward,
            lambda: {"alg": "max", "src": desc(2, 3), "dst": indices, "axis": 1, "values": desc(2, 1),
                     "select_last": True, "nan_last": True},
        ),
    }  # fmt: skip


def called() -> dict[str, Call]:
    """Their functions of arrays."""
    ops, rows = dnn.ops, array(2, 3)
    position: Arguments = {"x": rows, "axis": 1, "keepdims": True, "select_last_index": True, "engine": ENGINE}
    return {
        "ops.topk": (ops.topk, lambda: {"x": rows, "k": 2, "axis": 1, "largest": False, "engine": ENGINE}),
        "ops.argmax": (ops.argmax, lambda: position),
        "ops.argmin": (ops.argmin, lambda: position),
    }
