"""Valid calls of what works along an axis or in windows, in which junk is put in the place of every argument."""

import numpy as np

import asmdnn as dnn
from tests.processes.junk import ENGINE, Arguments, Call, array, desc


def described() -> dict[str, Call]:
    """What describes them."""
    indices = dnn.MemoryDesc((2, 1), dnn.s32, "ab")
    return {
        "CumulativeSum": (
            dnn.CumulativeSum,
            lambda: {"src": desc(2, 3), "dst": desc(2, 3), "axis": 1, "exclusive": True, "reverse": True},
        ),
        "LRNForward": (
            dnn.LRNForward,
            lambda: {"prop_kind": dnn.PropKind.forward_training, "alg": "lrn_within_channel", "src": desc(2, 3, 4),
                     "dst": desc(2, 3, 4), "local_size": 3, "alpha": 0.5, "beta": 0.75, "k": 2.0,
                     "workspace": desc(2, 3, 4)},
        ),
        "TopKForward": (
            dnn.TopKForward,
            lambda: {"alg": "max", "src": desc(2, 3), "dst": indices, "axis": 1, "values": desc(2, 1),
                     "select_last": True, "nan_last": True},
        ),
    }  # fmt: skip


def called() -> dict[str, Call]:
    """Their functions of arrays."""
    ops, rows = dnn.ops, array(2, 3)
    position: Arguments = {
        "x": rows,
        "axis": 1,
        "keepdims": True,
        "select_last_index": True,
        "out": np.empty((2, 1), np.int64),
        "engine": ENGINE,
    }
    best = (array(2, 2), np.empty((2, 2), np.int64))
    return {
        "ops.topk": (ops.topk, lambda: {"x": rows, "k": 2, "axis": 1, "largest": False, "out": best, "engine": ENGINE}),
        "ops.cumsum": (
            ops.cumsum,
            lambda: {"x": rows, "axis": 1, "exclusive": True, "reverse": True, "out": array(2, 3), "engine": ENGINE},
        ),
        "ops.lrn": (
            ops.lrn,
            lambda: {"x": rows, "size": 3, "alpha": 0.5, "beta": 0.75, "k": 2.0, "alg": "lrn_across_channels",
                     "out": array(2, 3), "engine": ENGINE},
        ),
        "ops.lrn_gradient": (
            ops.lrn_gradient,
            lambda: {"dy": array(2, 3, 4), "x": array(2, 3, 4), "size": 3, "alpha": 0.5, "beta": 0.75, "k": 2.0,
                     "alg": "lrn_within_channel", "out": array(2, 3, 4), "engine": ENGINE},
        ),
        "ops.argmax": (ops.argmax, lambda: position),
        "ops.argmin": (ops.argmin, lambda: position),
    }  # fmt: skip
