"""oneDNN through its C interface: its results are numpy's, its limits are clear errors."""

import json
import os
import re
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.case import _lenient
from asmdnn.bench.driver import Work
from asmdnn.bench.judge import judge
from asmdnn.bench.options import Reader
from asmdnn.bench.peers import onednn as onednn_module
from asmdnn.bench.peers import onednn_library
from asmdnn.bench.peers.onednn import OnednnPrimitive
from asmdnn.cli.main import main
from asmdnn.errors import AsmdnnError, InvalidArguments, Unimplemented
from asmdnn.planning.host import effective_isa
from tests.support.peers import onednn

PROBLEM = "mb1ic16ih6oc16kh3ph1"
ANY = ("any", "any", "any")


def work(*words: str) -> Work[Any]:
    """Of the last case that the words make."""
    reader = Reader()
    reader.read(words, Path())
    made = reader.cases[-1].driver.work(reader.cases[-1])
    assert isinstance(made, Work)
    return made


peer = pytest.fixture(scope="module", autouse=True)(onednn)


def test_compensations_are_not_for_the_peer(capsys: pytest.CaptureFixture[str]) -> None:
    words = "bench --reorder --peer=onednn --json=- --ddt=s8 --oflag=s8s8_comp:1 5x7"
    assert main(words.split()) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["status"], record["peer_impl"]) == ("passed", "unimplemented")
    assert record["reason"] == "no peer: oneDNN's C interface has no function that asks for a compensation"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("text", "direction", "post_ops", "tags"),
    [
        ("mb2ic3ih13oc7kh3sh2ph1", "FWD_B", ("sum", "relu"), ANY),
        ("mb1ic16ih7iw9oc32oh7ow5kh3kw1sh1sw2ph1pw0", "FWD_I", (), ("aBcd8b", "any", "aBcd8b")),
        ("mb2ic17ih9oc16oh5kh3dh1", "FWD_D", ("relu",), ("acdb", "abcd", "acdb")),
        ("mb1ic8ih8oc8oh4kh1sh2", "FWD_B", (), ANY),  # the last row and column stay unread
    ],
)
def test_results_are_numpys(
    text: str, direction: str, post_ops: tuple[str, ...], tags: tuple[str, str, str], threads: int
) -> None:
    stag, wtag, dtag = tags
    words = (f"--dir={direction}", f"--attr-post-ops={'+'.join(post_ops)}", f"--stag={stag}", f"--wtag={wtag}")
    check(work("--conv", *words, f"--dtag={dtag}", text), threads)


@pytest.mark.parametrize(
    ("how", "post_ops"),
    [
        ("two", "relu+dw:k3s2p1+tanh"),
        ("two", "add:f32:per_oc+dw:k3s1p1+mul:f32:per_tensor"),
        ("fused", "relu+dw:k3s2p1+tanh"),
    ],
)
def test_depthwise_post_ops(how: str, post_ops: str) -> None:
    """As two primitives, and as oneDNN's own post-op."""
    check(work("--conv", f"--attr-post-ops={post_ops}", f"--peer-dw={how}", "mb2ic16ih12oc24oh12kh1ph0"))


def check(made: Work[Any], threads: int = 1) -> None:
    """oneDNN gives numpy's answer."""
    with closing(made.peer(effective_isa().name, threads)) as peer:
        assert peer.implementation
        for exact in made.exactness:
            data = made.data(exact)
            assert judge(peer.compute(data), made.answer(data), exact).reason == ""


