"""Operators that are decomposed into look-ups and products: native, and equal to onnxruntime, or to a loop in numpy."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine, random

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
pytestmark = pytest.mark.isa("avx2")
TYPES = {"float32": 1, "int64": 7, "int32": 6}


def model_of(op: str, arrays: list[Any], fixed: tuple[int, ...], opset: int, attributes: dict[str, Any]) -> bytes:
    """A file of one node; operands at the places `fixed` are in it."""
    from onnx import helper, numpy_helper

    names = ["" if x is None else f"x{i}" for i, x in enumerate(arrays)]
    node = helper.make_node(op, names, ["y"], **attributes)
    given = [(f"x{i}", x) for i, x in enumerate(arrays) if x is not None and i not in fixed]
    inputs = [helper.make_tensor_value_info(name, TYPES[str(x.dtype)], x.shape) for name, x in given]
    made = [helper.make_tensor_value_info("y", 1, None)]
    data = [numpy_helper.from_array(np.asarray(arrays[i]), f"x{i}") for i in fixed]
    graph = helper.make_graph([node], op, inputs, made, data)
    imports = [helper.make_opsetid("", opset)]
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())


def compare(op: str, arrays: list[Any], fixed: tuple[int, ...] = (), opset: int = 20, **attributes: Any) -> dnn.Network:
    data = model_of(op, arrays, fixed, opset, attributes)
    net = dnn.load_onnx(data, engine=engine(2))
    net.check()
    feeds = {f"x{i}": x for i, x in enumerate(arrays) if x is not None and i not in fixed}
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, feeds)
    np.testing.assert_allclose(net.run(feeds)["y"], wanted, rtol=2e-5, atol=2e-5)
    assert all(difference.fits for difference in net.verify(feeds))
    return net


IMAGE = random(2, 5, 7, 6)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_samples_of_a_grid(mode: str, padding: str, align: int) -> None:
    """Places inside, outside and far away."""
    grid = (2.2 * random(2, 4, 9, 2)).astype(np.float32)
    compare("GridSample", [IMAGE, grid], mode=mode, padding_mode=padding, align_corners=align)


def test_samples_of_a_volume_and_of_one_element() -> None:
    compare("GridSample", [random(1, 3, 4, 5, 6), random(1, 2, 3, 4, 3)], mode="linear", align_corners=1)
    for padding in ("border", "reflection"):
        compare("GridSample", [random(1, 2, 1, 4), random(1, 2, 2, 2)], padding_mode=padding, align_corners=1)


def test_places_that_are_no_numbers_lie_outside() -> None:
    grid = np.full((2, 1, 3, 2), np.nan, np.float32)
    grid[0, 0, 1] = [np.inf, -1e30]
    net = dnn.load_onnx(model_of("GridSample", [IMAGE, grid], (), 20, {}), engine=engine(2))
    found = net.run({"x0": IMAGE, "x1": grid})["y"]
    np.testing.assert_array_equal(found, 0)


def test_grids_of_affine_maps() -> None:
    """Against a loop, as onnxruntime's differ between versions."""
    theta, size = random(2, 2, 3), np.array([2, 3, 4, 5])
    for align in (0, 1):
        data = model_of("AffineGrid", [theta, size], (1,), 20, {"align_corners": align})
        net = dnn.load_onnx(data, engine=engine(2))
        found = net.run({"x0": theta})["y"]
        for n, i, j in np.ndindex(2, 4, 5):
            y, x = ((2 * k / (d - 1) if align else (2 * k + 1) / d) - 1 for k, d in ((i, 4), (j, 5)))
            np.testing.assert_allclose(found[n, i, j], theta[n] @ [x, y, 1], rtol=1e-5, atol=1e-6)


BOXES = np.float32([[0, 0, 5, 6], [-3, 1.5, 2.25, 9], [1, 1, 1.2, 1.1], [4, 4, 20, 5]])
OF_IMAGES = np.array([0, 1, 1, 0])


@pytest.mark.parametrize("half", ["half_pixel", "output_half_pixel"])
def test_boxes(half: str) -> None:
    how = {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.75}
    compare("RoiAlign", [IMAGE, BOXES, OF_IMAGES], opset=16, coordinate_transformation_mode=half, mode="avg", **how)


