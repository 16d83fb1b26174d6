"""`load_state_dict` of a network: it becomes what a new translation of the module with that state is, or it stays."""

import copy
import gc
import weakref
from collections import UserDict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.together import at_once

pytest.importorskip("torch", reason="the torch extra")

import torch
from torch import nn
from torch.utils import _pytree as pytree

import asmdnn as dnn
from asmdnn.aten import tracing
from asmdnn.errors import InvalidArguments, Unimplemented
from tests.aten.modules import modules

MODULES = modules()
ENGINE = dnn.Engine(threads=1)
X = torch.linspace(-1, 1, 60).reshape(3, 4, 5)
State = dict[str, Any]


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


class Everything(nn.Module):
    """Tied parameters and buffers, a view of one, weights that are computed, tensors in and out of the state."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.unused = nn.BatchNorm1d(5), nn.Linear(3, 2)
        self.first, self.last = nn.Linear(5, 5, bias=False), nn.Linear(5, 5)
        self.last.weight = self.first.weight
        self.wide, self.flat = nn.Parameter(torch.rand(4, 5).T), nn.Parameter(torch.rand(4, 5))
        self.row = nn.Parameter(self.flat.data[1])
        self.register_buffer("scale", torch.rand(4, 1))
        self.register_buffer("also", self.scale)
        self.register_buffer("places", torch.tensor([3, 1, 0]))
        self.register_buffer("own", torch.rand(5), persistent=False)
        self.plain = torch.rand(3)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.norm((x * self.scale + self.also).flatten(1)[:, :5]) @ torch.linalg.matrix_exp(self.wide @ self.flat)
        return {"y": self.last(self.first(x)) + self.own * self.row, "z": x[:, self.places] + self.plain}


def seeded(module: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(2)
    return module().eval()


def renewed(module: nn.Module) -> State:
    """Another state of it, in which tied tensors differ."""
    return {
        name: tensor * 1.25 + i / 64 if tensor.is_floating_point() else tensor.flip(tuple(range(tensor.dim())))
        for i, (name, tensor) in enumerate(module.state_dict().items())
    }


def is_equal(found: Any, wanted: Any) -> bool:
    """In every bit, and in the same nest."""
    (a, nest), (b, other) = map(pytree.tree_flatten, (found, wanted))
    return nest == other and all(map(torch.equal, a, b))


def translated_with(module: nn.Module, state: State, inputs: tuple[Any, ...]) -> Any:
    """What a new translation gives of the module with this state."""
    other = copy.deepcopy(module)
    other.load_state_dict(state)
    return dnn.from_torch(other, inputs, engine=ENGINE)(*inputs)


@pytest.mark.parametrize("name", ["perceptron", "residual", "lstm", "block", "mobile", "encoder", "norms and resizing"])
def test_it_is_a_new_translation(name: str) -> None:
    module, inputs = MODULES[name]
    net, state = dnn.from_torch(module, inputs, engine=ENGINE), renewed(module)
    before = net(*inputs)
    net.load_state_dict(state)
    assert is_equal(net(*inputs), translated_with(module, state, inputs))
    net.load_state_dict(module.state_dict())
    assert is_equal(net(*inputs), before)


@pytest.mark.parametrize("dynamic", [False, True])
def test_all_kinds_of_tensors(dynamic: bool) -> None:
    """As torch loads them, of whichever class of mapping they come; what the caller writes later does not count."""
    module = seeded(Everything)
    net, state = dnn.from_torch(module, (X,), engine=ENGINE, dynamic=dynamic), renewed(module)
    state["flat"][1] = state["row"]  # one is a view of the other
    before, wanted = net(X), translated_with(module, state, (X,))
    for tensor in (*module.parameters(), *module.buffers(), module.plain):
        tensor.zero_()
    assert is_equal(net(X), before)
    net.load_state_dict(UserDict(state))
    for tensor in state.values():
        tensor.zero_()
    assert is_equal(net(X), wanted)


def test_layouts_of_the_state_do_not_matter() -> None:
    module = seeded(Everything)
    net, state = dnn.from_torch(module, (X,), engine=ENGINE), module.state_dict()
    wanted = net(X)
    net.load_state_dict({name: x.mT.contiguous().mT if x.dim() == 2 else x for name, x in state.items()})
    assert is_equal(net(X), wanted)


def test_buffers_whose_elements_share_memory() -> None:
    class Spread(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("shift", torch.ones(5).expand(4, 5))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x + self.shift)

    net, shift = dnn.from_torch(Spread().eval(), (X,), engine=ENGINE), torch.arange(20.0).reshape(4, 5)
    net.load_state_dict({"shift": shift})
    assert torch.equal(net(X), torch.relu(X + shift))


def test_modules_in_bf16() -> None:
    module, inputs = copy.deepcopy(MODULES["residual"][0]).bfloat16(), (MODULES["residual"][1][0].bfloat16(),)
    net, state = dnn.from_torch(module, inputs, engine=ENGINE), renewed(module)
    net.load_state_dict(state)
    assert is_equal(net(*inputs), translated_with(module, state, inputs))
    with pytest.raises(InvalidArguments, match=r"state\['first.weight'\] is torch.float32\[8, .* torch.bfloat16\[8, "):
        net.load_state_dict({name: x.float() if x.is_floating_point() else x for name, x in state.items()})


def test_other_shapes_have_the_new_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were traced are not traced again, and those that come first later are."""
    module, (x,) = MODULES["residual"]
    shapes = [x, x[:1], x[..., :12], x[..., :9, :]]
    net, state = dnn.from_torch(module, (x,), engine=ENGINE, dynamic=True), renewed(module)
    before = [net(given) for given in shapes[:3]]
    wanted = [translated_with(module, state, (given,)) for given in shapes]
    with monkeypatch.context() as patched:
        patched.delattr(tracing, "export_of")
        net.load_state_dict(state)
        assert len(net.shapes) == 3
        assert is_equal([net(given) for given in shapes[:3]], wanted[:3])
    assert torch.equal(net(shapes[3]), wanted[3])
    with monkeypatch.context() as patched:
        patched.delattr(tracing, "export_of")
        net.load_state_dict(module.state_dict())
        assert is_equal([net(given) for given in shapes[:3]], before)


