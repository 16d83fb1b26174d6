"""`asmdnn studio`: what the page's numbers are, that the page is whole, and what is refused."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.cli import studio
from asmdnn.cli.main import main
from asmdnn.network.studio.page import html_of
from asmdnn.network.studio.variants import part_cycles, together, variant_of
from asmdnn.planning.phase import Phase, View
from tests.explain.test_html import Page
from tests.network import wire
from tests.network.nets import compiled, random, residual_graph
from tests.network.test_tools import WORDS

DATA = re.compile(r'<script id="variants" type="application/json">(.*?)</script>', re.DOTALL)


def residual(threads: int, machine: str = "zen3") -> dnn.Network:
    g, outputs = residual_graph()
    return g.compile(engine=dnn.Engine(machine=machine, threads=threads), **outputs)


def phase(cycles: list[int], **how: bool) -> Phase:
    return Phase((), (View("x"),), np.zeros((len(cycles), 2), np.int64), np.array(cycles, np.int32), **how)


def test_a_phase_takes_what_its_slowest_thread_takes() -> None:
    phases = (phase([3, 3, 3, 9]), phase([5, 5], alone=True))
    parts = part_cycles(phases, 2)
    assert parts.tolist() == [[9, 9], [10, 0]]
    assert together(phases, parts) == 19


def test_threads_wait_only_at_barriers() -> None:
    uneven = (phase([9, 1]), phase([1, 9], independent=True))
    assert part_cycles(uneven, 2).tolist() == [[9, 1], [1, 9]]
    assert together(uneven, part_cycles(uneven, 2)) == 10  # not 18: nobody waits between the two


@pytest.mark.parametrize("threads", (1, 2, 3))
def test_a_variant_says_what_its_plan_says(threads: int) -> None:
    planned = residual(threads).planned()
    segment = compiled(planned)
    found = variant_of(planned, "f32")
    assert (found.machine, found.threads, found.precision) == ("zen3", threads, "f32")
    assert found.cycles_alone == segment.plan.cycles == sum(step.cycles for step in found.steps)
    assert found.cycles_alone / threads <= found.cycles <= found.cycles_alone
    assert threads > 1 or found.cycles == found.cycles_alone == sum(step.slowest for step in found.steps)
    for step in found.steps:
        assert step.slowest <= step.cycles == sum(cycles for _, _, cycles in step.kernels)
    assert len(found.boxes) == len(segment.layout.arena) and found.arena_bytes == segment.layout.arena_bytes


def test_the_graph_leads_from_what_is_made_to_what_reads_it() -> None:
    steps = variant_of(residual(1).planned(), "f32").steps
    labels = [step.label.split(" + ")[0] for step in steps]
    stem, block, head = (labels.index(name) for name in ("Conv 'stem'", "Conv 'block'", "Gemm 'head'"))
    assert steps[stem].sources == () and steps[block].sources == (stem,)

    def made_from(step: int) -> set[int]:
        return {step}.union(*(made_from(source) for source in steps[step].sources))

    assert {stem, block} < made_from(head)  # through a join, whose parts two steps write
    assert all(source < number for number, step in enumerate(steps) for source in step.sources)


def test_names_in_the_data_end_no_script() -> None:
    g = dnn.Graph("</script><b>")
    x = g.input("x", (1, 8))
    net = g.compile(engine=dnn.Engine(machine="zen3", threads=1), y=g.apply("Relu", x, name="</script><i>"))
    text = html_of("a </title> b", [variant_of(net.planned(), "f32")])
    Page(text)
    (data,) = DATA.findall(text)
    assert json.loads(data)[0]["steps"][0]["nodes"] == ["Relu '</script><i>'"]
    assert "a &lt;/title&gt; b" in text and "<i>" not in text


def test_the_command_plans_every_choice(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    words = ["--shape=x:1x3x6x7", "--constant=s:2", "--threads=1,2", "--machine=zen3,zen4", "--precision=f32"]
    assert main(["studio", f"--html={page}", *words, model]) == 0
    assert capsys.readouterr().out == f"{model} in {page}: 4 plans\n"
    text = page.read_text()
    assert not re.search(r"(src|href)=['\"]?(https?:|//)|@import|url\(", text)
    assert len(Page(text).ids()) == len(set(Page(text).ids()))
    (data,) = DATA.findall(text)
    variants = json.loads(data)
    assert [(v["machine"], v["threads"]) for v in variants] == [("zen3", 1), ("zen3", 2), ("zen4", 1), ("zen4", 2)]
    assert {v["isa"] for v in variants} == {"avx2", "avx512_core_bf16"}
    assert all(step["seconds"] is None for v in variants for step in v["steps"])


@pytest.mark.isa("avx2")
def test_measured_where_the_plan_is_of_this_machine(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ASMDNN_MACHINE", "zen3")
    page = tmp_path / "page.html"
    words = [*WORDS[:2], "--threads=1", "--machine=zen3,zen4", "--precision=f32", "--measure", f"--html={page}"]
    assert main(["studio", *words, model]) == 0
    here, there = json.loads(DATA.findall(page.read_text())[0])
    assert all(step["seconds"] > 0 for step in here["steps"])
    assert all(step["seconds"] is None for step in there["steps"])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--threads=1,"], "--threads=1, has an empty word"),
        (["--threads=x"], "--threads=x must be a number from 0 on"),
        (["--threads=0,-1"], "-1 must be a number from 0 on"),
        (["--machine=zen3,pentium"], "pentium"),
        (["--precision=f32,f99"], "f99"),
        (["--html="], "no option '--html='"),
        (["--html=/no/such/folder/page.html"], "cannot be written"),
        (["--nonsense"], "studio: no option '--nonsense': see asmdnn studio --help"),
        ([f"--threads={','.join(map(str, range(1, 300)))}"], f"plans are more than {studio.MOST}"),
        (["second.onnx"], "there are two models"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str], why: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = {word.partition("=")[0] for word in words}
    usual = [w for w in ("--threads=1", "--machine=zen3", "--precision=f32", f"--html={tmp_path}/p.html")
             if w.partition("=")[0] not in named]  # fmt: skip
    assert main(["studio", *WORDS[:2], *usual, *words, model]) == 2
    error = capsys.readouterr().err
    assert why in error and error.count("\n") == 1 and error.startswith("asmdnn: ")
    assert not list(tmp_path.glob("p.html"))


def test_models_without_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["studio", str(tmp_path / "missing.onnx")]) == 2
    assert "missing.onnx" in capsys.readouterr().err
    path = tmp_path / "constant.onnx"
    path.write_bytes(wire.model(wire.graph([wire.node("Relu", ["w"], ["y"])], {}, ["y"], {"w": random(3)})))
    assert main(["studio", f"--html={tmp_path}/p.html", "--machine=zen3", str(path)]) == 2
    assert "computes nothing at run time" in capsys.readouterr().err
