"""Modules of torch as networks: results are torch's, whichever way they come, and refusals say what is missing."""

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.support.together import at_once

pytest.importorskip("torch", reason="the torch extra")

import torch
import torch.nn.functional as F
from torch import nn

import asmdnn as dnn
from asmdnn.aten import backend, whole_graph
from asmdnn.aten.options import CompileOptions
from asmdnn.aten.translation import rules
from asmdnn.errors import InvalidArguments, Unimplemented
from tests.aten.modules import Function, modules

MODULES = modules()
RELATIVE = 1e-5  # of the largest element: sums of a few hundred products in another order
ENGINE = dnn.Engine(threads=1)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Dynamo's caches are of a test; recurrent layers are traced."""
    torch._dynamo.reset()
    torch._dynamo.config.allow_rnn = True
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def assert_equal(got: Any, wanted: Any) -> None:
    """The same nest of tensors, close to each other."""
    from torch.utils import _pytree as pytree

    ours, spec = pytree.tree_flatten(got)
    theirs, wanted_spec = pytree.tree_flatten(wanted)
    assert spec == wanted_spec
    for a, b in zip(ours, theirs, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        bound = RELATIVE * float(b.abs().max()) if b.is_floating_point() and b.numel() else 0
        torch.testing.assert_close(a, b, rtol=0, atol=bound, equal_nan=True)


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    module, inputs = MODULES[name]
    net = dnn.from_torch(module, inputs, engine=ENGINE)
    assert net.network.refused == {}
    assert_equal(net(*inputs), module(*inputs))
    net.network.check()


@pytest.mark.parametrize("name", MODULES)
def test_compiled_modules(name: str) -> None:
    """One native part each, and nothing else."""
    module, inputs = MODULES[name]
    compiled = torch.compile(module, backend=backend.asmdnn, options={"engine": ENGINE})
    assert_equal(compiled(*inputs), module(*inputs))
    assert "1 native parts; torch computes nothing" in backend.explain()


X, Y, POSITIVE = torch.randn(3, 4, 6), torch.randn(3, 4, 6), torch.rand(3, 4, 6) + 0.5
IMAGE = torch.randn(2, 6, 9, 11)
PLACES = torch.rand(2, 5, 4, 2) * 2.4 - 1.2
SPREAD = torch.randn(3, 41, 2) * 40  # e to the largest is no f32
SPREAD[0, :2, 0], SPREAD[1, 7, 1], SPREAD[2, 9, 0] = -torch.inf, torch.inf, -torch.inf
SMALL = torch.tensor([1e-30, -1e-9, 1e-7, -3e-5, 1e-3, -0.02, 0.3, -0.49, 0.51, -0.9, 3.0, 20.0, 80.0])
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "arithmetic": (lambda x, y: (x + 2 * y - 1) / (y * y + 3), (X, Y)),
    "alpha": (lambda x, y: torch.add(x, y, alpha=0.5) - torch.sub(x, y, alpha=3), (X, Y)),
    "reversed": (lambda x: 1 - x + 2 / (x * x + 1), (X,)),
    "integers": (lambda i: (i + 3) * 2 - i, (torch.arange(12).reshape(3, 4),)),
    "mixed types": (lambda x, i: x * i + 0.5, (X, torch.arange(6))),
    "powers": (lambda x: x**2 + x**0.5 + torch.rsqrt(x) + x.reciprocal(), (POSITIVE,)),
    "rounding down": (lambda x, y: torch.div(x, y, rounding_mode="floor"), (X, POSITIVE)),
    "rounding to 0": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), (X, POSITIVE)),
    "functions": (lambda x: x.sin() + x.cos() + x.exp() + torch.erf(x) + x.abs().sqrt() - x.sign(), (X,)),
    "logarithms": (lambda x: x.log() + F.softplus(x) + F.mish(x), (POSITIVE,)),
    "activations": (lambda x: F.relu6(x) + F.elu(x) + F.leaky_relu(x, 0.2) + F.selu(x) + F.hardtanh(x), (X,)),
    "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), (X,)),
    "glu": (lambda x: F.glu(x, 1), (X,)),
    "clamps": (lambda x: x.clamp(-0.5, 0.3) + x.clamp(min=0) + x.clamp_max(0.1), (X,)),
    "comparisons": (lambda x, y: torch.where((x > y) & (x != 0) | ~(y <= 0.5), x, y), (X, Y)),
    "a number or a tensor": (lambda x: torch.where(x >= 0, x, -1.0), (X,)),
    "masks": (lambda x, y: x.masked_fill(y < 0, -1e9), (X, Y)),
    "casts": (lambda x: (x > 0).float() + x.to(torch.int32).to(torch.float32), (X,)),
    "maxima": (lambda x, y: torch.maximum(x, y) + torch.minimum(x, y), (X, Y)),
    "views": (lambda x: x.view(4, 18).reshape(2, 36).flatten().unflatten(0, (6, 12)).unsqueeze(1).squeeze(), (X,)),
    "turns": (lambda x: x.permute(2, 0, 1).transpose(-1, 0).mT.contiguous(), (X,)),
    "joins": (lambda x, y: torch.stack([torch.cat([x, y], -1), torch.cat([y, x], -1)], 1), (X, Y)),
    "parts": (lambda x: tuple(p * 2 for p in (*x.split(2, 2), *x.chunk(3, 2), *x.split([1, 5], 2))), (X,)),
    "unbound": (lambda x: x.unbind(1)[2] + x.unbind(1)[0], (X,)),
    "slices": (lambda x: x[:, 1:3, ::2] + x[0, -2:, 3:].sum() + x.select(2, 1).narrow(1, 1, 2).unsqueeze(-1), (X,)),
    "flips": (lambda x: x.flip(1, 2), (X,)),
    "expanded": (lambda x: x[:, :1].expand(3, 5, 6) + x[:, :1].repeat(1, 5, 1), (X,)),
    "look-ups": (lambda x, i: x[:, i] + x.index_select(1, i), (X, torch.tensor([3, 0, 2]))),
    "gathered": (lambda x, i: x.gather(2, i), (X, torch.randint(0, 6, (3, 4, 2)))),
    "padded": (lambda x: F.pad(x, (1, 2, 0, 3)) * 2 + F.pad(x, (1, 2, 0, 3), value=3.5), (X,)),
    "reflected": (lambda x: F.pad(x, (2, 1, 1, 3), mode="reflect"), (IMAGE,)),
    "edges": (lambda x: F.pad(x, (2, 1, 1, 3), mode="replicate"), (IMAGE,)),
    "rolled": (lambda x: torch.roll(x, (1, -2), (0, 2)) + x.roll(4, 1) + x.roll(5), (X,)),
    "heads for several": (lambda x: x.repeat_interleave(2, 1) * 2, (X,)),
    "sums by letters": (lambda x, y: torch.einsum("bij,bkj->bik", x, y) + torch.einsum("bij->b", x)[0], (X, Y)),
    "deviations": (lambda x: x.std(1) + x.logsumexp(1) + F.celu(x).sum(1) + F.logsigmoid(x).sum(1), (X,)),
    "triangles": (lambda x: x.tril(1) - x.triu(-1), (X,)),
    "sums": (lambda x: x.sum() + x.sum(1).mean(-1, keepdim=True).sum() + x.mean((0, 2)).sum(), (X,)),
    "extremes": (lambda x: x.amax(1) + x.amin((1,)), (X,)),
    "best": (lambda x: (*x.max(1), x.argmin(-1), x.argmax()), (X,)),
    "variance": (lambda x: x.var(1) + x.var(-1, unbiased=False).sum(), (X,)),
    "norms": (lambda x: F.normalize(x, dim=-1) + x.norm(dim=1, keepdim=True), (X,)),
    "softmax": (lambda x: x.softmax(1) + x.log_softmax(-1), (X,)),
    "running sums of exponentials": (lambda x: x.logcumsumexp(1), (SPREAD,)),
    "sampled": (lambda x, g: F.grid_sample(x, g, align_corners=False), (IMAGE, PLACES)),
    "sampled by cubics": (lambda x, g: F.grid_sample(x, g, "bicubic", "reflection", True), (IMAGE, PLACES)),
    "nearest pixels": (lambda x, g: F.grid_sample(x, g, "nearest", "border", False), (IMAGE, PLACES)),
    "running sums": (lambda x: x.cumsum(1), (X,)),
    "running products": (lambda x: x.cumprod(1), (X,)),
    "top": (lambda x: x.topk(3, 1), (X,)),
    "products": (lambda x, y: x @ y.mT + torch.bmm(x, y.mT), (X, Y)),
    "rms": (lambda x: F.rms_norm(x, (6,), torch.arange(6.0) + 1, 1e-5), (X,)),
    "attention": (
        lambda q, k, m: F.scaled_dot_product_attention(q, k, k, attn_mask=m, scale=0.3),
        (torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(5, 7)),
    ),
    "pooling": (lambda x: F.max_pool2d(x, 3, 2, 1) + F.avg_pool2d(x, 3, 2, 1), (IMAGE,)),
    "ceilings": (lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True), (IMAGE,)),
    "adaptive": (lambda x: F.adaptive_avg_pool2d(x, (3, 1)), (IMAGE,)),
    "resized": (lambda x: F.interpolate(x, size=(18, 7)) + F.interpolate(x, size=(18, 7), mode="bilinear"), (IMAGE,)),
    "aligned": (lambda x: F.interpolate(x, size=(18, 7), mode="bilinear", align_corners=True), (IMAGE,)),
    "pixels": (lambda x: F.pixel_shuffle(x[:, :4], 2), (IMAGE,)),
    "angles": (lambda x: x.tan() + torch.atan(x) + torch.asin(x.tanh()) + torch.acos(x.tanh()) + x.sinh(), (X,)),
    "near 0": (lambda x: torch.stack([torch.expm1(x), torch.log1p(x)]), (SMALL,)),
    "near 0, relatively": (lambda x: torch.stack([torch.expm1(x), torch.log1p(x)]) / x, (SMALL[:-3],)),
    "remainders": (lambda x, y: torch.fmod(x * 5, y) + x.trunc(), (X, POSITIVE)),
    "sorted": (lambda x: (*x.sort(1), x.sort(descending=True)[0]), (X,)),
    "remainders below 0": (lambda x, y: torch.remainder(x * 5, y) + torch.remainder(x, -0.75), (X, POSITIVE)),
    "truths": (lambda x: (x > 0).any(1).float() + (x > -1).all(1) + (x > 2).any(), (X,)),
    "diagonals": (lambda x: x.diagonal(0, 1, 2).sum() + x.diagonal(-1, 2, 0) + torch.diagonal(x, 2, 1, 2).mean(), (X,)),
    "limits that are data": (lambda x, y: x.clamp(y - 1, y - 0.8) + x.clamp_min(y) + torch.clamp(x, max=y), (X, Y)),
    "distances": (lambda x, y: torch.cdist(x, y) + torch.cdist(x, y, 1) + torch.cdist(x, y, torch.inf), (X, Y)),
    "written parts": (lambda x, y: written(x, y), (X, Y)),
    "around": (lambda x: F.pad(x, (2, 1, 3, 0), mode="circular"), (IMAGE,)),
    "windows of any size": (lambda x: F.adaptive_avg_pool2d(x, (4, 5)) + F.adaptive_max_pool2d(x, (4, 5)), (IMAGE,)),
    "windows in one image": (lambda x: F.max_pool2d(x, 3, 2, 1) + F.avg_pool2d(x, 3, 2, 1), (IMAGE[0],)),
    "windows in rows": (lambda x: F.adaptive_avg_pool1d(x, 5) - F.adaptive_max_pool1d(x, 5), (X,)),
    "windows as columns": (lambda x: F.unfold(x, (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2)), (IMAGE,)),
    "cubics": (lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic", align_corners=False), (IMAGE,)),
    "cubics, aligned": (lambda x: F.interpolate(x, size=(13, 6), mode="bicubic", align_corners=True), (IMAGE,)),
    "nearest of halves": (lambda x: F.interpolate(x, size=(5, 17), mode="nearest-exact"), (IMAGE,)),
    "resized volumes": (lambda x: F.interpolate(x[None], size=(5, 13, 7), mode="trilinear"), (IMAGE,)),
    "resized by area": (lambda x: F.interpolate(x, size=(4, 5), mode="area"), (IMAGE,)),
    "constants": (lambda x: x + torch.arange(6) * torch.ones(4, 1) + torch.full((1,), 0.5), (X,)),
}  # fmt: skip


