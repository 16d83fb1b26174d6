"""The demo as a whole: its exit status, what it prints, its picture."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import asmdnn as dnn
from asmdnn.errors import AsmdnnError
from examples import models, ocr, quantize
from tools import demo

ENGINE = dnn.Engine(threads=1)
LINES = 4  # of the page, in fewer bits


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demo, "TIMING_S", 0.001)
    monkeypatch.setattr(demo, "PICTURE", tmp_path / "new" / "page.png")
    monkeypatch.setattr(demo, "cpu_brand", lambda: "some CPU")
    every = quantize.lines_of_page
    monkeypatch.setattr(quantize, "lines_of_page", lambda engine: every(engine)[:LINES])


def test_the_page_is_read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if not all((models.KEPT / package).is_dir() for package in (ocr.PACKAGE, "scikit-image")):
        pytest.skip("the models are not there: make models downloads them")
    monkeypatch.setattr(models, "download", lambda: None)
    assert demo.run(ENGINE, docs=False) == 0
    out = capsys.readouterr().out
    assert f"some CPU: ISA {ENGINE.isa}, threads 1" in out
    assert "Let us first determine markers of the coins and the" in out
    assert out.count("nodes, proved") == 3
    assert f"finds lines: {ocr.DETECTOR}" in out
    with Image.open(demo.PICTURE) as image:
        assert image.size == (1400, 700 * 191 // 384)


def test_no_model_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise models.MissingModel("magika could not be downloaded: no network")

    monkeypatch.setattr(models, "download", missing)
    with pytest.raises(AsmdnnError, match="no network; make demo-kernels needs no model"):
        demo.run(ENGINE, docs=False)


def test_a_wrong_network_is_seen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    graph = dnn.Graph()
    x = graph.input("x", (1, 64))
    part = demo.Part("part", "file", graph.compile(y=graph.apply("Sigmoid", x), engine=ENGINE), np.ones((1, 64), "f4"))
    right = part.net(part.x)
    monkeypatch.setattr(demo, "peer_of", lambda part, threads: lambda: [right])
    assert demo.beside_peer(part, 1)
    monkeypatch.setattr(demo, "peer_of", lambda part, threads: lambda: [right + 0.01])
    assert not demo.beside_peer(part, 1)
    assert "WRONG: more than 1e-04" in capsys.readouterr().out
