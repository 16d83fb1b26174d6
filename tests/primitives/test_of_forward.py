"""Descriptions of gradients made of a planned forward pass are those that are written by hand."""

from typing import Any

import pytest

import asmdnn as dnn
from asmdnn.primitives.core.backward import BackwardDesc
from asmdnn.primitives.core.description import Description
from asmdnn.types import DataType

ENGINE = dnn.Engine(isa="avx2", threads=1)
TRAINING, INFERENCE = dnn.PropKind.forward_training, dnn.PropKind.forward_inference


def t(*dims: int, tag: str = "", dtype: DataType = dnn.f32) -> dnn.MemoryDesc:
    """A tensor, row-major unless a tag is given."""
    return dnn.MemoryDesc(dims, dtype, tag or "abcde"[: len(dims)])


def planned(desc: Description) -> dnn.PrimitiveDesc:
    return dnn.primitive_desc(desc, engine=ENGINE)


IMAGE, NHWC, LOOSE = (t(2, 16, 6, 6, tag=tag) for tag in ("nchw", "nhwc", "any"))
CHANNELS, ROWS = t(16), t(4, 8)
HALF, INDICES, MASK = t(2, 16, 3, 3), t(2, 16, 3, 3, dtype=dnn.s32), t(2, 16, 6, 6, dtype=dnn.u8)
WINDOW: dict[str, Any] = {"kernel": (2, 2), "strides": (2, 2)}
STATISTICS = {"mean": CHANNELS, "variance": CHANNELS}
AFFINE, GRADIENTS = {"scale": CHANNELS, "shift": CHANNELS}, {"diff_scale": CHANNELS, "diff_shift": CHANNELS}
Q, K = t(1, 4, 6, 8), t(1, 2, 10, 8)

LAYER = {"src_layer": t(5, 2, 8), "dst_layer": t(5, 2, 16)}
RESULTS = {"diff_src_layer": t(5, 2, 8), "diff_dst_layer": t(5, 2, 16)}


def weights(gates: int, tag: str, prefix: str = "") -> dict[str, dnn.MemoryDesc]:
    layer, state = t(1, 1, 8, gates, 16, tag=tag), t(1, 1, 16, gates, 16, tag=tag)
    return {f"{prefix}weights_layer": layer, f"{prefix}weights_iter": state}


def packed(gates: int) -> dict[str, dnn.MemoryDesc]:
    """Both tensors and both gradients, in formats of the pass."""
    return weights(gates, "any") | weights(gates, "any", "diff_")


