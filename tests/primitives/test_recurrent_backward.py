"""Recurrent layers, backward: all gradients against the reference in float64, and against torch."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.values import rounded
from asmdnn.primitives.recurrent.workspace import workspace_desc
from tests.primitives.recurrent_backward_case import (
    TRAINING,
    backward,
    check_against,
    check_gradients,
    compute_gradients,
    gradients,
    is_written,
    training_data,
)
from tests.primitives.recurrent_case import (
    AVX2,
    CELLS,
    CONCAT,
    DIRECTIONS,
    LEFT2RIGHT,
    RIGHT2LEFT,
    SUM,
    Array,
    Arrays,
    check_inside,
    compute,
    data_of,
    describe,
    f32,
    of_type,
    typed,
    with_tags,
)

AVX512 = dnn.Engine(isa="avx512_core", threads=2, l2_bytes=1 << 20)
STATES = ("diff_src_iter", "diff_src_iter_c")
FINAL = ("diff_dst_iter", "diff_dst_iter_c")


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.one_in(3)
def test_directions_and_layers(kind: type, direction: str) -> None:
    for layers, states, sizes in ((1, True, (3, 1, 5, 21)), (2, False, (4, 3, 9, 17))):
        forward = describe(kind, sizes, layers, direction, states, states)
        desc = backward(forward)
        check_gradients(desc, training_data(forward))
        assert dnn.primitive_desc(desc, engine=AVX2).implementation == "floats:avx2"
        dnn.primitive_desc(desc, engine=AVX512).plan.check()


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("direction", [LEFT2RIGHT, SUM, CONCAT])
def test_peephole_and_projection(direction: str) -> None:
    for peephole, projection in ((True, 0), (False, 5), (True, 11)):
        forward = describe(dnn.LSTMForward, (3, 4, 6, 9), 2, direction, peephole=peephole, projection=projection)
        check_gradients(backward(forward), training_data(forward))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("activation", "alpha"), [("relu", 0.0), ("relu", 0.25), ("tanh", 0.0), ("logistic", 0.0)])
def test_activations(activation: str, alpha: float) -> None:
    forward = describe(dnn.VanillaRNNForward, (4, 3, 6, 19), activation=activation, alpha=alpha)
    check_gradients(backward(forward), training_data(forward))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", CELLS)
def test_sizes(kind: type) -> None:
    """Rows of many units are several records: see below for one cell, and all in the slow sweep."""
    for sizes in ((1, 1, 1, 1), (2, 1, 3, 70), (7, 33, 2, 8)):
        forward = describe(kind, sizes)
        check_gradients(backward(forward), training_data(forward))


@pytest.mark.isa("avx2")
def test_rows_of_many_units() -> None:
    forward = describe(dnn.LBRGRUForward, (2, 2, 40, 530))
    check_gradients(backward(forward), training_data(forward))


@pytest.mark.slow
@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize(("number", "hidden"), list(enumerate([*range(1, 74, 9), 530])))
def test_a_sweep_of_sizes(kind: type, number: int, hidden: int) -> None:
    """Forward training and backward: steps to 50, sequences to 64, layers to 3, any units."""
    random = np.random.default_rng(hidden)
    steps, n, src, layers = (int(random.integers(1, most + 1)) for most in (50, 64, 70, 3 if hidden < 100 else 1))
    direction = DIRECTIONS[number % len(DIRECTIONS)]
    forward = describe(kind, (steps, n, src, hidden), layers, direction, states=number % 3 > 0)
    check_gradients(backward(forward), training_data(forward, data=scaled(forward)))


def scaled(forward: Any) -> Arrays:
    """Weights of an iteration that contract, so that bounds stay small over many steps."""
    data = data_of(forward)
    return data | {"weights_iter": data["weights_iter"] / np.float32(forward.sizes.hidden**0.5)}


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("without", [STATES, (*FINAL, "diff_bias")], ids=["states", "final"])
def test_gradients_that_are_left_out(kind: type, without: tuple[str, ...]) -> None:
    for steps, direction in ((1, LEFT2RIGHT), (3, RIGHT2LEFT)):
        forward = describe(kind, (steps, 2, 5, 9), 3, direction)
        check_gradients(backward(forward, without), training_data(forward))


def rows_of(array: Array, lengths: tuple[int, ...]) -> Array:
    """Padded sequences, step by step."""
    return np.concatenate([array[t, : sum(n > t for n in lengths)] for t in range(max(lengths))])


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.one_in(3)
def test_sequences_of_different_lengths(kind: type, direction: str) -> None:
    """Concatenated, which is how they are trained: the gradients of padded ones."""
    for layers, states, lengths in ((1, True, (5, 3, 3, 1)), (2, False, (4, 4, 2, 2))):
        padded = describe(kind, (max(lengths), 4, 6, 11), layers, direction, states)
        rows = sum(lengths)
        src, dst = f32((rows, padded.src_layer.dims[2]), "ab"), f32((rows, padded.dst_layer.dims[2]), "ab")
        forward = replace(padded, src_layer=src, dst_layer=dst, lengths=lengths)
        data = data_of(padded)
        given = data | {"src_layer": rows_of(data["src_layer"], lengths)}
        left = compute(replace(forward, prop_kind=TRAINING), given)
        random = np.random.default_rng(1)
        results = {name: x.dims for name, x in padded.tensors().items() if name.startswith("dst")}
        diffs = {f"diff_{name}": random.uniform(-1, 1, size).astype(np.float32) for name, size in results.items()}
        of_rows = diffs | {"diff_dst_layer": rows_of(diffs["diff_dst_layer"], lengths)}
        desc = backward(forward)
        dnn.primitive_desc(desc, engine=AVX2).plan.check()
        found = compute_gradients(desc, given | left | of_rows)
        for name, x in gradients(backward(padded), data | diffs, np.array(lengths)).items():
            value, bound = (rows_of(y, lengths) if name == "diff_src_layer" else y for y in (x.value, x.bound))
            assert (np.abs(found[name] - value) <= bound).all(), name


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.one_in(3)
def test_padded_sequences(kind: type, direction: str) -> None:
    """In any order; what sources hold after an end counts as nothing, even NaN."""
    layers, lengths = (1, (1, 4, 2)) if direction in (LEFT2RIGHT, SUM) else (2, (3, 1, 3))
    states = direction in (LEFT2RIGHT, CONCAT)
    more: Any = {"peephole": True, "projection": 7} if kind is dnn.LSTMForward and states else {}
    forward = describe(kind, (4, 3, 6, 11), layers, direction, states, **more)
    data, live = data_of(forward), np.arange(4)[:, None] < np.array(lengths)
    random = np.random.default_rng(1)
    for name, x in forward.tensors().items():
        if name.startswith("dst"):
            data[f"diff_{name}"] = random.uniform(-1, 1, x.dims).astype(np.float32)
    given = {
        name: np.where(live[:, :, None], array, np.float32(np.nan)) if name.endswith("c_layer") else array
        for name, array in data.items()
    } | {"diff_dst_layer": np.where(live[:, :, None], data["diff_dst_layer"], np.float32(np.nan))}
    padded = replace(forward, lengths=lengths, prop_kind=TRAINING)
    dnn.primitive_desc(padded, engine=AVX2).plan.check()
    left, desc = compute(padded, given), backward(padded)
    assert not left["dst_layer"][~live].any()
    found = check_against(desc, given | left, gradients(backward(forward), data, np.array(lengths)))
    assert not found["diff_src_layer"][~live].any()
    dnn.primitive_desc(desc, engine=AVX512).plan.check()


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", CELLS)
def test_padded_sequences_are_as_one_at_a_time(kind: type) -> None:
    """Gradients of weights are those of single sequences, added; all others are equal row by row."""
    lengths = (2, 4, 1)
    forward = describe(kind, (4, 3, 6, 19), 1, CONCAT, lengths=lengths)
    data = training_data(forward)
    found, total = compute_gradients(backward(forward), data), dict[str, Array]()
    for n, steps in enumerate(lengths):
        alone = describe(kind, (steps, 1, 6, 19), 1, CONCAT)
        own = {
            name: np.ascontiguousarray(x[:steps, n : n + 1] if name.endswith("_layer") else x[:, :, n : n + 1])
            for name, x in data.items()
            if name.startswith(("src", "diff_dst"))
        }
        own |= {name: x for name, x in data.items() if name.startswith(("weights", "bias"))}
        own |= compute(replace(alone, prop_kind=TRAINING), own)
        for name, x in compute_gradients(backward(alone), own).items():
            if name == "diff_src_layer":
                np.testing.assert_allclose(found[name][:steps, n : n + 1], x, atol=2e-6)
            elif name.startswith("diff_src"):
                np.testing.assert_allclose(found[name][:, :, n : n + 1], x, atol=2e-6)
            else:
                total[name] = total.get(name, np.float32(0)) + x
    for name, x in total.items():
        np.testing.assert_allclose(found[name], x, atol=1e-5)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dtype", [dnn.bf16, dnn.f16])
@pytest.mark.parametrize("kind", CELLS)
def test_types(kind: type, dtype: dnn.DataType) -> None:
    """Rows, states and weights become f32 in front: the bits of the same numbers as f32.  Gradients are f32, or rounded
    once; an LSTM's c and the bias are f32."""
    more: Any = {"peephole": True, "projection": 7} if kind is dnn.LSTMForward else {}
    for layers, direction in ((1, LEFT2RIGHT), (2, CONCAT)):
        plain = describe(kind, (3, 2, 5, 19), layers, direction, **more)
        forward = typed(plain, dtype, dtype)
        data, desc = training_data(forward), backward(forward)
        found = check_gradients(desc, data)
        assert dnn.primitive_desc(desc, engine=AVX2).implementation == "reorder+floats:avx2"
        dnn.primitive_desc(desc, engine=AVX512).plan.check()
        for name, x in compute_gradients(backward(plain), data).items():
            np.testing.assert_array_equal(found[name], x, name)
        diffs = {name: of_type(getattr(desc, name), dtype) for name in found}
        for name, x in compute_gradients(replace(desc, **diffs), data).items():
            np.testing.assert_array_equal(rounded(found[name], dtype), x, name)


