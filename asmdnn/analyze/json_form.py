"""An analysis as JSON: the fields of model.py by name, and what follows from them."""

import json
from dataclasses import asdict
from typing import Any

from asmdnn.analyze.model import Analysis

SCHEMA = 1


def json_of(analysis: Analysis) -> str:
    """One object; what is not known is null."""
    data: dict[str, Any] = {"schema": SCHEMA, **asdict(analysis)}
    for entry, kernel in zip(data["kernels"], analysis.kernels, strict=True):
        entry["flops"] = kernel.flops
        entry["bound_ports"], entry["bound_simulated"] = kernel.bound_cycles(False), kernel.bound_cycles(True)
        for part_entry, part in zip(entry["parts"], kernel.parts, strict=True):
            part_entry |= {"flops": part.flops, "intensity": part.intensity}
    if analysis.point:
        point = analysis.point
        data["point"] |= {"flops": point.flops, "intensity": point.intensity, "gflops": point.gflops, "gbs": point.gbs}
    return json.dumps(data)
