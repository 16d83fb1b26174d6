"""Poolings and their gradients."""

import numpy as np

from tests.support.ops_calls import Arguments, array

WINDOW: Arguments = {"kernel": 2, "stride": 2, "padding": 0}
FORWARD: Arguments = {"x": array(1, 2, 5, 5), "post_ops": []}
BACKWARD: Arguments = {"dy": array(1, 2, 3, 3), "dims": (1, 2, 6, 6)}
PLACES = np.arange(18).reshape(1, 2, 3, 3) * 2

CALLS: dict[str, Arguments] = {
    "adaptive_avg_pool": {**FORWARD, "size": 2},
    "adaptive_avg_pool_gradient": {"dy": array(1, 2, 3, 3), "dims": (1, 2, 5, 7)},
    "adaptive_max_pool": {**FORWARD, "size": 2, "return_indices": True},
    "adaptive_max_pool_gradient": {"dy": array(1, 2, 3, 3), "indices": PLACES % 35, "dims": (1, 2, 5, 7)},
    "avg_pool": {**FORWARD, **WINDOW, "ceil_mode": False, "count_include_pad": True},
    "avg_pool_gradient": {**BACKWARD, **WINDOW, "count_include_pad": True},
    "max_pool": {**FORWARD, **WINDOW, "dilation": 1, "ceil_mode": False, "return_indices": True},
    "max_pool_gradient": {**BACKWARD, **WINDOW, "indices": PLACES, "dilation": 1},
}
