"""NonMaxSuppression within a bound: as onnxruntime, of boxes with ties, without an area, and of none."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments, Unimplemented
from tests.network.nets import engine

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
from tests.network.test_bounds_of_files import within  # noqa: E402 (they need onnx)
from tests.network.test_staged import F32, S64, model_of, node  # noqa: E402

pytestmark = pytest.mark.isa("avx2")
IMAGES, CLASSES, BOXES = 2, 3, 41
INPUTS = [("b", F32, [IMAGES, BOXES, 4]), ("s", F32, [IMAGES, CLASSES, BOXES])]
Feeds = dict[str, Any]


def boxes(*, is_centred: bool = False, seeds: int = 4) -> Iterator[Feeds]:
    """Of integers, so that many scores and shares are equal; then of real numbers, of one score, and of low ones."""
    draw = np.random.default_rng(5)
    for seed in range(seeds):
        first, second = draw.integers(0, 12, (IMAGES, BOXES, 2)), draw.integers(0, 7, (IMAGES, BOXES, 2))
        b = np.concatenate((first, second if is_centred else first + second - 2), 2).astype(np.float32)
        s = draw.integers(0, 8, (IMAGES, CLASSES, BOXES)).astype(np.float32) / 8
        if seed == 1:
            b, s = (x + draw.random(x.shape).astype(np.float32) for x in (b, s))
        elif seed == 2:
            s[:] = 0.75
        elif seed == 3:
            s -= 2
        yield {"b": b, "s": s}


def suppressed(**attributes: Any) -> list[Any]:
    return [node("NonMaxSuppression", "b s most share least", "at", **attributes)]


@pytest.mark.parametrize(("share", "least"), [(0.5, 0.25), (0.0, 0.0), (1.0, -3.0), (1 / 3, 0.6)])
@pytest.mark.parametrize("is_centred", [False, True])
def test_boxes_are_those_of_onnxruntime(is_centred: bool, share: float, least: float) -> None:
    nodes = suppressed(center_point_box=int(is_centred))
    for most in (5, 1000):
        numbers = {"most": [most], "share": np.float32([share]), "least": np.float32([least])}
        data = model_of(nodes, INPUTS, [("at", S64, None)], **numbers)
        net = within(data, {"at": IMAGES * CLASSES * BOXES}, *boxes(is_centred=is_centred), threads=1)
        assert "suppression:avx2" in net.explain()
        assert str(net.outputs["at"][0][0]) == "at"


def test_numbers_that_are_left_out() -> None:
    """Without an overlap all that touch are left out, and without a least score all boxes are there."""
    data = model_of([node("NonMaxSuppression", "b s most", "at")], INPUTS, [("at", S64, None)], most=[7])
    within(data, {"at": 300}, *boxes())
    data = model_of([node("NonMaxSuppression", "b s", "at")], INPUTS, [("at", S64, None)])
    within(data, {"at": 300}, *boxes(), is_native=False)  # none are wanted, so nothing is computed


def detector() -> bytes:
    """As exporters of detectors end: corners and scores of what was chosen, and of which image and class."""
    nodes = [
        node("Sigmoid", "s", "scores"), node("Mul", "b two", "large"),
        node("NonMaxSuppression", "large scores most share least", "at"),
        node("Split", "at", "image kind box", axis=1, num_outputs=3),
        node("Concat", "image box", "of_boxes", axis=1), node("GatherND", "large of_boxes", "corners"),
        node("GatherND", "scores at", "score"), node("Unsqueeze", "score one", "column"),
        node("Cast", "kind", "number", to=F32), node("Cast", "image", "images", to=F32),
        node("Concat", "images corners number column", "found", axis=1),
    ]  # fmt: skip
    numbers = {"most": [10], "share": np.float32([0.4]), "least": np.float32([0.5])}
    constants: dict[str, Any] = {**numbers, "two": np.float32(2), "one": [1]}
    return model_of(nodes, INPUTS, [("found", F32, None), ("at", S64, None)], opset=18, **constants)


def test_a_detector_is_native() -> None:
    net = within(detector(), {"at": 60}, *boxes())
    assert str(net.outputs["found"][0][0]) == "at"


def test_more_boxes_than_the_bound_are_an_error_of_that_call() -> None:
    net = dnn.load_onnx(detector(), bounds={"at": 2}, engine=engine(2))
    many, *_, few = boxes()
    with pytest.raises(InvalidArguments, match=r"places of 'at' are .*, and bounds has 2: give it more"):
        net.run(many)
    few["s"] = few["s"] - 9
    assert net.run(few)["found"].shape == (0, 7)


def test_numbers_that_are_data_stay_in_stages() -> None:
    more = [*INPUTS, ("share", F32, [1])]
    numbers = {"most": [5], "least": np.float32([0.5])}
    data = model_of(suppressed(), more, [("at", S64, None)], **numbers)
    with pytest.raises(Unimplemented, match="'share', which is no constant"):
        dnn.load_onnx(data, bounds={"at": 60}, engine=engine(2))


def test_what_does_not_fit_is_said() -> None:
    numbers = {"most": [5], "share": np.float32([1.5]), "least": np.float32([0.5])}
    data = model_of(suppressed(), INPUTS, [("at", S64, None)], **numbers)
    with pytest.raises(InvalidArguments, match=r"iou_threshold is 1\.5, it must be from 0 to 1"):
        dnn.load_onnx(data, bounds={"at": 60}, engine=engine(2))
