"""What moves elements, or finds them."""

import numpy as np

import asmdnn as dnn
from tests.support.ops_calls import array

PLANE, ROWS, PLACES = array(4, 6), np.array([1, -1, 0, 1]), np.array([[0, 2], [1, 0], [5, 3], [2, 4]])
WHERE = {"axis": 1, "keepdims": True, "select_last_index": True}

CALLS = {
    "argmax": {"x": PLANE, **WHERE},
    "argmin": {"x": PLANE, **WHERE},
    "concat": {"arrays": [PLANE, PLANE], "axis": 1},
    "concat_gradient": {"dy": PLANE, "sizes": [1, 5], "axis": 1},
    "dropout": {"x": PLANE, "probability": 0.5, "seed": 3},
    "dropout_gradient": {"dy": PLANE, "mask": (PLANE > 2).astype(np.uint8), "probability": 0.25},
    "embedding": {"table": PLANE, "indices": ROWS},
    "embedding_gradient": {"dy": PLANE, "indices": ROWS, "rows": 3},
    "expand": {"x": array(2, 1), "dims": (3, 2, 4)},
    "expand_gradient": {"dy": PLANE, "dims": (1, 6)},
    "gather": {"x": PLANE, "indices": ROWS, "axis": 1},
    "gather_gradient": {"dy": PLANE, "indices": ROWS, "dims": (3, 6), "axis": 0},
    "pad": {"x": PLANE, "widths": ((1, 1), (0, 2)), "mode": "edge", "value": 0.0},
    "pad_gradient": {"dy": PLANE, "widths": ((1, 1), (0, 2)), "mode": "edge"},
    "resize": {
        "x": array(1, 2, 3, 4), "factor": 2, "mode": "linear", "coordinates": "half_pixel", "rounding": "floor",
    },
    "resize_gradient": {
        "dy": array(1, 2, 6, 8), "dims": (1, 2, 3, 4), "factor": 2, "mode": "linear", "coordinates": "half_pixel",
        "rounding": "floor",
    },
    "scatter": {"x": PLANE, "indices": ROWS, "updates": array(4, 4), "axis": 1, "reduction": "add"},
    "scatter_gradient": {"dy": PLANE, "indices": ROWS, "axis": 0, "reduction": "add"},
    "slice": {"x": PLANE, "starts": (0, 1), "stops": (3, 4), "steps": (1, 2)},
    "slice_gradient": {"dy": PLANE, "dims": (9, 9), "starts": (1, 0), "stops": (9, 6), "steps": (2, 1)},
    "split": {"x": PLANE, "parts": 2, "axis": 1},
    "split_gradient": {"dys": [PLANE, PLANE], "axis": 1},
    "stochastic_rounding": {"x": PLANE, "dtype": dnn.s8, "seed": 3},
    "topk": {"x": PLANE, "k": 2, "axis": 1, "largest": False},
    "topk_gradient": {"dy": array(4, 2), "indices": PLACES, "dims": (4, 6), "axis": 1},
}  # fmt: skip