def written(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Parts of a copy are written in place."""
    z = x * 1
    z[:, 1:3] = y[:, :2]
    z[0] = 7.0
    z[:, :, -1] = y[:, :, 0]
    return z


NO_KERNEL = ("integers", "casts", "flips", "gathered")  # for some of their nodes


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operators(name: str) -> None:
    function, inputs = FUNCTIONS[name]
    module = Function(function).eval()
    fallback = "numpy" if name in NO_KERNEL else None
    assert_equal(dnn.from_torch(module, inputs, engine=ENGINE, fallback=fallback)(*inputs), module(*inputs))


def test_weights_are_never_stale() -> None:
    module = MODULES["perceptron"][0]
    compiled = torch.compile(module, backend=backend.asmdnn)
    x = torch.randn(5, 20)
    assert_equal(compiled(x), module(x))
    module[0].weight.mul_(2)
    assert_equal(compiled(x), module(x))
    module.load_state_dict({name: value + 0.1 for name, value in module.state_dict().items()})
    assert_equal(compiled(x), module(x))
    module[0].weight = nn.Parameter(torch.randn(64, 20))
    assert_equal(compiled(x), module(x))


def test_parameters_that_take_turns_at_one_address() -> None:
    module, x = nn.Linear(6, 3).eval(), torch.randn(2, 6)
    compiled = torch.compile(module, backend=backend.asmdnn)
    for _ in range(12):
        module.weight = nn.Parameter(torch.randn(3, 6))
        assert_equal(compiled(x), module(x))
        module.weight.data = torch.randn(3, 6)
        assert_equal(compiled(x), module(x))


def test_modules_made_in_inference_mode() -> None:
    with torch.inference_mode():
        module, x = nn.Linear(6, 3).eval(), torch.randn(2, 6)
        compiled = torch.compile(module, backend=backend.asmdnn)
        assert_equal(compiled(x), module(x))
        module.weight.mul_(2)
        assert_equal(compiled(x), module(x))


def test_calls_from_several_threads() -> None:

    module = nn.Sequential(nn.Linear(6, 3), nn.ReLU()).eval()
    graph = torch.fx.symbolic_trace(module)
    run = backend.CompiledGraph(graph, [torch.randn(2, 6)], CompileOptions.of(ENGINE))
    inputs = [torch.randn(1 + i % 40, 6) for i in range(80)]
    found: dict[int, Any] = {}

    def call(first: int) -> None:
        for i in range(first, 80, 4):
            with torch.no_grad():
                found[i] = run(inputs[i])[0]

    at_once(call)
    assert all(torch.allclose(found[i], module(inputs[i]), atol=1e-6) for i in range(80))


def test_buffers_that_a_module_writes() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            self.calls.add_(1)
            return self.layer(x) * self.calls

    module, x = Counting().eval(), torch.ones(2, 4)
    compiled = torch.compile(module, backend=backend.asmdnn)
    for calls in (1, 2, 3):
        assert_equal(compiled(x), module.layer(x) * calls)
        assert module.calls.item() == calls
    with pytest.raises(Unimplemented, match="the module writes to calls"):
        dnn.from_torch(module, (x,))


def test_shapes_that_change() -> None:
    module = MODULES["block"][0]
    for dynamic in (False, True):
        torch._dynamo.reset()
        compiled = torch.compile(module, backend=backend.asmdnn, dynamic=dynamic)
        for shape in ((2, 10), (2, 7), (1, 10), (3, 3), (2, 10)):
            x = torch.randn(*shape, 64)
            assert_equal(compiled(x), module(x))


def test_marked_dims() -> None:
    """Dynamo makes one graph for all sizes, and each is planned when it comes first."""
    module = MODULES["block"][0]
    torch._dynamo.reset()
    compiled, sizes = torch.compile(module, backend=backend.asmdnn), ((2, 10), (3, 10), (7, 10), (5, 10), (3, 10))
    for shape in sizes:
        x = torch.randn(*shape, 64)
        torch._dynamo.mark_dynamic(x, 0)
        assert_equal(compiled(x), module(x))
    assert backend.explain().count("1 native parts; torch computes nothing") == len(set(sizes))
    x = torch.randn(4, 10, 64)
    torch._dynamo.mark_dynamic(x, 0)
    assert_equal(dnn.from_torch(module, (x,), engine=ENGINE)(x), module(x))


def test_operators_that_are_left_to_torch() -> None:
    function = lambda x: torch.special.i1(torch.special.i0(F.relu(x @ x.mT) * 0.01).sigmoid().tanh().exp())  # noqa: E731
    compiled = torch.compile(Function(function), backend=backend.asmdnn)
    x = torch.randn(2, 5, 6)
    assert_equal(compiled(x), function(x))
    assert (
        "2 native parts; torch computes aten.special_i0.default (1), aten.special_i1.default (1)" in backend.explain()
    )


def test_control_flow_on_data_is_cut_by_dynamo() -> None:
    def function(x: Any) -> Any:
        y = torch.relu(x @ x.mT)
        if y.sum() > 1e9:
            return y
        return torch.tanh(y @ x)

    torch._dynamo.reset()
    x = torch.randn(3, 4, 5)
    assert_equal(torch.compile(Function(function), backend=backend.asmdnn)(x), function(x))
    assert backend.explain().count("native parts") == 2  # graphs: torch decides between them


def test_gradients_are_left_to_torch() -> None:
    module, (x,) = MODULES["perceptron"]
    compiled = torch.compile(module, backend=backend.asmdnn)
    with torch.enable_grad(), pytest.warns(UserWarning, match="asmdnn computes no gradients, so torch runs this graph"):
        compiled(x).sum().backward()
    assert module[0].weight.grad is not None
    module.zero_grad()


def test_equal_bits_over_threads() -> None:
    module, inputs = MODULES["unet"]
    one, three = (dnn.from_torch(module, inputs, engine=dnn.Engine(threads=n))(*inputs) for n in (1, 3))
    assert torch.equal(one, three)


def test_inputs_are_read_where_they_lie_and_left_alone() -> None:
    module, (x,) = MODULES["residual"]
    net, before = dnn.from_torch(module, (x,), engine=ENGINE), x.clone()
    assert_equal(net(x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)), module(x))
    assert torch.equal(x, before)


@pytest.mark.parametrize(
    ("module", "inputs", "error", "what"),
    [
        ("no module", (), InvalidArguments, "module must be a torch.nn.Module"),
        (nn.Linear(2, 2), (X,), InvalidArguments, r"in training mode: call module.eval\(\)"),
        (nn.Linear(6, 2).eval(), X, InvalidArguments, "example_inputs must be a tuple"),
        (Function(torch.special.i0).eval(), (X,), Unimplemented, "no translation is known of aten.i0"),
        (
            Function(lambda x: torch.special.i1(torch.special.i1(x))).eval(),
            (X,),
            Unimplemented,
            r"aten.special_i1.default \(2 times\)",
        ),
        (Function(lambda x: x.add_(1)).eval(), (X.clone(),), Unimplemented, "the module writes to"),
        (Function(lambda x: x if x.sum() > 0 else -x).eval(), (X,), Unimplemented, "torch.export cannot trace"),
        (Function(lambda x: x.to(torch.complex64)).eval(), (X,), Unimplemented, "of torch.complex64"),
        (nn.Linear(6, 2).eval(), (torch.randn(2, 5),), Unimplemented, "torch.export cannot trace"),
    ],
)
def test_refusals(module: Any, inputs: Any, error: type[Exception], what: str) -> None:
    with pytest.raises(error, match=what):
        dnn.from_torch(module, inputs)


@pytest.mark.parametrize("name", ["perceptron", "residual", "lstm", "block"])
def test_modules_in_bf16(name: str) -> None:
    """f32 of their weights inside, results rounded once: torch rounds each layer's."""
    narrow, (x,) = copy.deepcopy(MODULES[name][0]).bfloat16(), MODULES[name][1]
    given = x.bfloat16() if x.is_floating_point() else x
    net = dnn.from_torch(narrow, (given,), engine=ENGINE)
    compiled = torch.compile(narrow, backend=backend.asmdnn, options={"engine": ENGINE})
    wanted = copy.deepcopy(narrow).float()(given.float() if x.is_floating_point() else given)
    for found in (net(given), compiled(given)):
        for a, b in zip(*map(tensors_in, (found, wanted)), strict=True):
            assert a.dtype == torch.bfloat16
            room = b.abs() * 2.0**-8 + RELATIVE * b.abs().max()
            assert bool(((a.float() - b).abs() <= room).all())
    assert "torch computes nothing" in backend.explain()
    if x.is_floating_point():
        with pytest.raises(InvalidArguments, match=r"input 0 is torch\.float32, it must be torch\.bfloat16"):
            net(x)


def tensors_in(nest: Any) -> tuple[torch.Tensor, ...]:
    return tuple(tensor for part in nest for tensor in tensors_in(part)) if isinstance(nest, tuple) else (nest,)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ((torch.zeros(7, 20).bfloat16(),), "input 0 is torch.bfloat16, it must not be"),
        ((), "takes 1 tensor, not 0"),
        ((np.zeros((7, 20), np.float32),), "input 0 must be a torch.Tensor"),
        ((torch.zeros(7, 21),), "input 0"),
        ((torch.zeros(7, 20, dtype=torch.int64),), "input 0"),
    ],
)
def test_tensors_that_do_not_fit(given: Any, what: str) -> None:
    module, inputs = MODULES["perceptron"]
    with pytest.raises(InvalidArguments, match=what):
        dnn.from_torch(module, inputs, engine=ENGINE)(*given)


