"""Which implementation takes a convolution and why not another; and that none refuses the formats it chose itself."""

import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import asmdnn as dnn
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.isa.vectors import lanes_of
from tests.primitives.conv_case import ConvCase, case_of, proven
from tests.primitives.test_conv_shapes import CASES, few, many

ENGINES = {isa: dnn.Engine(isa=isa, threads=1, l2_bytes=512 << 10) for isa in ("avx2", "avx512_core")}


def answers(line: str, isa: str = "avx2") -> dict[str, str]:
    """Implementation to reason, or "" for a plan."""
    case, found = case_of(line), {}
    for answer in dnn.implementations(case.desc(), case.attr(), ENGINES[isa]):
        refused = isinstance(answer, dnn.Refusal)
        found[answer.implementation] = answer.reason if refused else ""
        if not refused:
            answer.plan.check()
    return found


def test_all_implementations_answer() -> None:
    product = "the kernel has 3x3 positions, a product has one"
    assert answers("mb1ic64ih14oc64oh14kh3ph1 any any bias relu") == {
        "direct:avx2": "",
        "reorder+direct:avx2": "",
        "product:avx2": product,
        "pack+direct:avx2": "weights need not be packed",
        "pack+reorder+direct:avx2": "weights need not be packed",
    }
    plain = "weights must be any or OIhw8i16o, not oihw"
    far = "src nchw has its 64 channels apart, more than 16"
    assert answers("mb1ic64ih14oc64oh14kh3ph1 nchw nchw bias relu oihw") == {
        "direct:avx2": far,
        "reorder+direct:avx2": plain,
        "product:avx2": product,
        "pack+direct:avx2": far,
        "pack+reorder+direct:avx2": "",
    }


def test_a_1x1_convolution_of_plain_tensors_is_a_product() -> None:
    found = answers("mb1ic64ih14oc64oh14kh1ph0 nhwc nhwc bias relu hwio")
    assert list(found) == [
        "direct:avx2",
        "reorder+direct:avx2",
        "product+tiles:avx2",
        "pack+direct:avx2",
        "pack+reorder+direct:avx2",
    ]
    assert list(found.values())[2:] == ["", "", ""]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("mb1ic8ih6oc8oh3kh1sh2ph0 nhwc nhwc - - oihw", "strides or padding: pixels of dst are not those of src"),
        ("mb1ic8ih6oc8oh8kh1ph1 nhwc nhwc - - oihw", "strides or padding: pixels of dst are not those of src"),
        ("mb1ic8ih6oc8oh6kh1ph0 nChw8c nhwc - - oihw", "src nChw8c is blocked, it must be plain"),
        ("mb1ic8ih6oc8oh6kh1ph0 nhwc nhwc - - OIhw4i8o", "weights OIhw4i8o is blocked, it must be plain"),
        ("mb1ic8ih6oc8oh6kh1ph0 nhwc~3 nhwc - - oihw", "src .* has pixels at distances that vary"),
    ],
)
def test_what_is_no_product(line: str, reason: str) -> None:
    found = answers(line)
    assert re.fullmatch(reason, found["product:avx2"])
    assert found["pack+direct:avx2"] == ""


def test_one_group_is_none() -> None:
    weights = dnn.MemoryDesc((1, 16, 32, 3, 3), dnn.f32, "any")
    src, dst = (dnn.MemoryDesc((1, c, 8, 8), dnn.f32, "any") for c in (32, 16))
    desc = dnn.ConvolutionForward(src, weights, dst, padding_l=(1, 1), padding_r=(1, 1))
    pd = dnn.primitive_desc(desc, engine=ENGINES["avx2"])
    pd.plan.check()
    assert str(pd.weights_desc) == "f32 1x16x32x3x3 gOIhw8i16o"


BROADCASTS = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 1, 1), (1, 1, 1), (0, 0, 1), (1, 0, 1))  # batch, channels, pixels
TAGS = st.sampled_from(("any", "abx", "axb", "aBx8b"))