def with_value(name: str, value: Any) -> Callable[[State], State]:
    return lambda state: {**state, name: value}


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        (lambda state: None, r"state must map names to tensors, as state_dict\(\) does, not None"),
        (lambda state: list(state), "state must map names to tensors"),
        (lambda state: {}, r"state has no .*norm.weight, torch.float32\[5\].*: give all that the module's state_dict"),
        (lambda state: {k: x for k, x in state.items() if k != "also"}, r"state has no also, torch.float32\[4, 1\]: "),
        (with_value("scales", X), "state has 'scales', which is no parameter or buffer of the module: did you mean"),
        (with_value("own", X[0, 0]), "state has 'own', which is no .* of the module"),
        (with_value("zzz", X), "state has 'zzz', which is no parameter or buffer of the module: leave it out"),
        (with_value(7, X), "state has 7, which is no parameter"),  # type: ignore[arg-type]
        (with_value("also", 3), r"state\['also'\] must be a torch.Tensor, not 3"),
        (with_value("also", X.new_ones(4)), r"is torch.float32\[4\], .* made with torch.float32\[4, 1\]"),
        (with_value("also", X.new_ones(4, 1).double()), r"is torch.float64\[4, 1\], .* torch.float32\[4, 1\]: convert"),
        (with_value("also", torch.ones(4, 1, device="meta")), r"state\['also'\] is on meta: move it to the CPU"),
        (with_value("also", torch.ones(4, 1).to_sparse()), r"state\['also'\] is torch.sparse_coo: make it dense"),
    ],
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_refusals_change_nothing(changed: Any, what: str, dynamic: bool, nets: Any) -> None:
    net = nets[dynamic]
    network, wanted = net.network, net(X)
    with pytest.raises(InvalidArguments, match=what):
        net.load_state_dict(changed(renewed(seeded(Everything))))
    assert net.network is network
    assert is_equal(net(X), wanted)


@pytest.fixture(scope="module")
def nets() -> list[dnn.TorchNetwork]:
    return [dnn.from_torch(seeded(Everything), (X,), engine=ENGINE, dynamic=dynamic) for dynamic in (False, True)]


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_state_that_no_network_holds_changes_nothing(dynamic: bool) -> None:
    """Integers of more than 24 bits have no kernel."""

    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("shift", torch.tensor([1, 2, 3]))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.shift

    x, module = torch.tensor([4, 5, 6]), Shifted().eval()
    net = dnn.from_torch(module, (x,), engine=ENGINE, dynamic=dynamic)
    with pytest.raises(Unimplemented, match=r"may be beyond 2\^24"):
        net.load_state_dict({"shift": torch.tensor([1, 2, 1 << 40])})
    assert net(x).tolist() == [5, 7, 9]


@pytest.mark.parametrize("dynamic", [False, True])
def test_calls_in_other_threads_have_one_state_or_the_other(dynamic: bool) -> None:
    module, inputs = MODULES["perceptron"]
    net, states = dnn.from_torch(module, inputs, engine=ENGINE, dynamic=dynamic), [module.state_dict(), renewed(module)]
    known = [translated_with(module, state, inputs) for state in states]
    found: list[torch.Tensor] = []

    def work(number: int) -> None:
        for i in range(10):
            if number < 2:
                net.load_state_dict(states[(i + number) % 2])
            else:
                found.append(net(*inputs))

    at_once(work)
    assert all(any(torch.equal(one, each) for each in known) for one in found)


def test_neither_the_module_nor_its_weights_are_held() -> None:
    module = seeded(Everything)
    net = dnn.from_torch(module, (X,), engine=ENGINE)
    net.load_state_dict(module.state_dict())
    gone = [weakref.ref(module), weakref.ref(module.first.weight)]
    del module
    gc.collect()
    assert [reference() for reference in gone] == [None, None]
