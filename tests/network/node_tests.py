"""ONNX's own node tests through `load_onnx`: what becomes of each, in words that are counted."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.errors import AsmdnnError
from tests.network.nets import engine

INEXACT = {"test_dft_inverse", "test_dft_inverse_opset19"}  # zeros that their own f32 transform has rounded to 2e-7
DRAWN = "bernoulli"  # whose answers others draw
BF16_STEPS = 2**-6  # two steps: their attention rounds in between, ours once at the end
REASONS = {
    "of operator set": "other operator set",
    "only tensors": "no tensor",
    "has elements of type": "type not read",
    "is not known": "no definition",
    "attribute": "no definition",
    "depend on the data": "dims depend on data",
    "chooses by the data": "dims depend on data",
    "not defined": "refused",
    "trained": "refused",
    "cannot do without": "other operator set",
    "must be integers": "refused",
    "is no integer": "refused",
}  # by what the error says, the first that fits


def reason_of(error: AsmdnnError) -> str:
    return next((word for said, word in REASONS.items() if said in str(error)), str(error))


def tolerances(case: Any, wanted: Any) -> dict[str, float]:
    """Its own ones, but for answers that are less exact than ours."""
    rtol = BF16_STEPS if wanted.dtype.name == "bfloat16" else case.rtol
    return {"rtol": rtol, "atol": 1e-6 if case.name in INEXACT else case.atol}


def arrays_of(case: Any) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Inputs by name and outputs of each data set; tensors as arrays."""
    from onnx import TensorProto, numpy_helper

    def plain(x: Any) -> Any:
        return numpy_helper.to_array(x) if isinstance(x, TensorProto) else x

    for inputs, outputs in case.data_sets:
        names = [x.name for x in case.model.graph.input]
        yield dict(zip(names, map(plain, inputs), strict=False)), [plain(x) for x in outputs]


def loaded(data: bytes, given: dict[str, Any]) -> tuple[dnn.Network, dict[str, Any]]:
    """The network and what it is fed: inputs that dims depend on are constants, unless all of them would be."""
    refusal: AsmdnnError | None = None
    waiting: tuple[dnn.Network, dict[str, Any]] | None = None
    for fed in (len(given), 1, 0):
        feeds = dict(list(given.items())[:fed])
        constants = {name: x for name, x in given.items() if name not in feeds}
        shapes = {name: np.shape(x) for name, x in feeds.items()}
        if waiting and not feeds:
            return waiting
        try:
            net = dnn.load_onnx(data, shapes, constants=constants, engine=engine(), fallback="numpy")
        except AsmdnnError as error:
            refusal = error
            continue
        if not net.planned().later:
            return net, feeds
        waiting = waiting or (net, feeds)
    if waiting:
        return waiting
    assert refusal is not None
    raise refusal


def outcome(case: Any) -> str:
    """ "native", "numpy" if any node is, or "folded"; or why not.  Raises AssertionError for a wrong answer."""
    data = case.model.SerializeToString()
    found = ""
    for given, outputs in arrays_of(case):
        if not all(isinstance(x, np.ndarray | np.generic) for x in (*given.values(), *outputs)):
            return "no tensor"
        try:
            net, feeds = loaded(data, given)
        except AsmdnnError as error:
            return reason_of(error)
        found = "numpy" if net.refused or net.planned().later else "native" if net.segments else "folded"
        for made, wanted in zip(net.run(feeds).values(), outputs, strict=True):
            assert (made.dtype, made.shape) == (wanted.dtype, np.shape(wanted)), case.name
            if DRAWN in case.name:
                assert {*np.unique(made).tolist()} <= {0, 1}, case.name
            else:
                np.testing.assert_allclose(made, wanted, **tolerances(case, wanted), err_msg=case.name)
    return found
