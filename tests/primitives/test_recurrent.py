"""Recurrent layers, forward: plans of all cells, directions and layers against the reference in float64."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.planning.phases import barriers_before
from asmdnn.primitives.recurrent.workspace import regions_of
from tests.primitives.recurrent_case import (
    AVX2,
    CELLS,
    CONCAT,
    DIRECTIONS,
    RIGHT2LEFT,
    SUM,
    check,
    check_inside,
    compute,
    data_of,
    describe,
    f32,
    with_tags,
)

TRAINING = dnn.PropKind.forward_training
AVX512 = dnn.Engine(isa="avx512_core", threads=2, l2_bytes=1 << 20)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.one_in(3)
def test_directions_and_layers(kind: type, direction: str) -> None:
    for layers, states, sizes in ((1, True, (3, 1, 5, 21)), (2, False, (4, 7, 9, 17)), (3, True, (2, 2, 8, 8))):
        for prop_kind in (dnn.PropKind.forward_inference, TRAINING):
            desc = describe(kind, sizes, layers, direction, states, states, prop_kind=prop_kind)
            check(desc)
            assert dnn.primitive_desc(desc, engine=AVX2).implementation == "floats:avx2"
            dnn.primitive_desc(desc, engine=AVX512).plan.check()


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_peephole_and_projection(direction: str) -> None:
    for peephole, projection in ((True, 0), (False, 5), (True, 11)):
        desc = describe(dnn.LSTMForward, (3, 4, 6, 9), 2, direction, peephole=peephole, projection=projection)
        check(desc)
        check(replace(desc, prop_kind=TRAINING))
    check(describe(dnn.LSTMForward, (3, 4, 6, 9), 2, direction, False, False, projection=5))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("activation", "alpha"), [("relu", 0.0), ("relu", 0.25), ("tanh", 0.0), ("logistic", 0.0)])
def test_activations(activation: str, alpha: float) -> None:
    check(describe(dnn.VanillaRNNForward, (4, 3, 6, 19), activation=activation, alpha=alpha))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", CELLS)
def test_many_sizes(kind: type) -> None:
    """Hidden channels around vectors and groups of them, rows around blocks."""
    for n, hidden in ((1, 1), (1, 40), (2, 7), (3, 16), (5, 33), (13, 8)):
        check(describe(kind, (3, n, 4, hidden)))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.one_in(3)
def test_sequences_of_different_lengths(kind: type, direction: str) -> None:
    """Padded, in any order; and if sorted, concatenated: the same numbers as one sequence at a time."""
    for layers, states, lengths in ((1, True, (3, 1, 4, 2)), (2, True, (4, 3, 3, 1))):
        desc = describe(kind, (5, 4, 6, 11), layers, direction, states, lengths=lengths)
        data = data_of(desc)
        padded = check(desc, data=data)
        check(replace(desc, prop_kind=TRAINING), data=data)
        for step in range(5):
            assert not padded["dst_layer"][step, np.array(lengths) <= step].any()
        counts = [sum(n > t for n in lengths) for t in range(max(lengths))]
        if list(lengths) != sorted(lengths, reverse=True):
            continue

        def joined(array: np.ndarray, counts: list[int] = counts) -> np.ndarray:
            return np.concatenate([array[t, :n] for t, n in enumerate(counts)])

        rows = joined(data["src_layer"])
        together = replace(
            desc, src_layer=f32(rows.shape, "ab"), dst_layer=f32((len(rows), desc.dst_layer.dims[2]), "ab")
        )
        for prop_kind in (dnn.PropKind.forward_inference, TRAINING):
            one = replace(together, prop_kind=prop_kind)
            dnn.primitive_desc(one, engine=AVX2).plan.check()
            found = compute(one, {**data, "src_layer": rows})
            np.testing.assert_allclose(found["dst_layer"], joined(padded["dst_layer"]), atol=1e-6)
            np.testing.assert_allclose(found["dst_iter"], padded["dst_iter"], atol=1e-6)


@pytest.mark.isa("avx2")
def test_formats() -> None:
    """Plain weights are packed by the plan; layers and states in any order, and with gaps."""
    desc = describe(dnn.LSTMForward, (4, 5, 6, 19))
    wanted = compute(desc, data_of(desc))
    for tags, word in (
        ({"weights_layer": "ldigo", "weights_iter": "ldgoi"}, "reorder+"),
        ({"src_layer": "ntc"}, ""),
        ({"src_layer": "cba", "dst_layer": "ntc", "src_iter": "dcba", "dst_iter": "abdc", "bias": "dcba"}, "reorder+"),
    ):
        other = with_tags(desc, **tags)
        found = check(other)
        assert dnn.primitive_desc(other, engine=AVX2).implementation == f"{word}floats:avx2"
        np.testing.assert_array_equal(found["dst_layer"], wanted["dst_layer"])
    far = replace(desc, dst_layer=dnn.MemoryDesc((4, 5, 19), dnn.f32, strides=(200, 33, 1), offset0=3))
    assert dnn.primitive_desc(far, engine=AVX2).implementation == "floats:avx2"
    check(far)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", CELLS)
def test_every_number_of_threads_gives_the_same_bits(kind: type) -> None:
    desc = describe(kind, (6, 9, 40, 72), 2, CONCAT)
    data = data_of(desc)
    results = [compute(desc, data, replace(AVX2, threads=threads))["dst_layer"] for threads in (1, 2, 3, 4)]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("direction", [CONCAT, SUM])
def test_directions_at_the_same_time(kind: type, direction: str) -> None:
    """Threads meet once for a step of both, but where these come to neighbouring steps; one thread takes the directions
    one after the other, and the bits are the same."""
    steps = 6 if direction == CONCAT else 7
    desc = describe(kind, (steps, 4, 8, 104), 1, direction)
    barriers, results = [], []
    for threads in (1, 2, 3):
        engine = replace(AVX2, threads=threads)
        plan = dnn.primitive_desc(desc, engine=engine).plan
        barriers.append(sum(barriers_before(plan.phases)))
        results.append(check(desc, engine))
    for name, x in results[0].items():
        np.testing.assert_array_equal(x, results[1][name])
        np.testing.assert_array_equal(x, results[2][name])
    stages = 2 if kind is dnn.GRUForward else 1
    assert barriers[0] - barriers[1] == barriers[0] - barriers[2] >= stages * (steps - 2)


@pytest.mark.isa("avx2")
def test_a_call_stays_inside_its_tensors() -> None:
    check_inside([describe(kind, (3, 5, 3, 11), 1, CONCAT, prop_kind=TRAINING) for kind in CELLS])


@pytest.mark.isa("avx2")
def test_the_workspace_has_the_gates_and_states() -> None:
    """An LSTM's c is i * tanh(c~) + f * c of the step before, and its h is o * tanh(c)."""
    desc = describe(dnn.LSTMForward, (4, 3, 5, 19), prop_kind=TRAINING)
    data = data_of(desc)
    found = compute(desc, data)
    regions, workspace = regions_of(desc), found["workspace"]
    gates, c = (workspace[regions[name].at(0) // 4 :] for name in ("gates", "c"))
    i, f, g, o = gates[: 12 * 4 * 19].reshape(4, 3, 4, 19).transpose(2, 0, 1, 3)
    c = c[: 12 * 19].reshape(4, 3, 19)
    before = np.concatenate([data["src_iter_c"][0], c[:-1]])
    np.testing.assert_allclose(c, i * g + f * before, atol=1e-6)
    np.testing.assert_allclose(found["dst_layer"], o * np.tanh(c), atol=1e-6)
    assert dnn.primitive_desc(replace(desc, prop_kind=dnn.PropKind.forward_inference)).workspace_desc is None
    assert dnn.primitive_desc(describe(dnn.VanillaRNNForward, (2, 2, 2, 2), prop_kind=TRAINING)).workspace_desc is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"direction": "left"}, "direction must be one of unidirectional_left2right, .* not 'left'"),
        ({"direction": SUM}, r"weights_layer has dims\[1\] of 1, bidirectional_sum has 2 directions"),
        ({"weights_layer": f32((1, 1, 6, 3, 19))}, r"weights_layer has dims\[3\] of 3, the cell has 4 gates"),
        (
            {"weights_layer": f32((2, 1, 6, 4, 19))},
            r"weights_layer has dims\[2\] of 6, several layers need that of dst",
        ),
        ({"weights_iter": f32((1, 1, 18, 4, 19))}, r"weights_iter has dims \(1, 1, 18, 4, 19\), the other arguments"),
        ({"src_iter": f32((1, 4, 19))}, "src_iter has 3 dims, it must have 4"),
        ({"bias": 3}, "bias must be a MemoryDesc, not 3"),
        ({"src_layer": f32((4, 5, 0))}, r"src_layer has dims \(4, 5, 0\), none may be 0"),
        ({"prop_kind": dnn.PropKind.backward_data}, "prop_kind must be"),
        ({"lengths": (4, 4, 0, 1, 1)}, "lengths has a 0, every sequence has at least one step"),
        ({"lengths": (4, 4, 5, 1, 1)}, "lengths has a 5, src_layer has 4 steps"),
        ({"lengths": (4, 4)}, "lengths has 2 numbers, src_layer has 5 sequences"),
        ({"lengths": [4]}, "lengths must be a tuple of integers"),
        ({"src_layer": f32((9, 6)), "lengths": (4, 2, 3)}, r"lengths\[2\] is 3, lengths\[1\] 2: sort concatenated"),
        ({"src_layer": f32((9, 6)), "lengths": (4, 3, 3)}, "lengths make 10 rows together, src_layer has 9"),
        ({"src_layer": f32((9, 6))}, "lengths is empty, a src_layer of two dims needs the length of every sequence"),
    ],
)
def test_bad_descriptions(change: dict[str, object], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        replace(describe(dnn.LSTMForward, (4, 5, 6, 19)), **change)


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
@pytest.mark.parametrize("kind", [dnn.LSTMForward, dnn.VanillaRNNForward, dnn.GRUForward, dnn.LBRGRUForward])
def test_one_step_may_take_a_state_of_another_width(kind: type, isa: Any) -> None:
    """Of cells that only multiply it."""
    plain = describe(kind, (1, 5, 6, 19))
    wider = {"weights_iter": f32((1, 1, 23, kind.GATES, 19)), "src_iter": f32((1, 1, 5, 23))}  # type: ignore[attr-defined]
    if kind in (dnn.GRUForward, dnn.LBRGRUForward):
        with pytest.raises(dnn.InvalidArguments, match=r"(weights|src)_iter has dims"):
            replace(plain, **wider)
        return
    desc = replace(plain, **wider)
    assert (desc.sizes.state, desc.sizes.out) == (23, 19)
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
    pd.plan.check()
    assert pd.implementation.endswith(f"floats:{isa}")


def test_refusals() -> None:
    other = replace(describe(dnn.GRUForward, (4, 2, 6, 19)), bias=dnn.MemoryDesc((1, 1, 3, 19), dnn.s8, "ldgo"))
    with pytest.raises(dnn.Unimplemented, match="bias is s8, only f32, bf16, f16 are implemented"):
        dnn.primitive_desc(other, engine=AVX2)
    with pytest.raises(dnn.Unimplemented, match="post-ops, scales and zero points are not implemented"):
        dnn.primitive_desc(describe(dnn.GRUForward, (4, 2, 6, 19)), dnn.Attr([dnn.Eltwise("relu")]), AVX2)


def test_steps_share_their_records() -> None:
    """A time step is the same records with other views; odd ones walk the panels backwards."""
    desc = describe(dnn.LSTMForward, (50, 4, 64, 64), 1, RIGHT2LEFT)
    plan = dnn.primitive_desc(desc, engine=AVX2).plan
    steps = [phase for phase in plan.phases if "recurrent" in phase.kernels[0].name]
    assert len(steps) == 50
    assert len({id(phase.records) for phase in steps}) <= 3
    assert [phase.backwards for phase in steps[:4]] == [False, True, False, True]
