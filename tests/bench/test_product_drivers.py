"""--matmul, --ip and --gemm: words, checks against numpy, answers against loops, and the peers."""

import subprocess
import sys
import warnings
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from asmdnn.bench.driver import Array, Data, TensorData, Work
from asmdnn.bench.ip_problem import IpProblem, ip_problem
from asmdnn.bench.judge import judge
from asmdnn.bench.own import Own
from asmdnn.bench.peers import mkl_library
from asmdnn.cli.main import main
from asmdnn.errors import AsmdnnError, InvalidArguments
from asmdnn.isa.levels import AVX512_CORE_BF16
from asmdnn.planning.host import effective_isa
from tests.bench.test_command import run
from tests.support.cases import read
from tests.support.peers import onednn

QUICK = "--max-ms-per-prb=1"
CHAIN = "--attr-post-ops=,sum:0.5+relu:0.3,relu"
MATMUL = ("--matmul", CHAIN, "--bia_dt=undef,f32")
SCALES = "--attr-scales=src:common:0.7,wei:per_oc,src:common:0.3+wei:per_oc+dst:common:3"
DIRECTIONS = "FWD_B,FWD_D,FWD_I,BWD_D,BWD_W,BWD_WB"


def work(words: str) -> Work[Any]:
    made = read(words)[-1].driver.work(read(words)[-1])
    assert isinstance(made, Work)
    return made


def passed(records: list[dict[str, Any]], count: int) -> None:
    assert [record["reason"] for record in records if record["status"] != "passed"] == []
    assert len(records) == count


@pytest.mark.parametrize(
    "words",
    [
        "--matmul --stag=ab --wtag=ba --bia_dt=f32 --bia_mask=3 --attr-post-ops=sum:0.5+relu:0.1 16x8:8x4",
        "--ip --dir=BWD_WB --stag=acdb --mb=3 ic16ih3oc24",
        "--gemm --transa=T --transb=T --alpha=0.5 --beta=2 --pack=ab 16x8:8x4",
        "--matmul --dt=f32:s4:f32 --attr-scales=wei:per_ocic:f32:32x1 --attr-zero-points=wei:per_oc:s8 6x64:64x4",
        "--matmul --attr-scales=src:common:2+wei:per_oc+dst:3 --attr-scratchpad=user --attr-denormals=keep 6x8:8x4",
        "--conv --attr-scales=wei:1+dst:per_oc:2 ic16ih3oc24kh1",
        "--matmul --dt=u8:s8:bf16 --bia_dt=s32 --attr-zero-points=src:common:3+dst:common:-2 6x8:8x4",
        "--ip --dir=FWD_I --dt=s8:s8:f32 --bia-dt=bf16 --attr-zero-points=src:common:3 mb2ic8oc4",
    ],
)
def test_a_case_prints_what_repeats_it(words: str) -> None:
    (case,) = read(words)
    assert read(str(case)) == [case]


TYPES = "--dt=bf16,f16,bf16:bf16:f32,u8:s8:s32,s8:s8:f32,u8:s8:s8,s8:s8:bf16"
QUANTIZED = "--attr-zero-points=src:common:3+dst:common:-2 --attr-scales=,src:common:0.25+wei:per_oc+dst:common:4"


def test_types_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    status, records = run(capsys, QUICK, "--matmul", TYPES, "--bia_dt=undef,f32", "--wtag=any,ab", "5x31:31x18")
    passed(records, 28)
    status, records = run(capsys, QUICK, "--matmul", "--dt=u8:s8:u8", *QUANTIZED.split(), "--bia_dt=s32", "5x31:31x18")
    passed(records, 2)
    status, records = run(capsys, QUICK, "--ip", "--dir=FWD_B,FWD_I", TYPES, "mb3ic16ih2oc18", "mb2ic7oc5")
    passed(records, 28)
    status, records = run(capsys, QUICK, "--ip", "--dt=s8:s8:s8", *QUANTIZED.split(), "--bia-dt=s8", "mb3ic16ih2oc18")
    passed(records, 2)
    assert status == 0


