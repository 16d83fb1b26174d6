"""The drivers of `bench` other than convolutions: their words, dims, checks, and what a report says of them."""

import math
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, dims_problem
from asmdnn.bench.driver import Array, Data
from asmdnn.bench.drivers import driver_names
from asmdnn.bench.own import Own
from asmdnn.bench.quantization import quantities
from asmdnn.cli.main import main
from asmdnn.definitions.elementwise import slope
from asmdnn.errors import InvalidArguments
from tests.bench.test_command import run
from tests.conformance.kinds import section, with_section
from tests.support.cases import read

RIGHT = ("passed", "mistrusted")  # logarithms of a softmax are 0 as u8, all of them
QUICK = "--max-ms-per-prb=1"
SHUFFLE = "--shuffle --dt=u8 --tag=aBx16b --axis=1 --group=4 1x116x7x7"
REORDER = (
    "--reorder --sdt=s8 --stag=abcd --dtag=acdb --attr-scales=src:common:0.5+dst:per_dim_1 "
    "--attr-zero-points=src:common:1 --attr-post-ops=sum:0.5 2x96x35x35"
)


ELTWISE = "--eltwise --dir=BWD_D --alg=tanh_dst --tag=aBx8b --inplace=true 2x19x3x5"
COMPENSATION = "--reorder --ddt=s8 --dtag=ABcd4b16a4b --attr-scales=dst:per_dim_0 --oflag=s8s8_comp:1 33x19x3x2"
BINARY = "--binary --alg=sub --stag=axb:abx --dtag=aBx8b 2x19x3x5:2x1x3x5"


@pytest.mark.parametrize(
    "words", [SHUFFLE, REORDER, ELTWISE, BINARY, "--eltwise --alg=swish --alpha=0.166666672 7", COMPENSATION]
)
def test_a_case_prints_what_repeats_it(words: str) -> None:
    (case,) = read(words)
    assert read(str(case)) == [case]


def test_a_driver_starts_with_its_defaults_and_keeps_how_problems_are_run() -> None:
    cases = read("--threads=1 --mode=CP --dir=FWD_I ic3ih8oc4kh3 --shuffle --dt=u8 2x4 --SHUFFLE 2x4 --reorder 2x4")
    assert [case.driver.name for case in cases] == ["conv", "shuffle", "shuffle", "reorder"]
    assert [case.settings.threads for case in cases] == [1] * 4
    assert [case.settings.dt for case in cases[1:3]] == ["u8", "u8"]
    assert (cases[1].settings.dir, cases[1].settings.axis, cases[1].settings.group) == ("FWD_D", 1, 1)
    assert (cases[3].settings.sdt, cases[3].settings.stag, cases[3].settings.sum_scale) == ("f32", "abx", None)


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ('--pool --dir=BWD_D --dt=bf16 --alg=avg_p mb1ic8ih4kh2n"block1*2"', "avg_p backward bf16 abx block1*2"),
        ("--eltwise --alg=linear --alpha=2 --beta=0.5 2x3", "linear 2 0.5 abx 2x3"),
        ("--sum --sdt=f32:bf16 --ddt=f32 2x3", "2 f32:bf16 to f32 of abx 2x3"),
        ("--resampling --dt=f16 mb1ic8_iw3ow6", "nearest f16 to f16 abx mb1ic8_iw3ow6"),
        ("--shuffle --group=2 --dir=BWD_D 2x4", "f32 abx 2x4 axis 1 group 2 backward"),
        ("--lrn --alg=WITHIN mb1ic8ih4", "FWD_D within abx mb1ic8ih4iw4"),
        ("--bnorm --flags=CH mb1ic8ih4", "FWD_D CH abx 1x8x4x4"),
        ("--prelu --dir=BWD_DW 2x3:1x3", "backward abx 2x3:1x3"),
    ],
)
def test_what_a_table_calls_a_case(words: str, title: str) -> None:
    (case,) = read(words)
    assert case.driver.title(case) == title


