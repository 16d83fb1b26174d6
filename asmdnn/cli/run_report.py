"""What `asmdnn run` says of a run: lines of text as they come, or one JSON object at the end."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from asmdnn.network.accuracy import Verification
from asmdnn.network.network import Network
from asmdnn.network.report import profile
from asmdnn.network.timing import steps_of


class Report:
    """`add` what is known, as fields and as text, which is printed unless JSON was asked for.  title: of one of
    several shapes."""

    def __init__(self, as_json: bool, title: str = "") -> None:
        self._as_json = as_json
        self.found: dict[str, Any] = {"outputs": {}}
        if title:
            self.add({"shape": title}, title)

    def add(self, fields: Mapping[str, Any], text: str) -> None:
        self.found |= fields
        if not self._as_json:
            print(text)

    def output(self, name: str, array: "np.ndarray[Any, Any]") -> None:
        """Its type and dims, and between which numbers it lies."""
        low, high = (float(array.min()), float(array.max())) if array.size else (0, 0)
        said = {"type": array.dtype.name, "dims": list(array.shape), "low": in_json(low), "high": in_json(high)}
        outputs = {**self.found["outputs"], name: said}
        dims = "x".join(map(str, array.shape))
        self.add({"outputs": outputs}, f"{name} {array.dtype.name} {dims} from {low:.6g} to {high:.6g}")

    def verified(self, found: Verification) -> bool:
        """Which primitives are wrong, and how far all are from the definitions; whether all fit."""
        wrong = [difference for difference in found if not difference.fits]
        far = {
            kind: {one.label: in_json(one.from_f64) for one in several}
            for kind, several in (("steps", found.steps), ("outputs", found.outputs))
        }
        said = {"wrong": [str(difference) for difference in wrong], "from_float64": far}
        text = "\n".join(map(str, wrong)) or "every primitive is within its bound"
        self.add({"verify": said}, f"{text}\n{found}")
        return not wrong

    def profiled(self, net: Network, feeds: Mapping[str, Any]) -> None:
        """The least time of each primitive."""
        seconds = net.times(feeds)
        steps = steps_of(net.planned())
        pairs = zip(steps, seconds, strict=True)
        rows = [{"label": step.label, "implementation": step.implementation, "us": s * 1e6} for step, s in pairs]
        self.add({"profile": rows}, profile(steps, seconds))


def in_json(number: float) -> float | None:
    """JSON has no infinities, and no NaN: None."""
    return number if np.isfinite(number) else None