def test_other_shapes() -> None:
    """Any that the module takes; the weights are those of the time when the network was made."""
    module, (x,) = MODULES["residual"]
    changed = copy.deepcopy(module)
    net, shapes = dnn.from_torch(changed, (x,), dynamic=True, engine=ENGINE), [(2, 9), (1, 16), (2, 9), (5, 12)]
    for parameter in changed.parameters():
        parameter.data.zero_()
    for batch, size in shapes:
        given = torch.randn(batch, x.shape[1], size, size)
        assert_equal(net(given), module(given))
        assert next(iter(net.network.inputs.values()))[0] == tuple(given.shape)
    assert [dims[0] for (dims,) in net.shapes] == [x.shape[0], 1, 2, 5]
    with pytest.raises(Unimplemented, match=r"torch\.export cannot trace"):
        net(torch.zeros(1, x.shape[1] + 1, 9, 9))
    with pytest.raises(InvalidArguments, match=r"input 0 must be a torch\.Tensor, not 3"):
        net(3)
    assert_equal(net(x), module(x))


@pytest.mark.isa("avx512_core_bf16")
def test_precision() -> None:
    module = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).eval()
    x, engine = torch.randn(64, 256), dnn.Engine(isa="avx512_core_bf16", machine="zen4")
    plain, narrow = (dnn.from_torch(module, (x,), engine=engine, precision=word) for word in ("f32", "bf16"))
    compiled = torch.compile(module, backend=backend.asmdnn, options={"engine": engine, "precision": "bf16"})
    wanted = module(x)
    assert 1e-5 < float((narrow(x) - wanted).abs().max() / wanted.abs().max()) < 2**-6
    assert torch.equal(compiled(x), narrow(x))
    assert not torch.equal(plain(x), narrow(x))


