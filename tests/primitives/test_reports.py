"""Verbose lines: oneDNN's columns, and a problem string that brings the description back."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import asmdnn as dnn
from asmdnn import verbose
from asmdnn.cli.descriptors import primitive_desc_of
from asmdnn.cli.options import Reader
from asmdnn.errors import Unimplemented
from asmdnn.primitives.reports import TEMPLATE, _columns

AVX2 = dnn.Engine(isa="avx2", threads=1)


class Line(NamedTuple):
    """A line as oneDNN's converter takes it apart (scripts/verbose_converter/src/parse.py, version 1)."""

    operation: str
    engine: str
    primitive: str
    implementation: str
    prop_kind: str
    memory_descriptors: str
    attributes: str
    auxiliary: str
    problem_desc: str
    exec_time: str

    @property
    def mds(self) -> dict[str, dict[str, str]]:
        names = ("type", "properties", "kind", "tag", "strides", "flags")
        fields = (md.split(":") for md in self.memory_descriptors.split())
        return {md[0]: dict(zip(names, md[1:], strict=True)) for md in fields}

    def command(self) -> list[str]:
        """The words of `asmdnn bench` that this line stands for."""
        training = self.prop_kind == "forward_training"
        direction = "FWD_B" if "bia" in self.mds else "FWD_D" if training else "FWD_I"
        tags = [
            f"--{option}={'any' if 'a' in self.mds[md]['properties'] else self.mds[md]['tag']}"
            for option, md in (("stag", "src"), ("wtag", "wei"), ("dtag", "dst"))
        ]
        attributes = [f"--{attribute.replace(':', '=', 1)}" for attribute in self.attributes.split()]
        return ["--conv", f"--dir={direction}", *tags, *attributes, self.problem_desc]


def lines(output: str, operation: str = "") -> list[Line]:
    rows = [line.split(",") for line in output.splitlines()]
    assert all(row[:2] == ["asmdnn_verbose", "v1"] for row in rows)
    events = [row[3:] if row[2] == "primitive" else row[2:] for row in rows if "info" not in row[2:4]]
    return [Line(*event) for event in events if event[0].startswith(operation)]


