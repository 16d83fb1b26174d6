"""benchdnn's problem strings: values, derived sizes, canonical form, and one precise error for each mistake."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmdnn.bench.axis import ProblemAxis
from asmdnn.bench.problems import ConvProblem, parse_problem
from asmdnn.bench.words import LARGEST_NUMBER
from asmdnn.errors import InvalidArguments


def test_every_key_is_read() -> None:
    text = 'g2mb3ic4id9ih10iw11oc6od5oh4ow3kd2kh3kw4sd2sh2sw3pd1ph0pw1dd0dh1dw0n"every one"'
    problem = parse_problem(text)
    axes = (ProblemAxis(9, 5, 2, 2, 1, 0), ProblemAxis(10, 4, 3, 2, 0, 1), ProblemAxis(11, 3, 4, 3, 1, 0))
    assert problem == ConvProblem(3, 2, 4, 6, axes, "every one")
    assert problem.src_dims == (3, 4, 9, 10, 11)
    assert problem.weights_dims == (2, 3, 2, 2, 3, 4)
    assert problem.dst_dims == (3, 6, 5, 4, 3)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('ic64ih56oc64oh56kh3ph1n"name"', 'mb2ic64ih56oc64oh56kh3ph1n"name"'),  # benchdnn's default mb is 2
        ("mb1_ic64ih56_oc64oh56_kh3ph1_nname", 'mb1ic64ih56oc64oh56kh3ph1n"name"'),
        ("g1mb1ic3ih8oc4kh3", "mb1ic3ih8oc4oh6kh3ph0"),  # output from valid convolution
        ("mb1ic3ih8oc4kh3ph1", "mb1ic3ih8oc4oh8kh3ph1"),  # output with equal padding
        ("mb1ic3ih8oc4oh8kh3", "mb1ic3ih8oc4oh8kh3ph1"),  # padding from output
        ("mb1ic3ih8oc4oh8kh4", "mb1ic3ih8oc4oh8kh4ph1"),  # odd need: the smaller half is in front
        ("mb1ic3ih224oc64oh112kh7sh2", "mb1ic3ih224oc64oh112kh7sh2ph2"),
        ("mb1ic8ih56oc8oh28kh1sh2", "mb1ic8ih56oc8oh28kh1sh2ph0"),  # the last row stays unread
        ("mb1ic3ih9oc4oh5kh3dh1ph0", "mb1ic3ih9oc4oh5kh3ph0dh1"),
        ("mb1ic3ih8iw9oc4kh3kw1", "mb1ic3ih8iw9oc4oh6ow9kh3kw1ph0pw0"),
        ("mb1ic3ih8oc4kh3ph1sw1dw0", "mb1ic3ih8oc4oh8kh3ph1"),  # defaults do not make w an axis of its own
        ("mb1ic3iw8oc4kw3sw2", "mb1ic3iw8oc4ow3kw3sw2pw0"),
        ("mb1ic3id8oc4kd3", "mb1ic3id8oc4od6kd3pd0"),
        ("mb1ic3id8ih8iw7oc4kd3kh3kw3", "mb1ic3id8ih8iw7oc4od6oh6ow5kd3kh3kw3pd0ph0pw0"),
        ("oh4ic3kh1oc4ih4", "mb2ic3ih4oc4oh4kh1ph0"),  # any order
        ("mb7ic3ih9oc4kh3_ih4kh1", "mb7ic3ih4oc4oh4kh1ph0"),  # of two the last
        ("mb1ic1oc4294967311iw1kw1", "mb1ic1iw1oc4294967311ow1kw1pw0"),
        ("mb1ic16ih5oc16oh8kh3ph3", "mb1ic16ih5oc16oh8kh3ph3"),  # padding as large as the kernel is benchdnn's own
    ],
)
def test_canonical(text: str, canonical: str) -> None:
    assert str(parse_problem(text)) == canonical
    assert str(parse_problem(canonical)) == canonical


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'ic' is missing"),
        ("ic3ih8kh3", "'oc' is missing"),
        ("ic3oc4", "a spatial size is missing"),
        ("ic3oc4ih8", "'kh' is missing"),
        ("ic3oc4kh3", "'ih' is missing"),
        ("ic3oc4ih8kh3iw8", "'kw' is missing"),
        ("ic3oc4ih8kh3sw2", "'iw' is missing"),
        ("ic3oc4ih8kh3ph1pw0", "'pw' is 0 without iw and kw"),
        ("ic3oc4id8kd3ih8kh3", "'iw' is missing"),
        ("ic3oc4id8kd3iw8kw3", "'ih' is missing"),
        ("ic3oc4ih8kh3zz1", "unknown key 'zz' at position 13; keys are"),
        ("ic3oc4IH8kh3", "expected a key at position 7, found 'I'"),
        ("ic3 oc4", "expected a key at position 4, found ' '"),
        ("ic3oc4ih8kh3-", "expected a key at position 13, found '-'"),
        ("icoc4ih8kh3", "unknown key 'icoc' at position 1"),
        ("ic3oc", "'oc' at position 4 has no number"),
        ("ic3oc-", "'oc' at position 4 has no number"),
        ("ic0oc4ih8kh3", "'ic' at position 1 is 0, it must be at least 1"),
        ("ic3oc4ih-8kh3", "'ih' at position 7 is -8, it must be at least 1"),
        ("ic3oc4ih8kh3ph-1", "'ph' at position 13 is -1, it must be at least 0"),
        ("ic3oc4ih8kh3sh0", "'sh' at position 13 is 0, it must be at least 1"),
        (f"ic3oc4ih8kh{LARGEST_NUMBER + 1}", "'kh' at position 10 does not fit"),
        ("ic3oc4ih8kh" + "9" * 10_000, "'kh' at position 10 does not fit"),
        ("g2ic3oc4ih8kh3", "'ic' is 3, it must be a multiple of g2"),
        ("g3ic3oc4ih8kh3", "'oc' is 4, it must be a multiple of g3"),
        ("ic3oc4ih8kh9", "the kernel spans 9 elements, which do not fit into ih8 with ph0"),
        ("ic3oc4ih8kh5dh1", "the kernel spans 9 elements"),
        ("ic3oc4ih8kh3oh5ph0", "oh5 does not fit ih8 kh3 sh1 ph0 dh0: it leaves 1 input elements unread"),
        ("ic3oc4ih8kh3oh2", "oh2 does not fit ih8 kh3 sh1 ph0 dh0: it leaves 4 input elements unread"),
        (f"mb{LARGEST_NUMBER}ic{LARGEST_NUMBER}oc1ih4kh1", "src has 2147483647x2147483647x4x4 elements"),
        (f"mb1ic{LARGEST_NUMBER}oc{LARGEST_NUMBER}ih4kh2", "weights has"),
        ('ic3oc4ih8kh3n"a', 'n"name" ends the problem'),
        ('ic3oc4ih8kh3n"a"b"', 'n"name" ends the problem'),
        ("ic3oc4ih8kh3na\nb", 'n"name" ends the problem'),
    ],
)
def test_mistakes(text: str, says: str) -> None:
    with pytest.raises(InvalidArguments) as raised:
        parse_problem(text)
    message = str(raised.value)
    assert says in message
    assert text[:20] in message or "\n" in text
    assert "\n" not in message
    assert len(message) < 500


def brute_force_taps(axis: ProblemAxis) -> int:
    reads = [o * axis.s - axis.p + k * (axis.d + 1) for o in range(axis.o) for k in range(axis.k)]
    return sum(0 <= read < axis.i for read in reads)


@st.composite
def axes(draw: st.DrawFn) -> ProblemAxis:
    k, s, d = draw(st.integers(1, 7)), draw(st.integers(1, 4)), draw(st.integers(0, 3))
    extent = (k - 1) * (d + 1) + 1
    p, after = draw(st.integers(0, extent)), draw(st.integers(0, extent))
    o, unread = draw(st.integers(1, 20)), draw(st.integers(0, s - 1))
    i = max(1, (o - 1) * s + extent - p - after + (unread if after == 0 else 0))
    needed = (o - 1) * s - i + extent - p
    if not -s < needed <= max(extent, p):  # the padding alone holds the whole input
        return ProblemAxis(extent, 1, k, s, 0, d)
    return ProblemAxis(i, o, k, s, p, d)


@st.composite
def problems(draw: st.DrawFn) -> ConvProblem:
    groups = draw(st.integers(1, 4))
    channels = st.integers(1, 9).map(lambda n: n * groups)
    axis_list = draw(st.lists(axes(), min_size=1, max_size=3))
    name = draw(st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters='"'), max_size=12))
    return ConvProblem(draw(st.integers(1, 99)), groups, draw(channels), draw(channels), tuple(axis_list), name)


@settings(deadline=None)
@given(problems())
def test_printing_and_parsing_round_trip(problem: ConvProblem) -> None:
    assert parse_problem(str(problem)) == problem


@settings(deadline=None)
@given(axes())
def test_taps_inside_counts_products_with_real_elements(axis: ProblemAxis) -> None:
    assert axis.taps_inside() == brute_force_taps(axis)


@settings(deadline=None)
@given(st.text(st.sampled_from('mbicohwkspdg0123456789_n"-x '), max_size=30))
def test_any_text_is_a_problem_or_invalid(text: str) -> None:
    try:
        problem = parse_problem(text)
    except InvalidArguments:
        return
    assert parse_problem(str(problem)) == problem


def test_flops_and_count() -> None:
    assert parse_problem("mb2ic3ih4oc5kh1").flops == 2 * 2 * 3 * 5 * 16
    assert parse_problem("g2mb1ic4ih3oc6kh3").flops == 2 * 6 * 2 * 9
    assert parse_problem("mb1ic1ih3oc1kh3ph1").flops == 2 * 49  # of 81 taps, 32 are padding
    assert parse_problem('ic1ih3oc1kh3n"net:conv*12"').count == 12
    assert parse_problem('ic1ih3oc1kh3n"net:conv*"').count == 1
    assert parse_problem("ic1ih3oc1kh3").count == 1


def test_paddings() -> None:
    problem = parse_problem("mb1ic3ih224iw56oc64oh112ow28kh7kw1sh2sw2ph3pw0")
    assert (problem.padding_l, problem.padding_r) == ((3, 0), (2, 0))