def test_boxes_before_there_was_a_shift() -> None:
    """Operator set 10 has no attribute, and no shift; since 16 there is one, unless an attribute says otherwise."""
    how = {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.75}
    for opset in (10, 15, 16):
        compare("RoiAlign", [IMAGE, BOXES, OF_IMAGES], opset=opset, **how)


def test_boxes_of_images_that_are_none() -> None:
    data = model_of("RoiAlign", [IMAGE, BOXES, OF_IMAGES], (), 16, {"sampling_ratio": 1})
    net = dnn.load_onnx(data, engine=engine(2))
    with pytest.raises(dnn.InvalidArguments, match=r"x2\[2\] is 2, axis 0 of src has 2"):
        net.run({"x0": IMAGE, "x1": BOXES, "x2": np.array([0, 1, 2, 0])})
    with pytest.raises(dnn.InvalidArguments, match=r"x2\[1\] is -1, axis 0 of src has 2: use 0 to 1"):
        net.run({"x0": IMAGE, "x1": BOXES, "x2": np.array([0, -1, 1, 0])})  # none from the end
    adaptive = model_of("RoiAlign", [IMAGE, BOXES, OF_IMAGES], (), 16, {})
    with pytest.raises(dnn.Unimplemented, match="only a sampling_ratio is known"):
        dnn.load_onnx(adaptive, engine=engine(2))


