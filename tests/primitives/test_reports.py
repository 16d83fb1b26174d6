"""Verbose lines: oneDNN's columns, and a problem string that brings the description back."""

import random
import re
from collections.abc import Iterator

import pytest

import asmdnn as dnn
from asmdnn import environment, verbose
from asmdnn.bench.descriptors import primitive_desc_of
from asmdnn.errors import Unimplemented
from asmdnn.primitives.attributes.words import attribute_words, post_op_word
from asmdnn.primitives.core.reports import TEMPLATE, _columns
from tests.primitives.verbose_lines import Line, lines
from tests.support.cases import read

AVX2 = dnn.Engine(isa="avx2", threads=1)


@pytest.fixture(autouse=True)
def _everything(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(environment.VERBOSE, "all")
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
    monkeypatch.delenv(environment.VERBOSE)
    pd = dnn.primitive_desc(conv(), engine=AVX2)
    memories = {name: dnn.Memory(desc) for name, desc in pd.plan.tensors.items()}
    silent = dnn.Primitive(pd)
    monkeypatch.setenv(environment.VERBOSE, "exec")
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
    refused = lines(capsys.readouterr().out, "dispatch")  # one for each implementation
    assert {line.primitive for line in refused} == {"reorder"}
    assert any("overlap" in line.exec_time for line in refused)


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
    (case,) = read(" ".join(words))
    return primitive_desc_of(case, AVX2)


def test_a_lines_problem_brings_the_description_back(capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(20)
    for _ in range(150):
        words = random_command(rng)
        pd, again, line = twice_planned(words, capsys)
        assert (again.desc, again.attr) == (pd.desc, pd.attr), (words, line)


def twice_planned(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> tuple[dnn.PrimitiveDesc, dnn.PrimitiveDesc, Line]:
    """By the words, and by those of the line that a call of it writes."""
    pd = planned(words)
    verbose.say("exec", *pd_columns(pd), "0.5")
    (line,) = lines(capsys.readouterr().out, "exec")
    again = planned(line.command())
    capsys.readouterr()
    return pd, again, line


def pd_columns(pd: dnn.PrimitiveDesc) -> tuple[str, ...]:
    return _columns("exec", pd.desc, pd.attr, pd.implementation, pd.plan.tensors)


CHAINS = (
    "", "sum:0.5", "relu:0.1+sum",
    "sum:0.25:3+linear:2:1:0.5", "tanh+add:f32:per_oc+prelu:per_oc", "mul:f32:1+gelu_erf",
    "swish:0.16666666666666666+max:f32:common+clip:-1e-7:1e20", "sub:f32:per_tensor:abx+prelu:per_tensor",
)  # fmt: skip


def random_other(rng: random.Random) -> list[str]:
    """Any other primitive in bench's words."""
    driver = rng.choice(("matmul", "ip", "eltwise", "binary", "gemm"))
    m, k, n = (rng.randrange(2, 20) for _ in range(3))
    tag = rng.choice(("abx", "axb"))
    chain = f"--attr-post-ops={rng.choice(CHAINS).replace('abx', tag)}"
    matrix = rng.choice(("any", "ab", "ba"))
    if driver == "matmul":
        bias = [f"--bia_dt={rng.choice(('f32', 'undef'))}", f"--bia_mask={rng.randrange(4)}"]
        return ["--matmul", chain, *bias, f"--wtag={matrix}", f"--dtag={rng.choice(('any', 'ab'))}", f"{m}x{k}:{k}x{n}"]
    if driver == "ip":
        direction = rng.choice(("FWD_B", "FWD_I", "FWD_D", "BWD_D", "BWD_W", "BWD_WB"))
        chain = chain if "FWD" in direction else "--attr-post-ops="
        return ["--ip", chain, f"--dir={direction}", f"--stag={rng.choice(('any', tag))}", f"mb{m}ic{k}ih3iw2oc{n}"]
    if driver == "eltwise":
        alg = rng.choice(("exp", "linear", "tanh_dst", "pow", "gelu_tanh"))
        backward = alg == "tanh_dst" or rng.random() < 0.3
        numbers = ["--alpha=0.1", "--beta=1.75"] if alg in ("linear", "pow") else []
        direction = "BWD_D" if backward else rng.choice(("FWD_I", "FWD_D"))
        chain = "--attr-post-ops=" if backward else chain
        return ["--eltwise", chain, f"--dir={direction}", f"--alg={alg}", *numbers, f"--tag={tag}", f"{m}x{k}x3"]
    if driver == "binary":
        return ["--binary", chain, f"--alg={rng.choice(('add', 'div', 'ge'))}", f"--stag={tag}", f"{m}x{k}x3:1x{k}x1"]
    scales = [f"--alpha={rng.choice(('1', '0.5'))}", f"--beta={rng.choice(('0', '1', '0.5'))}"]
    return ["--gemm", f"--transa={rng.choice('NT')}", f"--transb={rng.choice('NT')}", *scales, f"{m}x{k}:{k}x{n}"]


def test_so_does_that_of_every_other_primitive(capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(21)
    for _ in range(150):
        words = random_other(rng)
        pd, again, line = twice_planned(words, capsys)
        assert (again.desc, attribute_words(again.attr)) == (pd.desc, attribute_words(pd.attr)), (words, line)
        assert [desc.dims for desc in again.attr.tensors().values()] == [d.dims for d in pd.attr.tensors().values()]


def test_words_of_attributes() -> None:
    plain = dnn.MemoryDesc((2, 19, 5, 1), dnn.f32, "acdb")
    apart = dnn.MemoryDesc((1, 19, 1, 1), dnn.f32, strides=(38, 2, 2, 2))
    swirl = dnn.PostOp(lambda x: dnn.where(x > 0, x, 0.25 * dnn.tanh(x)))
    same = dnn.PostOp(lambda y, c: dnn.where(y > 0, y, c * dnn.tanh(y)), c=0.25)
    chain = [
        dnn.Sum(), dnn.Sum(0.5), dnn.Sum(1, 3), dnn.Eltwise("tanh"), dnn.Eltwise("tanh", scale=0.5),
        dnn.Eltwise("linear", 0, 1), dnn.Eltwise("clip", -1e-7, 1e20), dnn.Eltwise("relu", 0.1), swirl,
        dnn.Binary("add", plain), dnn.Binary("ge", apart), dnn.Binary("max", dnn.MemoryDesc((1,) * 4, dnn.f32, "any")),
        dnn.PReLU(plain), dnn.PReLU(apart),
    ]  # fmt: skip
    words = [post_op_word(op) for op in chain]
    assert re.fullmatch("user:[0-9a-f]{8}", words[8])
    assert words == [
        "sum", "sum:0.5", "sum:1:3", "eltwise_tanh", "eltwise_tanh:0:0:0.5", "eltwise_linear:0:1",
        "eltwise_clip:-1e-07:1e20", "eltwise_relu:0.1", post_op_word(same), "binary_add:f32:7:acdb",
        "binary_ge:f32:2:abcd:38x2x2x2", "binary_max:f32:0:any", "prelu:7", "prelu:2",
    ]  # fmt: skip
    assert post_op_word(dnn.PostOp(lambda x: dnn.where(x > 0, x, 0.5 * dnn.tanh(x)))) != words[8]
    attr = dnn.Attr(chain[1:3], {"src": 0, "dst": 2}, {"src": 0}, scratchpad_mode="user")
    written = "attr-scratchpad:user attr-scales:dst:2+src:0 attr-zero-points:src:0 attr-post-ops:sum:0.5+sum:1:3"
    assert attribute_words(attr) == written
    assert attribute_words(dnn.Attr()) == ""


def test_a_chain_with_everything_is_executed(capsys: pytest.CaptureFixture[str]) -> None:
    src, weights = dnn.MemoryDesc((4, 16), dnn.f32, "ab"), dnn.MemoryDesc((16, 8), dnn.f32, "ab")
    row = dnn.MemoryDesc((1, 8), dnn.f32, "ab")
    swirl = dnn.PostOp(lambda x, c: dnn.where(x > 0, x, c * x), c=row)
    attr = dnn.Attr([dnn.Sum(1, 2), dnn.Eltwise("exp", scale=0.5), dnn.Binary("mul", row), dnn.PReLU(row), swirl])
    bias = dnn.MemoryDesc((1, 8), dnn.f32, "ab")
    desc = dnn.MatMul(src, weights, dnn.MemoryDesc((4, 8), dnn.f32, "ab"), bias)
    run(dnn.primitive_desc(desc, attr, AVX2))
    (call,) = lines(capsys.readouterr().out, "exec")
    assert (call.primitive, call.prop_kind, call.problem_desc) == ("matmul", "undef", "4x16:16x8")
    assert (
        call.attributes
        == f"attr-post-ops:sum:1:2+eltwise_exp:0:0:0.5+binary_mul:f32:2:ab+prelu:2+{post_op_word(swirl)}"
    )
    assert call.mds["bia"]["flags"] == "f0_mask2"
    assert call.mds["binary_2"]["tag"] == "ab"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--eltwise --alg=exp 2x3", ("eltwise", "forward_training", "alg:eltwise_exp alpha:0 beta:0", "2x3")),
        ("--eltwise --dir=BWD_D --alg=elu_dst --alpha=0.1 2x3",
         ("eltwise", "backward_data", "alg:eltwise_elu_use_dst_for_bwd alpha:0.1 beta:0", "2x3")),
        ("--binary --alg=mul 2x3:1x3", ("binary", "undef", "alg:binary_mul", "2x3:1x3")),
        ("--matmul 5x2x3:1x3x4", ("matmul", "undef", "", "5x2x3:1x3x4")),
        ("--ip mb2ic16ih3oc8", ("inner_product", "forward_training", "", "mb2ic16ih3iw3oc8")),
        ("--ip --dir=BWD_D mb2ic16oc8", ("inner_product", "backward_data", "", "mb2ic16oc8")),
        ("--ip --dir=BWD_WB mb2ic16iw3oc8", ("inner_product", "backward_weights", "", "mb2ic16iw3oc8")),
        ("--gemm --beta=1 --alpha=2 2x3:3x4", ("gemm", "undef", "alpha:any beta:1", "2x3:3x4")),
    ],
)  # fmt: skip
def test_names_are_onednns(words: str, expected: tuple[str, ...]) -> None:
    pd = planned(words.split())
    _, _, _, primitive, _, kind, _, _, auxiliary, problem = pd_columns(pd)
    assert (primitive, kind, auxiliary, problem) == expected


def test_attributes_of_a_reorder(capsys: pytest.CaptureFixture[str]) -> None:
    src, dst = dnn.MemoryDesc((3, 12), dnn.f32, "ab"), dnn.MemoryDesc((3, 12), dnn.s8, "ba")
    attr = dnn.Attr([dnn.Sum(0.5)], scales={"src": 0, "dst": 2}, zero_points={"dst": 0})
    pd = dnn.primitive_desc(dnn.Reorder(src, dst), attr, AVX2)
    verbose.say("exec", *pd_columns(pd), "0.5")
    (line,) = lines(capsys.readouterr().out, "exec")
    assert line.attributes == "attr-scales:dst:2+src:0 attr-zero-points:dst:0 attr-post-ops:sum:0.5"
    assert line.mds["dst_scales"]["type"] == "f32"


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