@pytest.mark.parametrize("level", ["avx2", "avx512_core", "avx512_core_bf16"])
def test_packed_weights_keep_their_type(level: str) -> None:
    """Which a training step's parameters have; no level multiplies pairs here."""
    desc = backward(typed(describe(dnn.GRUForward, (2, 2, 3, 4)), dnn.bf16, dnn.bf16))
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=level, machine="zen4"))
    pd.plan.check()
    assert pd.implementation == f"reorder+floats:{level.removesuffix('_bf16')}"
    assert pd.plan.tensors["weights_iter"].dtype == dnn.bf16
    assert pd.plan.tensors["weights_iter"].inner_blocks


@pytest.mark.isa("avx2")
def test_formats() -> None:
    """Batches first, and plain weights, which every call packs, once for all its steps."""
    forward = with_tags(
        describe(dnn.LSTMForward, (4, 3, 6, 19)), src_layer="ntc", dst_layer="ntc", weights_iter="ldgoi"
    )
    desc = replace(backward(forward), diff_src_layer=f32((4, 3, 6), "ntc"), diff_dst_layer=f32((4, 3, 19), "ntc"))
    check_gradients(desc, training_data(forward))
    assert dnn.primitive_desc(desc, engine=AVX2).implementation == "reorder+floats:avx2"


