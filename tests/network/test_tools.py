"""`asmdnn explain|analyze|dump|prove MODEL.onnx`, `Network.page` and `Network.dump`."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.cli.main import main
from asmdnn.errors import InvalidArguments, PlanError
from asmdnn.jit.digests import code_text
from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.dumping import specs_of
from asmdnn.network.page.model import boxes_of, moments_of, rows_of
from tests.explain.test_html import Page
from tests.network import wire
from tests.network.nets import compiled, engine, random, residual_graph

LEVELS = ("avx2", "avx512_core")


def residual(isa: str = "avx2") -> dnn.Network:
    g, outputs = residual_graph()
    return g.compile(engine=engine(1, isa), **outputs)


WORDS = ["--shape=x:1x3x6x7", "--constant=s:2", "--threads=1", "--isa=avx2"]


@pytest.mark.parametrize("isa", LEVELS)
def test_a_page_is_well_formed_and_alone(isa: str) -> None:
    net = residual(isa)
    text = net.page()
    page = Page(text)
    assert not re.search(r"(src|href)=['\"]?(https?:|//)|@import|url\(", text)
    assert len(page.ids()) == len(set(page.ids()))
    segment = compiled(net)
    boxes = [attributes for tag, attributes in page.elements if tag == "rect"]
    assert len(boxes) == len(segment.layout.arena)
    rows = [attributes for tag, attributes in page.elements if tag == "tr" and "data-step" in attributes]
    assert len(rows) == len(segment.steps)
    for step in segment.steps:
        assert step.pd.implementation in text
        for kernel in step.pd.plan.specs:
            assert kernel.name in text
    assert "Conv &#x27;stem&#x27; + Add, Clip, Mul, Div" in text
    assert "µs" not in text


@pytest.mark.isa("avx2")
def test_a_page_with_times() -> None:
    net = residual()
    assert 'class="n">µs' in net.page({"x": random(1, 3, 16, 16)}, repeats=1)
    assert all(seconds > 0 for seconds in net.times({"x": random(1, 3, 16, 16)}, repeats=1))
    for use in (net.page, net.times):
        with pytest.raises(InvalidArguments, match="feeds must be arrays for x"):
            use({})


def test_a_page_is_headed_by_what_is_said() -> None:
    assert "<h1>a &lt;b&gt;</h1>" in residual().page(title="a <b>") and "<h1>residual</h1>" in residual().page()
    with pytest.raises(InvalidArguments, match="title must be a text, not 3"):
        residual().page(title=3)  # type: ignore[arg-type]


def test_the_longest_bar_is_whole() -> None:
    widths = [float(width) for width in re.findall(r'<i style="width:([\d.]+)%">', residual().page())]
    assert max(widths) == 100.0


def test_nothing_alive_together_shares_bytes_in_the_picture() -> None:
    (segment,) = residual().segments
    assert isinstance(segment, CompiledSegment)
    boxes, moments = boxes_of(segment), moments_of(segment)
    assert moments == sorted(moments)
    assert len(moments) == len(segment.steps) + 1
    for i, one in enumerate(boxes):
        assert 0 <= one.offset <= one.offset + one.size <= segment.layout.arena_bytes
        assert 0 <= one.first <= one.last < moments[-1]
        for two in boxes[i + 1 :]:
            together = one.first <= two.last and two.first <= one.last
            assert not together or one.offset + one.size <= two.offset or two.offset + two.size <= one.offset
    rows = rows_of(segment, ())
    assert [phase.number for row in rows for phase in row.phases] == list(range(len(segment.plan.phases)))
    assert sum(row.cycles for row in rows) == segment.plan.cycles


def test_a_page_of_a_network_with_nodes_in_numpy() -> None:
    g = dnn.Graph()
    x = g.input("x", (2, 3), np.int64)
    net = g.compile(engine=engine(), fallback="numpy", y=g.apply("BitwiseAnd", x, np.ones((2, 3), np.int64)))
    text = net.page()
    Page(text)
    assert "in numpy" in text


@pytest.mark.parametrize("isa", LEVELS)
def test_dumped(isa: str, tmp_path: Path) -> None:
    net = residual(isa)
    net.dump(tmp_path / "kernels", ("bin", "s"))
    manifest = json.loads((tmp_path / "kernels/manifest.json").read_text())
    (segment,) = net.segments
    names = {kernel["name"] for kernel in manifest["kernels"]}
    assert {spec.name for spec in segment.plan.specs} < names  # type: ignore[union-attr]
    for name in names:
        assert (tmp_path / f"kernels/{name}.bin").stat().st_size > 0
        assert (tmp_path / f"kernels/{name}.s").exists()
    assert (tmp_path / "kernels/network.txt").read_text() == f"{net.explain()}\n"
    with pytest.raises(InvalidArguments, match=r"formats must be some of bin, s, nasm, o, h, not \('exe',\)"):
        net.dump(tmp_path, ("exe",))


@pytest.mark.isa("avx2")
def test_commands(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    cases = {
        ("explain",): "Conv 'first' + Relu, Mul: ",
        ("explain", f"--html={page}", "--measure"): "explained in",
        ("explain", "--primitive=0", "--kernel=none"): "primitive 0 Conv 'first'",
        ("analyze",): "all, ",
        ("dump", f"--output={tmp_path}/d", "--format=bin"): "the kernels of",
    }
    for words, expected in cases.items():
        assert main([*words, *WORDS, model]) == 0, words
        assert expected in capsys.readouterr().out, words
    Page(page.read_text())
    assert list((tmp_path / "d").glob("*.bin"))


def test_proved(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("iced_x86", reason="the proof extra: pip install iced-x86")
    for isa in LEVELS:
        assert main(["prove", *WORDS[:3], f"--isa={isa}", model]) == 0
        assert re.search(rf"{isa} .* kernels .* 1 plans .* proved", capsys.readouterr().out)


def test_proved_for_every_size_of_a_range(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each code once, for all numbers that the plans have it read."""
    pytest.importorskip("iced_x86", reason="the proof extra: pip install iced-x86")
    assert main(["prove", "--shape=x:1x3x5..9x7", "--jobs=2", "--json", *WORDS[1:], model]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["plans"] == 5
    net = dnn.load_onnx(model, constants={"s": np.float32(2)}, engine=dnn.Engine(threads=1, isa="avx2"))
    every = [spec for n in range(5, 10) for spec in specs_of(net.at({"x": (1, 3, n, 7)}).planned())]
    assert found["kernels"] == len({code_text(spec) for spec in every})
    assert found["sets"] == len({*every}) > found["kernels"]


def test_a_plan_of_a_range_that_is_wrong_is_named(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("iced_x86", reason="the proof extra: pip install iced-x86")
    check = CompiledSegment.check

    def checked(self: CompiledSegment) -> None:
        if self.graph.shape("x") == (1, 3, 6, 7):
            raise PlanError("a barrier is missing")
        check(self)

    monkeypatch.setattr(CompiledSegment, "check", checked)
    assert main(["prove", "--shape=x:1x3x6x6..8", *WORDS[1:], model]) == 1
    said = capsys.readouterr().out
    assert "(1, 3, 6, 7)" in said and "a barrier is missing" in said


def test_a_range_of_what_is_fixed_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fixed = tmp_path / "fixed.onnx"
    fixed.write_bytes(wire.model(wire.graph([wire.node("Relu", ["x"], ["y"])], {"x": (1, 4)}, ["y"])))
    assert main(["prove", "--shape=x:1x4,1x5", str(fixed)]) == 2
    assert "takes x 1x4 alone: leave out --shape" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["explain", "--nonsense"],
        ["explain", "--json"],
        ["explain", "--primitive=99"],
        ["explain", "--primitive=x"],
        ["explain", "--html=/no/such/folder/page.html"],
        ["analyze", "--svg=x.svg"],
        ["analyze", "--nonsense"],
        ["dump"],
        ["dump", "--output=/proc/x"],
        ["dump", "--output=x", "--format=exe"],
        ["prove", "--nonsense"],
        ["explain", "other.onnx"],
    ],
)
def test_bad_words(words: list[str], model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, *WORDS, model]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
