"""Array functions: what a second call must still check, destinations of every kind, packed weights, junk."""

import ctypes
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import blas, ops
from asmdnn.ops.calls import calls
from asmdnn.runtime.addresses import address_reader
from tests.support.drawing import RANDOM
from tests.support.exporters import SpeaksArrayInterface, SpeaksDlpack
from tests.support.ops_calls import every_call

pytestmark = pytest.mark.isa("avx2")


def integers(*dims: int) -> np.ndarray:
    return RANDOM.integers(-3, 4, dims).astype(np.float32)


A, B, X, W = integers(4, 6), integers(6, 5), integers(2, 20, 9, 8), integers(24, 20, 3, 3)
PRODUCT = A @ B
FLOATS = {("resize", "factor"), ("resize_gradient", "factor")}  # of any kind, given as integers


def c_array(array: np.ndarray) -> Any:
    """A ctypes array over the same memory: the buffer protocol."""
    kind: Any = ctypes.c_float
    for size in reversed(array.shape):
        kind = kind * size
    return kind.from_buffer(array)


EXPORTERS: dict[str, Callable[[np.ndarray], Any]] = {
    "numpy": lambda array: array, "memoryview": memoryview, "ctypes": c_array, "interface": SpeaksArrayInterface,
    "dlpack": SpeaksDlpack, "Memory": dnn.Memory.from_array,
}  # fmt: skip


@pytest.mark.parametrize("kind", EXPORTERS)
def test_destinations_that_export_memory(kind: str) -> None:
    product, image = np.zeros((4, 5), np.float32), np.zeros((2, 24, 9, 8), np.float32)
    for _ in range(2):
        product[...] = image[...] = np.nan
        out = EXPORTERS[kind](product)
        assert ops.matmul(A, B, out=out) is out
        assert np.array_equal(product, PRODUCT)
        product[...] = np.nan
        assert dnn.sgemm("N", "N", 1.0, A, B, 0.0, out) is out
        assert np.array_equal(product, PRODUCT)
        product[...] = np.nan
        assert dnn.gemm_compute("N", "P", A, dnn.gemm_pack("B", "N", 1.0, B), 0.0, out) is out
        assert np.array_equal(product, PRODUCT)
        out = EXPORTERS[kind](image)
        assert ops.conv2d(X, W, padding=1, out=out) is out
        assert np.array_equal(image, ops.conv2d(X, W, padding=1))


@pytest.mark.parametrize("kind", EXPORTERS)
def test_packed_operands_go_where_they_are_asked_to(kind: str) -> None:
    wanted = dnn.gemm_pack("B", "N", 1.0, B)
    room = np.full(wanted.nbytes, 255, np.uint8)
    if kind == "ctypes":
        out: Any = (ctypes.c_uint8 * room.size).from_buffer(room)
    else:
        out = EXPORTERS[kind](room)
    assert dnn.gemm_pack("B", "N", 1.0, B, out) is out
    assert np.array_equal(room, wanted)


@pytest.mark.parametrize(
    "out", [bytearray(80), b"0" * 80, "text", 3, object(), [[0.0]], np.float32(1)], ids=lambda out: type(out).__name__
)
def test_destinations_that_are_refused(out: Any) -> None:
    for call in (lambda: ops.matmul(A, B, out=out), lambda: dnn.sgemm("N", "N", 1.0, A, B, 0.0, out)):
        with pytest.raises(dnn.InvalidArguments, match=r"^(out|c) "):
            call()


# Checks that no key can hold: they come with every call


def test_the_second_call_checks_too() -> None:
    both = np.zeros(64, np.float32)
    a, out = both[:16].reshape(4, 4), both[32:48].reshape(4, 4)
    ops.matmul(a, a, out=out)
    entries = len(calls.entries)
    with pytest.raises(dnn.InvalidArguments, match="out overlaps a"):
        ops.matmul(both[20:36].reshape(4, 4), a, out=out)
    out.flags.writeable = False
    with pytest.raises(dnn.InvalidArguments, match="out is read-only"):
        ops.matmul(a, a, out=out)
    shifted = np.frombuffer(bytes(65), np.uint8)[1:].view(np.float32).reshape(4, 4)
    with pytest.raises(dnn.InvalidArguments, match="is not aligned"):
        ops.matmul(a, shifted)
    ops.matmul(a, a)
    with pytest.raises(dnn.InvalidArguments, match=r"a at address .* is not aligned"):
        ops.matmul(shifted, a)
    assert len(calls.entries) == entries + 1


def test_integers_are_not_what_equals_them() -> None:
    ops.conv2d(X, W, stride=1, padding=1, dilation=1)
    for name in ("stride", "padding", "dilation"):
        for value in (True, 1.0):
            with pytest.raises(dnn.InvalidArguments, match=f"^{name} must be"):
                ops.conv2d(X, W, **{"padding": 1, name: value})