def test_a_wrong_result_of_any_type_shows() -> None:
    """One off by a step of dst's type is not taken for right."""
    for words in ("--matmul --dt=u8:s8:s32 5x31:31x18", "--matmul --dt=s8:s8:s8 5x3:3x18", "--ip --dt=bf16 mb3ic9oc18"):
        made = work(words)
        data = made.data(exact=True)
        answer = made.answer(data)
        right = np.asarray(answer.values, np.float64)
        assert judge(right.astype(np.float32), answer, True).reason == ""
        wrong = right.copy()
        wrong.flat[7] += 1 if abs(wrong.flat[7]) < 100 else -np.abs(wrong.flat[7]) / 64
        assert judge(wrong.astype(np.float32), answer, True).reason


def test_types_that_no_gradient_takes_are_unimplemented(capsys: pytest.CaptureFixture[str]) -> None:
    _, records = run(capsys, "--ip", "--dir=BWD_D", "--dt=s8", "mb2ic8oc4")
    assert [record["status"] for record in records] == ["unimplemented"] and "use f32, bf16" in records[0]["reason"]


def test_scales_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    modes = "--attr-scratchpad=library,user --attr-deterministic=true --attr-denormals=flush"
    more = "--attr-scales=src:3+wei:5+dst:per_dim_0,src:per_dim_0+wei:per_oc+dst:7 --wtag=abc 3x5x7:3x7x9"
    status, records = run(capsys, *f"--matmul {SCALES} {CHAIN} {modes} 17x20:20x33 {more}".split())
    assert status == 0
    passed(records, 9 * 2 + 6 * 2)
    status, records = run(capsys, *f"--ip {SCALES} {CHAIN} mb5ic17oc33 --stag=acdb --dir=FWD_I mb3ic16ih3oc24".split())
    assert status == 0
    passed(records, 9 + 9)
    status, records = run(capsys, *f"--conv {SCALES} {CHAIN} --dtag=any,nchw ic16ih7oc24oh7kh3ph1".split())
    assert status == 0
    passed(records, 18)


def test_answer_with_scales() -> None:
    """src_scale * weights_scale * sum + bias, the post-ops, and all that divided by dst_scale."""
    scales = "--attr-scales=src:common:3+wei:common:-0.5+dst:common:4 --attr-post-ops=abs"
    arrays = {"src": np.float32([[2]]), "weights": np.float32([[4]]), "bias": np.float32([[1]])}
    for words in (f"--matmul --bia_dt=f32 {scales} 1x1:1x1", f"--ip --dir=FWD_B {scales} mb1ic1oc1"):
        answer = work(words).answer(TensorData(arrays, exact=False))
        assert answer.values.item() == abs(2 * 4 * 3 * -0.5 + 1) / 4
    conv = work(f"--conv --dir=FWD_B {scales} mb1ic1ih1oc1oh1kh1")
    data = conv.data(exact=False)
    sums = -1.5 * float(data.arrays["src"].item()) * float(data.arrays["weights"].item())
    assert conv.answer(data).values.item() == pytest.approx(abs(sums + data.arrays["bias"].item()) / 4, rel=1e-12)


def test_matmuls_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    batches = ("--wtag=abc", "3x5x7:1x7x9", "--bia_mask=7", "1x5x7:2x7x9")
    status, records = run(capsys, *MATMUL, "--wtag=any,ab,ba", "17x20:20x33", *batches)
    assert status == 0
    passed(records, 18 + 6 + 6)


def test_inner_products_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "mb5ic17oc33",
        "--stag=any,acdb,aBcd8b",
        "mb3ic16ih3oc24",
        "--stag=any",
        "--dir=FWD_B",
        CHAIN,
        "mb5ic17oc33",
    )
    status, records = run(capsys, "--ip", f"--dir={DIRECTIONS}", *words)
    assert status == 0
    passed(records, 6 + 18 + 3)


