"""A valid call of every function of `dnn.ops`: tests/ops_calls/*.py have CALLS, arguments by name for each function.

Every module there is found by being there.  Arrays are of small numbers above 0; `out` and `engine` are left to tests.
"""

import importlib
import math
import pkgutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Arguments = dict[str, Any]


def array(*dims: int) -> npt.NDArray[np.float32]:
    return (np.arange(math.prod(dims), dtype=np.float32) * 7 % 5 + 1).reshape(dims)


def every_call() -> dict[str, Arguments]:
    """By the function's name."""
    folder = Path(__file__).parents[1] / "ops_calls"
    modules = [importlib.import_module(f"tests.ops_calls.{each.name}") for each in pkgutil.iter_modules([str(folder)])]
    return {name: arguments for module in modules for name, arguments in module.CALLS.items()}