def test_lists() -> None:
    cases = read("--shuffle --dt=f32,u8 --tag=abx,axb --group=2,4 --axis=0,1 --dir=FWD_I,BWD_D 8x8")
    assert len(set(map(str, cases))) == 32


@pytest.mark.parametrize(
    ("text", "tensors", "expected"),
    [
        ("1x116x28x28", 1, DimsProblem(((1, 116, 28, 28),))),
        ("7", 1, DimsProblem(((7,),))),
        ("16x1024:1024x3", 2, DimsProblem(((16, 1024), (1024, 3)))),
        ('2x3_n"a b*4"', 1, DimsProblem(((2, 3),), "a b*4")),
        ("2x3nplain", 1, DimsProblem(((2, 3),), "plain")),
    ],
)
def test_dims(text: str, tensors: int, expected: DimsProblem) -> None:
    parse = dims_problem(tensors)
    assert parse(text) == expected
    assert parse(str(expected)) == expected
    assert expected.count == (4 if "*4" in text else 1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected the dims of 1 tensor, such as 16x1024"),
        ("2x", "expected the dims"),
        ("2x-3", "expected the dims"),
        ("2x3:4", "expected the dims of 1 tensor"),
        ("x".join("1" * 13), "has 13 dims, a tensor has at most 12"),
        ("99999999999999999999", "a dim must be at most 9223372036854775807"),
        ("2147483647x2147483647x9", "more elements than memory can address"),
        ('2x3n"a', 'n"name" ends the problem'),
    ],
)
def test_wrong_dims(text: str, says: str) -> None:
    with pytest.raises(InvalidArguments) as raised:
        dims_problem(1)(text)
    assert str(raised.value).startswith(f"problem {text!r}: ")
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--shuffle --dt=f65 2x4", "--dt=f65: must be one of f32, bf16, f16, s32, s8, u8"),
        ("--shuffle --group=0 2x4", "--group=0: must be a whole number from 1"),
        ("--shuffle --axis=12 2x4", "--axis=12: must be a whole number from -12 to 11"),
        ("--shuffle --stag=abx 2x4", "--stag=abx: no such option: did you mean --tag="),
        ("--shuffle --dir=FWD 2x4", "must be one of FWD_D, FWD_I, BWD_D"),
        ("--eltwise --alg=gelo 2x4", "--alg=gelo: must be one of relu, tanh"),
        ("--eltwise --alpha=x 2x4", "has 'x', which is not a finite number"),
        ("--eltwise --inplace=maybe 2x4", "--inplace=maybe: must be one of true, false"),
        ("--binary 2x4", "expected the dims of 2 tensors"),
        ("--binary --alg=pow 2x4:2x4", "--alg=pow: must be one of add, sub"),
        ("--reorder --attr-scales=weights:common:2 2x4", "has 'weights': arguments are src, dst"),
        ("--reorder --attr-scales=src:per_tensr:2 2x4", "has the policy 'per_tensr': policies are common, per_dim_0"),
        ("--reorder --attr-scales=src:common 2x4", "has 'src:common' without a value"),
        ("--reorder --attr-scales=src:common:nan 2x4", "has 'nan', which is not a finite number"),
        ("--reorder --attr-scales=src:common:1e39 2x4", "has '1e39', which is not a finite number"),
        ("--reorder --attr-scales=src:common:1+src:common:2 2x4", "names an argument twice"),
        ("--reorder --attr-zero-points=src:common:1.5 2x4", "has '1.5', which is not a whole number"),
        ("--reorder --oflag=zero_comp:1 2x4", "has 'zero_comp'; the flag is s8s8_comp:MASK"),
        ("--reorder --oflag=s8s8_comp 2x4", "must be a whole number from 0 to 4095"),
        ("--reorder --oflag=s8s8_comp:-1 2x4", "must be a whole number from 0 to 4095"),
        ("--reorder --attr-post-ops=relu 2x4", "has 'relu'; a reorder has one post-op at most"),
    ],
)
def test_mistakes(words: str, says: str) -> None:
    with pytest.raises(InvalidArguments) as raised:
        read(words)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--shuffle --group=5 2x4", "group_size is 5, it must divide axis 1 of 4"),
        ("--shuffle --axis=2 2x4", "axis is 2, src has 2 dims"),
        ("--shuffle --tag=abc 2x4", "tag 'abc'"),
        ("--shuffle --tag=any 2x4", "format any"),
        ("--reorder --dtag=abcd 2x4", "tag 'abcd'"),
        ("--reorder --oflag=s8s8_comp:1 2x4", "compensation needs an s8 dst, this one is f32"),
        ("--reorder --ddt=s8 --oflag=s8s8_comp:4 2x4", "the mask 4, which is for more than 2 dims"),
        ("--binary 2x4:2x4:2x4", "add takes two tensors"),
    ],
)
def test_what_cannot_be_described_is_said_before_anything_runs(
    words: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *words.split()]) == 2
    assert says in capsys.readouterr().err


