"""A folder of images by several workers: equal results whoever computes, also after a worker or the run was killed."""

import argparse
import json
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import asmdnn as dnn
from examples.batch.__main__ import main, options, run
from examples.batch.results import done_so_far
from examples.batch.work import Row, answers

pytest.importorskip("PIL.Image", reason="the demo extra")
from PIL import Image

pytestmark = pytest.mark.isa("avx2")
CLUSTERS = [
    pytest.param("dask", marks=[pytest.mark.slow, pytest.mark.skipif(not find_spec("distributed"), reason="no Dask")]),
    pytest.param("ray", marks=[pytest.mark.slow, pytest.mark.skipif(not find_spec("ray"), reason="no Ray")]),
]


def dies_once(pack: str, paths: Sequence[str]) -> list[Row]:
    """A worker that is gone at its first chunk: the marker is made by one process alone."""
    try:
        os.close(os.open(f"{pack}.died", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return answers(pack, paths)
    os._exit(9)


def dies_always(pack: str, paths: Sequence[str]) -> list[Row]:
    os._exit(9)


@pytest.fixture
def given(tmp_path: Path) -> argparse.Namespace:
    """Seven pictures, one in a folder of its own, a text that is none, and a network that tells them apart."""
    random = np.random.default_rng(0)
    graph = dnn.Graph("colours")
    x = graph.input("x", (1, 3, 16, 16))
    seen = graph.apply("Conv", x, random.standard_normal((8, 3, 3, 3)).astype(np.float32), pads=(1, 1, 1, 1))
    rows = graph.apply("Flatten", graph.apply("GlobalAveragePool", graph.apply("Relu", seen)))
    graph.compile(y=rows, engine=dnn.Engine(isa="avx2", threads=1)).save(tmp_path / "net.pack")
    folder = tmp_path / "pictures"
    (folder / "more").mkdir(parents=True)
    for i in range(7):
        place = folder / ("more" if i == 6 else ".") / f"{i}.png"
        Image.fromarray(random.integers(0, 255, (20, 30, 3), np.uint8)).save(place)
    (folder / "notes.txt").write_text("no picture")
    return options([str(folder), f"{tmp_path}/net.pack", f"--out={tmp_path}/out.jsonl", "--chunk=2"])


def rows_of(path: Path) -> list[str]:
    return sorted(path.read_text().splitlines())


def alone(given: argparse.Namespace) -> list[str]:
    paths = sorted(map(str, given.folder.rglob("*.png")))
    return sorted(json.dumps(row) for row in answers(given.pack, paths))


@pytest.mark.parametrize("by", ["processes", *CLUSTERS])
def test_a_killed_worker_costs_nothing_but_time(
    by: str, given: argparse.Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    given.by = by
    assert run(given, dies_once) == 0
    assert Path(f"{given.pack}.died").exists()
    assert rows_of(given.out) == alone(given)
    assert capsys.readouterr().out.endswith(f"7 images, 0 known before, 0 could not be read: {given.out}\n")


def test_a_run_goes_on_where_it_was_cut_off(given: argparse.Namespace, capsys: pytest.CaptureFixture[str]) -> None:
    whole = alone(given)
    given.out.write_text("\n".join(whole[:3]) + "\n" + whole[3][:20])  # the last line is not whole
    assert run(given) == 0
    assert rows_of(given.out) == whole
    assert "3 known before" in capsys.readouterr().out
    before = given.out.read_bytes()
    assert run(given) == 0 and given.out.read_bytes() == before  # nothing is left to do


def test_a_chunk_that_kills_every_worker_is_an_error(given: argparse.Namespace) -> None:
    given.chunk = 16
    with pytest.raises(RuntimeError, match="workers died 4 times: 1 chunks have no answers"):
        run(given, dies_always)
    assert done_so_far(given.out) == set()


def test_what_is_no_picture_is_named(given: argparse.Namespace) -> None:
    (given.folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nno more")
    (broken,) = answers(given.pack, [str(given.folder / "broken.png")])
    assert broken["file"].endswith("broken.png") and broken["error"] and "best" not in broken


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["{folder}", "{pack}"], "--out"),
        (["{folder}/none", "{pack}", "--out=o"], "is no folder"),
        (["{folder}", "{folder}/notes.txt", "--out=o"], "notes.txt"),
        (["{folder}", "{pack}", "--out=o", "--workers=0"], "--workers must be from 1 to 1024"),
        (["{folder}", "{pack}", "--out=o", "--chunk=-1"], "--chunk above 0"),
        (["{folder}", "{pack}", "--out=o", "--by=spark"], "invalid choice"),
    ],
)
def test_wrong_words(words: list[str], why: str, given: argparse.Namespace, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([word.format(folder=given.folder, pack=given.pack) for word in words])
    assert stopped.value.code == 2 and why in capsys.readouterr().err


def test_a_network_of_something_else_is_refused(tmp_path: Path, given: argparse.Namespace) -> None:
    graph = dnn.Graph("pair")
    graph.compile(y=graph.input("a", (2,)) + 1.0, engine=dnn.Engine(isa="avx2", threads=1)).save(tmp_path / "p.pack")
    with pytest.raises(dnn.InvalidArguments, match="must take one image, 1x3xHxW"):
        answers(str(tmp_path / "p.pack"), [])
