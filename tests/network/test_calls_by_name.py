"""Calls of networks and steps with arrays by name: one sentence says what is missing, unknown or without a name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
MADE = ("fixed", "open", "pack", "open pack")


def sum_of(*names: str, rows: int | str = 3) -> dnn.Network:
    graph = dnn.Graph()
    x, *others = [graph.input(name, (rows, 4)) for name in names]
    return graph.compile(y=sum(others, x * 2), engine=engine())


def made(how: str, folder: Path, *names: str) -> dnn.Network:
    net = sum_of(*names, rows="rows" if "open" in how else 3)
    if "pack" not in how:
        return net
    net.run(dict.fromkeys(names, X))
    net.save(folder / "net.pack")
    return dnn.load_pack(folder / "net.pack", threads=1)


def step_of() -> Any:
    graph = dnn.Graph()
    x, target = graph.input("image", (3, 4)), graph.input("target", (3, 2))
    loss = dnn.losses.mean_squared_error(x @ graph.parameter("w", (4, 2)), target)
    return graph.train(loss, dnn.optim.SGD(0.1), engine=engine())


@pytest.mark.parametrize("how", MADE)
def test_one_array_or_arrays_by_name(how: str, tmp_path: Path) -> None:
    one, two = made(how, tmp_path, "image"), made(how, tmp_path, "self", "x")
    for found in (one(X), one(image=X)):
        np.testing.assert_array_equal(found, 2 * X)
    np.testing.assert_array_equal(two(x=X, self=X), 3 * X)  # type: ignore[misc]


WRONG: dict[str, tuple[Callable[[Any], object], str]] = {
    "one name": (lambda net: net(imag=X, mask=X), "the network takes arrays for image, mask, not imag, mask: did you"),
    "one missing": (lambda net: net(image=X), "the network takes arrays for image, mask, not image"),
    "all missing": (lambda net: net(), "the network takes arrays for image, mask, not none"),
    "no names": (lambda net: net(X, X), "for image, mask, not 2 arrays without a name: pass each by its name"),
    "one name, one not": (lambda net: net(X, mask=X), "not 1 array without a name and image, mask, not mask"),
    "bound without a name": (lambda net: net.bind(X), "not 1 array without a name: pass each by its name"),
    "bound by a wrong name": (lambda net: net.bind(imag=X, mask=X, y=X), "image, mask.*did you mean image"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("how", MADE)
def test_other_names(how: str, name: str, tmp_path: Path) -> None:
    call, message = WRONG[name]
    with pytest.raises(InvalidArguments, match=message):
        call(made(how, tmp_path, "image", "mask"))


def test_several_outputs() -> None:
    graph = dnn.Graph()
    x = graph.input("x", (3, 4))
    net = graph.compile(y=x * 2, z=x * 3, engine=engine())
    with pytest.raises(InvalidArguments, match=r"the network has the outputs y, z, not one: use run\(\)"):
        net(x=X)


STEPS: dict[str, tuple[Callable[[Any], object], str]] = {
    "a wrong name": (
        lambda step: step(imag=X, target=X),
        "a step takes arrays for image, target, not imag, target: did",
    ),
    "one missing": (lambda step: step(image=X), "a step takes arrays for image, target, not image"),
    "no names": (lambda step: step(X, X), "not 2 arrays without a name: pass each by its name"),
    "gradients": (lambda step: step.gradients(imag=X, target=X), "did you mean image"),
    "gradients without names": (lambda step: step.gradients(X), "not 1 array without a name"),
    "bound without names": (lambda step: step.bind(X), "not 1 array without a name"),
    "bound": (lambda step: step.bind(imag=X, target=X), "did you mean image"),
    "applied": (lambda step: step.apply({"W": X}), "apply takes gradients by w, not W: did you mean w"),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps(name: str) -> None:
    call, message = STEPS[name]
    with pytest.raises(InvalidArguments, match=message):
        call(step_of())


@pytest.mark.parametrize(
    ("given", "fixed", "open_one"),
    [
        (None, "x must be an array, not None$", "x must be an array, not None$"),
        ({}, r"x must be an array, not \{\}$", r"input x is \[\], the network takes float32\[n, 3\]$"),
        (np.zeros((2, 3)), r"x is float64\[2, 3\], .*float32\[2, 3\]: convert it$", "takes .*: convert it$"),
        (np.zeros((2, 4), np.float32), ": load the model for its dims$", r"input x is \[2, 4\], the network takes"),
        (np.zeros((4, 3)), ": convert it, and load the model for its dims$", r"x is float64\[4, 3\], .*: convert it$"),
    ],
)
def test_arrays_that_do_not_fit(given: Any, fixed: str, open_one: str) -> None:
    """What is wrong with them, and no more, is to be mended."""
    for first, says in ((2, fixed), ("n", open_one)):
        graph = dnn.Graph()
        net = graph.compile(engine=engine(), y=graph.apply("Relu", graph.input("x", (first, 3))))
        with pytest.raises(dnn.InvalidArguments, match=says):
            net.run({"x": given})