def test_gemms_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--transa=N,T", "--transb=N,T", "--pack=none,a,b,ab", "--alpha=1,0.7", "--beta=0,1,0.3")
    status, records = run(capsys, "--gemm", *options, "13x9:9x21")
    assert status == 0
    passed(records, 96)


@pytest.mark.parametrize("words", ["--matmul 4x3:3x5", "--ip --dir=BWD_WB mb4ic3oc5", "--gemm --pack=b 4x3:3x5"])
def test_a_wrong_result_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    compute = Own.compute

    def wrong(self: Own, data: Data) -> Array:
        result = compute(self, data)
        result.reshape(-1)[-1] += 1e-3  # the last gradient of the bias, too
        return result

    monkeypatch.setattr(Own, "compute", wrong)
    status, (record,) = run(capsys, *words.split())
    assert (status, record["status"]) == (1, "failed")


def test_what_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    status, (record,) = run(capsys, "--mode=CP", QUICK, "--threads=1", "--matmul", "8x16:16x32")
    assert (status, record["status"]) == (0, "passed")
    assert record["gflops"] == pytest.approx(2 * 8 * 16 * 32 / record["us"] * 1e-3, rel=1e-2)


def test_the_answer_to_a_matmul_is_the_definition() -> None:
    made = work("--matmul --bia_dt=f32 --attr-post-ops=sum:0.5+relu:0.25 2x3:3x2")
    src, weights = np.array([[1, 2, 3], [4, 5, 6]], np.float32), np.array([[1, -1], [0, 2], [3, -4]], np.float32)
    bias, dst = np.array([[1, -1]], np.float32), np.full((2, 2), 4, np.float32)
    answer = made.answer(TensorData({"src": src, "weights": weights, "bias": bias, "dst": dst}, exact=True))
    assert answer.values.tolist() == [[13, -8 / 4], [25, -17 / 4]]
    assert np.all(np.asarray(answer.tolerance) > 0)  # 0.25 * x rounds


def test_the_answers_to_an_inner_product_are_the_definition() -> None:
    src, weights = np.arange(8, dtype=np.float32).reshape(2, 1, 2, 2), np.ones((3, 1, 2, 2), np.float32)
    bias, dst = np.array([1, 2, 3], np.float32), np.array([[1, 0, 2], [0, 1, 1]], np.float32)
    problem = "mb2ic1ih2oc3"
    forward = work(f"--ip {problem}").answer(
        TensorData({"src": src, "weights": weights, "bias": bias, "dst": dst}, exact=True)
    )
    assert forward.values.tolist() == [[7, 8, 9], [23, 24, 25]]
    gradient = work(f"--ip --dir=BWD_D {problem}").answer(TensorData({"diff_dst": dst, "weights": weights}, exact=True))
    assert gradient.values.tolist() == [[[[3, 3], [3, 3]]], [[[2, 2], [2, 2]]]]
    both = work(f"--ip --dir=BWD_WB {problem}").answer(TensorData({"diff_dst": dst, "src": src}, exact=True))
    assert both.values.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 4, 7, 10, 13, 1, 1, 3]