@pytest.fixture(autouse=True)
def _everything(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(verbose.VARIABLE, "all")
    verbose.introduce.cache_clear()
    yield
    verbose.introduce.cache_clear()


def conv(tag: str = "any", ic: int = 8) -> dnn.ConvolutionForward:
    dims = {"src": (1, ic, 5, 5), "weights": (16, ic, 3, 3), "dst": (1, 16, 3, 3)}
    tags = {"src": tag, "weights": "any", "dst": tag}
    return dnn.ConvolutionForward(**{name: dnn.MemoryDesc(d, dnn.f32, tags[name]) for name, d in dims.items()})


def run(pd: dnn.PrimitiveDesc) -> None:
    dnn.Primitive(pd).execute(**{name: dnn.Memory(desc) for name, desc in pd.plan.tensors.items()})


def test_the_lines_of_a_primitive(capsys: pytest.CaptureFixture[str]) -> None:
    attr = dnn.Attr([dnn.Sum(0.5), dnn.Eltwise("relu", 0.0625)])  # a chain that no other test has made
    run(dnn.primitive_desc(conv(), attr, AVX2))
    output = capsys.readouterr().out
    head = output.splitlines()[:4]
    assert head[0].startswith("asmdnn_verbose,v1,info,asmdnn v")
    assert head[2].startswith("asmdnn_verbose,v1,info,cpu,isa:")
    assert head[3] == f"asmdnn_verbose,v1,primitive,info,template:{TEMPLATE}"
    assert TEMPLATE.split(",") == list(Line._fields)
    (call,) = lines(output, "exec")
    assert call[:-1] == (
        "exec", "cpu", "convolution", "direct:avx2", "forward_inference",
        "src:f32:a:blocked:aBcd8b::f0 wei:f32:a:blocked:ABcd8b16a::f0 dst:f32:a:blocked:aBcd8b::f0",
        "attr-post-ops:sum:0.5+eltwise_relu:0.0625", "alg:convolution_direct",
        "mb1_ic8oc16_ih5oh3kh3sh1dh0ph0_iw5ow3kw3sw1dw0pw0",
    )  # fmt: skip
    assert float(call.exec_time) > 0
    (creation,) = lines(output, "create")
    assert creation.operation in ("create:cache_miss", "create:cache_hit")
    assert "generated:" in creation.auxiliary or "disk:" in creation.auxiliary
    kernels = lines(output, "jit")
    assert any(kernel.implementation.startswith("conv_f32_") for kernel in kernels)
    for kernel in kernels:
        assert kernel.operation in ("jit:generated", "jit:disk")
        assert int(kernel.auxiliary.removeprefix("bytes:")) > 0
        assert float(kernel.exec_time) > 0


def test_a_second_primitive_comes_from_memory(capsys: pytest.CaptureFixture[str]) -> None:
    run(dnn.primitive_desc(conv(), engine=AVX2))
    capsys.readouterr()
    run(dnn.primitive_desc(conv(), engine=AVX2))
    output = capsys.readouterr().out
    (creation,) = lines(output, "create")
    assert creation.operation == "create:cache_hit"
    assert "memory:" in creation.auxiliary
    assert lines(output, "jit") == []


def test_bound_calls_and_executions(capsys: pytest.CaptureFixture[str]) -> None:
    pd = dnn.primitive_desc(conv(), engine=AVX2)
    call = dnn.Primitive(pd).bind(**{name: dnn.Memory(desc) for name, desc in pd.plan.tensors.items()})
    for _ in range(3):
        call()
    assert len(lines(capsys.readouterr().out, "exec")) == 3


def test_decided_when_the_primitive_is_made(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(verbose.VARIABLE)
    pd = dnn.primitive_desc(conv(), engine=AVX2)
    memories = {name: dnn.Memory(desc) for name, desc in pd.plan.tensors.items()}
    silent = dnn.Primitive(pd)
    monkeypatch.setenv(verbose.VARIABLE, "exec")
    silent.execute(**memories)
    silent.bind(**memories)()
    assert capsys.readouterr().out == ""


def test_every_refusal_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    desc = conv("nchw", ic=20)
    pd = dnn.primitive_desc(desc, engine=AVX2)
    (refused,) = lines(capsys.readouterr().out, "dispatch")
    assert (refused.implementation, pd.implementation) == ("direct:avx2", "reorder+direct:avx2")
    assert refused.exec_time == str(pd.refusals[0].reason).replace(",", ";")
    assert refused.mds["src"]["tag"] == "abcd"
    dnn.primitive_desc(desc, engine=AVX2)
    assert len(lines(capsys.readouterr().out, "dispatch")) == 1, "a plan that is kept keeps its refusals"


def test_refusals_when_nobody_accepts(capsys: pytest.CaptureFixture[str]) -> None:
    src = dnn.MemoryDesc((2, 12, 5, 5), dnn.u8, "nchw")
    with pytest.raises(Unimplemented):
        dnn.primitive_desc(dnn.Reorder(src, dnn.MemoryDesc(src.dims, dnn.u8, strides=(0, 25, 5, 1))), engine=AVX2)
    (refused,) = lines(capsys.readouterr().out, "dispatch")
    assert refused.primitive == "reorder"
    assert "overlap" in refused.exec_time


def random_command(rng: random.Random) -> list[str]:
    """A convolution in bench's words, with everything that it may say."""
    axes = {}
    for axis in "hw":
        k, s, d, p = rng.choice((1, 2, 3, 5)), rng.choice((1, 1, 2, 3)), rng.choice((0, 0, 1, 2)), rng.randrange(3)
        extent = (k - 1) * (d + 1) + 1
        p = min(p, extent)
        axes[axis] = {"i": rng.randrange(max(1, extent - p), 30), "k": k, "s": s, "d": d, "p": p}
    sizes = "".join(f"{kind}{axis}{value}" for axis, values in axes.items() for kind, value in values.items())
    chain = rng.choice(("", "sum", "relu", "sum+relu", "relu+sum+relu"))
    tag = rng.choice(("any", "abx", "axb", "nChw8c"))
    return [
        "--conv", f"--dir={rng.choice(('FWD_B', 'FWD_I', 'FWD_D'))}", f"--stag={tag}", f"--dtag={tag}",
        f"--attr-post-ops={chain}",
        f"mb{rng.randrange(1, 4)}ic{rng.randrange(1, 40)}oc{rng.randrange(1, 40)}{sizes}",
    ]  # fmt: skip


def planned(words: list[str]) -> dnn.PrimitiveDesc:
    reader = Reader()
    reader.read(words, Path.cwd())
    (case,) = reader.cases
    return primitive_desc_of(case, AVX2)


def test_a_lines_problem_brings_the_description_back(capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(20)
    for _ in range(150):
        words = random_command(rng)
        pd = planned(words)
        verbose.say("exec", *pd_columns(pd), "0.5")
        (line,) = lines(capsys.readouterr().out, "exec")
        again = planned(line.command())
        capsys.readouterr()
        assert (again.desc, again.attr) == (pd.desc, pd.attr), (words, line)


def pd_columns(pd: dnn.PrimitiveDesc) -> tuple[str, ...]:
    return _columns("exec", pd.desc, pd.attr, pd.implementation, pd.plan.tensors)


def test_other_primitives(capsys: pytest.CaptureFixture[str]) -> None:
    blocked = dnn.MemoryDesc((3, 12), dnn.f32, "aB8b")
    view = dnn.MemoryDesc((3, 12), dnn.f32, strides=(32, 2), offset0=1)
    run(dnn.primitive_desc(dnn.Reorder(view, blocked), engine=AVX2))
    u8 = dnn.MemoryDesc((2, 12, 5, 5), dnn.u8, "nhwc")
    shuffle = dnn.Shuffle(u8, u8, 1, 4, dnn.PropKind.backward_data)
    run(dnn.primitive_desc(shuffle, engine=AVX2))
    reorder, shuffled = lines(capsys.readouterr().out, "exec")
    assert (reorder.primitive, reorder.prop_kind, reorder.problem_desc) == ("reorder", "undef", "3x12")
    assert reorder.memory_descriptors == "src:f32:0:blocked:ab:32x2:f0 dst:f32:p:blocked:aB8b::f0"
    assert reorder.auxiliary == ""
    assert (shuffled.primitive, shuffled.prop_kind, shuffled.problem_desc) == ("shuffle", "backward_data", "2x12x5x5")
    assert shuffled.auxiliary == "axis:1 group:4"
    assert shuffled.mds["dst"] == {
        "type": "u8", "properties": "", "kind": "blocked", "tag": "acdb", "strides": "", "flags": "f0"
    }  # fmt: skip


def test_a_compensation(capsys: pytest.CaptureFixture[str]) -> None:
    src, dst = (dnn.MemoryDesc((3, 12), dtype, "ab") for dtype in (dnn.f32, dnn.s8))
    run(dnn.primitive_desc(dnn.Reorder(src, dst, compensation=2), engine=AVX2))
    (line,) = lines(capsys.readouterr().out, "exec")
    assert line.auxiliary == "oflag:s8s8_comp:2"
    assert line.mds["compensation"]["type"] == "s32"