def test_convolutions_at_offsets() -> None:
    """Without offsets they are convolutions; with whole ones of all positions, convolutions of what is moved."""
    x, k, bias = random(2, 4, 6, 7), random(6, 2, 3, 3), random(6)
    none, mask = np.zeros((2, 2 * 9 * 2, 6, 7), np.float32), np.ones((2, 18, 6, 7), np.float32)
    how = {"pads": (1, 1, 1, 1), "group": 2}
    plain = dnn.load_onnx(model_of("Conv", [x, k, bias], (1, 2), 19, how), engine=engine(2)).run({"x0": x})["y"]
    data = model_of("DeformConv", [x, k, none, bias, mask], (1, 3), 19, {**how, "offset_group": 2})
    net = dnn.load_onnx(data, engine=engine(2))
    np.testing.assert_allclose(net.run({"x0": x, "x2": none, "x4": mask})["y"], plain, rtol=1e-5, atol=1e-5)
    down = none.reshape(2, 2, 9, 2, 6, 7) + np.float32([1, 0]).reshape(2, 1, 1)
    moved = np.pad(x, ((0, 0), (0, 0), (0, 1), (0, 0)))[:, :, 1:]
    wanted = dnn.load_onnx(model_of("Conv", [x, k, bias], (1, 2), 19, how), engine=engine(2)).run({"x0": moved})["y"]
    found = net.run({"x0": x, "x2": down.reshape(none.shape), "x4": mask})["y"]
    np.testing.assert_allclose(found[:, :, 1:-1], wanted[:, :, 1:-1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [8, 9, 15, 20])
@pytest.mark.parametrize("axis", [1, 2])
def test_transforms(axis: int, length: int) -> None:
    """Against numpy's: whole, half, and back; cut and padded."""
    x = random(3, 9, 12, 2)
    complex_x = x[..., 0] + 1j * x[..., 1]
    cases = {
        (0, 0): (x, np.fft.fft(complex_x, length, axis)),
        (1, 0): (x, np.fft.ifft(complex_x, length, axis)),
        (0, 1): (x[..., :1], np.fft.rfft(x[..., 0], length, axis)),
        (1, 1): (x, np.fft.irfft(complex_x, length, axis)),
    }
    for (inverse, onesided), (given, wanted) in cases.items():
        how = {"inverse": inverse, "onesided": onesided}
        operands = [given, np.array(length), np.array(axis)]
        net = dnn.load_onnx(model_of("DFT", operands, (1, 2), 20, how), engine=engine(2))
        parts = (wanted.real, wanted.imag) if np.iscomplexobj(wanted) else (wanted,)
        np.testing.assert_allclose(net.run({"x0": given})["y"], np.stack(parts, -1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("fixed", [(1,), (1, 2)])
def test_transforms_of_frames(fixed: tuple[int, ...]) -> None:
    signal, window = random(2, 50, 1), np.hanning(16).astype(np.float32)
    data = model_of("STFT", [signal, np.array(7), window], fixed, 17, {})
    net = dnn.load_onnx(data, engine=engine(2))
    frames = np.stack([signal[:, i : i + 16, 0] for i in range(0, 35, 7)], 1) * window
    wanted = np.fft.rfft(frames)
    feeds = {f"x{i}": x for i, x in ((0, signal), (2, window)) if i not in fixed}
    both = np.stack([wanted.real, wanted.imag], -1)
    np.testing.assert_allclose(net.run(feeds)["y"], both, rtol=1e-5, atol=1e-5)
    without_parts = dnn.load_onnx(
        model_of("STFT", [signal[..., 0], np.array(7), window], (1, 2), 17, {}), engine=engine(2)
    )
    np.testing.assert_allclose(without_parts(signal[..., 0]), both, rtol=1e-5, atol=1e-5)


FOLDS: list[tuple[tuple[int, ...], ...]] = [  # image, window, strides, dilations, pads
    (image, (3, 2), strides, dilations, pads)
    for image in ((8, 9), (7, 6), (9, 12))
    for strides in ((1, 1), (2, 2), (3, 2), (4, 5))
    for dilations in ((1, 1), (2, 1))
    for pads in ((0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 2, 0), (2, 0, 1, 3))
] + [((11,), (4,), (3,), (1,), (1, 2)), ((5, 6, 7), (2, 3, 2), (2, 2, 3), (1, 1, 1), (1, 0, 1, 1, 2, 0))]  # fmt: skip


@pytest.mark.parametrize(("image", "window", "strides", "dilations", "pads"), FOLDS)
def test_windows_are_added_where_they_were(
    image: tuple[int, ...], window: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...],
    pads: tuple[int, ...],
) -> None:  # fmt: skip
    """Also where the last ones end before the padding does, or before the image."""
    axes = len(image)
    padded = [n + pads[i] + pads[axes + i] for i, n in enumerate(image)]
    counts = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(padded, window, strides, dilations, strict=True)]
    x = random(2, 3 * int(np.prod(window)), int(np.prod(counts)))
    sums = np.zeros((2, 3, *padded))
    columns = x.reshape(2, 3, *window, *counts)
    for tap in np.ndindex(*window):
        for place in np.ndindex(*counts):
            at = tuple(p * s + t * d for p, s, t, d in zip(place, strides, tap, dilations, strict=True))
            sums[(..., *at)] += columns[(slice(None), slice(None), *tap, *place)]
    inside = tuple(slice(pads[i], pads[i] + n) for i, n in enumerate(image))
    attributes = {"strides": strides, "dilations": dilations, "pads": pads}
    model = model_of("Col2Im", [x, np.array(image), np.array(window)], (1, 2), 20, attributes)
    net = dnn.load_onnx(model, engine=engine(2))
    np.testing.assert_allclose(net(x), sums[(..., *inside)], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("op", "arrays", "fixed", "said"),
    [
        ("GridSample", [IMAGE, random(2, 3, 3, 3)], (), "must have 2 numbers a place"),
        ("DFT", [IMAGE, None, np.array(3)], (2,), "has the axis 3, which is that of the parts"),
        ("DFT", [random(1, 9, 2), np.array(1 << 20)], (1,), "up to 4096 complex numbers are known"),
        ("STFT", [random(1, 9, 1), np.array(0), random(4)], (1,), "frames of 4 samples every 0 of 9"),
        ("Col2Im", [random(1, 6, 4), np.array([5, 5]), np.array([2, 3])], (1, 2), "has 6 rows of 4 for windows"),
    ],
)
def test_what_does_not_fit(op: str, arrays: list[Any], fixed: tuple[int, ...], said: str) -> None:
    with pytest.raises(dnn.AsmdnnError, match=said):
        dnn.load_onnx(model_of(op, arrays, fixed, 20, {}), engine=engine(2))
