"""The demo as a whole, on fewer layers: its exit status, its header, its picture."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import asmdnn as dnn
from asmdnn.bench.peers import onednn_library
from asmdnn.errors import AsmdnnError
from tools import demo_kernels as demo
from tools import filter_bank, resnet_table

ENGINE = dnn.Engine(threads=1)
LEAST_COLOURS = 1000  # of a sheet that shows something


def no_peer() -> None:
    raise AsmdnnError("--peer=onednn: no oneDNN 3 library")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The middle of the photograph, one layer, no peer, files in a temporary directory."""
    (first, *_) = resnet_table.network(ENGINE, "")
    middle = demo.photograph()[150:270, 200:302]
    monkeypatch.setattr(demo, "photograph", lambda: middle)
    monkeypatch.setattr(resnet_table, "network", lambda engine, peer: [first])
    monkeypatch.setattr(onednn_library, "load", no_peer)
    monkeypatch.setattr(demo, "SHEET", tmp_path / "new" / "sheet.png")
    monkeypatch.setattr(demo, "cpu_brand", lambda: "some CPU")


def test_all_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.run(ENGINE, docs=False) == 0
    out = capsys.readouterr().out
    assert f"some CPU: ISA {ENGINE.isa}, threads 1" in out
    assert "against scipy in float64: right" in out
    assert str(demo.SHEET) in out
    assert "1 of 1 layers are right" in out
    assert "no speedup: no oneDNN 3 library" in out
    with Image.open(demo.SHEET) as image:
        assert image.format == "PNG"
        assert len(image.convert("RGB").getcolors(image.width * image.height) or ()) > LEAST_COLOURS


def test_a_wrong_pixel_fails_the_demo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    right = filter_bank.convolve

    def wrong(*arguments: object) -> filter_bank.Floats:
        result = right(*arguments)  # type: ignore[arg-type]
        result[0, 63, 59, 50] += 1
        return result

    monkeypatch.setattr(filter_bank, "convolve", wrong)
    assert demo.run(ENGINE, docs=False) == 1
    assert "1 of 195840 elements are wrong, the first at (0, 63, 59, 50)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "named"),
    [(["--isa", "sse2"], "sse2"), (["--threads", "-1"], "-1"), (["--isa", "avx512_core"], "avx512_core")],
)
def test_bad_options_are_one_line_and_status_2(words: list[str], named: str) -> None:
    environment = {**os.environ, "ASMDNN_MAX_CPU_ISA": "avx2"}  # no machine executes avx512_core under this cap
    done = subprocess.run(
        [sys.executable, demo.__file__, *words], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 2
    assert named in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_small_sheet_has_few_colours(tmp_path: Path) -> None:
    filters = filter_bank.bank()
    values = filter_bank.scipy_answer(demo.photograph().transpose(2, 0, 1)[None], filter_bank.colour_weights(filters))
    path = tmp_path / "images" / "small.png"
    demo.write_small(demo.sheet(demo.photograph(), filters, values[0].astype("f4")), path)
    with Image.open(path) as image:
        assert image.mode == "P"
        assert len(image.getcolors() or ()) <= demo.DOCS_COLOURS
