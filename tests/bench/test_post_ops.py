"""--attr-post-ops: its words, chains in float64 with their tolerance, and every driver and command that reads them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench import chains
from asmdnn.bench.driver import Array, Data
from asmdnn.bench.judge import Answer, judge
from asmdnn.bench.own import Own
from asmdnn.bench.post_ops import attr_of, chain, joined
from asmdnn.cli.main import main
from asmdnn.errors import InvalidArguments
from asmdnn.primitives.attributes.words import post_op_word
from asmdnn.primitives.elementwise.eltwise import FORWARD_ALGS
from tests.bench.test_command import run
from tests.support import functions
from tests.support.cases import read

DIMS = (2, 17, 3, 5)
NUMBERS = {"relu": ":0.1", "elu": ":0.5", "linear": ":2:1", "clip": ":-0.5:0.25", "clip_v2": ":-0.5:0.25",
           "soft_relu": ":1.5", "swish": ":1.2", "pow": ":0.5:2", "hardswish": ":0.2:0.5",
           "hardsigmoid": ":0.2:0.5"}  # fmt: skip
FUNCTIONS = ",".join(f"{alg}{NUMBERS.get(alg, '')}" for alg in FORWARD_ALGS)
CHAIN = "sum:0.5+linear:2:1:0.5+mul:f32:per_oc+tanh+add:f32:per_tensor+prelu:per_oc+max:f32:common+swish:1"


@pytest.mark.parametrize(
    ("word", "ops", "printed"),
    [
        ("", [], ""),
        ("sum", [dnn.Sum()], "sum"),
        ("sum:0.5", [dnn.Sum(0.5)], "sum:0.5"),
        ("sum:1:2", [dnn.Sum(1, 2)], "sum:1:2"),
        ("sum:0.25:-3:f32", [dnn.Sum(0.25, -3)], "sum:0.25:-3"),
        ("SUM:1:0:undef", [dnn.Sum()], "sum"),
        ("relu:0.1", [dnn.Eltwise("relu", 0.1)], "relu:0.1"),
        ("eltwise_linear:2:1", [dnn.Eltwise("linear", 2, 1)], "linear:2:1"),
        ("linear:2:1:0.5", [dnn.Eltwise("linear", 2, 1, 0.5)], "linear:2:1:0.5"),
        ("tanh:0:0:0.5", [dnn.Eltwise("tanh", scale=0.5)], "tanh:0:0:0.5"),
        ("linear:1e30:-1E-7", [dnn.Eltwise("linear", 1e30, -1e-7)], "linear:1e30:-1e-07"),
        ("swish:0.16666666666666666", [dnn.Eltwise("swish", 1 / 6)], "swish:0.16666666666666666"),
        ("sum+relu+sum", [dnn.Sum(), dnn.Eltwise("relu"), dnn.Sum()], "sum+relu+sum"),
    ],
)
def test_words(word: str, ops: list[Any], printed: str) -> None:
    assert attr_of(chain(word), DIMS) == dnn.Attr(ops)
    assert joined(chain(word)) == printed
    assert chain(printed) == chain(word)


@pytest.mark.parametrize(
    ("word", "dims", "printed"),
    [
        ("add", (1, 1, 1, 1), "add:f32:common"),
        ("add:f32:per_oc", (1, 17, 1, 1), None),
        ("add:f32:per_mb_spatial", (2, 1, 3, 5), None),
        ("add:f32:per_mb_w", (2, 1, 1, 5), None),
        ("add:f32:per_w", (1, 1, 1, 5), None),
        ("binary_mul:f32:per_tensor", DIMS, "mul:f32:per_tensor"),
        ("sub:f32:09", (2, 1, 1, 5), "sub:f32:9"),
        ("ge:f32:per_dim_0", (2, 1, 1, 1), None),
        ("div:f32:per_dim_01", (2, 17, 1, 1), None),
        ("max:f32:per_dim_13", (1, 17, 1, 5), None),
    ],
)
def test_tensors_of_words(word: str, dims: tuple[int, ...], printed: str | None) -> None:
    (op,) = attr_of(chain(word), DIMS).post_ops
    assert isinstance(op, dnn.Binary)
    assert (op.src1.dims, op.src1.is_any) == (dims, True)
    assert joined(chain(word)) == (printed or word)
    (blocked,) = attr_of(chain("add:f32:15:aBcd8b"), DIMS).post_ops
    assert isinstance(blocked, dnn.Binary)
    assert blocked.src1 == dnn.MemoryDesc(DIMS, dnn.f32, "aBcd8b")


@pytest.mark.parametrize(
    ("word", "dims", "strides"),
    [
        ("add:f32:13:abcd:500x500x7x1", (2, 1, 3, 5), (500, 500, 7, 1)),
        ("mul:f32:common:abcd:1x1x8x16", (1, 1, 1, 1), (1, 1, 8, 16)),
        ("max:f32:per_tensor:axb:300x1x80x17", DIMS, (300, 1, 80, 17)),
    ],
)
def test_tensors_of_words_with_strides(word: str, dims: tuple[int, ...], strides: tuple[int, ...]) -> None:
    (op,) = attr_of(chain(word), DIMS).post_ops
    assert isinstance(op, dnn.Binary)
    assert (op.src1.dims, op.src1.strides) == (dims, strides)
    assert chain(joined(chain(word))) == chain(word)
    with pytest.raises(dnn.Unimplemented, match="a tensor in groups, which is not built yet"):
        chain("add:f32:3:grouped")


def test_a_depthwise_post_op_changes_the_dims_after_it() -> None:
    words = chain("relu+dw:k3s2p1+mul:f32:per_tensor")
    assert joined(words) == "relu+dw:k3s2p1+mul:f32:per_tensor"
    attr = attr_of(words, (2, 17, 9, 5))
    depthwise, scaled = attr.post_ops[1:]
    assert isinstance(depthwise, dnn.Depthwise)
    assert (depthwise.weights.dims, depthwise.strides, depthwise.padding_l) == ((17, 1, 1, 3, 3), (2, 2), (1, 1))
    assert isinstance(scaled, dnn.Binary)
    assert scaled.src1.dims == (2, 17, 5, 3)
    with pytest.raises(dnn.InvalidArguments, match="dw:k9s1p0 does not fit a result of 2x17x5x5"):
        attr_of(chain("dw:k9s1p0"), (2, 17, 5, 5))


def test_channels_of_a_product_are_its_columns() -> None:
    (case,) = read("--matmul --attr-post-ops=prelu:per_oc+add:f32:per_oc 3x4x5:3x5x6")
    _, attr = case.driver.work(case).describe()
    assert [desc.dims for desc in attr.tensors().values()] == [(1, 1, 6)] * 2


def test_verbose_words_are_words() -> None:
    for word in (*CHAIN.split("+"), *FUNCTIONS.split(",")):
        (op,) = attr_of(chain(word), DIMS).post_ops
        assert attr_of(chain(post_op_word(op)), DIMS).post_ops == (op,)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("sum+tan", "has 'tan'; post-ops are sum, an element-wise function"),
        ("relu+", "has ''; post-ops are"),
        ("relu:", "has '', which is not a finite number"),
        ("linear:nan", "has 'nan', which is not a finite number"),
        ("sum:1e39", "has '1e39', which is not a finite number"),
        ("linear:1e+3", "has '1e', which is not a finite number"),
        ("soft_relu:0", "has 'soft_relu:0': Eltwise.alpha must not be 0"),
        ("clip:1:0", "it must not be above beta"),
        ("relu:1:0:1:0", "has 'relu:1:0:1:0' with too many numbers: write relu[:ALPHA[:BETA[:SCALE]]]"),
        ("sum:1:0:f32:1", "with too many numbers: write sum[:SCALE[:ZERO_POINT[:f32]]]"),
        ("sum:1:0:s9", "has 'sum:1:0:s9' of type 's9', it must be f32"),
        ("add:float", "has 'add:float' of type 'float', it must be f32"),
        ("add:f32:per_ic", "has 'add:f32:per_ic' with the dims 'per_ic': write common, per_oc"),
        ("add:f32:per_dim_", "with the dims 'per_dim_'"),
        ("add:f32:per_dim_10", "with the dims 'per_dim_10'"),
        ("add:f32:-1", "with the dims '-1'"),
        ("add:f32:4096", "with the dims '4096'"),
        ("add:f32:2:a-b", "must be any, nchw"),
        ("add:f32:2:any:1:1", "with too many numbers"),
        ("prelu:per_oc:abx", "has 'prelu:per_oc:abx' with too many numbers"),
        ("user:1234abcd", "has 'user:1234abcd': a post-op written in Python has no word"),
        ("+".join(["relu"] * 33), "has 33 post-ops, at most 32 can be chained"),
    ],
)
def test_mistakes(word: str, says: str) -> None:
    with pytest.raises(InvalidArguments) as raised:
        read(f"--attr-post-ops={word} ic3ih8oc4kh3")
    assert f"--attr-post-ops={word}: " in str(raised.value)
    assert says in str(raised.value)


def test_a_mask_of_too_many_dims(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--matmul", "--attr-post-ops=add:f32:4", "3x4:4x5"]) == 2
    assert "post-op add:f32:4 has a tensor of more dims than the result, which has 2" in capsys.readouterr().err
    assert main(["bench", "--matmul", "--attr-post-ops=add:f32:2:any:1", "3x4:4x5"]) == 2
    assert "post-op add:f32:2:any:1 has 1 strides, the result has 2 dims" in capsys.readouterr().err


def in_f32(attr: dnn.Attr, x: Any, arrays: Any) -> Any:
    """A chain step by step, each result rounded to f32."""
    for i, op in enumerate(attr.post_ops):
        x = x.astype(np.float64)
        if isinstance(op, dnn.Sum):
            x = x + np.float32(op.scale) * (arrays["dst"].astype(np.float64) - op.zero_point)
        elif isinstance(op, dnn.Eltwise):
            x = op.scale * functions.forward(op.alg, x, op.alpha, op.beta)
        elif isinstance(op, dnn.Binary):
            x = functions.BINARY[op.alg](x, arrays[f"binary_{i}"].astype(np.float64))
        else:
            x = np.where(x > 0, x, x * arrays[f"prelu_{i}"])
        with np.errstate(over="ignore"):
            x = x.astype(np.float32)
    return x


@pytest.mark.parametrize("word", [*FUNCTIONS.split(","), CHAIN, "round+eq:f32:common", "ne:f32:per_tensor+sum:2:0.5"])
def test_chains_are_the_definition_within_their_tolerance(word: str) -> None:
    """By other formulas, and from numbers that are moved by the error: the tolerance holds, and says something."""
    attr = attr_of(chain(word), DIMS)
    rng = np.random.default_rng(3)
    x = rng.uniform(-3, 3, DIMS)
    arrays = {**chains.operands(attr, exact=False), "dst": rng.uniform(-1, 1, DIMS).astype(np.float32)}
    values, tolerance = chains.apply(attr, x, 1e-6, arrays)
    known = np.isfinite(tolerance)
    assert known.mean() > 0.4
    assert np.median(tolerance[known]) < 1e-3
    for moved in (x, x + 0.9e-6, x - 0.9e-6):
        with np.errstate(all="ignore"):
            result = in_f32(attr, moved.astype(np.float32), arrays)
        assert judge(result, Answer(values, tolerance, "numpy"), exact=False).reason == ""
    values[known] += 3 * tolerance[known] + 1e-4
    assert judge(in_f32(attr, x.astype(np.float32), arrays), Answer(values, tolerance, "numpy"), exact=False).reason


def test_infinities_are_equal_to_themselves() -> None:
    """Such as the maximum of a window in padding alone."""
    answer = Answer(np.array([-np.inf, 1.0, np.inf]), 0.0, "numpy")
    assert judge(np.array([-np.inf, 1.0, np.inf], np.float32), answer, exact=True).reason == ""
    assert judge(np.array([-np.inf, 1.0, -np.inf], np.float32), answer, exact=True).reason


def test_where_nothing_is_known() -> None:
    """log around 0 and of negative numbers, and beyond f32's range; later post-ops do not make it known again."""
    attr = attr_of(chain("log+max:f32:common"), (4,))
    x = np.array([-1, 1e-8, 0.5, 2])
    _, tolerance = chains.apply(attr, x, 1e-6, chains.operands(attr, exact=False))
    assert np.isinf(tolerance).tolist() == [True, True, False, False]
    _, tolerance = chains.apply(attr_of(chain("exp+clip:0:1"), (2,)), np.array([1.0, 90.0]), 0.0, {})
    assert np.isinf(tolerance).tolist() == [False, True]
    _, tolerance = chains.apply(attr_of(chain("pow:1:-1"), (2,)), np.array([1e-9, 0.5]), 1e-6, {})
    assert np.isinf(tolerance).tolist() == [True, False]
    answer = Answer(np.full(4, np.nan), np.full(4, np.inf), "numpy")
    verdict = judge(np.ones(4, np.float32), answer, exact=False)
    assert not verdict.reason
    assert "no element can be checked" in verdict.doubt