def test_builds_that_come_back_early_are_waited_for(
    peer: onednn_library.Onednn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of SYCL; an OpenMP build may be waited for, too."""
    monkeypatch.setattr(peer, "_waits", True)
    check(work("--conv", PROBLEM))


def test_builds_without_openmp_have_the_threads_of_the_process(
    peer: onednn_library.Onednn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer, "_openmp", None)
    count = len(os.sched_getaffinity(0))
    peer.set_threads(count)
    with pytest.raises(AsmdnnError, match=f"--threads={count + 1}: .* takes a thread for each CPU"):
        peer.set_threads(count + 1)


NEWER = ("f8_e5m2:f8_e4m3:f32", "bf16:f8_e4m3:bf16", "f32:s4:f32", "f32:u4:f32", "f32:f4_e2m1:f32", "f32:s8:f32")
GROUPS = "--attr-scales=wei:per_ocic:f32:16x1 --attr-zero-points=wei:per_ocic:s32:16x1"


@pytest.mark.parametrize("wtag", ["any", "ab"])
@pytest.mark.parametrize(
    "words",
    [*(f"--dt={types}" for types in NEWER), f"--dt=f32:u4:f32 {GROUPS}", "--dt=f32:u4:f32 --attr-fpmath=bf16:true"],
)
def test_types_that_not_all_versions_have(words: str, wtag: str, peer: onednn_library.Onednn) -> None:
    """Numpy's results, or one sentence in place of a peer: version 3.2 has none of them."""
    try:
        check(work("--matmul", f"--wtag={wtag}", *words.split(), "5x48:48x36"))
    except Unimplemented as error:
        known = (
            "creation: unimplemented|version [0-9.]+ has no (type (f8|s4|u4|f4)_?\\w*|scales by groups|products of .*)"
        )
        assert re.fullmatch(f"onednn: ({known})", str(error))


def test_types_by_the_library_s_own_names(peer: onednn_library.Onednn) -> None:
    numbers = {"f16": 1, "bf16": 2, "f32": 3, "s32": 4, "s8": 5, "u8": 6}  # oneapi/dnnl/dnnl_common_types.h
    assert {name: peer.data_type(name) for name in numbers} == numbers
    with pytest.raises(Unimplemented, match=f"onednn: version {peer.version} has no type nf4"):
        peer.data_type("nf4")


def test_a_type_without_a_peer_is_timed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--matmul", "--peer=onednn", "--json=-", "--dt=f32:nf4:f32", "5x48:48x36"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["status"], record["peer_impl"]) == ("passed", "unimplemented")
    assert re.fullmatch(r"no peer: onednn: version [0-9.]+ has no type nf4", record["reason"])


def test_a_reorder_that_is_missing_means_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the primitive is made, and not while a run is on its way."""

    def refuse(self: OnednnPrimitive, name: str, to_plain: bool) -> None:
        raise Unimplemented(f"onednn: no reorder of {name}")

    monkeypatch.setattr(OnednnPrimitive, "_reorder", refuse)
    monkeypatch.setattr(onednn_module, "_carrier", lambda dtype: dnn.bf16)
    with pytest.raises(Unimplemented, match="onednn: no reorder of src"):
        work("--matmul", "5x48:48x36").peer(effective_isa().name, 1)


@pytest.mark.parametrize("tag", ["abx", "axb", "aBx8b", "aBx16b"])
@pytest.mark.parametrize("direction", ["FWD_D", "FWD_I", "BWD_D"])
def test_shuffles_are_numpys(direction: str, tag: str) -> None:
    for dtype in ("f32", "s32", "s8", "u8"):
        check(work("--shuffle", f"--dir={direction}", f"--dt={dtype}", f"--tag={tag}", "--group=4", "2x20x3x5"))


@pytest.mark.parametrize("sdt", ["f32", "bf16", "s32", "s8", "u8"])
def test_reorders_are_numpys(sdt: str) -> None:
    for ddt in {"f32", "bf16", "s32", "s8", "u8"} - {{"bf16": "s32", "s32": "bf16"}.get(sdt)}:
        types = ("--reorder", f"--sdt={sdt}", f"--ddt={ddt}")
        check(work(*types, "--stag=axb", "--dtag=aBx8b", "2x17x3x5"))
        check(work(*types, "--attr-scales=src:common:0.3+dst:per_dim_1", "--attr-post-ops=sum:0.5", "2x17x3x5"))


@pytest.mark.parametrize("ddt", ["s8", "u8", "s32"])
def test_zero_points_of_reorders_are_numpys(ddt: str) -> None:
    both = "--attr-zero-points=src:common:1+dst:common:-2"
    check(work("--reorder", "--sdt=u8", f"--ddt={ddt}", both, "--attr-scales=src:common:0.7", "2x17x3x5"))


@pytest.mark.parametrize("alg", ["SOFTMAX", "LOGSOFTMAX"])
def test_scales_of_softmax_are_onednns(alg: str) -> None:
    """Those of src multiply results there, in front of post-ops."""
    scales = "--attr-scales=src:common:2+dst:common:0.5"
    check(work("--softmax", f"--alg={alg}", scales, "--attr-post-ops=linear:2:1+add:f32:per_oc", "2x19x5"))


@pytest.mark.parametrize(
    "words",
    [
        "--pool --dir=BWD_D --alg=max mb1ic16ih12kh3sh2ph1",
        "--pool --dir=BWD_D --alg=avg_np mb1ic16ih12kh3sh2ph1",
        "--softmax --dir=BWD_D --alg=SOFTMAX 4x19",
        "--softmax --dir=BWD_D --alg=LOGSOFTMAX 4x19",
        "--prelu --dir=BWD_DW 2x16x3x5:1x16x1x1",
        "--bnorm --dir=BWD_D --flags=C mb2ic19ih4",
        "--bnorm --dir=BWD_DW --flags=GCH mb2ic19ih4",
        "--lnorm --dir=BWD_D --flags=G 4x19",
        "--lnorm --dir=BWD_DW --flags=CH 4x19",
        "--lrn --dir=BWD_D mb1ic16ih5_ls3alpha0.5",
        "--resampling --dir=BWD_D --alg=linear mb1ic16_ih5oh10",
    ],
)
def test_gradients_are_numpys(words: str) -> None:
    """Of all results, and with the workspaces that oneDNN's forward passes leave."""
    check(work(*words.split()))


@pytest.mark.parametrize(
    "case",
    [
        "--conv {} --stag=axb --dtag=axb mb2ic17ih9oc16oh9kh3ph1",
        "--matmul {} 17x20:20x33",
        "--ip {} mb5ic17oc33",
        "--binary {} 2x17:2x17",
        "--eltwise --alg=square {} 2x17",
    ],
)
def test_chains_are_numpys(case: str) -> None:
    """With tensors in every place of a chain, and a scale that is a post-op of its own."""
    driver = case.split()[0]
    words = ["tanh:0:0:0.5+add:f32:per_oc+relu:0.25+mul:f32:per_tensor+max:f32:common", "linear:2:1+add:f32:2"]
    words += ["swish:1.5+gelu_erf+elu:0.5"]
    if driver != "--eltwise":
        words += ["linear:2:1:0.5+sum:0.5+mul:f32:per_oc"]
    if driver in ("--conv", "--matmul", "--ip"):
        words += ["tanh:0:0:2+prelu:per_oc+add:f32:per_oc+prelu", "prelu:per_tensor"]
    for word in words:
        made = work(*case.format(f"--attr-post-ops={word}").split())
        with closing(made.peer(effective_isa().name, 1)) as peer:
            for exact in made.exactness:
                data = made.data(exact)
                answer = made.answer(data)
                lenient = replace(answer, tolerance=np.minimum(_lenient(answer.tolerance, made.peer_slack), 1e-3))
                assert judge(peer.compute(data), lenient, exact).reason == "", word


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--eltwise --attr-post-ops=sum 2x3", "no post-op sum"),
        ("--eltwise --attr-post-ops=prelu 2x3", "no post-op prelu"),
        ("--binary --attr-post-ops=prelu 2x3:2x3", "no post-op prelu"),
        ("--binary --attr-post-ops=sum:1:0.5 2x3:2x3", "zero points are integers, not 0.5"),
    ],
)
def test_chains_that_the_peer_lacks(words: str, says: str) -> None:
    with pytest.raises(Unimplemented, match=says):
        work(*words.split()).peer(effective_isa().name, 1)