@pytest.mark.parametrize(
    ("text", "problem", "printed"),
    [
        ("mb16ic1024oc1000", IpProblem(16, 1024, 1000, ()), "mb16ic1024oc1000"),
        ('ic256ih7oc512n"a*3"', IpProblem(2, 256, 512, (7, 7), "a*3"), 'mb2ic256ih7iw7oc512n"a*3"'),
        ("ic2iw7oc5", IpProblem(2, 2, 5, (7,)), "mb2ic2iw7oc5"),
        ("ic2id3iw7oc5", IpProblem(2, 2, 5, (3, 3, 7)), "mb2ic2id3ih3iw7oc5"),
    ],
)
def test_ip_problems(text: str, problem: IpProblem, printed: str) -> None:
    assert ip_problem(text) == problem
    assert str(problem) == printed
    assert ip_problem(printed) == problem


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--ip mb2oc4", "'ic' is missing"),
        ("--ip ic2", "'oc' is missing"),
        ("--ip ic2oc4kh3", "unknown key 'kh'"),
        ("--ip mb2147483647ic2147483647oc9", "more than memory can address"),
        ("--ip --dir=BWD_B ic2oc4", "must be one of FWD_B"),
        ("--matmul 2x3", "expected the dims of 2 tensors, or up to 3, such as 16x1024:16x1024"),
        ("--matmul --bia_dt=s9 2x3:3x4", "must be one of f32"),
        ("--matmul --attr-post-ops=tanhh 2x3:3x4", "has 'tanhh'"),
        ("--gemm --pack=c 2x3:3x4", "must be one of none, a, b, ab"),
        ("--gemm --alpha=inf 2x3:3x4", "has 'inf', which is not a finite number"),
    ],
)
def test_mistakes(words: str, says: str) -> None:
    with pytest.raises(InvalidArguments) as raised:
        read(words)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        ("--matmul 2x3:4x5", 2, "weights has 4 rows, src has 3 columns"),
        ("--matmul 2x2x3:5x3x4", 2, "batch dims are equal or 1"),
        ("--gemm 2x3x4:4x5", 2, "gemm takes MxK:KxN"),
        ("--gemm 2x3:4x5", 2, "gemm takes MxK:KxN"),
        ("--gemm --peer=onednn 2x3:3x5", 2, "--peer=onednn: --gemm can be compared with mkl and numpy"),
        ("--gnorm --peer=onednn g2ic4ih3", 2, "--peer=onednn: --gnorm can be compared with no other library"),
        ("--matmul --peer=mkl 2x3:3x5", 2, "--peer=mkl: --matmul can be compared with onednn"),
    ],
)
def test_what_does_not_fit(words: str, status: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *words.split()]) == status
    captured = capsys.readouterr()
    assert says in (captured.err if status == 2 else captured.out)


@pytest.mark.parametrize(
    ("name", "driver", "problems"),
    [("matmul_any", "matmul", 20), ("matmul_plain", "matmul", 20), ("matmul_deep", "matmul", 20),
     ("matmul_batch", "matmul", 3), ("ip", "ip", 19), ("gemm_packed", "gemm", 22)],
)  # fmt: skip
def test_problem_sets_can_be_described(name: str, driver: str, problems: int) -> None:
    cases = read(f"--batch={name}")
    assert [case.driver.name for case in cases] == [driver] * problems
    assert len(set(map(str, cases))) == problems
    for case in cases:
        assert case.driver.work(case).flops > 0


def is_there(load: Any) -> None:
    try:
        load()
    except AsmdnnError as error:
        warnings.warn(f"The peer's tests did not run: {error}", stacklevel=2)
        pytest.skip(str(error))


def agrees(words: str) -> None:
    """The peer gives numpy's answer."""
    for case in read(words):
        made = case.driver.work(case)
        assert isinstance(made, Work)
        with closing(made.peer(effective_isa().name, 1)) as peer:
            for exact in made.exactness:
                data = made.data(exact)
                assert judge(peer.compute(data), made.answer(data), exact).reason == ""


peer = pytest.fixture(scope="module")(onednn)