@pytest.mark.parametrize(
    ("word", "exact"),
    [("sum+relu", True), ("sum:-1+relu:-1+abs+round+add:f32:per_oc+ge:f32", True), ("sum:0.5", False),
     ("sum:1:1", False), ("relu:0.1", False), ("mul:f32", False), ("prelu", False), ("abs:0:0:2", False)],
)  # fmt: skip
def test_which_chains_are_exact(word: str, exact: bool) -> None:
    attr = attr_of(chain(word), DIMS)
    assert chains.is_exact(attr) is exact
    assert chains.exactness(attr) == ((True, False) if exact else (False,))
    for array in chains.operands(attr, exact=True).values():
        assert np.array_equal(array, np.rint(array)) and array.all()


def passed(records: list[dict[str, Any]], count: int) -> None:
    """Some functions, such as not, give one number for all of these results: they are right, and mistrusted."""
    assert [record["reason"] for record in records if record["status"] not in ("passed", "mistrusted")] == []
    assert len(records) == count


def test_every_function_after_a_product(capsys: pytest.CaptureFixture[str]) -> None:
    status, records = run(capsys, "--matmul", f"--attr-post-ops={FUNCTIONS}", "7x20:20x19")
    passed(records, len(FORWARD_ALGS))
    assert status == 0


