"""An explanation as JSON: the fields of model.py by name; bytes are hexadecimal, offsets are numbers."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from asmdnn.explain.model import Explanation

SCHEMA = 1


def json_of(explanation: Explanation, kernels: Sequence[int]) -> str:
    """One object; `kernels` are the numbers of those whose instructions are included."""
    data: dict[str, Any] = {"schema": SCHEMA, **asdict(explanation)}
    for number, kernel in enumerate(data["kernels"]):
        kernel["number"] = number
        if number not in kernels:
            kernel["instructions"] = None
    return json.dumps(data, default=_plain, ensure_ascii=False)


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value).__name__} has no place in JSON")
