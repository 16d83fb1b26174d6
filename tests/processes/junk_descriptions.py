"""Valid calls of what describes primitives, in which junk is put in the place of every argument."""

import inspect
from collections.abc import Iterator

import asmdnn as dnn
from asmdnn.primitives.core.backward import BackwardDesc
from asmdnn.primitives.core.description import Description
from tests.primitives import every_kind
from tests.primitives.every_kind import INFERENCE, TRAINING, t
from tests.processes.junk import Arguments, Call


def descriptions() -> dict[str, Call]:
    """Of every public kind of primitive the small problem that gives most arguments; and gradients of forward ones."""
    found: dict[type, Arguments] = {}
    described = (*every_kind.WITH_POST_OPS, *every_kind.others(), *fuller(), *recurrent())
    for desc in (each for each in described if hasattr(dnn, type(each).__name__)):
        found[type(desc)] = max(found.get(type(desc), {}), arguments_of(desc), key=given)
    calls = {kind.__name__: (kind, lambda arguments=arguments: dict(arguments)) for kind, arguments in found.items()}
    return {**calls, **of_forward(found)}  # type: ignore[dict-item]


def arguments_of(desc: Description) -> Arguments:
    return {name: getattr(desc, name) for name in inspect.signature(type(desc)).parameters}


def given(arguments: Arguments) -> int:
    return sum(value is not None and value != () for value in arguments.values())


def fuller() -> Iterator[Description]:
    """With tensors that may be absent."""
    image, of_channels, heads, mask = t(2, 4, 3, 3), t(4), t(1, 2, 3, 4), t(1, 1, 3, 3)
    affine = {"scale": of_channels, "shift": of_channels}
    fused = {"fuse": "norm_add_relu", "src_1": image, "workspace": t(2, 4, 3, 3, dtype=dnn.u8)}
    statistics = {"mean": of_channels, "variance": of_channels}
    yield dnn.BatchNormForward(TRAINING, image, image, **affine, **statistics, **fused)  # type: ignore[arg-type]
    yield dnn.GroupNormForward(TRAINING, image, image, 2, **affine, mean=t(2, 2), variance=t(2, 2))
    rows, row = t(2, 4), t(2)
    yield dnn.LayerNormForward(TRAINING, rows, rows, **affine, mean=row, variance=row)
    yield dnn.LayerNormBackward(
        rows, rows, rows, row, row, scale=of_channels, diff_scale=of_channels, diff_shift=of_channels
    )
    sums = t(1, 2, 3, 1)
    yield dnn.AttentionForward(INFERENCE, heads, heads, heads, heads, mask, 0.5, True, sums)
    yield dnn.AttentionBackward(*(heads,) * 7, mask=mask, scale=0.5, causal=True, logsumexp=sums)
    yield dnn.SoftmaxForward(INFERENCE, "accurate", t(2, 3), t(2, 3), 1, t(1, 3), 0.5)
    yield dnn.Reorder(t(2, 3), t(2, 3, dtype=dnn.s8), compensation=1)


def recurrent() -> Iterator[Description]:
    """Of one step more than one, one layer and one direction, with all that may be absent."""
    for cell, gates in (("VanillaRNN", 1), ("LSTM", 4), ("GRU", 3), ("LBRGRU", 3)):
        tensors = {
            "src_layer": t(2, 3, 5), "weights_layer": t(1, 1, 5, gates, 4), "weights_iter": t(1, 1, 4, gates, 4),
            "dst_layer": t(2, 3, 4), "src_iter": t(1, 1, 3, 4), "bias": t(1, 1, gates + (cell == "LBRGRU"), 4),
            "dst_iter": t(1, 1, 3, 4),
        }  # fmt: skip
        if cell == "LSTM":
            tensors |= {name: t(1, 1, 3, 4) for name in ("src_iter_c", "weights_peephole", "dst_iter_c")}
            tensors["weights_projection"] = t(1, 1, 4, 4)
        more: Arguments = {"direction": "unidirectional_right2left", "lengths": (2, 1, 1)}
        more |= {"activation": "relu", "alpha": 0.5} if cell == "VanillaRNN" else {}
        yield getattr(dnn, f"{cell}Forward")(**tensors, **more, prop_kind=TRAINING)
        tensors |= {"src_layer": t(4, 5), "dst_layer": t(4, 4)}
        read = {name: value for name, value in tensors.items() if name not in ("dst_iter", "dst_iter_c", "bias")}
        yield getattr(dnn, f"{cell}Backward")(
            **read, **{f"diff_{name}": value for name, value in tensors.items()}, **more
        )


def of_forward(described: dict[type, Arguments]) -> dict[str, Call]:
    """The gradients that a forward primitive describes."""
    found: dict[str, Call] = {}
    for kind in (kind for kind in described if issubclass(kind, BackwardDesc)):
        form = kind.FORWARD
        planned = dnn.primitive_desc(form(**described[form]))
        written = next(name for name in described[kind] if name.startswith("diff_"))
        arguments = {"forward": planned, written: "any"}
        found[f"{kind.__name__}.of"] = (kind.of, lambda arguments=arguments: dict(arguments))  # type: ignore[misc]
    return found