def test_quantities() -> None:
    common, each = quantities(("src", "dst"), whole=False)("src:common:0.5*+dst:per_dim_1")
    assert (common.mask(), common.shape((2, 3)), common.scales((2, 3)).tolist()) == (0, (1, 1), [[0.5]])
    assert (each.mask(), each.shape((2, 3, 5))) == (2, (1, 3, 1))
    assert (np.log2(each.scales((2, 3, 5))) % 1 == 0).all()
    channels, bits = quantities(("wei", "dst"), whole=False)("wei:per_oc+dst:6")
    assert (channels.mask(), channels.mask(0), channels.shape((2, 3, 5), 2)) == (2, 1, (1, 1, 5))
    assert (bits.mask(), bits.shape((2, 3, 5)), str(bits)) == (6, (1, 3, 5), "dst:6")
    (zero_point,) = quantities(("src",), whole=True)("src:common:-3")
    assert zero_point.zero_points((2,)).tolist() == [-3]


@pytest.mark.parametrize("direction", ["FWD_D", "FWD_I", "BWD_D"])
def test_shuffles_are_right(capsys: pytest.CaptureFixture[str], direction: str) -> None:
    words = f"--shuffle --dir={direction} --dt=f32,bf16,u8 --tag=abx,aBx8b --axis=1,-1 --group=4 2x20x3x8"
    status, records = run(capsys, *words.split())
    assert (status, len(records)) == (0, 12)
    for record in records:
        assert (record["driver"], record["status"], record["reason"]) == ("shuffle", "passed", "")
        assert record["max_error"] == 0


def test_reorders_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--reorder --stag=abx,axb,aBx8b --dtag=abx,xba,aBx16b 2x17x3x5 --stag=abx --dtag=axb 5x1x3 7x9 0x4"
    status, records = run(capsys, *words.split())
    assert [record["reason"] for record in records if record["status"] != "passed"] == []
    assert (status, len(records)) == (0, 12)


@pytest.mark.parametrize("more", ["", "--attr-scales=dst:per_dim_0 --attr-post-ops=sum:0.5"])
def test_compensations_are_right(capsys: pytest.CaptureFixture[str], more: str) -> None:
    words = (
        f"--reorder {more} --ddt=s8 --dtag=abx,xba,ABcd4b16a4b --oflag=s8s8_comp:0,s8s8_comp:1,s8s8_comp:6 33x19x3x2"
    )
    status, records = run(capsys, *words.split())
    assert [record["reason"] for record in records if record["status"] != "passed"] == []
    assert (status, len(records)) == (0, 9)


@pytest.mark.parametrize("element", [17, -1])
def test_a_wrong_element_of_several_results_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, element: int
) -> None:
    """Of dst, and of its compensation."""
    compute = Own.compute

    def wrong(self: Own, data: Data) -> Array:
        result = compute(self, data).astype(np.int64)
        result[element] += 1
        return result

    monkeypatch.setattr(Own, "compute", wrong)
    status, (record,) = run(capsys, "--reorder", "--ddt=s8", "--oflag=s8s8_comp:1", "5x7x3x3")
    assert (status, record["status"]) == (1, "failed")
    assert f"1 of 320 elements are wrong, the first at ({element % 320},)" in record["reason"]


