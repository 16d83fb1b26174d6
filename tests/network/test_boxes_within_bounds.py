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


def first_ones(end: int) -> bytes:
    """As torchvision's detectors end: the first boxes, and what they are."""
    nodes = [
        *suppressed(), node("Slice", "at zero end zero", "first"), node("Slice", "first two end one", "box"),
        node("GatherND", "s first", "score"), node("Squeeze", "box one", "boxes"),
        node("Gather", "row boxes", "corners", axis=0), node("Squeeze", "b zero", "row"),
    ]  # fmt: skip
    nodes = [nodes[-1], *nodes[:-1]]
    numbers: dict[str, Any] = {"most": [10], "share": np.float32([0.4]), "least": np.float32([0.5])}
    constants = {**numbers, "zero": [0], "one": [1], "two": [2], "end": [end]}
    inputs = [("b", F32, [1, BOXES, 4]), ("s", F32, [1, CLASSES, BOXES])]
    return model_of(nodes, inputs, [("corners", F32, None), ("score", F32, None), ("first", S64, None)], **constants)


@pytest.mark.parametrize("end", [3, 7, 400])
def test_the_first_boxes_are_native(end: int) -> None:
    feeds = [{name: x[:1] for name, x in given.items()} for given in boxes()]
    within(first_ones(end), {"at": 30}, *feeds)


def best_ones(way: str, k: int) -> bytes:
    """As exporters write topk(min(k, boxes)): the best of all classes."""
    smallest = {
        "Min": [node("Min", "count k", "few")],
        "ReduceMin": [node("Concat", "k count", "both", axis=0), node("ReduceMin", "both", "few")],
    }  # fmt: skip
    nodes = [
        *suppressed(), node("GatherND", "s at", "scores"), node("Shape", "scores", "count"), *smallest[way],
        node("TopK", "scores few", "best places", axis=0), node("Gather", "at places", "rows", axis=0),
    ]  # fmt: skip
    numbers: dict[str, Any] = {"most": [10], "share": np.float32([0.4]), "least": np.float32([0.5])}
    return model_of(nodes, INPUTS, [("best", F32, None), ("rows", S64, None)], **numbers, k=[k], zero=[0])


@pytest.mark.parametrize("way", ["Min", "ReduceMin"])
@pytest.mark.parametrize("k", [1, 4, 100])
def test_the_best_boxes_are_native(way: str, k: int) -> None:
    """Among them equal scores, of which the first come first."""
    within(best_ones(way, k), {"at": 60}, *boxes())


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


def test_rows_by_places_that_may_not_count_are_refused() -> None:
    """Only a TopK says places that are there; its own k must be no more than count."""
    nodes = [
        *suppressed(), node("Split", "at", "image kind box", axis=1, num_outputs=3),
        node("Squeeze", "box one", "boxes"), node("Gather", "at boxes", "rows", axis=0),
    ]  # fmt: skip
    numbers: dict[str, Any] = {"most": [10], "share": np.float32([0.4]), "least": np.float32([0.5]), "one": [1]}
    data = model_of(nodes, INPUTS, [("rows", S64, None)], opset=18, **numbers)
    with pytest.raises(Unimplemented, match="Gather 'rows' mixes places of 'at'"):
        dnn.load_onnx(data, bounds={"at": 60}, engine=engine(2))
    nodes = [*suppressed(), node("GatherND", "s at", "scores"), node("TopK", "scores one", "best where", axis=0)]
    data = model_of(nodes, INPUTS, [("best", F32, None)], opset=18, **numbers)
    with pytest.raises(Unimplemented, match="TopK 'best' mixes places of 'at'"):
        dnn.load_onnx(data, bounds={"at": 60}, engine=engine(2))