def test_equal_bits_for_any_batch() -> None:
    module, inputs = nn.Linear(700, 40).eval(), torch.randn(64, 700)
    nets = [dnn.from_torch(module, (x,), engine=ENGINE, deterministic="batch") for x in (inputs, inputs[:1])]
    assert torch.equal(nets[0](inputs)[:1], nets[1](inputs[:1]))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"engin": 1}, "options has 'engin', of asmdnn it may have engine, precision, deterministic"),
        (7, "options must map names to values, not 7"),
        ({"engine": 2}, "engine must be an Engine, not int"),
        ({"precision": "f8"}, "precision must be one of"),
        ({"deterministic": "rows"}, "deterministic must be True or False, or 'batch', not 'rows'"),
    ],
)
def test_options(options: Any, what: str) -> None:
    with pytest.raises(InvalidArguments, match=what):
        backend.asmdnn(None, (), options=options)


def test_the_table_names_operators_that_exist() -> None:
    for name in rules():
        packet, _, overload = name.partition(".")
        found = getattr(torch.ops.aten, packet, None)
        assert found is not None, name
        if packet not in UNLIKE:
            assert overload in found.overloads() or overload in OVERLOADS, name


UNLIKE = {"__and__", "__or__"}
OVERLOADS = {  # of some operators only: the table has all for each
    "Tensor", "Scalar", "Tensor_mode", "Scalar_mode", "Tensor_Tensor", "Tensor_Scalar", "default", "dim", "dim_IntList",
    "dim_int", "ScalarOther", "ScalarSelf",
}  # fmt: skip