FUNCTIONS = (
    "--alg=tanh,square,abs,sqrt,logistic,exp,gelu_tanh,gelu_erf,log,round,mish 2x19x5 "
    "--alpha=0.25 --alg=relu,elu,soft_relu,swish 2x19x5 "
    "--beta=0.5 --alg=clip,clip_v2,linear,pow,hardswish,hardsigmoid 3x40"
)


@pytest.mark.parametrize(("options", "passed"), [("", 21), ("--tag=aBx8b --inplace=true", 21), ("--dir=BWD_D", 20)])
def test_functions_are_right(capsys: pytest.CaptureFixture[str], options: str, passed: int) -> None:
    status, records = run(capsys, "--eltwise", *options.split(), *FUNCTIONS.replace("3x40", "3x40x1").split())
    skipped = [record["reason"] for record in records if record["status"] != "passed"]
    assert (status, skipped) == (0, ["round has no gradient"] * (21 - passed))


def test_gradients_from_the_result_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--eltwise --dir=BWD_D --alg=tanh_dst,sqrt_use_dst_for_bwd,logistic_dst,exp_dst 2x19x5"
    _, records = run(capsys, *words.split(), "--alg=relu_dst,elu_dst", "--alpha=0.5", "5x20", "--dir=FWD_D", "3")
    assert [record["status"] for record in records] == ["passed"] * 8  # forward it is the same function


def test_binary_operations_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--binary --alg=add,sub,mul,div,max,min,ge,gt,le,lt,eq,ne 2x19x5:2x19x5 --alg=sub --stag=axb:abx,aBx8b:abx "
    status, records = run(
        capsys, *(words + "2x19x3x5:2x1x3x5 2x19x3x5:1x19x1x1 --inplace=true 2x19x3x5:1x1x1x1").split()
    )
    assert [record["reason"] for record in records if record["status"] != "passed"] == []
    assert (status, len(records)) == (0, 18)


def test_types_gathers_and_dropouts_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    binary = "--binary --alg=add,lt --sdt=u8:s8,bf16:f16 --ddt=f32,bf16,s8 2x19x5:2x19x1 "
    select = "--alg=select --sdt=f32:f32:s8 --stag=abx:axb:abx --ddt=f32 2x19x5:2x19x1:1x1x5 "
    others = "--gather --dt=f32,u8 --axis=0,1 9x7x5:2x3 --dropout --p=0.3 --tag=abx,axb 2x19x5"
    status, records = run(capsys, "--threads=1", *(binary + select + others).split())
    assert [record["reason"] for record in records if record["status"] != "passed"] == []
    assert (status, len(records)) == (0, 19)


