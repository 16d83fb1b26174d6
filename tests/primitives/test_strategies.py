"""Every way to compute a primitive is an implementation: a plan that is proven and right, or a reason."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.primitives import every_kind
from tests.primitives.every_kind import INFERENCE
from tests.primitives.tensors import holding, read

NAMES = [
    "one_by_one", "dots", "outer", "rows", "pack_blocks", "packing_tiles", "split_k", "pack_weights+tiles", "tiles",
    "unpacking",
]  # fmt: skip
REASONS = {
    "one_by_one": "it is no batch of 4 or more matrices with weights of their own",
    "dots": "it is no matrix of 8 or more dense rows of at least 8, or 96 elements in fewer, times a few vectors",
    "outer": "there are 300 steps of k, outer products are for 1 to 8",
    "rows": "dst is more than 4 rows",
    "split_k": "there are enough tiles for many threads, or they are so short that a second phase costs more",
    "unpacking": "f32 times f32 to f32 is not floats times integers",
}


def desc(dims: tuple[int, ...], tag: str = "ab") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, tag)


def asked(m: int, k: int, n: int, weights: str = "ab") -> list[dnn.PrimitiveDesc | dnn.Refusal]:
    request = dnn.MatMul(desc((m, k)), desc((k, n), weights), desc((m, n)))
    return dnn.implementations(request, engine=dnn.Engine(isa="avx2", threads=1, l2_bytes=512 << 10))


def test_all_are_listed_with_a_plan_or_a_reason() -> None:
    answers = asked(256, 300, 300)
    found = {x.implementation: x.reason if isinstance(x, dnn.Refusal) else "" for x in answers}
    taken = ("pack_blocks+tiles", "packing_tiles+tiles", "pack_weights+tiles", "tiles")
    assert found == {f"{name}:avx2": REASONS.get(name, "") for name in (*REASONS, *taken)}


@pytest.mark.parametrize(
    "dims", [(256, 300, 300), (40, 2000, 30), (1, 1000, 1000), (3, 300, 300), (100, 4, 64), (300, 300, 1)]
)
@pytest.mark.parametrize("weights", ["ab", "ba"])
def test_all_that_take_it_compute_the_same(dims: tuple[int, int, int], weights: str) -> None:
    m, k, n = dims
    rng = np.random.default_rng(5)
    a, b = rng.integers(-3, 4, (m, k)).astype(np.float32), rng.integers(-3, 4, (k, n)).astype(np.float32)
    answers = asked(m, k, n, weights)
    assert len(answers) == len(NAMES)
    plans = [x for x in answers if isinstance(x, dnn.PrimitiveDesc)]
    assert plans
    for pd in plans:
        pd.plan.check()
        src, factors = holding(desc((m, k)), a), holding(desc((k, n), weights), b)
        dst = dnn.Memory(desc((m, n)))
        dnn.Primitive(pd).execute(src=src, weights=factors, dst=dst)
        np.testing.assert_array_equal(read(dst), a @ b, pd.implementation)


def test_what_no_strategy_takes_has_one_reason_after_all() -> None:
    request = dnn.MatMul(dnn.MemoryDesc((4, 4), dnn.s8, "ab"), desc((4, 4)), desc((4, 4)))
    answers = dnn.implementations(request, engine=dnn.Engine(isa="avx2", threads=1))
    assert [x.implementation for x in answers] == [f"{name}:avx2" for name in NAMES]
    with pytest.raises(dnn.Unimplemented, match="tiles:avx2: isa avx2 does not multiply s8 by f32: it has") as error:
        dnn.primitive_desc(request, engine=dnn.Engine(isa="avx2", threads=1))
    assert str(error.value).count("does not multiply") == 1


MATRIX, IMAGES, FILTER = desc((8, 8)), desc((1, 8, 4, 4), "any"), desc((8, 8, 1, 1), "any")


@pytest.mark.parametrize(
    "desc_of",
    [
        dnn.MatMul(MATRIX, MATRIX, MATRIX),
        dnn.InnerProductForward(src=MATRIX, weights=MATRIX, dst=MATRIX),
        dnn.InnerProductBackwardData(diff_src=MATRIX, weights=MATRIX, diff_dst=MATRIX),
        dnn.InnerProductBackwardWeights(src=MATRIX, diff_weights=MATRIX, diff_dst=MATRIX),
        dnn.ConvolutionForward(src=IMAGES, weights=FILTER, dst=IMAGES),
        dnn.ConvolutionForward(src=desc((0, 8, 4, 4), "any"), weights=FILTER, dst=desc((0, 8, 4, 4), "any")),
        dnn.EltwiseForward(dnn.PropKind.forward_inference, "relu", MATRIX, MATRIX),
        dnn.EltwiseBackward("relu", MATRIX, MATRIX, MATRIX),
        dnn.BinaryForward("add", MATRIX, MATRIX, MATRIX),
        dnn.Shuffle(MATRIX, MATRIX, 1, 4),
    ],
    ids=lambda request: type(request).__name__,
)
def test_what_a_planner_raises_is_a_refusal_outside(desc_of: Any) -> None:
    """Every implementation of every kind, with an attribute that none takes."""
    answers = dnn.implementations(desc_of, dnn.Attr(zero_points={"src": 0}), dnn.Engine(isa="avx2", threads=1))
    assert answers
    for answer in answers:
        assert isinstance(answer, dnn.Refusal)
        assert answer.reason
        assert answer.implementation.endswith(":avx2")


# Kinds that list one implementation, "reorder+" in front of it or not, and why.
ONE_WALK = "one walk over all tensors, whose kernels are chosen piece by piece"
COPIES = "a reorder of each part, which chooses its kernels as any other"
BY_INDEX = "kernels that read indices, which take rows of any size; rows that are not dense are copied"
COUNTED = "one walk over elements in the order of their numbers, by which a generator draws: copies for others"
ONE = {
    "EltwiseForward": ONE_WALK,
    "EltwiseBackward": ONE_WALK,
    "BinaryForward": ONE_WALK,
    "PReLUForward": ONE_WALK,
    "SumForward": ONE_WALK,
    "Concat": COPIES,
    "Pad": COPIES,
    "Scatter": BY_INDEX,
    "Dropout": COUNTED,
    "StochasticRounding": COUNTED,
    "RandomNumbers": COUNTED,
    "NonMaxSuppression": "three calls for each class, whatever its boxes are",
}


def test_ways_are_implementations() -> None:
    """Of every kind, from small problems of all, where a level has tiles, too."""
    engine = every_kind.engine("avx512_core_amx")
    found: dict[str, set[str]] = {}
    for one in (*every_kind.WITH_POST_OPS, *every_kind.others()):
        answers = dnn.implementations(one, engine=engine)
        found.setdefault(type(one).__name__, set()).update(x.implementation.removeprefix("reorder+") for x in answers)
    assert {name for name, ways in found.items() if len(ways) == 1} == ONE.keys(), "give its ways a name each"
    assert len(ONE) <= 12


def test_each_way_gives_its_reason() -> None:
    blocked = dnn.MemoryDesc((2, 16, 3, 5), dnn.f32, "aBcd8b")
    for desc, wanted in (
        (dnn.SoftmaxForward(INFERENCE, "accurate", blocked, blocked, 1), ("the axis is in blocks", "side by side")),
        (dnn.CumulativeSum(blocked, blocked, 1), ("the axis is in blocks", "side by side")),
        (dnn.LayerNormForward(INFERENCE, blocked, blocked), ("kernels take f32", "of src")),
    ):
        answers = dnn.implementations(desc, engine=every_kind.engine("avx2"))
        (taken,) = (each for each in answers if isinstance(each, dnn.PrimitiveDesc))
        assert taken.implementation.startswith("reorder+")
        reasons = [each.reason for each in answers if isinstance(each, dnn.Refusal)]
        assert all(any(word in reason for reason in reasons) for word in wanted)


def test_what_a_gradient_is_not_for_has_a_reason() -> None:
    """Maxima and means, all axes at once and one after the other: the other way says why it is not this one."""
    small, large, tall = (dnn.MemoryDesc((1, 8, n, n), dnn.f32, "abcd") for n in (2, 4, 40))
    places = dnn.MemoryDesc(small.dims, dnn.s32, "abcd")
    window: Any = (large, small, (2, 2), (2, 2))
    for desc, taken, reason in (
        (dnn.PoolingBackward("max", *window, indices=places), "maxima", "it is of means, alg is max"),
        (dnn.PoolingBackward("avg_include_padding", *window), "means", "it is of maxima, whose places are known"),
        (dnn.ResamplingBackward("linear", small, large), "rows", "registers hold what all axes"),
        (dnn.ResamplingBackward("linear", small, tall), "reorder+axes", "registers do not hold what all axes"),
    ):
        answers = dnn.implementations(desc, engine=every_kind.engine("avx2"))
        plans = [x.implementation for x in answers if isinstance(x, dnn.PrimitiveDesc)]
        assert plans[0].removeprefix("reorder+") == f"{taken.removeprefix('reorder+')}:avx2"
        assert any(reason in x.reason for x in answers if isinstance(x, dnn.Refusal)), answers


def test_a_result_whose_elements_overlap_is_named() -> None:
    """Also where planners share the check: gradients are no dst."""
    x, once = desc((4, 8)), dnn.MemoryDesc((4, 8), dnn.f32, strides=(1, 1))
    for request, name in (
        (dnn.EltwiseForward(INFERENCE, "relu", x, once), "dst"),
        (dnn.EltwiseBackward("relu", x, x, once), "diff_src"),
        (dnn.SoftmaxBackward("accurate", x, x, once, 1), "diff_src"),
        (dnn.Shuffle(x, once, 1, 4), "dst"),
    ):
        reasons = {x.reason for x in dnn.implementations(request) if isinstance(x, dnn.Refusal)}
        assert reasons == {f"elements of {name} overlap"}


def answers_of(desc: Any, isa: str = "avx2") -> dict[str, str]:
    """What each implementation says: "" if it has a plan."""
    found = dnn.implementations(desc, engine=every_kind.engine(isa))
    return {x.implementation.partition(":")[0]: x.reason if isinstance(x, dnn.Refusal) else "" for x in found}


def test_reorders_say_how_elements_move() -> None:
    plain, other, apart = (dnn.MemoryDesc((20, 30), dnn.f32, strides=n) for n in ((30, 1), (1, 20), (120, 3)))
    for src, dst, way in ((plain, plain, "rows"), (plain, other, "transposes"), (plain, apart, "elements")):
        found = answers_of(dnn.Reorder(src, dst))
        assert [name for name, reason in found.items() if not reason] == [way]
        assert len({*found.values()} - {"", "no elements share a byte"}) == 1


def test_local_response_norms_walk_along_what_is_dense() -> None:
    ways = {("across", "acdb"): "channels", ("across", "abcd"): "pixels", ("across", "aBcd8b"): "blocks",
            ("within", "abcd"): "windows"}  # fmt: skip
    for (alg, tag), way in ways.items():
        x = dnn.MemoryDesc((2, 16, 5, 7), dnn.f32, tag)
        name: Any = f"lrn_{alg}_channel{'s' * (alg == 'across')}"
        found = answers_of(dnn.LRNForward(INFERENCE, name, x, x))
        assert [name for name, reason in found.items() if not reason] == [way]
        gradient = answers_of(dnn.LRNBackward(name, x, x, x))
        passes = [name for name, reason in gradient.items() if not reason]
        assert passes == [*["one_pass"] * (way in ("channels", "blocks")), "two_passes"]


def test_recurrent_layers_multiply_what_their_types_are() -> None:
    cells = {type(one): one for one in every_kind.others() if isinstance(one, dnn.LSTMForward)}
    found = answers_of(cells[dnn.LSTMForward])
    assert found["floats"] == ""
    assert "weights come without weights_layer_scales" in found["dynamic_bytes"]
    assert found["bytes"] == "weights_layer is f32" and found["pairs"] == "training keeps f32"


def test_norms_by_given_statistics_are_another_way() -> None:
    x, channels = dnn.MemoryDesc((2, 16, 5, 7), dnn.f32, "abcd"), dnn.MemoryDesc((16,), dnn.f32, "a")
    for given in (False, True):
        desc = dnn.BatchNormForward(INFERENCE, x, x, mean=channels, variance=channels, use_global_stats=given)
        of_src = "" if not given else "mean and variance are given"
        assert answers_of(desc) == {
            "batch_norm": of_src, "given_statistics": "" if given else "mean and variance are those of src",
        }  # fmt: skip


def test_nothing_is_copied_that_kernels_take() -> None:
    """All ways that copy refuse, and so do all but the first where there is nothing to do; rows can be sorted, too."""
    for dims in ((3, 19), (0, 19)):
        src, dst = (dnn.MemoryDesc(n, dnn.f32, "ab") for n in (dims, (dims[0], 1)))
        index = dnn.MemoryDesc((dims[0], 1), dnn.s32, "ab")
        for desc in (
            dnn.SoftmaxForward(INFERENCE, "accurate", src, src, 1),
            dnn.CumulativeSum(src, src, 1),
            dnn.TopKForward("max", src, index, 1),
            *((dnn.ReductionForward("sum", src, dst),) if dims[0] else ()),
        ):
            first, *others = dnn.implementations(desc, engine=every_kind.engine("avx2"))
            assert isinstance(first, dnn.PrimitiveDesc) and first.implementation == "rows:avx2"
            ways = [each.implementation for each in others if isinstance(each, dnn.PrimitiveDesc)]
            assert others and ways == ["sorted:avx2"] * (isinstance(desc, dnn.TopKForward) and dims[0] > 0)


@pytest.mark.parametrize(
    ("k", "n", "way"),
    [
        (400, 400, "tiles"), (1000, 1000, "tiles"), (1100, 1000, "rows"),  # rows of weights fall into all sets of L1,
        (256, 256, "tiles"), (256, 512, "rows"),  # into a quarter of them,
        (32, 1024, "rows"),  # into one,
        (128, 3000, "tiles"), (128, 3500, "rows"),  # and are pages apart
    ],
)  # fmt: skip
@pytest.mark.parametrize("m", [1, 4])
def test_few_rows_go_by_whole_rows_of_many_weights(m: int, k: int, n: int, way: str) -> None:
    request = dnn.MatMul(desc((m, k)), desc((k, n)), desc((m, n)))
    for machine in ("zen3", "skylake_sp"):
        pd = dnn.primitive_desc(request, engine=dnn.Engine(isa="avx2", threads=1, machine=machine))
        assert pd.implementation == f"{way}:avx2", pd.plan


def test_few_weights_are_a_reason() -> None:
    by_rows = next(x for x in asked(1, 200, 300) if x.implementation.startswith("rows"))
    assert isinstance(by_rows, dnn.Refusal)
    assert by_rows.reason == "weights of 200 x 300 are so few that tiles read them as fast"
