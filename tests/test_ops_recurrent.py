"""Recurrent layers on arrays: the numbers of the primitives, with plain and packed weights; and what is refused."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from tests.primitives.recurrent_case import CONCAT, Array, answer, data_of, describe, f32

OPS: tuple[tuple[str, type, Callable[..., Any], dict[str, Any]], ...] = (
    ("rnn", dnn.VanillaRNNForward, dnn.ops.rnn, {"activation": "tanh"}),
    ("lstm", dnn.LSTMForward, dnn.ops.lstm, {}),
    ("gru", dnn.GRUForward, dnn.ops.gru, {}),
    ("lbr_gru", dnn.LBRGRUForward, dnn.ops.gru, {"linear_before_reset": True}),
)


def of_weights(data: dict[str, Array]) -> dict[str, Array]:
    return {name: array for name, array in data.items() if name.startswith("weights") or name == "bias"}


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("cell", "kind", "function", "more"), OPS, ids=[op[0] for op in OPS])
def test_numbers(cell: str, kind: type, function: Callable[..., Any], more: dict[str, Any]) -> None:
    """With states and without, both directions; sequences of different lengths, padded and concatenated."""
    lengths = (4, 2, 1)
    of_kind: dict[str, Any] = {"activation": "tanh"} if cell == "rnn" else {}
    for states, steps in ((True, ()), (False, lengths)):
        desc = describe(kind, (4, 3, 5, 11), 1, CONCAT, states, lengths=steps, **of_kind)
        data = data_of(desc)
        first = [data[name] for name in ("src_iter", "src_iter_c") if states and name in data]
        for weights in (of_weights(data), dnn.ops.pack_recurrent(cell, of_weights(data))):
            found = function(data["src_layer"], weights, *first, direction=CONCAT, lengths=list(steps), **more)
            names = ("dst_layer", "dst_iter", "dst_iter_c")
            wanted = answer(desc, data)
            for name, array in zip(names, found, strict=False):
                if name in wanted:
                    assert (np.abs(array - wanted[name].value) <= wanted[name].bound).all()
    counts = [sum(n > t for n in lengths) for t in range(4)]
    rows = np.concatenate([data["src_layer"][t, :n] for t, n in enumerate(counts)])
    together = function(rows, weights, direction=CONCAT, lengths=lengths, **more)[0]
    np.testing.assert_allclose(together, np.concatenate([found[0][t, :n] for t, n in enumerate(counts)]), atol=1e-6)


@pytest.mark.isa("avx2")
def test_packed_weights_can_be_saved(tmp_path: Any) -> None:
    data = data_of(describe(dnn.LSTMForward, (2, 1, 5, 9), bias=False))
    packed = dnn.ops.pack_recurrent("lstm", of_weights(data))
    wanted = dnn.ops.lstm(data["src_layer"], packed)[0]
    for name in ("weights_layer", "weights_iter"):
        packed[name].memory.array.tofile(tmp_path / name)
        mapped = np.memmap(tmp_path / name, np.float32, "r")
        packed[name] = dnn.Memory(packed[name].desc, mapped, padding_is_zero=True)
    np.testing.assert_array_equal(dnn.ops.lstm(data["src_layer"], packed)[0], wanted)


@pytest.mark.isa("avx2")
def test_packed_weights_are_not_packed_again() -> None:
    """A plan for packed weights has no phase that moves them; one for plain weights has two, one for each."""
    desc = describe(dnn.LSTMForward, (5, 2, 16, 16))
    plan = dnn.primitive_desc(desc).plan
    plain = dnn.primitive_desc(
        describe(dnn.LSTMForward, (5, 2, 16, 16)).with_formats(
            {name: f32(desc.tensors()[name].dims, "ldigo") for name in ("weights_layer", "weights_iter")}
        )
    ).plan
    moved = [
        [view.buffer for phase in x.phases if not phase.kernels[0].name.startswith(("recurrent", "matmul", "outer"))
         for view in phase.arguments[:1] if view.buffer.startswith("weights")]
        for x in (plan, plain)
    ]  # fmt: skip
    assert moved == [[], ["weights_layer", "weights_iter"]]


def said(capsys: Any) -> list[str]:
    """The primitives that ran, as verbose lines say it."""
    return [line.split(",")[5] for line in capsys.readouterr().out.splitlines() if ",exec," in line]


@pytest.mark.isa("avx2")
def test_sequences_share_a_packing(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Two reorders, however many sequences of however many steps there are; two more after an update."""
    monkeypatch.setenv("ASMDNN_VERBOSE", "exec")
    dnn.clear_caches()
    data = data_of(describe(dnn.GRUForward, (7, 3, 5, 13)))
    weights = of_weights(data)
    packed = dnn.ops.pack_recurrent("gru", weights)
    for _ in range(4):
        dnn.ops.gru(data["src_layer"], packed)
    assert sorted(said(capsys)) == ["reorder"] * 2 + ["rnn"] * 4
    weights["weights_iter"] *= 2
    packed["weights_iter"].repack()
    packed["weights_layer"].repack()
    dnn.ops.gru(data["src_layer"], packed)
    assert said(capsys) == ["reorder", "reorder", "rnn"]
    dnn.clear_caches()