def packed_in_calls(steps: int, tag: str) -> list[str]:
    """The weights that a call copies, each as often as it does."""
    forward = describe(dnn.LSTMForward, (steps, 3, 16, 24))
    plain = with_tags(forward, weights_layer=tag, weights_iter=tag)
    plan = dnn.primitive_desc(backward(plain), engine=AVX2).plan
    found = []
    for phase in plan.phases:
        read = {view.buffer for view in phase.arguments} & {"weights_layer", "weights_iter"}
        if any(spec.name.startswith(("transpose", "convert", "rows", "copy")) for spec in phase.kernels):
            found += sorted(read)
    return found


def test_weights_are_packed_once_for_all_steps() -> None:
    """A training step packs both weights for this pass: by the caller, or in the call, but never step by step."""
    assert packed_in_calls(50, "any") == []
    assert packed_in_calls(50, "ldigo") == packed_in_calls(1, "ldigo") == ["weights_layer", "weights_iter"]


@pytest.mark.isa("avx2")
def test_training_packs_twice_per_update(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the verbose lines count: a reorder of each weights tensor for each pass, whatever the number of steps."""
    monkeypatch.setenv("ASMDNN_VERBOSE", "exec")
    forward = describe(dnn.GRUForward, (7, 3, 16, 24), prop_kind=TRAINING)
    passes = [dnn.Primitive(dnn.primitive_desc(desc, engine=AVX2)) for desc in (forward, backward(forward))]
    weights = {
        name: dnn.Memory(f32(forward.tensors()[name].dims, "ldigo")) for name in ("weights_layer", "weights_iter")
    }
    memories: dict[str, dnn.Memory] = {}
    for primitive in passes:
        memories |= {name: dnn.Memory(x) for name, x in primitive.pd.plan.tensors.items() if name not in memories}
    for _ in range(3):
        for primitive in passes:
            tensors = primitive.pd.plan.tensors
            packed = {name: dnn.reorder(memory, tensors[name], engine=AVX2) for name, memory in weights.items()}
            primitive.execute(**{name: memories[name] for name in tensors} | packed)
    lines = [line.split(",") for line in capsys.readouterr().out.splitlines() if ",exec," in line]
    assert [line[5] for line in lines].count("reorder") == 3 * 2 * 2
    assert [line[5] for line in lines].count("rnn") == 3 * 2


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", CELLS)
def test_every_number_of_threads_gives_the_same_bits(kind: type) -> None:
    forward = describe(kind, (5, 9, 40, 72), 2, CONCAT)
    data, desc = training_data(forward), backward(forward)
    results = [compute_gradients(desc, data, replace(AVX2, threads=threads)) for threads in (1, 2, 3, 4)]
    for other in results[1:]:
        for name, array in results[0].items():
            np.testing.assert_array_equal(array, other[name], name)


@pytest.mark.isa("avx2")
def test_a_call_stays_inside_its_tensors() -> None:
    check_inside([backward(describe(kind, (3, 5, 3, 11), 1, CONCAT)) for kind in CELLS])


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("name", "module"), [("rnn", "RNN"), ("lstm", "LSTM"), ("lbr_gru", "GRU")])
@pytest.mark.parametrize(("layers", "directions"), [(1, 1), (1, 2), (3, 1)])
def test_torch_computes_the_same(name: str, module: str, layers: int, directions: int) -> None:
    torch = pytest.importorskip("torch", reason="gradients are not compared with torch: pip install '.[torch]'")
    torch.manual_seed(1)
    layer = getattr(torch.nn, module)(24, 24, layers, bidirectional=directions == 2)
    state = {key: x.detach().numpy() for key, x in layer.state_dict().items()}
    kind = dict(zip(("rnn", "lstm", "gru", "lbr_gru"), CELLS, strict=True))[name]
    forward = describe(kind, (6, 4, 24, 24), layers, CONCAT if directions == 2 else LEFT2RIGHT)
    parts = [dnn.recurrent.from_torch(name, state, number) for number in range(layers)]
    data = data_of(forward) | {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    inputs = {key: torch.from_numpy(data[key]).requires_grad_() for key in data if key.startswith("src")}
    states = [inputs[key].flatten(0, 1) for key in ("src_iter", "src_iter_c") if key in inputs]
    output, final = layer(inputs["src_layer"], tuple(states) if name == "lstm" else states[0])
    left = compute(replace(forward, prop_kind=TRAINING), data)
    np.testing.assert_allclose(left["dst_layer"], output.detach().numpy(), atol=2e-6)
    found_results = (output, *(final if name == "lstm" else (final,)))
    results = dict(zip(("dst_layer", "dst_iter", "dst_iter_c"), found_results, strict=False))
    diffs = {f"diff_{key}": np.random.default_rng(1).standard_normal(left[key].shape) for key in results}
    data |= left | {key: x.astype(np.float32) for key, x in diffs.items()}
    sum((x * torch.from_numpy(data[f"diff_{key}"]).reshape(x.shape)).sum() for key, x in results.items()).backward()
    found = compute_gradients(backward(forward), data)
    for key, x in inputs.items():
        np.testing.assert_allclose(found[f"diff_{key}"], x.grad.numpy(), atol=2e-4)
    theirs = {key: x.grad.numpy() for key, x in layer.named_parameters()}
    for number in range(layers):
        wanted = dnn.recurrent.from_torch(name, {k: x for k, x in theirs.items() if "bias_hh" not in k}, number)
        for key in ("weights_layer", "weights_iter"):
            np.testing.assert_allclose(found[f"diff_{key}"][number], wanted[key][0], atol=2e-4)
        own = dnn.recurrent.to_torch(name, {key: found[f"diff_{key}"][number : number + 1] for key in parts[0]}, number)
        for key, x in own.items():
            if "bias_ih" in key:
                np.testing.assert_allclose(x, theirs[key], atol=2e-4)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("lengths", [(), (3, 5)])
def test_the_sum_of_gradients_is_a_finite_difference(lengths: tuple[int, ...]) -> None:
    """Of this library's own forward pass, as far as f32 shows it."""
    forward = describe(dnn.LSTMForward, (5, 2, 4, 8), lengths=lengths)
    data = training_data(forward)
    found = compute_gradients(backward(forward), data)
    random, step = np.random.default_rng(1), 1e-2
    for name in ("src_layer", "weights_layer", "weights_iter", "bias", "src_iter", "src_iter_c"):
        way = random.standard_normal(data[name].shape).astype(np.float32)
        ends = []
        for sign in (1, -1):
            results = compute(forward, {**data_of(forward), name: data[name] + np.float32(sign * step) * way})
            ends.append(sum((data[f"diff_{key}"] * x.astype(np.float64)).sum() for key, x in results.items()))
        assert (found[f"diff_{name}"] * way).sum() == pytest.approx(
            (ends[0] - ends[1]) / (2 * step), rel=2e-2, abs=2e-3
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"diff_src_layer": f32((4, 5, 7), "tnc")},
            r"diff_src_layer has dims \(4, 5, 7\), those of src_layer are \(4, 5, 6\)",
        ),
        ({"diff_bias": f32((1, 1, 3, 19), "ldgo")}, r"diff_bias has dims \(1, 1, 3, 19\), those of bias are"),
        ({"src_iter": None}, "diff_src_iter is given, and src_iter is None: a state that is not there has no gradient"),
        ({"weights_iter": f32((1, 1, 18, 4, 19))}, r"weights_iter has dims \(1, 1, 18, 4, 19\), the other arguments"),
        ({"diff_weights_layer": 3}, "diff_weights_layer must be a MemoryDesc, not 3"),
        ({"weights_peephole": f32((1, 1, 3, 19), "ldgo")}, "weights_peephole and diff_weights_peephole are given both"),
        ({"direction": "left"}, "direction must be one of"),
    ],
)
def test_bad_descriptions(change: dict[str, Any], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        replace(backward(describe(dnn.LSTMForward, (4, 5, 6, 19))), **change)


def test_relu_of_a_negative_slope_has_no_gradient() -> None:
    forward = describe(dnn.VanillaRNNForward, (2, 2, 3, 4), activation="relu", alpha=-0.5)
    with pytest.raises(dnn.InvalidArguments, match=r"alpha is -0\.5: the result of relu says its sign only from 0 on"):
        backward(forward)


def test_refusals() -> None:
    desc = backward(describe(dnn.GRUForward, (2, 2, 3, 4)))
    with pytest.raises(dnn.Unimplemented, match="floats:avx2: post-ops, scales and zero points"):
        dnn.primitive_desc(desc, dnn.Attr([dnn.Eltwise("relu")]), AVX2)
    shared = dnn.MemoryDesc((2, 2, 3), dnn.f32, strides=(3, 0, 1))
    with pytest.raises(dnn.Unimplemented, match="diff_src_layer has elements that share a place"):
        dnn.primitive_desc(replace(desc, diff_src_layer=shared), engine=AVX2)
    with pytest.raises(dnn.Unimplemented, match="diff_weights_layer is s8, only f32, bf16, f16 are implemented"):
        whole = dnn.MemoryDesc((1, 1, 3, 3, 4), dnn.s8, "ldigo")
        dnn.primitive_desc(replace(desc, diff_weights_layer=whole), engine=AVX2)


@pytest.mark.isa("avx2")
def test_a_workspace_of_another_layer() -> None:
    forward, other = (describe(dnn.LSTMForward, (steps, 2, 3, 4)) for steps in (4, 5))
    pd = dnn.primitive_desc(backward(forward), engine=AVX2)
    assert pd.workspace_desc == workspace_desc(forward)
    memories = {name: dnn.Memory(tensor) for name, tensor in pd.plan.tensors.items()}
    foreign = workspace_desc(other)
    assert foreign is not None
    memories["workspace"] = dnn.Memory(foreign)
    with pytest.raises(dnn.InvalidArguments, match="workspace"):
        dnn.Primitive(pd).execute(**memories)


def test_steps_share_their_records() -> None:
    """A plan of more steps has more phases, and no more records."""
    sizes = {}
    for steps in (10, 100):
        plan = dnn.primitive_desc(backward(describe(dnn.LSTMForward, (steps, 16, 64, 64))), engine=AVX2).plan
        per_step = {id(phase.records): len(phase.records) for phase in plan.phases[:-8]}
        sizes[steps] = sum(per_step.values())
    assert sizes[100] < 2 * sizes[10]


def test_the_proof_of_rows_with_gaps() -> None:
    """Rows that would share the sets of L1 lie further apart: their scratch has gaps, and every direction writes it."""
    desc = backward(describe(dnn.GRUForward, (2, 3, 4, 512), 1, CONCAT))
    dnn.primitive_desc(desc, engine=AVX2).plan.check()


def test_written_gradients() -> None:
    plan = dnn.primitive_desc(backward(describe(dnn.LBRGRUForward, (2, 2, 3, 4))), engine=AVX2).plan
    assert set(plan.outputs) == {name for name in plan.tensors if is_written(name)}
