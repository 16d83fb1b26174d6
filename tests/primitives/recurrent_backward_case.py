"""Backward passes of recurrent layers for tests: descriptions, data, the reference's gradients, and the library's."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.definitions.recurrent.bounded import Bounded
from asmdnn.definitions.recurrent.layers import Net, ReferenceRun
from asmdnn.definitions.recurrent.values import Function, Handed
from tests.primitives.recurrent_case import AVX2, NAMES, UNITS, Arrays, compute, data_of, f32

BACKWARD = {
    dnn.VanillaRNNForward: dnn.VanillaRNNBackward,
    dnn.LSTMForward: dnn.LSTMBackward,
    dnn.GRUForward: dnn.GRUBackward,
    dnn.LBRGRUForward: dnn.LBRGRUBackward,
}
TRAINING = dnn.PropKind.forward_training
Run = Callable[[Any, Arrays, dnn.Engine], Arrays]


def backward(forward: Any, without: tuple[str, ...] = (), **more: Any) -> Any:
    """The backward pass of a description; gradients are row-major.  without: gradients that are left out."""
    kind, tensors = BACKWARD[type(forward)], forward.tensors()
    names = {field.name for field in fields(kind)}
    given = {name: getattr(forward, name) for name in names if hasattr(forward, name)}
    diffs = {f"diff_{name}": f32(x.dims, "abcde"[: x.ndims]) for name, x in tensors.items()}
    return kind(**given, **{name: x for name, x in diffs.items() if name not in without}, **more)


def training_data(
    forward: Any, engine: dnn.Engine = AVX2, seed: int = 0, data: Arrays | None = None, run: Run = compute
) -> Arrays:
    """The sources, what the training pass leaves, and gradients of its results."""
    data = data_of(forward, seed) if data is None else data
    left = run(replace(forward, prop_kind=TRAINING), data, engine)
    random = np.random.default_rng(seed + 1)
    results = {name: x.dims for name, x in forward.tensors().items() if name.startswith("dst")}
    return (
        data | left | {f"diff_{name}": random.uniform(-1, 1, size).astype(np.float32) for name, size in results.items()}
    )


def gradients(desc: Any, data: Arrays, lengths: Any = None) -> dict[str, Bounded]:
    """The reference's, of what the library writes; lengths: of padded sequences."""
    forward = desc.forward
    activation = getattr(desc, "activation", "tanh")
    hands = Handed(UNITS.get(desc.dst_layer.dtype, 0.0))  # what dst_layer says of h
    function = Function(activation, getattr(desc, "alpha", 0.0), hands)
    net = Net(NAMES[forward.NAME], desc.direction.rpartition("_")[2], function)
    sources = {name: x for name, x in data.items() if name in forward.tensors() or name == "bias"}
    diffs = {name: x for name, x in data.items() if name in desc.tensors() and name.startswith("diff_dst")}
    found = ReferenceRun(net, sources, lengths).gradients(diffs)
    return {name: x for name, x in found.items() if name in desc.tensors()}


def compute_gradients(desc: Any, data: Arrays, engine: dnn.Engine = AVX2) -> Arrays:
    """What the library computes; gradients hold NaN before."""
    return compute(desc, {name: x for name, x in data.items() if not is_written(name)}, engine)


def is_written(name: str) -> bool:
    return name.startswith("diff_") and not name.startswith("diff_dst")


def check_gradients(desc: Any, data: Arrays, engine: dnn.Engine = AVX2) -> Arrays:
    """Prove the plan, compute, and compare with the reference within its bound."""
    return check_against(desc, data, gradients(desc, data), engine)


def check_against(desc: Any, data: Arrays, wanted: dict[str, Bounded], engine: dnn.Engine = AVX2) -> Arrays:
    """Prove the plan, compute, and compare with wanted gradients within their bounds."""
    dnn.primitive_desc(desc, engine=engine).plan.check()
    found = compute_gradients(desc, data, engine)
    assert found.keys() == wanted.keys()
    for name, x in wanted.items():
        wrong = ~(np.abs(found[name] - x.value) <= x.bound)
        assert not wrong.any(), f"{name} of {desc}: {wrong.sum()} wrong, {np.abs(found[name] - x.value).max()}"
    return found