@pytest.mark.isa("avx2")
def test_weights_that_have_changed_are_packed_again() -> None:
    data = data_of(describe(dnn.LSTMForward, (2, 3, 5, 11)))
    weights = of_weights(data)
    packed = dnn.ops.pack_recurrent("lstm", weights)
    before = dnn.ops.lstm(data["src_layer"], packed)[0]
    weights["weights_iter"] += np.float32(0.5)
    with pytest.raises(dnn.InvalidArguments, match="weights_iter has changed since it was packed: call repack"):
        dnn.ops.lstm(data["src_layer"], packed)
    with pytest.raises(dnn.InvalidArguments, match="weights_iter has changed since it was packed"):
        print(packed["weights_iter"].memory)
    assert packed["weights_iter"].is_stale()
    assert not packed["weights_layer"].is_stale()
    packed["weights_iter"].repack()
    assert (packed["weights_iter"].version, packed["weights_layer"].version) == (2, 1)
    after = dnn.ops.lstm(data["src_layer"], packed)[0]
    np.testing.assert_array_equal(after, dnn.ops.lstm(data["src_layer"], weights)[0])
    assert np.abs(after - before).max() > 0.01


@pytest.mark.isa("avx2")
def test_a_change_of_one_element(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is found by looking at all of them: on demand, and with ASMDNN_CHECK=1."""
    source = np.zeros((100, 300), np.float32)
    packed = dnn.PackedWeights(source, f32(source.shape, "Ba16b"), name="w")
    source[50, 51] = 1
    assert packed.memory.desc == packed.desc
    assert packed.is_stale()
    monkeypatch.setenv("ASMDNN_CHECK", "1")
    with pytest.raises(dnn.InvalidArguments, match="w has changed since it was packed"):
        print(packed.memory)
    packed.repack()
    np.testing.assert_array_equal(packed.memory.numpy(), source)
    assert repr(packed) == f"PackedWeights {packed.desc}, version 2"


@pytest.mark.isa("avx2")
def test_an_array_that_is_gone() -> None:
    """Nobody can change it; it can not be packed again either.  Slices, and empty arrays, have one, too."""
    source = np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2]
    packed = dnn.PackedWeights(source, f32((3, 2), "ba"))
    expected = source.copy()
    del source
    assert not packed.is_stale()
    np.testing.assert_array_equal(packed.memory.numpy(), expected)
    with pytest.raises(dnn.InvalidArguments, match="weights is gone, it cannot be packed again: keep the array"):
        packed.repack()
    empty = np.zeros((0, 3), np.float32)
    assert dnn.PackedWeights(empty, f32((0, 3), "ab")).memory.desc.dims == (0, 3)


@pytest.mark.parametrize(
    ("desc", "message"),
    [
        (f32((4, 3), "ab"), r"weights has shape \(3, 4\), but desc has dims \(4, 3\)"),
        (dnn.MemoryDesc((3, 4), dnn.bf16, "ab"), "weights is of f32, but desc of bf16: make them equal"),
        (None, "desc None is not a MemoryDesc"),
    ],
)
def test_formats_that_do_not_fit(desc: Any, message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        dnn.PackedWeights(np.zeros((3, 4), np.float32), desc)


SRC = np.zeros((2, 3, 4), np.float32)
WEIGHTS = {
    "weights_layer": np.zeros((1, 1, 4, 4, 5), np.float32),
    "weights_iter": np.zeros((1, 1, 5, 4, 5), np.float32),
}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dnn.ops.lstm(SRC, 5), "weights must map names to arrays, not 5"),  # type: ignore[arg-type]
        (lambda: dnn.ops.lstm(SRC, {}), "weights has no weights_layer"),
        (lambda: dnn.ops.lstm(SRC, {**WEIGHTS, "w": 3}), "weights has 'w', of lstm it may have weights_layer"),
        (lambda: dnn.ops.gru(SRC, {**WEIGHTS, "weights_peephole": SRC}), "weights has 'weights_peephole', of gru"),
        (lambda: dnn.ops.gru(SRC, WEIGHTS), r"weights_layer has dims\[3\] of 4, the cell has 3 gates"),
        (lambda: dnn.ops.lstm(SRC[0, 0], WEIGHTS), "they must have 5, and 2 or 3"),
        (lambda: dnn.ops.lstm(SRC.astype(float), WEIGHTS), "src has dtype float64"),
        (lambda: dnn.ops.lstm(SRC, WEIGHTS, lengths=3), "lengths must be a sequence of integers, not 3"),  # type: ignore[arg-type]
        (lambda: dnn.ops.lstm(SRC, WEIGHTS, lengths=[1, 2, 3]), "lengths has a 3, src has 2 steps"),
        (lambda: dnn.ops.lstm(SRC, WEIGHTS, direction=[]), "direction must be one of"),  # type: ignore[arg-type]
        (lambda: dnn.ops.pack_recurrent("x", WEIGHTS), "cell must be one of rnn, lstm, gru, lbr_gru, not 'x'"),
    ],
)
def test_bad_arguments(call: Callable[[], object], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        call()


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float16])
def test_layers_of_16_bits(kind: Any) -> None:
    """Results have src's type, c stays f32; packed weights give the same bits."""
    src = SRC.astype(kind)
    weights = {name: array.astype(kind) if "weights" in name else array for name, array in WEIGHTS.items()}
    dst, h, c = dnn.ops.lstm(src, weights)
    assert (dst.dtype, h.dtype, c.dtype) == (kind, kind, np.float32)
    wide = {name: array.astype(np.float32) for name, array in weights.items()}
    wanted, _, wanted_c = dnn.ops.lstm(src.astype(np.float32), wide)
    np.testing.assert_allclose(dst.astype(np.float32), wanted, atol=0.02)
    np.testing.assert_allclose(c, wanted_c, atol=0.02)
    packed = dnn.ops.pack_recurrent("lstm", weights)
    assert packed["weights_iter"].desc.dtype == {np.float16: dnn.f16}.get(kind, dnn.bf16)
    np.testing.assert_array_equal(dnn.ops.lstm(src, packed)[0], dst)


def test_weights_of_two_types_are_refused() -> None:
    weights = {**WEIGHTS, "weights_iter": WEIGHTS["weights_iter"].astype(np.float16)}
    with pytest.raises(dnn.Unimplemented, match="weights_iter is f16, weights_layer f32: all weights have one type"):
        dnn.ops.lstm(SRC, weights)
