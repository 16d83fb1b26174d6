"""ScatterND of places that data choose and suppression of boxes that data choose, within bounds: as onnxruntime, for no
place, one, some, and as many as the bound has."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments, Unimplemented
from tests.network.nets import engine, random

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
from tests.network.test_bounds_of_files import BOOL, within  # noqa: E402 (it needs onnx)
from tests.network.test_staged import F32, S64, model_of, node  # noqa: E402 (they need onnx)

pytestmark = pytest.mark.isa("avx2")
REDUCTIONS = ("none", "add", "mul", "max", "min")
COUNTS = (0, 1, 2, 5, 7)  # of 7, which is the bound
ROWS, BOXES = 7, 12
POSITIVE = abs(random(3, 4))
BOTH = {"at": ROWS, "rows": ROWS}
Feeds = dict[str, Any]


def some_rows(*, counts: Sequence[int] = COUNTS, dtype: Any = np.float32, x: Any = None) -> Iterator[Feeds]:
    """Updates of 7 rows, of which `keep` chooses; places of some rows are equal, and others are the first of x."""
    draw = np.random.default_rng(7)
    for count in counts:
        keep = np.zeros(ROWS, bool)
        keep[draw.permutation(ROWS)[:count]] = True
        places = draw.integers(-5, 5, (ROWS, 1))
        places[~keep] = 0
        new = draw.integers(-9, 9, (ROWS, 3)).astype(dtype)
        own = draw.integers(-9, 9, (5, 3)).astype(dtype) if x is None else x
        yield {"x": own, "places": places, "new": new, "keep": keep}


def rows_scattered(kind: int, reduction: str, opset: int = 18) -> bytes:
    """Rows of x, by places and updates that a condition chooses."""
    nodes = [
        node("Compress", "places keep", "at", axis=0), node("Compress", "new keep", "rows", axis=0),
        node("ScatterND", "x at rows", "y", **({} if reduction == "none" else {"reduction": reduction})),
    ]  # fmt: skip
    inputs = [("x", kind, [5, 3]), ("places", S64, [ROWS, 1]), ("new", kind, [ROWS, 3]), ("keep", BOOL, [ROWS])]
    return model_of(nodes, inputs, [("y", kind, [5, 3])], opset)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "kind, dtype, reduction",
    [(F32, np.float32, each) for each in REDUCTIONS] + [(S64, np.int64, each) for each in REDUCTIONS if each != "mul"],
)
def test_rows(kind: int, dtype: Any, reduction: str, threads: int) -> None:
    """Several updates of one row are taken in their order."""
    net = within(rows_scattered(kind, reduction), BOTH, *some_rows(dtype=dtype), threads=threads)
    assert net.outputs["y"][0] == (5, 3)


def test_truths() -> None:
    within(rows_scattered(BOOL, "none"), BOTH, *some_rows(dtype=bool))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("most", [24, 100])
@pytest.mark.parametrize("dims", [(4, 6), (24,), (2, 3, 4)])
def test_elements_by_a_mask(dims: tuple[int, ...], most: int, reduction: str) -> None:
    """As exporters write x[x != 0] = f(v[x != 0])."""
    nodes = [
        node("NonZero", "x", "at"), node("Transpose", "at", "rows", perm=[1, 0]), node("GatherND", "v rows", "found"),
        node("Mul", "found two", "new"), node("ScatterND", "x rows new", "y", reduction=reduction),
    ]  # fmt: skip
    data = model_of(nodes, [("x", F32, dims)], [("y", F32, dims)], 18, v=random(*dims), two=np.float32(2))
    draw, x = np.random.default_rng(1), random(*dims)
    chosen = [np.argsort(draw.random(24)).reshape(dims) < count for count in (0, 1, 2, 12, 24)]
    within(data, {"at": most}, *({"x": np.where(one, x, 0).astype(np.float32)} for one in chosen))


def test_a_number_for_all_that_count() -> None:
    """x[x < 0] = 5, whose updates are expanded to as many as there are."""
    nodes = [
        node("Less", "x zero", "is_less"), node("NonZero", "is_less", "at"),
        node("Transpose", "at", "rows", perm=[1, 0]), node("Shape", "rows", "dims"),
        node("Slice", "dims begin end", "count"), node("Expand", "five count", "new"),
        node("ScatterND", "x rows new", "y"),
    ]  # fmt: skip
    known = {"zero": np.float32(0), "begin": np.array([0]), "end": np.array([1]), "five": np.float32(5)}
    data = model_of(nodes, [("x", F32, [3, 4])], [("y", F32, [3, 4])], 18, **known)
    feeds = [{"x": np.where(np.arange(12).reshape(3, 4) < n, -POSITIVE, POSITIVE)} for n in (0, 1, 4, 12)]
    within(data, {"at": 12}, *feeds)


def test_places_that_count_along_a_later_axis() -> None:
    """Each of two images has its own places and updates, of as many chosen columns."""
    nodes = [
        node("Compress", "places keep", "at", axis=1), node("Compress", "new keep", "columns", axis=1),
        node("ScatterND", "x at columns", "y"),
    ]  # fmt: skip
    inputs = [("x", F32, [2, 5, 3]), ("places", S64, [2, ROWS, 2]), ("new", F32, [2, ROWS, 3]), ("keep", BOOL, [ROWS])]
    data, draw, feeds = model_of(nodes, inputs, [("y", F32, [2, 5, 3])], 18), np.random.default_rng(3), []
    for feed in some_rows():
        places = np.stack([draw.integers(0, 2, (2, ROWS)), draw.integers(0, 5, (2, ROWS))], axis=-1)
        feeds.append({"x": random(2, 5, 3), "places": places, "new": random(2, ROWS, 3), "keep": feed["keep"]})
    within(data, {"at": ROWS, "columns": ROWS}, *feeds)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_what_is_not_chosen_changes_nothing(reduction: str) -> None:
    """Of the first row, by which it goes where none counts: zeros with a sign, infinity, what is no number."""
    x = np.zeros((5, 3), np.float32)
    x[0] = [-0.0, np.inf, np.nan]
    net = dnn.load_onnx(rows_scattered(F32, reduction), engine=engine(), bounds=BOTH)
    (feed,) = some_rows(counts=[0], x=x)
    feed["new"][...] = np.nan
    found = net.run(feed)["y"]
    np.testing.assert_array_equal(found, x)
    assert (np.signbit(found) == np.signbit(x))[~np.isnan(x)].all()


def test_a_place_out_of_range_is_said_if_it_counts() -> None:
    net = dnn.load_onnx(rows_scattered(F32, "none"), engine=engine(), bounds=BOTH)
    (feed,) = some_rows(counts=[2])
    feed["places"][...] = np.where(feed["keep"][:, None], 1, 99)
    net.run(feed)
    feed["places"][np.flatnonzero(feed["keep"])[0]] = 5
    with pytest.raises(InvalidArguments, match=r"indices of ScatterND 'y'.* is 5, axis 0 of src has 5"):
        net.run(feed)


MIXED: dict[str, tuple[list[Any], list[Any]]] = {
    "updates of all": ([node("ScatterND", "x at new", "y")], [("y", F32, None)]),
    "x by its own places": (
        [node("Compress", "new keep", "rows", axis=0), node("ScatterND", "rows at rows", "y")], [("y", F32, None)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MIXED)
def test_what_mixes_places(name: str) -> None:
    after, outputs = MIXED[name]
    nodes = [node("Compress", "places keep", "at", axis=0), *after]
    inputs = [("x", F32, [5, 3]), ("places", S64, [ROWS, 1]), ("new", F32, [ROWS, 3]), ("keep", BOOL, [ROWS])]
    with pytest.raises(Unimplemented, match="ScatterND 'y' mixes places of 'at' that count with others"):
        bounds = {"at": ROWS, **({"rows": ROWS} if len(after) > 1 else {})}
        dnn.load_onnx(model_of(nodes, inputs, outputs, 18), engine=engine(), bounds=bounds)


def detections(*, classes: int = 2, images: int = 1, seed: int = 0) -> Iterator[Feeds]:
    draw = np.random.default_rng(seed)
    for count in (0, 1, 2, 6, BOXES):
        keep = np.zeros(BOXES, bool)
        keep[draw.permutation(BOXES)[:count]] = True
        corner, sides = draw.random((images, BOXES, 2)), draw.random((images, BOXES, 2)) * 0.6
        boxes = np.concatenate([corner, corner + sides], axis=-1).astype(np.float32)
        scores = draw.random((images, classes, BOXES)).astype(np.float32)
        scores[..., ~keep] += 1  # better than all that are chosen
        yield {"boxes": boxes, "scores": scores, "keep": keep}


def suppressed(*, images: int = 1, classes: int = 2, least: bool = True) -> bytes:
    """Of boxes that a condition chooses, and what lies where those that are kept are: their corners and scores."""
    nodes = [
        node("Compress", "boxes keep", "some", axis=1), node("Compress", "scores keep", "their", axis=2),
        node("NonMaxSuppression", "some their most overlap least" if least else "some their most overlap", "kept"),
        node("Slice", "kept two three one", "column"), node("Squeeze", "column one", "which"),
        node("Gather", "some which", "found", axis=1),
        node("GatherND", "their kept", "best"),
    ]  # fmt: skip
    known: dict[str, Any] = {"most": np.array([4]), "overlap": np.float32(0.3), "least": np.float32(0.2)}
    known |= {"two": np.array([2]), "three": np.array([3]), "one": np.array([1])}
    inputs = [("boxes", F32, [images, BOXES, 4]), ("scores", F32, [images, classes, BOXES]), ("keep", BOOL, [BOXES])]
    outputs = [("kept", S64, None), ("found", F32, None), ("best", F32, None)]
    return model_of(nodes, inputs, outputs, 18, **known)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("images, classes", [(1, 1), (1, 3), (2, 2)])
@pytest.mark.parametrize("least", [False, True])
def test_boxes_that_count(images: int, classes: int, least: bool, threads: int) -> None:
    bounds = {"some": BOXES, "their": BOXES, "kept": 4 * images * classes}
    for seed in range(3):
        several = detections(images=images, classes=classes, seed=seed)
        net = within(suppressed(images=images, classes=classes, least=least), bounds, *several, threads=threads)
    assert net.outputs["kept"][0] == (dnn.Dim("kept", 0, 4 * images * classes), 3)


def test_classes_that_count() -> None:
    """The scores of some classes, by which the same boxes are chosen."""
    nodes = [
        node("Compress", "scores keep", "some", axis=1), node("NonMaxSuppression", "boxes some most overlap", "kept"),
    ]  # fmt: skip
    inputs = [("boxes", F32, [1, BOXES, 4]), ("scores", F32, [1, 5, BOXES]), ("keep", BOOL, [5])]
    known: dict[str, Any] = {"most": np.array([4]), "overlap": np.float32(0.3)}
    data = model_of(nodes, inputs, [("kept", S64, None)], 18, **known)
    feeds = [{**feed, "keep": np.arange(5) < n} for n, feed in zip((0, 1, 3, 5), detections(classes=5), strict=False)]
    within(data, {"some": 5, "kept": 20}, *feeds)


def test_boxes_without_their_scores() -> None:
    nodes = [
        node("Compress", "boxes keep", "some", axis=1), node("NonMaxSuppression", "some scores most overlap", "kept"),
    ]  # fmt: skip
    inputs = [("boxes", F32, [1, BOXES, 4]), ("scores", F32, [1, 2, BOXES]), ("keep", BOOL, [BOXES])]
    known: dict[str, Any] = {"most": np.array([4]), "overlap": np.float32(0.3)}
    data = model_of(nodes, inputs, [("kept", S64, None)], 18, **known)
    with pytest.raises(Unimplemented, match="NonMaxSuppression 'kept' mixes places of 'some' that count"):
        dnn.load_onnx(data, engine=engine(), bounds={"some": BOXES, "kept": 8})


def test_a_detector() -> None:
    """Candidates above a score, the best of them, one class without overlaps, and the first of what is kept."""
    nodes = [
        node("Greater", "scores low", "is_high"), node("NonZero", "is_high", "at"),
        node("Squeeze", "at zero", "places"),
        node("Gather", "boxes places", "candidates"), node("Gather", "scores places", "theirs"),
        node("Shape", "theirs", "count"), node("Concat", "count six", "several", axis=0),
        node("ReduceMin", "several", "k", keepdims=1), node("TopK", "theirs k", "best order", axis=0),
        node("Gather", "candidates order", "sorted"), node("Unsqueeze", "sorted zero", "image"),
        node("Unsqueeze", "best zero_one", "classes"),
        node("NonMaxSuppression", "image classes most overlap", "kept"), node("Slice", "kept zero three zero", "first"),
        node("Gather", "first two", "which", axis=1), node("Gather", "sorted which", "found"),
        node("Gather", "best which", "score"),
    ]  # fmt: skip
    known: dict[str, Any] = {"low": np.float32(0.5), "zero": np.array([0]), "six": np.array([6]), "two": np.array(2)}
    known |= {"zero_one": np.array([0, 1]), "most": np.array([5]), "overlap": np.float32(0.3), "three": np.array([3])}
    inputs = [("boxes", F32, [BOXES, 4]), ("scores", F32, [BOXES])]
    data = model_of(nodes, inputs, [("found", F32, None), ("score", F32, None), ("which", S64, None)], 18, **known)
    several = []
    for feed, most in zip(detections(), (0.4, 0.55, 0.7, 1, 2), strict=True):
        several.append({"boxes": feed["boxes"][0], "scores": random(BOXES) % np.float32(most)})
    net = within(data, {"at": BOXES, "kept": 5}, *several)
    assert net.outputs["found"][0] == (dnn.Dim("kept", 0, 3), 4)