STATE = t(1, 1, 2, 16)
PAIRS: dict[str, tuple[Description, BackwardDesc]] = {
    "eltwise": (
        dnn.EltwiseForward(TRAINING, "elu", NHWC, LOOSE, 0.5),
        dnn.EltwiseBackward("elu", NHWC, NHWC, NHWC, 0.5),
    ),
    "softmax": (dnn.SoftmaxForward(TRAINING, "log", ROWS, ROWS, 0), dnn.SoftmaxBackward("log", ROWS, ROWS, ROWS, 0)),
    "prelu": (
        dnn.PReLUForward(TRAINING, NHWC, t(1, 16, 1, 1), NHWC),
        dnn.PReLUBackward(NHWC, t(1, 16, 1, 1), NHWC, NHWC, t(1, 16, 1, 1)),
    ),
    "batch norm": (
        dnn.BatchNormForward(TRAINING, NHWC, LOOSE, 1e-3, **AFFINE, **STATISTICS),
        dnn.BatchNormBackward(NHWC, NHWC, NHWC, CHANNELS, CHANNELS, 1e-3, CHANNELS, **GRADIENTS),
    ),
    "batch norm, fused": (
        dnn.BatchNormForward(TRAINING, IMAGE, IMAGE, **STATISTICS, fuse="norm_add_relu", src_1=IMAGE, workspace=MASK),
        dnn.BatchNormBackward(
            IMAGE, IMAGE, IMAGE, **STATISTICS, fuse="norm_add_relu", workspace=MASK, diff_src_1=IMAGE
        ),
    ),
    "group norm": (
        dnn.GroupNormForward(TRAINING, IMAGE, IMAGE, 4, mean=t(2, 4), variance=t(2, 4), shift=CHANNELS),
        dnn.GroupNormBackward(IMAGE, IMAGE, IMAGE, 4, t(2, 4), t(2, 4), diff_shift=CHANNELS),
    ),
    "layer norm": (
        dnn.LayerNormForward(TRAINING, ROWS, ROWS, scale=t(8), shift=t(8), mean=t(4), variance=t(4)),
        dnn.LayerNormBackward(ROWS, ROWS, ROWS, t(4), t(4), scale=t(8), diff_scale=t(8), diff_shift=t(8)),
    ),
    "rms norm": (
        dnn.LayerNormForward(TRAINING, ROWS, ROWS, 1e-6, variance=t(4), rms=True),
        dnn.LayerNormBackward(ROWS, ROWS, ROWS, None, t(4), 1e-6, rms=True),
    ),
    "lrn": (
        dnn.LRNForward(TRAINING, "lrn_across_channels", IMAGE, IMAGE, 3, 0.5, 0.75, 2.0, IMAGE),
        dnn.LRNBackward("lrn_across_channels", IMAGE, IMAGE, IMAGE, 3, 0.5, 0.75, 2.0, IMAGE),
    ),
    "lrn of inference": (
        dnn.LRNForward(INFERENCE, "lrn_within_channel", IMAGE, IMAGE),
        dnn.LRNBackward("lrn_within_channel", IMAGE, IMAGE, IMAGE),
    ),
    "maxima": (
        dnn.PoolingForward("max", IMAGE, HALF, **WINDOW, indices=INDICES),
        dnn.PoolingBackward("max", IMAGE, HALF, **WINDOW, indices=INDICES),
    ),
    "means": (
        dnn.PoolingForward("avg_exclude_padding", IMAGE, HALF, **WINDOW),
        dnn.PoolingBackward("avg_exclude_padding", IMAGE, HALF, **WINDOW),
    ),
    "resampling": (
        dnn.ResamplingForward("linear", HALF, IMAGE, (2.0, 2.0), "align_corners"),
        dnn.ResamplingBackward("linear", HALF, IMAGE, (2.0, 2.0), "align_corners"),
    ),
    "attention": (
        dnn.AttentionForward(TRAINING, Q, K, K, Q, t(1, 1, 6, 10), 0.5, causal=True),
        dnn.AttentionBackward(Q, K, K, Q, Q, K, K, t(1, 1, 6, 10), 0.5, causal=True),
    ),
    "attention that leaves sums": (
        dnn.AttentionForward(TRAINING, Q, K, K, Q, logsumexp=t(*Q.dims[:3], 1)),
        dnn.AttentionBackward(Q, K, K, Q, Q, K, K, logsumexp=t(*Q.dims[:3], 1)),
    ),
    "inner product, data": (
        dnn.InnerProductForward(t(4, 32), t(8, 32, tag="any"), t(4, 8), t(8)),
        dnn.InnerProductBackwardData(t(4, 32), t(8, 32, tag="any"), t(4, 8)),
    ),
    "inner product, weights": (
        dnn.InnerProductForward(t(4, 32, dtype=dnn.bf16), t(8, 32, tag="any", dtype=dnn.bf16), t(4, 8), t(8)),
        dnn.InnerProductBackwardWeights(
            t(4, 32, dtype=dnn.bf16), t(8, 32, tag="any", dtype=dnn.bf16), t(4, 8), t(8)
        ),
    ),
    "rnn": (
        dnn.VanillaRNNForward(**LAYER, **weights(1, "any"), activation="relu", alpha=0.5, prop_kind=TRAINING),
        dnn.VanillaRNNBackward(**LAYER, **RESULTS, **packed(1), activation="relu", alpha=0.5),
    ),
    "lstm": (
        dnn.LSTMForward(
            **LAYER, **weights(4, "abcde"), bias=t(1, 1, 4, 16), src_iter=STATE, dst_iter=STATE, dst_iter_c=STATE,
            lengths=(5, 3), direction="unidirectional_right2left", prop_kind=TRAINING,
        ),
        dnn.LSTMBackward(
            **LAYER, **RESULTS, **packed(4), diff_bias=t(1, 1, 4, 16), src_iter=STATE, diff_src_iter=STATE,
            diff_dst_iter=STATE, diff_dst_iter_c=STATE, lengths=(5, 3), direction="unidirectional_right2left",
        ),
    ),
    "gru": (
        dnn.GRUForward(**LAYER, **weights(3, "any"), prop_kind=TRAINING),
        dnn.GRUBackward(**LAYER, **RESULTS, **packed(3)),
    ),
    "lbr gru": (
        dnn.LBRGRUForward(**LAYER, **weights(3, "any"), bias=t(1, 1, 4, 16), prop_kind=TRAINING),
        dnn.LBRGRUBackward(**LAYER, **RESULTS, **packed(3), diff_bias=t(1, 1, 4, 16)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_as_by_hand(name: str) -> None:
    forward, by_hand = PAIRS[name]
    found = type(by_hand).of(planned(forward))
    assert found == by_hand
    assert set(planned(found).plan.outputs) == {each for each in found.__dataclass_fields__ if is_written(found, each)}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("softmax", "backward_data"), ("prelu", "backward"), ("batch norm", "backward"),
        ("batch norm, fused", "backward_data"), ("group norm", "backward"), ("inner product, data", "backward_data"),
        ("inner product, weights", "backward_weights"), ("attention", "backward"), ("lstm", "backward"),
    ],
)  # fmt: skip
def test_prop_kinds(name: str, kind: str) -> None:
    _, gradient = PAIRS[name]
    assert gradient.prop_kind is dnn.PropKind(kind)
    with pytest.raises(dnn.InvalidArguments, match=r"not <PropKind\..*>: gradients have descriptions of their own"):
        dnn.EltwiseForward(gradient.prop_kind, "relu", IMAGE, IMAGE)


def is_written(desc: BackwardDesc, name: str) -> bool:
    return name.startswith("diff_") and not name.startswith("diff_dst") and getattr(desc, name) is not None


def test_every_kind_is_here() -> None:
    """Convolutions have tests of their own."""
    every = {kind for kind in vars(dnn).values() if isinstance(kind, type) and issubclass(kind, BackwardDesc)}
    others = {kind for kind in every if "onvolution" not in kind.__name__}
    assert others == {type(backward) for _, backward in PAIRS.values()}
    described = {name for name in dnn.__all__ if name.endswith(("Backward", "BackwardData", "BackwardWeights"))}
    assert {kind.__name__ for kind in every} == described


@pytest.mark.parametrize("name", PAIRS)
def test_hints_that_do_not_fit(name: str) -> None:
    forward, by_hand = PAIRS[name]
    kind = type(by_hand)
    other = planned(dnn.Reorder(IMAGE, NHWC))
    for hint in (None, forward, by_hand, other, planned(kind.of(planned(forward)))):
        with pytest.raises(dnn.InvalidArguments, match=f"must be a primitive_desc of a {kind.FORWARD.__name__}, not "):
            kind.of(hint)  # type: ignore[arg-type]
    with pytest.raises(dnn.InvalidArguments, match=f"shape is no tensor of a {kind.__name__}: "):
        kind.of(planned(forward), shape="any")
    written = next(each for each in by_hand.__dataclass_fields__ if is_written(by_hand, each))
    for tag in ("abcdefgh", 3):
        with pytest.raises(dnn.InvalidArguments) as error:
            kind.of(planned(forward), **{written: tag})  # type: ignore[arg-type]
        assert len(str(error.value).splitlines()) == 1


def test_formats_and_what_is_left_out() -> None:
    inner = planned(dnn.InnerProductForward(t(4, 32), t(8, 32), t(4, 8), t(8)))
    found = dnn.InnerProductBackwardWeights.of(inner, diff_weights="ba", diff_bias=None)
    assert found == dnn.InnerProductBackwardWeights(t(4, 32), t(8, 32, tag="ba"), t(4, 8))
    with pytest.raises(dnn.InvalidArguments, match="diff_dst is missing, which InnerProductBackwardWeights needs"):
        dnn.InnerProductBackwardWeights.of(inner, diff_dst=None)


def test_of_results_of_functions() -> None:
    forward = planned(dnn.EltwiseForward(TRAINING, "tanh", NHWC, IMAGE))
    assert dnn.EltwiseBackward.of(forward, use_dst=True) == dnn.EltwiseBackward(
        "tanh_use_dst_for_bwd", IMAGE, IMAGE, NHWC
    )
    with pytest.raises(dnn.InvalidArguments, match=r"EltwiseBackward.alg must be one of .*, not 'round'"):
        dnn.EltwiseBackward.of(planned(dnn.EltwiseForward(TRAINING, "round", IMAGE, IMAGE)))
    with pytest.raises(dnn.InvalidArguments, match="use_dst"):
        dnn.EltwiseBackward.of(forward, use_dst="yes")  # type: ignore[arg-type]


def test_passes_that_leave_too_little() -> None:
    norm = planned(dnn.BatchNormForward(TRAINING, IMAGE, IMAGE))
    with pytest.raises(dnn.InvalidArguments, match="mean is missing, which BatchNormBackward needs: the forward pass"):
        dnn.BatchNormBackward.of(norm)
    layer = planned(dnn.LSTMForward(**LAYER, **weights(4, "any")))
    with pytest.raises(dnn.InvalidArguments, match="forward is of forward_inference, which leaves no workspace: plan"):
        dnn.LSTMBackward.of(layer)
    maxima = planned(dnn.PoolingForward("max", IMAGE, HALF, **WINDOW))
    with pytest.raises(dnn.InvalidArguments, match="indices is None: the gradient of a maximum goes where"):
        dnn.PoolingBackward.of(maxima)