@pytest.mark.usefixtures("peer")
def test_onednn_agrees() -> None:
    agrees(f"--matmul --bia_dt=undef,f32 {CHAIN} 17x20:20x33 --wtag=abc 3x5x7:3x7x9")
    agrees(f"--ip --dir={DIRECTIONS} mb5ic17oc33 --stag=acdb mb3ic16ih3oc24")
    if effective_isa().rank >= AVX512_CORE_BF16.rank:
        agrees("--matmul --dt=bf16,u8:s8:f32,s8:s8:s32 --bia_dt=undef,f32 17x20:20x33")
        agrees("--ip --dt=bf16,s8:s8:f32 mb5ic17oc33")
        agrees("--matmul --dt=u8:s8:u8 --attr-zero-points=src:common:3+dst:common:-2 17x20:20x33")
    agrees(f"--matmul {SCALES} --bia_dt=f32 {CHAIN} 17x20:20x33")  # of f32, it scales nothing else


def test_numpy_agrees() -> None:
    is_there(lambda: work("--gemm --peer=numpy 3x4:4x5").peer("", 1))
    agrees("--gemm --peer=numpy --transa=N,T --transb=N,T 17x20:20x33")


def test_mkl_agrees() -> None:
    is_there(mkl_library.load_mkl)
    agrees("--gemm --peer=mkl --transa=N,T --transb=N,T --pack=none,a,b,ab --alpha=1,0.7 --beta=0,0.3 17x20:20x33")


def test_numpy_packs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    status, records = run(capsys, "--gemm", "--peer=numpy", "--pack=b", "3x4:4x5", "--pack=none", "--beta=1", "3x4:4x5")
    assert (status, [record["peer_impl"] for record in records]) == (0, ["unimplemented"] * 2)


def test_a_missing_mkl_is_one_line_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKL_LIB", "/nonexistent/libmkl_rt.so")
    command = [sys.executable, "-m", "asmdnn", "bench", "--gemm", "--peer=mkl", "3x4:4x5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("asmdnn: --peer=mkl: no MKL library")
    assert "pip install mkl, or point MKL_LIB at a libmkl_rt.so" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.isa("avx2")
def test_weights_of_4_bits(capsys: pytest.CaptureFixture[str]) -> None:
    """By groups, by columns, with one scale and without; zero points likewise; panels and plain weights."""
    words = ("--matmul", QUICK, "--dt=f32:s4:f32,bf16:u4:f32")
    groups = run(capsys, *words, "--attr-scales=wei:per_ocic:f32:32x1",
                 "--attr-zero-points=,wei:per_ocic:s8:32x1,wei:per_oc:s32,wei:common:1", "1x64:64x34", "5x64:64x16",
                 )  # fmt: skip
    assert groups[0] == 0
    passed(groups[1], 16)
    plain = run(capsys, *words, "--wtag=any,ab,ba", "--attr-scales=,wei:per_oc,wei:common:2",
                "--attr-zero-points=,wei:per_oc:u4", "3x48:48x22")  # fmt: skip
    assert plain[0] == 0
    passed(plain[1], 36)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--matmul --attr-scales=wei:per_ocic:f32:32 2x64:64x4", "has 'wei:per_ocic:f32:32': groups are two sizes"),
        ("--matmul --attr-scales=wei:per_ocic:f32:0x1 2x64:64x4", "has 'wei:per_ocic:f32:0x1': groups are two sizes"),
    ],
)
def test_groups_that_are_none(words: str, says: str) -> None:
    with pytest.raises(InvalidArguments, match=says):
        read(words)


@pytest.mark.parametrize("words", [
    "--attr-scales=src:host_scalar:0.25+dst:host_scalar:2 --attr-zero-points=src:host_scalar:31",
    "--attr-scales=wei:per_oc:bf16+dst:common:3:f16 --attr-zero-points=dst:common:5:u8",
    "--attr-scales=src:common:4:e8m0",
])  # fmt: skip
def test_scales_of_other_types_and_by_value(capsys: pytest.CaptureFixture[str], words: str) -> None:
    """They are tensors of f32 and s32; the words stay what they were."""
    call = f"--matmul --dt=u8:s8:u8 {words} 7x33:33x19"
    passed(run(capsys, *call.split())[1], 1)
    (case,) = read(call)
    assert all(word in str(case) for word in words.split())