@st.composite
def attributes(draw: st.DrawFn, case: ConvCase) -> dnn.Attr:
    """Scales, and post-ops with and without tensors of every broadcast."""
    dims = case.problem.dst_dims

    def tensor() -> dnn.MemoryDesc:
        batch, channels, pixels = draw(st.sampled_from(BROADCASTS))
        kept = (batch, channels, *[pixels] * (len(dims) - 2))
        return dnn.MemoryDesc([n if keep else 1 for n, keep in zip(dims, kept, strict=True)], dnn.f32, draw(TAGS))

    makers: list[Any] = [
        lambda: dnn.Eltwise(draw(st.sampled_from(("relu", "tanh", "gelu_erf")))),
        lambda: dnn.Sum(0.5),
        lambda: dnn.Binary(draw(st.sampled_from(("add", "mul", "max"))), tensor()),
    ]
    chain = [draw(st.sampled_from(makers))() for _ in range(draw(st.integers(0, 3)))]
    scales = draw(st.sampled_from(({}, {}, {"src": 0}, {"weights": 1}, {"src": 0, "weights": 0, "dst": 2})))
    return dnn.Attr(chain, scales=scales)


def check_own_choice(case: ConvCase, attr: dnn.Attr, isa: str) -> None:
    """Whoever took a description takes it again with the formats that were chosen, and leaves them."""
    desc = case.desc()
    answers = dnn.implementations(desc, attr, ENGINES[isa])
    taken = [(i, answer) for i, answer in enumerate(answers) if isinstance(answer, dnn.PrimitiveDesc)]
    assume(taken)
    for i, pd in taken:
        chosen = {name: pd.plan.tensors[name] for name in desc.tensors()}
        same = dnn.implementations(desc.with_formats(chosen), attr, ENGINES[isa])[i]
        assert isinstance(same, dnn.PrimitiveDesc), same
        assert same.plan.tensors == pd.plan.tensors
    plan = taken[0][1].plan
    first = {name: plan.tensors[name] for name in desc.tensors()}
    assert dnn.primitive_desc(desc.with_formats(first), attr, ENGINES[isa]).plan.tensors == plan.tensors
    plan.check()


@few
@given(data=st.data())
def test_no_plan_refuses_its_own_choice(planned_isa: str, data: st.DataObject) -> None:
    case = data.draw(CASES)
    check_own_choice(case, data.draw(attributes(case)), planned_isa)


@pytest.mark.slow
@many
@given(data=st.data())
def test_none_of_many_plans_refuses_its_own_choice(planned_isa: str, data: st.DataObject) -> None:
    case = data.draw(CASES)
    check_own_choice(case, data.draw(attributes(case)), planned_isa)


def test_tiles_of_one_vector_serve_images_of_further_sizes(planned_isa: str) -> None:
    """They have no next vector of channels, so its distance, which grows with the image, is not in their code."""
    channels, found = lanes_of(planned_isa), []
    for width in (96, 192):
        case = case_of(f"mb1ic{channels}ih64iw{width}oc{channels}oh64ow{width}kh3kw3ph1pw1 any any bias relu")
        found.append(set(proven(case, planned_isa).plan.specs))
    assert found[0] == found[1]
    assert {type(spec) for spec in found[0]} == {ConvTileSpec}


def test_images_whose_rows_are_cut_alike_have_the_same_kernels(planned_isa: str) -> None:
    """The very objects: what they depend on is found once for all of them."""
    cuts = [tables_of_width(width, planned_isa) for width in (84, 112)]  # rows of whole tiles
    assert all(one is other for one, other in zip(*cuts, strict=True))
    assert cuts[0]


def tables_of_width(width: int, isa: str) -> list[ConvTileSpec]:
    case = case_of(f"mb1ic64ih1iw{width}oc72oh1ow{width}kh1kw3pw1 any any bias relu")
    plan = proven(case, isa).plan
    assert plan.implementation == f"direct:{isa}"
    return [spec for phase in plan.phases for spec in phase.kernels]