def test_a_cap_is_seen_by_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = dnn.Engine(isa="avx2")
    ops.matmul(A, B, engine=engine)
    monkeypatch.setenv("ASMDNN_MAX_CPU_ISA", "not a level")
    for use in (None, engine):
        with pytest.raises(dnn.InvalidArguments, match="not a level"):
            ops.matmul(A, B, engine=use)
    monkeypatch.setenv("ASMDNN_MAX_CPU_ISA", "avx2")
    assert np.array_equal(ops.matmul(A, B), PRODUCT)
    with dnn.max_cpu_isa("avx2"):
        assert np.array_equal(ops.matmul(A, B), PRODUCT)


def test_strides_that_no_kernel_takes_are_copied_with_every_call() -> None:
    for _ in range(2):
        assert np.array_equal(ops.matmul(A[::-1], B[:, ::-1]), A[::-1] @ B[:, ::-1])
        wide = np.broadcast_to(A[0], (4, 6))
        assert np.array_equal(ops.matmul(wide, B), wide @ B)
        turned = np.asfortranarray(X)
        assert np.array_equal(ops.conv2d(turned, W), ops.conv2d(X, W))


def test_addresses_are_those_that_numpy_tells() -> None:
    arrays = [A, A[1:, ::2], A.T, A[::-1], np.empty((0, 3), np.float32), np.float32([[1]]), np.zeros(9, np.uint8)]
    assert address_reader()(arrays) == [array.__array_interface__["data"][0] for array in arrays]


def test_signs_and_small_scales_of_sgemm() -> None:
    c = np.full((4, 5), np.nan, np.float32)
    for beta in (0.0, -0.0, 1e-60, 0):
        c[...] = np.nan
        assert np.array_equal(dnn.sgemm("N", "N", 1, A, B, beta, c), PRODUCT), "what is 0 in f32 does not read c"
    nothing = np.full((4, 6), np.nan, np.float32)
    assert (dnn.sgemm("N", "N", 1e-60, nothing, B, 0.0, c) == 0).all()
    inside = c[:, :5]
    assert (dnn.sgemm("N", "N", 0.0, inside, np.ones((5, 5), np.float32), 0.0, c) == 0).all(), "a is not read"


# Weights packed once


@pytest.mark.parametrize("image", [None, (2, 20, 9, 8), (1, 20, 56, 56), (8, 20, 3, 3)], ids=str)
def test_packed_weights_serve_every_image(image: tuple[int, ...] | None) -> None:
    packed = ops.pack_conv_weights(W, image)
    for dims, options in (((2, 20, 9, 8), {"padding": 1}), ((1, 20, 30, 31), {"stride": 2}), ((3, 20, 5, 5), {})):
        x = integers(*dims)
        assert np.array_equal(ops.conv2d(x, packed, **options), ops.conv2d(x, W, **options))  # type: ignore[arg-type]
    bias = integers(24)
    relu = (dnn.Eltwise("relu"),)
    assert np.array_equal(ops.conv2d(X, packed, bias, post_ops=relu), ops.conv2d(X, W, bias, post_ops=relu))


@pytest.mark.parametrize("oc", [1, 7, 8, 9, 16, 17, 24, 40, 64])
def test_packed_weights_of_every_width(oc: int, planned_isa: str) -> None:
    """Panels are as wide as the weights say, whatever the image would have liked."""
    engine = dnn.Engine(isa=planned_isa, threads=1, l2_bytes=512 << 10, machine="zen3")
    lanes = {"avx2": 8, "avx512_core": 16}[planned_isa]
    for width in (1, 2, 3):
        src, dst = (dnn.MemoryDesc((1, channels, 9, 9), dnn.f32, "any") for channels in (16, oc))
        weights = dnn.MemoryDesc((oc, 16, 1, 1), dnn.f32, f"ABcd8b{width * lanes}a")
        pd = dnn.primitive_desc(dnn.ConvolutionForward(src, weights, dst), engine=engine)
        kernels = "pack+few_outputs" if oc == 1 else "direct"  # few outputs have a format of their own
        assert pd.implementation == f"{kernels}:{planned_isa}"
        pd.plan.check()