class Tied(nn.Module):
    """A weight that two products read, and names that a graph has for values of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten())
        self.first, self.last = nn.Linear(16, 16), nn.Linear(16, 16, bias=False)
        self.last.weight = self.first.weight
        self.register_buffer("input 0", torch.arange(16.0))
        self.register_buffer("Conv 0", torch.arange(16.0) + 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.first(self.stem(x) * self.get_buffer("input 0"))) - self.get_buffer("Conv 0")


def test_steps_and_constants_have_the_names_of_the_module() -> None:
    module, x = Tied().eval(), torch.linspace(-1, 1, 48).reshape(1, 3, 4, 4)
    names: list[str] = []
    layers: list[str] = []

    def seen(graph: Any, *_: Any, **__: Any) -> Any:
        names.extend(graph._constants)
        layers.extend(node.name for node in graph._nodes if node.name)
        return network_of(graph, *_, **__)

    network_of = whole_graph.network_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_graph, "network_of", seen)
        net = dnn.from_torch(module, (x,), engine=ENGINE)
    assert_equal(net(x), module(x))
    text = net.network.explain()
    assert all(f"'{layer}'" in text for layer in ("stem.0", "first", "last")), text
    assert {"stem.0.weight", "stem.0.bias", "first.bias"} < set(names)
    assert len({"first.weight transposed", "last.weight transposed"} & set(names)) == 1
    assert not {"input 0", "Conv 0"} & set(names)
    assert set(layers) == {"stem.0", "stem.1", "stem.2", "first", "last"}
    layers.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_graph, "network_of", seen)
        assert_equal(torch.compile(module, backend="asmdnn", options={"engine": ENGINE})(x), module(x))
    assert {"stem.0", "first", "last"} <= set(layers)