TYPED = (
    "--eltwise --dt=bf16,u8,s32 --alg=gelu_erf,log --tag=aBx8b 2x19x5",
    "--sum --sdt=bf16:s8,u8:f16:s32 --ddt=f16,s8 --scales=0.5 2x19x5",
    "--prelu --sdt=bf16,s8:f32 --stag=abx,aBx8b 2x19x5:1x19x1",
    "--softmax --sdt=f16,s8 --ddt=f32,u8 --alg=SOFTMAX,LOGSOFTMAX 2x19x5",
    "--reduction --alg=max,mean --sdt=bf16,s8 --ddt=f32,s8 2x19x5:2x19x1",
    "--pool --dt=bf16,u8,s32 --alg=max,avg_np --tag=axb mb1ic9ih6oh3kh2sh2ph0",
    "--pool --dt=s8 --dir=FWD_D --tag=axb mb1ic9ih6oh3kh2sh2ph0",
    "--reorder --sdt=u8,f32 --ddt=s32 --attr-scales=src:common:4294967295 2x9",
    "--resampling --sdt=bf16,u8 --ddt=f16,s8 --alg=linear --tag=axb mb1ic9_ih3oh6",
    "--eltwise --dt=bf16,s8 --alg=tanh --attr-post-ops=sum:0.5+add:f32:per_oc --inplace=true,false 2x19x5",
    "--eltwise --dt=f16,s32 --alg=relu --dir=BWD_D --inplace=true --tag=aBx8b 2x19x5",
    "--binary --sdt=u8:s8 --ddt=u8 --alg=mul --attr-post-ops=linear:0.5:1 --inplace=true,false 2x19x5:2x19x1",
    "--sum --sdt=bf16:s8 --ddt=bf16 --inplace=true 2x19x5",
    "--binary --stag=nChw8c:nc --attr-post-ops=add:f32:per_oc 2x19x3x1:2x19",
    "--binary --stag=nChw8c:nCw8c 2x19x3x1:2x19x3",
    "--binary --sdt=s8:f32 --attr-post-ops=add:f32:per_oc 19:19",
    "--prelu --sdt=f16:f32 --attr-post-ops=sum:2+relu --inplace=true 2x19x5:1x19x1",
    "--softmax --sdt=bf16 --ddt=bf16 --attr-post-ops=linear:2:1 --inplace=true 2x19x5",
    "--softmax --sdt=s8,f32 --ddt=f32,s8 --stag=abx,axb --attr-scales=src:common:0.7+dst:common:0.01 2x19x5",
    "--softmax --sdt=s8 --ddt=s8 --attr-scales=src:common:2 --attr-post-ops=mul:f32:per_tensor 2x19x5",
    "--reduction --alg=sum --sdt=u8 --ddt=f16 --attr-post-ops=sum:0.5+mul:f32:per_oc 2x19x5:2x19x1",
    "--pool --dt=bf16,u8 --alg=max,avg_p --tag=aBx8b --attr-post-ops=sum+add:f32:per_oc mb1ic9ih6oh3kh2sh2ph0",
    "--resampling --ddt=s8 --alg=linear --attr-post-ops=sum:0.5+mul:f32:per_oc mb1ic9_ih3oh6",
)


@pytest.mark.parametrize("words", TYPED)
def test_other_types_are_right(capsys: pytest.CaptureFixture[str], words: str) -> None:
    status, records = run(capsys, "--threads=1", *words.split())
    assert [record["reason"] for record in records if record["status"] not in RIGHT] == []
    assert status == 0 and records


@pytest.mark.parametrize("words", [TYPED[2], TYPED[4], TYPED[6]])
def test_types_are_words_of_a_case(words: str) -> None:
    for case in read(words):
        assert read(str(case)) == [case]


@pytest.mark.parametrize("words", ["--softmax --ddt=s8", "--sum --sdt=s8:f32 --ddt=f32", "--binary --sdt=bf16:f32"])
def test_a_result_replaces_a_source_of_its_type(words: str) -> None:
    (case,) = read(f"{words} --inplace=true {'2x3:2x3' if 'binary' in words else '2x3'}")
    with pytest.raises(InvalidArguments, match="needs one type"):
        case.driver.work(case)


def test_what_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    status, (record,) = run(capsys, "--mode=CP", QUICK, "--threads=1", *SHUFFLE.split())
    assert (status, record["status"]) == (0, "passed")
    assert record["bandwidth_gbs"] == pytest.approx(2 * 116 * 49 / record["us"] * 1e-3, rel=1e-2)
    assert record["copy_fraction"] == pytest.approx(record["copy_us"] / record["us"], rel=1e-2)
    assert record["gflops"] is record["peak_fraction"] is record["speedup"] is None