BINARIES = "add,sub,mul,div,max,min,ge,gt,le,lt,eq,ne"
CASES = [
    ("--conv --stag=any,axb --dtag=any,axb", "mb2ic5ih6oc17kh3ph1", 4),
    ("--matmul --wtag=any,abx", "7x20:20x19 3x4x5:3x5x9", 4),
    ("--ip --dir=FWD_B,FWD_I --stag=any", "mb5ic17oc33", 2),
    ("--eltwise --alg=tanh,square --inplace=true,false", "2x17x3x5", 4),
    ("--binary --alg=sub --inplace=true,false", "2x17x3x5:2x17x3x5", 2),
]


@pytest.mark.parametrize(("options", "problems", "count"), CASES, ids=lambda value: str(value))
def test_chains_in_every_driver(capsys: pytest.CaptureFixture[str], options: str, problems: str, count: int) -> None:
    words = f"--attr-post-ops={CHAIN},sum:-1+relu+add:f32:per_oc"
    status, records = run(capsys, *options.split(), words, *problems.split())
    passed(records, 2 * count)
    assert status == 0


def test_every_binary_operation(capsys: pytest.CaptureFixture[str]) -> None:
    words = ",".join(f"{alg}:f32:{dims}" for alg in BINARIES.split(",") for dims in ("per_tensor", "1"))
    status, records = run(capsys, "--matmul", f"--attr-post-ops={words}", "7x20:20x19")
    passed(records, 24)
    assert status == 0