def test_what_the_peer_refuses() -> None:
    with pytest.raises(Unimplemented, match="onednn: creation"):
        work("--reorder", "--attr-zero-points=src:common:1", "2x3").peer(effective_isa().name, 1)


def test_a_run_repeats_the_result() -> None:
    made = work("--dir=FWD_I", PROBLEM)
    data = made.data(exact=False)
    with closing(made.peer(effective_isa().name, 1)) as peer:
        first = peer.compute(data)
        assert peer.run() == 0
        assert (peer.compute(data) == first).all()


@pytest.mark.parametrize("tag", ["aBcd24b", "ABcd8a16b8a"])
def test_unknown_tags_are_refused(tag: str) -> None:
    with pytest.raises(InvalidArguments, match=f"tag {tag}: the peer onednn takes any, plain layouts and"):
        work("--shuffle", f"--tag={tag}", "--dt=u8", "2x24x3x3").peer(effective_isa().name, 1)


def test_the_isa_is_final(peer: onednn_library.Onednn) -> None:
    used = effective_isa().name
    peer.cap_isa(used)
    peer.cap_isa(used)
    other = "avx2" if used != "avx2" else "avx512_core"
    with pytest.raises(InvalidArguments, match=f"--isa={other}: the peer onednn is already held to {used}"):
        peer.cap_isa(other)


def test_a_missing_library_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_LIB", "/nonexistent/libdnnl.so.3")
    with pytest.raises(AsmdnnError, match=r"run pip install onednn-cpu-gomp==[\d.]+, or point ONEDNN_LIB at a libdnnl"):
        onednn_library.load.__wrapped__()


def test_a_library_that_is_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_LIB", "libc.so.6")
    with pytest.raises(AsmdnnError, match="no oneDNN 3 library"):
        onednn_library.load.__wrapped__()


def test_from_the_command_line_a_missing_library_is_one_line() -> None:
    command = [sys.executable, "-m", "asmdnn", "bench", "--peer=onednn", "ic3ih8oc4kh3"]
    environment = os.environ | {"ONEDNN_LIB": "/nonexistent"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("asmdnn: --peer=onednn: no oneDNN 3 library")
    assert done.stderr.count("\n") == 1