@pytest.mark.parametrize(
    "words", [SHUFFLE, "--reorder --dtag=axb 2x17x3x5", "--eltwise --alg=exp 2x17x3x5", "--binary 2x17x3x5:1x17x1x1"]
)
def test_a_wrong_result_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    compute = Own.compute

    def wrong(self: Own, data: Data) -> Array:
        result = compute(self, data)
        result[0, 3, 2, 1] = 255 - result[0, 3, 2, 1]
        return result

    monkeypatch.setattr(Own, "compute", wrong)
    status, (record,) = run(capsys, *words.split())
    assert (status, record["status"]) == (1, "failed")
    assert "elements are wrong, the first at (0, 3, 2, 1)" in record["reason"]


def test_scales_of_a_reorder(capsys: pytest.CaptureFixture[str]) -> None:
    status, (record,) = run(capsys, *REORDER.split())
    assert (status, record["status"], record["reason"]) == (0, "passed", "")


@pytest.mark.parametrize("scales", ["src:per_dim_1", "dst:common:0.3", "src:common:2+dst:per_dim_1", "dst:per_dim_01"])
def test_a_sum_is_divided_by_the_scale_of_dst(capsys: pytest.CaptureFixture[str], scales: str) -> None:
    types = "--reorder --sdt=f32,s8 --ddt=u8,bf16,f32 --dtag=abx,axb,aBx8b"
    status, records = run(capsys, *types.split(), f"--attr-scales={scales}", "--attr-post-ops=sum:-0.7", "3x17x5x4")
    assert [record["reason"] for record in records if record["status"] != "passed"] == []
    assert (status, len(records)) == (0, 18)


@pytest.mark.parametrize("name", driver_names())
def test_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", f"--{name}", "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"asmdnn bench --{name} ")
    lists = ("Drivers", "Problem sets")  # folded on a terminal
    assert all(len(line) <= 120 for line in text.splitlines() if not line.startswith(lists))


def answer_of(words: str, **arrays: Any) -> Array:
    from asmdnn.bench.driver import TensorData

    (case,) = read(words)
    return case.driver.work(case).answer(TensorData(arrays, exact=True)).values


def test_the_answer_to_a_shuffle_is_the_definition() -> None:
    src = np.frombuffer(b"abcdefghijkl", np.uint8).reshape(1, 12)
    for words in ("--group=4", "--group=3 --dir=BWD_D"):
        found = answer_of(f"--shuffle --dt=u8 {words} 1x12", src=src)
        assert found.astype(np.uint8).tobytes() == b"aeibfjcgkdhl"


def test_the_answers_to_functions_are_the_definitions() -> None:
    x, ones = np.array([-2, -0.5, 0.25, 1], np.float32), np.ones(4, np.float32)
    gelu = [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.tolist()]
    assert answer_of("--eltwise --alg=gelu_erf 4", src=x) == pytest.approx(gelu, rel=1e-14)
    slope = [0.5 * (1 + math.erf(v / 2**0.5)) + v * math.exp(-v * v / 2) / math.sqrt(2 * math.pi) for v in x.tolist()]
    backward = answer_of("--eltwise --dir=BWD_D --alg=gelu_erf 4", src=x, diff_dst=2 * ones)
    assert backward == pytest.approx([2 * s for s in slope], rel=1e-14)
    assert answer_of("--eltwise --alg=clip --alpha=-1 --beta=0.5 4", src=x).tolist() == [-1, -0.5, 0.25, 0.5]
    tanh = answer_of("--eltwise --dir=BWD_D --alg=tanh 4", src=x, diff_dst=ones)
    assert tanh == pytest.approx([1 - math.tanh(v) ** 2 for v in x.tolist()], rel=1e-14)
    assert answer_of("--eltwise --dir=BWD_D --alg=tanh_dst 4", dst=x, diff_dst=ones).tolist() == (1 - x * x).tolist()
    assert answer_of("--binary --alg=ge 4:1", src0=x, src1=x[1:2], dst=0 * x).tolist() == [0, 1, 1, 1]