def test_gradients_have_none(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ("--eltwise --dir=BWD_D --attr-post-ops=relu 2x3", "--ip --dir=BWD_D --attr-post-ops=relu ic3oc4"):
        status, (record,) = run(capsys, *words.split())
        assert (status, record["status"]) == (1, "unimplemented")


@pytest.mark.parametrize("words", ["--matmul 4x8:8x16", "--eltwise 4x16", "--conv mb1ic3ih4oc16kh3"])
def test_a_wrong_result_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    compute = Own.compute

    def wrong(self: Own, data: Data) -> Array:
        result = compute(self, data)
        result.reshape(-1)[-1] += 1e-3
        return result

    monkeypatch.setattr(Own, "compute", wrong)
    driver, problem = words.split()
    status, (record,) = run(capsys, driver, f"--attr-post-ops={CHAIN}", problem)
    assert (status, record["status"]) == (1, "failed")


@pytest.mark.parametrize("words", [f"{options.split()[0]} {problems.split()[0]}" for options, problems, _ in CASES])
def test_a_case_prints_what_repeats_it(words: str) -> None:
    driver, problem = words.split()
    (case,) = read(f"{driver} --attr-post-ops={CHAIN} {problem}")
    assert f"--attr-post-ops={CHAIN}" in str(case)
    assert read(str(case)) == [case]


def test_commands_read_the_same_words(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--matmul", "--attr-post-ops=tanh+add:f32:per_oc+prelu:per_tensor", "5x6:6x19"]
    assert main(["explain", "--isa=avx512_core", *words]) == 0
    shown = capsys.readouterr().out
    assert "binary_1" in shown
    assert "prelu_2" in shown
    assert main(["dump", "--isa=avx2", "--output=kernels", *words]) == 0
    assert any(path.name.startswith("matmul") for path in Path("kernels").iterdir())
    assert main(["prove", "--isa=avx2", *words]) == 0
    assert main(["pack", "--isa=avx2", *words, "-o", "x.pack"]) == 0
    assert "1 plans" in capsys.readouterr().out