def test_packing_is_deterministic_and_padded_with_zeros() -> None:
    for _ in range(3):
        packed = ops.pack_conv_weights(integers(3, 5, 3, 3))
        assert packed.padding_is_zero()
        assert ops.pack_weights(integers(3, 5)).padding_is_zero()
        assert packed.address % 64 == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.pack_conv_weights(A), "weights has dims"),
        (lambda: ops.pack_conv_weights(W, (1, 3, 9, 9)), "weights are for"),
        (lambda: ops.pack_conv_weights(W, (1, 20)), "dims must be"),
        (lambda: ops.pack_conv_weights(W, dims=3), "dims must be"),
        (lambda: ops.pack_conv_weights(W, dims=[[1], 2, 3, 4]), "dims must be"),
        (lambda: ops.conv2d(X, ops.pack_weights(B)), "both must have 4"),
        (lambda: ops.matmul(A, ops.pack_conv_weights(W)), "b has .* rows?, a has"),
        (lambda: ops.conv2d(X[:, :3], ops.pack_conv_weights(W)), "weights are for"),
    ],
)
def test_packed_weights_that_do_not_fit(call: Callable[[], object], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        call()


def test_what_is_public() -> None:
    assert {"conv2d", "matmul", "pack_conv_weights", "pack_weights"} <= {*ops.__all__}
    assert sorted(blas.__all__) == [
        "gemm_bf16bf16f32", "gemm_compute", "gemm_f16f16f32", "gemm_pack", "gemm_pack_get_size", "gemm_x8x8s32",
        "sgemm",
    ]  # fmt: skip
    for module in (ops, blas):
        assert all(callable(getattr(module, name)) for name in module.__all__)


def test_many_threads_share_calls() -> None:
    """Equal and other shapes, with and without a destination, while the caches are cleared."""
    shapes = [(m, k, n) for m in (1, 4, 9) for k in (5, 8) for n in (3, 16)]

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for i in range(200):
            m, k, n = shapes[(i * 7 + seed) % len(shapes)]
            a, b = (random.integers(-3, 4, dims).astype(np.float32) for dims in ((m, k), (k, n)))
            out = np.full((m, n), np.nan, np.float32) if i % 2 else None
            assert np.array_equal(ops.matmul(a, b, out=out), a @ b)
            assert np.array_equal(dnn.sgemm("N", "N", 1.0, a, b, 0.0, np.full((m, n), np.nan, np.float32)), a @ b)
            if i % 50 == seed:
                dnn.clear_caches()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4), timeout=120))


def misaligned(array: np.ndarray) -> Any:
    """The same numbers, that begin a byte after where they may."""
    made = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


MATRIX, HALF, PLACES = np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float16), np.zeros(2, np.int32)
NOT_ALIGNED = r"( at address \w+)? is not aligned to the element's \d bytes"
COPIED = {  # before anything is read
    ("topk_gradient", "indices"), ("pack_quantized_weights", "b"), ("adaptive_max_pool_gradient", "indices"),
    ("max_pool_gradient", "indices"),
}  # fmt: skip


@pytest.mark.parametrize("name", every_call())
def test_arrays_that_are_not_aligned_are_named(name: str) -> None:
    arguments, function = every_call()[name], getattr(ops, name)
    for argument, value in arguments.items():
        listed = value if isinstance(value, list) else [value]
        for i, one in enumerate(listed):
            if not isinstance(one, np.ndarray) or one.itemsize == 1:
                continue
            odd = [misaligned(one) if at == i else other for at, other in enumerate(listed)]
            given = arguments | {argument: odd if isinstance(value, list) else odd[0]}
            if (name, argument) in COPIED:
                function(**given)
                continue
            label = rf"(arrays|{argument})\[{i}\]" if isinstance(value, list) else argument
            with pytest.raises(dnn.InvalidArguments, match=f"^{label}{NOT_ALIGNED}"):
                function(**given)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: ops.matmul(MATRIX, MATRIX, out=misaligned(MATRIX)), "out"),
        (lambda: ops.concat([MATRIX[:2], MATRIX[:2]], 0, out=misaligned(MATRIX)), "out"),
        (lambda: ops.matmul(misaligned(HALF), HALF), "a"),
        (lambda: ops.matmul(HALF, misaligned(HALF)), "b"),
        (lambda: ops.gather(MATRIX, misaligned(PLACES)), "indices"),
        (lambda: ops.conv2d(X.astype(np.float16), misaligned(W.astype(np.float16))), "weights"),
    ],
)
def test_what_is_not_aligned_is_named(call: Callable[[], object], name: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=f"^{name}{NOT_ALIGNED}"):
        call()


def whole_numbers() -> list[tuple[str, str]]:
    """Functions and those of their arguments that are integers or flags."""
    found = []
    for name, arguments in every_call().items():
        parameters = inspect.signature(getattr(ops, name)).parameters
        given = {key: one.default for key, one in parameters.items()} | arguments
        found += [(name, key) for key, value in given.items() if type(value) in (int, bool)]
    return [each for each in found if each not in FLOATS]


@pytest.mark.parametrize(("name", "argument"), whole_numbers())
def test_numbers_that_equal_an_integer_are_none(name: str, argument: str) -> None:
    """Also after a call with the integer, whose key they equal."""
    function = getattr(ops, name)
    default = inspect.signature(function).parameters[argument].default
    given = {argument: default} | every_call()[name]
    function(**given)
    value = given[argument]
    equal = [int(value), float(value)] if type(value) is bool else [float(value), *[bool(value)] * (value in (0, 1))]
    for one in equal:
        with pytest.raises(dnn.InvalidArguments, match=argument):
            function(**{**given, argument: one})


def test_completion_offers_what_is_meant_for_callers() -> None:
    """Names of the API, parts with one of their own, and what every module has."""
    ops.matmul(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32))
    assert [name for name in dir(dnn) if not name.startswith("__")] == sorted(
        {*dnn.__all__, "asm", "ukernel"} - {"__version__"}
    )
    assert [name for name in dir(ops) if not name.startswith("__")] == ops.__all__
    for module in (dnn, ops):
        assert {"__name__", "__doc__", "__all__"} <= {*dir(module)}
        assert all(hasattr(module, name) for name in dir(module))