def test_the_answer_to_a_reorder_is_the_definition() -> None:
    src = np.array([-300, -128.5, -1.5, -0.5, 0.5, 1.5, 2.5, 127.5, 254.5, 1000], np.float32)
    signed = answer_of("--reorder --ddt=s8 10", src=src)
    assert signed.tolist() == [-128, -128, -2, 0, 0, 2, 2, 127, 127, 127]
    assert answer_of("--reorder --ddt=u8 10", src=src).tolist() == [0, 0, 0, 0, 0, 2, 2, 128, 254, 255]
    words = "--reorder --sdt=s8 --ddt=s32 --attr-scales=src:common:2+dst:common:4 --attr-post-ops=sum:0.5"
    words += " --attr-zero-points=src:common:1+dst:common:5 2"
    old = np.array([16, -16], np.int32)
    assert answer_of(words, src=np.array([11, 21], np.int8), dst=old).tolist() == [5 + 5 + 2, 10 + 5 - 2]


def test_the_copy_is_a_copy() -> None:
    """The call that bandwidths are compared with moves every byte, with one argument of half the bytes."""
    desc = dnn.MemoryDesc((1, 100_001), dnn.u8, "ab")
    src, dst = dnn.Memory(desc), dnn.Memory(desc)
    src.array[:] = np.arange(desc.nelems())
    pd = dnn.primitive_desc(dnn.Shuffle(desc, desc, 0, 1))
    dnn.Primitive(pd).execute(src=src, dst=dst)
    assert np.array_equal(src.array, dst.array)


@pytest.mark.parametrize(
    ("name", "driver", "problems"),
    [("shufflenet", "shuffle", 48), ("reorder_f32", "reorder", 70), ("reorder_int8", "reorder", 62),
     ("reorder_bf16", "reorder", 52), ("eltwise_resnet", "eltwise", 12), ("eltwise_all", "eltwise", 96),
     ("binary_all", "binary", 36)],
)  # fmt: skip
def test_problem_sets_can_be_described(name: str, driver: str, problems: int) -> None:
    cases = read(f"--batch={name}")
    assert [case.driver.name for case in cases] == [driver] * problems
    for case in cases:
        assert case.driver.work(case).argument_bytes > 0


@pytest.mark.parametrize("kind", with_section("bytes"))
@pytest.mark.parametrize("dtype", ["u8", "s8"])
def test_data_of_narrow_types_differ(kind: str, dtype: str) -> None:
    """Not all of them the largest number that the type has: a wrong place would not be seen."""
    for case in read(f"--{kind} {section(kind, 'bytes').format(dtype)}"):
        work = case.driver.work(case)
        assert not isinstance(work, str) and not case.settings.unbuilt
        for exact in work.exactness:
            arrays = work.data(exact).arrays
            src = arrays["src"] if "src" in arrays else arrays["src0"]
            _, counts = np.unique(src, return_counts=True)
            assert counts.max() <= src.size // 2


def test_slopes_at_the_ends_of_a_range() -> None:
    """As oneDNN has them: of clip 1 at the upper end, of the others none there."""
    ends = np.array([-1.0, 2.0])
    assert slope("clip", ends, -1.0, 2.0, False).tolist() == [0, 1]
    assert slope("clip_v2", ends, -1.0, 2.0, False).tolist() == [0, 0]
    assert slope("hardsigmoid", np.array([1.5, 1.0]), -2.0, 3.0, False).tolist() == [0, 0]
    assert slope("hardswish", np.array([1.5, 1.0]), -2.0, 3.0, False).tolist() == [0, 1]


@pytest.mark.parametrize("alg", ["max", "min", "sum", "mean", "mul", "norm_lp_max"])
def test_reductions_of_integers_differ(alg: str) -> None:
    """A result in a wrong place would not be seen otherwise."""
    (case,) = read(f"--reduction --sdt=u8 --ddt=s32 --alg={alg} 4x9x70:4x9x1")
    work = case.driver.work(case)
    assert not isinstance(work, str)
    answer = work.answer(work.data(exact=False))
    _, counts = np.unique(answer.values, return_counts=True)
    assert counts.max() <= 18 and np.isfinite(answer.tolerance).all()
