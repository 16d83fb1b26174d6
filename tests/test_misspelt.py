"""Every word that a user may write wrong: what refuses it names the one that it resembles."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import asm, ops, ukernel
from asmdnn.analyze import mca
from asmdnn.aten.options import of_options
from asmdnn.cli.main import COMMANDS, main
from asmdnn.errors import counted, did_you_mean

X, W, A = np.ones((1, 8, 6, 6), np.float32), np.ones((8, 8, 3, 3), np.float32), np.ones((4, 4), np.float32)
ROWS, CELL = (
    np.ones((3, 2, 6), np.float32),
    {name: np.ones((1, 1, n, 1, 5), np.float32) for name, n in (("weights_layer", 6), ("weights_iter", 5))},
)
SRC = dnn.MemoryDesc(X.shape, dnn.f32, "nchw")
PROBLEM, BYTES = "mb1ic16ih8oc16oh8kh3ph1", A.astype(np.int8)


def graph() -> tuple[dnn.Graph, Any]:
    made = dnn.Graph()
    return made, made.input("image", X.shape)


def node(op: str, *operands: Any, **attributes: Any) -> Any:
    made, image = graph()
    return made.apply(op, image, *operands, **attributes)


def net(**options: Any) -> Any:
    made, image = graph()
    return made.compile(y=made.apply("Relu", image), **options)


def train(**options: Any) -> Any:
    made = dnn.Graph()
    loss = made.apply(
        "ReduceMean", made.apply("MatMul", made.input("x", (4, 4)), made.parameter("w", (4, 4))), keepdims=0
    )
    return made.train(loss, **({"optimizer": dnn.optim.SGD(lr=0.1)} | options))


def ops_pooling(alg: Any) -> Any:
    return dnn.PoolingForward(alg, SRC, SRC, (1, 1))


def body(use: Callable[..., Any]) -> Any:
    return asm.function("void f(float *x)", isa="avx2")(use)


# What is written wrong, and the word that is meant.
PYTHON: list[tuple[Callable[[], Any], str]] = [
    (lambda: dnn.MemroyDesc, "MemoryDesc"),
    (lambda: ops.sofmax, "softmax"),
    (lambda: asm.funtcion, "function"),
    # types, formats, machines
    (lambda: dnn.MemoryDesc((2, 3), "f23", "ab"), "f32"),  # type: ignore[arg-type]
    (lambda: dnn.Memory.from_array(A, "bf61"), "bf16"),  # type: ignore[arg-type]
    (lambda: ops.eltwise(X, "relu", dtype="bf61"), "bf16"),  # type: ignore[arg-type]
    (lambda: ops.pack_quantized_weights(A, dtype="u44"), "u4"),  # type: ignore[arg-type]
    (lambda: dnn.MemoryDesc(X.shape, dnn.f32, "nchww"), "nchw"),
    (lambda: dnn.MemoryDesc(X.shape, dnn.f32, "nChw8d"), "nChw8c"),
    (lambda: dnn.MemoryDesc(X.shape, dnn.f32, "anny"), "any"),
    (lambda: dnn.Engine(isa="avx512_croe"), "avx512_core"),  # type: ignore[arg-type]
    (lambda: dnn.Engine(machine="zen33"), "zen3"),
    (lambda: dnn.Engine(kind="ccpu"), "cpu"),
    (lambda: dnn.Engine(deterministic="bacth"), "batch"),  # type: ignore[arg-type]
    (lambda: dnn.max_cpu_isa("avx22").__enter__(), "avx2"),  # type: ignore[arg-type]
    (lambda: dnn.set_memory_limits(cals=1 << 20), "calls"),
    # algorithms
    (lambda: ops.conv2d(X, W, algorithm="winogrd"), "winograd"),  # type: ignore[arg-type]
    (lambda: ops.eltwise(X, "rleu"), "relu"),  # type: ignore[arg-type]
    (lambda: ops.binary("ad", X, X), "add"),  # type: ignore[arg-type]
    (lambda: ops.reduce(X, "men"), "mean"),  # type: ignore[arg-type]
    (lambda: ops.lrn(X, alg="lrn_across_chanels"), "lrn_across_channels"),  # type: ignore[arg-type]
    (lambda: ops.pad(A, 1, "reflct"), "reflect"),  # type: ignore[arg-type]
    (lambda: ops.resize(X, 3, mode="linaer"), "linear"),  # type: ignore[arg-type]
    (lambda: ops.resize(X, 3, coordinates="half_pixle"), "half_pixel"),  # type: ignore[arg-type]
    (lambda: ops.resize(X, 3, rounding="flor"), "floor"),  # type: ignore[arg-type]
    (lambda: ops.conv2d(X, W, padding="smae"), "same"),
    (lambda: ops.conv2d(X, W, data_format="NHCW"), "NHWC"),
    (lambda: ops.pack_recurrent("lsmt", {}), "lstm"),
    (lambda: ops.rnn(ROWS, CELL, activation="tahn"), "tanh"),  # type: ignore[arg-type]
    (lambda: ops.rnn(ROWS, CELL, direction="bidirectional_cat"), "bidirectional_concat"),  # type: ignore[arg-type]
    (lambda: ops.rnn(ROWS, {"weights_layr": A}), "weights_layer"),
    (lambda: dnn.EltwiseForward("PropKind.forward_infrence", "relu", SRC, SRC), "PropKind.forward_inference"),  # type: ignore[arg-type]
    (lambda: ops_pooling("mxa"), "max"),
    # post-ops and attributes
    (lambda: ops.eltwise(X, "relu", post_ops=["tanhh"]), "tanh"),
    (lambda: dnn.Eltwise("tanhh"), "tanh"),  # type: ignore[arg-type]
    (lambda: dnn.Binary("mull", SRC), "mul"),  # type: ignore[arg-type]
    (lambda: dnn.Attr(fpmath_mode="bf61"), "bf16"),  # type: ignore[arg-type]
    (lambda: dnn.Attr(accumulation_mode="relxed"), "relaxed"),  # type: ignore[arg-type]
    (lambda: dnn.Attr(scratchpad_mode="usre"), "user"),  # type: ignore[arg-type]
    (lambda: dnn.Attr(denormals="flsh"), "flush"),  # type: ignore[arg-type]
    (lambda: dnn.Attr(deterministic="bacth"), "batch"),  # type: ignore[arg-type]
    (lambda: dnn.Attr(scales={"scr": 0}), "src"),
    (lambda: dnn.Attr(zero_points={"weigths": 0}), "weights"),
    (lambda: ops.matmul(BYTES, BYTES, scales={"oot": 1.0}), "out"),
    (lambda: ops.matmul(A, A, fpmath_mode="bf61"), "bf16"),  # type: ignore[arg-type]
    (lambda: ops.matmul(A, A, accumulation_mode="relxed"), "relaxed"),  # type: ignore[arg-type]
    # networks and training
    (lambda: node("Rellu"), "Relu"),
    (lambda: node("Conv", W, padds=(1, 1, 1, 1)), "pads"),
    (lambda: node("Conv", W, auto_pad="SAME_UPER"), "SAME_UPPER"),
    (lambda: node("Gelu", approximate="tahn"), "tanh"),
    (lambda: dnn.Graph().input("x", (2, 3), "flaot32"), "float32"),
    (lambda: net(precision="bf61"), "bf16"),
    (lambda: net(io="f23"), "f32"),
    (lambda: net(fallback="nmupy"), "numpy"),
    (lambda: net(deterministic="bacth"), "batch"),
    (lambda: net(precision="bf16", keep_f32=["Rellu 0"]), "Relu 0"),
    (lambda: net().run({"imgae": X}), "image"),
    (lambda: net().bind(imgae=X, y=X.copy()), "image"),
    (lambda: dnn.quantize(net(), {"image": X}, method="staitc"), "static"),  # type: ignore[arg-type]
    (lambda: dnn.Calibration(rule="entorpy"), "entropy"),
    (lambda: train(precision="bf61"), "bf16"),
    (lambda: train(optimizer="AdmW"), "AdamW"),
    (lambda: train(optimizer=dnn.optim.SGD(lr=0.1, groups={"w": {"lrr": 1.0}})), "lr"),
    (lambda: dnn.Graph().parameter("w", (3, 3), init="he_unifrom"), "he_uniform"),
    (lambda: of_options({"precison": "f32"}), "precision"),
    # assembler and kernels
    (lambda: ukernel.brgemm(4, 4, 4, "f23", "f32"), "f32"),  # type: ignore[arg-type]
    (lambda: asm.function("void f(flaot *x)"), "float"),
    (lambda: asm.function("void f(float *x)", isa="avx22"), "avx2"),  # type: ignore[arg-type]
    (lambda: asm.forms("VPSHUFBX"), "VPSHUFB"),
    (lambda: body(lambda a, x: a.VADDPPS(a.ymm0, a.ymm0, a.ymm0)).code, "VADDPS"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "meant"), PYTHON, ids=[meant for _, meant in PYTHON])
def test_python(call: Callable[[], Any], meant: str) -> None:
    with pytest.raises((dnn.AsmdnnError, AttributeError)) as caught:
        call()
    assert f"did you mean {meant}" in str(caught.value)


COMMAND_LINES = [
    ("rnu", "run"),
    ("help anlyze", "analyze"),
    ("completion bsh", "bash"),
    ("cache lsit", "list"),
    ("info --jsn", "--json"),
    ("doctor --bundel", "--bundle"),
    ("show nChw8d 2x3x4x5", "nChw8c"),
    ("show nchw 2x3x4x5 --outptu=a.svg", "--output"),
    ("show nchw 2x3x4x5 --dt=f23", "f32"),
    ("compare a b --chnage=3", "--change"),
    ("disasm --symbl=f file", "--symbol"),
    (f"prove --isaa=avx2 {PROBLEM}", "--isa"),
    (f"prove --isa=avx22 {PROBLEM}", "avx2"),
    (f"bench --cnv {PROBLEM}", "--conv"),
    (f"bench --conv --mdoe=C {PROBLEM}", "--mode"),
    (f"bench --conv --mode=CPP {PROBLEM}", "CP"),
    (f"bench --conv --dir=FWD_X {PROBLEM}", "FWD_"),
    (f"bench --conv --alg=winogrd {PROBLEM}", "winograd"),
    (f"bench --conv --dt=f23 {PROBLEM}", "f32"),
    (f"bench --conv --bia-dt=bf61 {PROBLEM}", "bf16"),
    (f"bench --conv --stag=nchww {PROBLEM}", "nchw"),
    (f"bench --conv --peer=onedn {PROBLEM}", "onednn"),
    (f"bench --conv --isa=avx22 {PROBLEM}", "avx2"),
    ("bench --conv --batch=resnt_50", "resnet_50"),
    ("bench --conv mb1ic16ih8oc16oh8khh1", "kh"),
    (f"bench --conv --attr-post-ops=rleu {PROBLEM}", "relu"),
    (f"bench --conv --attr-fpmath=bf61 {PROBLEM}", "bf16"),
    (f"bench --conv --attr-acc-mode=relxed {PROBLEM}", "relaxed"),
    (f"bench --conv --attr-scratchpad=usre {PROBLEM}", "user"),
    (f"bench --conv --attr-scales=scr:common:2 {PROBLEM}", "src"),
    (f"bench --conv --attr-scales=src:comon:2 {PROBLEM}", "common"),
    ("bench --eltwise --alg=rleu 2x3", "relu"),
    ("bench --binary --alg=ad 2x3:2x3", "add"),
    ("bench --rnn --alg=VANILA_LSTM l1t1mb1sic8", "VANILLA_LSTM"),
    ("bench --network model.onnx --peeer=onnxruntime", "--peer"),
    (f"tune --conv --algg=auto {PROBLEM}", "--alg"),
    ("tune --machine --olny=x", "--only"),
    ("tune --machine --only=convolution.panel_shar", "convolution.panel_share"),
    (f"explain --conv --htm=x {PROBLEM}", "--html"),
    (f"analyze --conv --svgg=x {PROBLEM}", "--svg"),
    (f"dump --conv --formt=s --output=x {PROBLEM}", "--format"),
    (f"dump --conv --format=bn --output=x {PROBLEM}", "bin"),
    ("pack --isaa=avx2 resnet_50 -o x.pack", "--isa"),
    ("pack resnt_50 -o x.pack", "resnet_50"),
    ("pack --lsit x.pack", "--list"),
    ("run --profle MODEL", "--profile"),
    ("run --precision=bf61 MODEL", "bf16"),
    ("run --peer=onnxruntme MODEL", "onnxruntime"),
    ("run --shape=imgae:1x8x6x6 MODEL", "image"),
    ("run --machine=zen33 MODEL", "zen3"),
    ("explain --htm=x MODEL", "--html"),
    ("analyze --primitve=0 MODEL", "--primitive"),
    ("dump --outptu=x MODEL", "--output"),
    ("studio --precison=f32 MODEL", "--precision"),
    ("pack --prescision=bf16 MODEL -o x.pack", "--precision"),
    ("export --precison=bf16 --c=x MODEL", "--precision"),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    made, image = graph()
    weights = np.random.default_rng(0).standard_normal((8, 8, 3, 3)).astype(np.float32)
    whole = made.compile(y=made.apply("Conv", image, weights))
    dnn.quantize(whole, {"image": X}, method="weights").save(path)
    return str(path)


@pytest.mark.parametrize(("line", "meant"), COMMAND_LINES, ids=[line for line, _ in COMMAND_LINES])
def test_command_lines(
    line: str,
    meant: str,
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.replace("MODEL", model).split()) == 2
    said = capsys.readouterr().err
    assert f"did you mean {meant}" in said, said
    assert len(said.splitlines()) == 1


def test_every_command_has_a_line_here() -> None:
    """But for setup, which has no words of its own."""
    assert {line.split()[0] for line, _ in COMMAND_LINES} >= COMMANDS.keys() - {"setup"}


@pytest.mark.skipif(not mca.is_installed(), reason="llvm-mca is not installed")
def test_cpus_of_llvm_mca(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "--conv", "--mcpu=zenver3", PROBLEM]) == 2
    assert "did you mean znver3?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("ASMDNN_VERBOSE", "dispach", "dispatch"),
        ("ASMDNN_MEMORY_LIMITS", "plnas:16M", "plans"),
        ("ASMDNN_CACHE_DRI", "/tmp", "ASMDNN_CACHE_DIR"),
    ],
)
def test_variables(name: str, value: str, meant: str, tmp_path: Path) -> None:
    code = "import asmdnn as dnn, numpy as np; dnn.ops.eltwise(np.ones(4, np.float32), 'relu')"
    own = os.environ | {name: value, "ASMDNN_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=own, capture_output=True, text=True, timeout=120)
    assert f"did you mean {meant}?" in done.stderr


def test_a_tie_goes_to_the_word_that_goes_on() -> None:
    assert did_you_mean("ad", ["and", "add"]) == did_you_mean("ad", ["add", "and"]) == "did you mean add?"
    assert did_you_mean("zzzz", ["and", "add"]) == "these are and, add"
    assert did_you_mean("conv", ops.__all__) == "did you mean conv1d or conv2d or conv3d?"


def test_one_of_a_kind_is_singular() -> None:
    assert [counted(n, "dim") for n in (0, 1, 2)] == ["0 dims", "1 dim", "2 dims"]
    assert [counted(n, "entry") for n in (1, 3)] == ["1 entry", "3 entries"]
    assert counted(2, "key") == "2 keys"
    with pytest.raises(dnn.InvalidArguments, match=r"^a has 1 dim, it must have 2 to 12$"):
        ops.matmul(A[0], A)
