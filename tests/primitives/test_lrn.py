"""What local response normalization has beside tests/conformance: a workspace, powers, formats, bad input."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.normalization import local_base
from tests.support.plans import proved_desc

ACROSS, WITHIN = "lrn_across_channels", "lrn_within_channel"
INFERENCE, TRAINING = dnn.PropKind.forward_inference, dnn.PropKind.forward_training
CASES = [
    (ACROSS, (2, 19, 5, 9), ("abcd", "acdb", "aBcd8b", "aBcd16b", "dcba")), (ACROSS, (3, 24), ("ab", "ba", "aB8b")),
    (ACROSS, (1, 3, 17), ("abc", "acb", "aBc8b")), (ACROSS, (2, 9, 3, 4, 5), ("abcde", "aBcde8b")),
    (WITHIN, (2, 19, 5, 9), ("abcd", "acdb", "aBcd8b", "aBcd16b", "dcba")),
    (WITHIN, (1, 3, 17), ("abc", "acb", "aBc8b")), (WITHIN, (1, 9, 3, 2, 5), ("abcde", "acdeb")),
    (WITHIN, (2, 16, 6, 1), ("abcd", "acdb", "aBcd8b")),
]  # fmt: skip
NUMBERS = (0.5, 0.75, 1.5)  # alpha, beta, k


def numbers(*dims: int) -> Any:
    return np.random.default_rng(0).uniform(-3, 3, dims).astype(np.float32)


def base_of(x: Any, alg: str, size: int, alpha: float, k: float) -> Any:
    return local_base(x.astype(np.float64), (1,) if alg == ACROSS else tuple(range(2, x.ndim)), size, alpha, k)


def described(alg: Any, desc: dnn.MemoryDesc, size: int, numbers: Any = NUMBERS, trains: bool = False) -> Any:
    return dnn.LRNForward(TRAINING if trains else INFERENCE, alg, desc, desc, size, *numbers, desc if trains else None)


def assert_near(found: Any, wanted: Any, places: int) -> None:
    """Within a rounding for each square, and some of the power and the product."""
    assert (np.abs(found - wanted) <= 2.0**-24 * (16 + places) * np.abs(wanted)).all()


@pytest.mark.parametrize("size", [5, 2])
@pytest.mark.parametrize(("alg", "dims", "tags"), CASES, ids=str)
def test_layouts(isa: str, alg: str, dims: tuple[int, ...], tags: tuple[str, ...], size: int) -> None:
    for tag in tags:
        x, desc = numbers(*dims), dnn.MemoryDesc(dims, dnn.f32, tag)
        pd = proved_desc(described(alg, desc, size, trains=True), engine=dnn.Engine(isa=isa, threads=2))
        padded = desc.has_padding  # where a workspace would not be zero
        copies = "reorder+" * (padded or (alg == WITHIN and tag == "dcba"))
        blocks = "pixels" if padded else "blocks"
        way = "windows" if alg == WITHIN else blocks if "B" in tag else "channels" if tag[-1] == "b" else "pixels"
        assert pd.implementation == f"{copies}{way}:{isa}"
        dst, workspace = dnn.Memory(desc), dnn.Memory(desc)
        dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, desc), dst=dst, workspace=workspace)
        base = base_of(x, alg, size, NUMBERS[0], NUMBERS[2])
        assert_near(workspace.numpy(), base, size ** len(dims))
        assert_near(dst.numpy(), x * base**-0.75, size ** len(dims))
        assert dst.padding_is_zero()
        assert workspace.padding_is_zero()


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.75, 1.0, 1.3])
def test_powers_and_functions(isa: str, beta: float) -> None:
    x, engine = numbers(2, 30, 6, 7), dnn.Engine(isa=isa)
    found = dnn.ops.lrn(x, 9, alpha=2.0, beta=beta, k=2.0, engine=engine)
    assert_near(found, x * base_of(x, ACROSS, 9, 2.0, 2.0) ** -beta, 9)
    found = dnn.ops.lrn(x, 3, beta=beta, alg="lrn_within_channel", engine=engine)
    assert_near(found, x * base_of(x, WITHIN, 3, 1e-4, 1.0) ** -beta, 9)


def test_one_format_to_another_and_parts(isa: str) -> None:
    """dst in another format is copied; views of larger tensors are read in place."""
    dims = (2, 16, 5, 6)
    whole, part = dnn.MemoryDesc((4, 16, 5, 6), dnn.f32, "aBcd8b"), dnn.MemoryDesc(dims, dnn.f32, "abcd")
    src = whole.submemory(dims, (2, 0, 0, 0))
    desc = dnn.LRNForward(INFERENCE, ACROSS, src, part, 5, *NUMBERS)
    pd = proved_desc(desc, engine=dnn.Engine(isa=isa))
    assert pd.implementation == f"reorder+blocks:{isa}"
    x, dst = numbers(4, 16, 5, 6), dnn.Memory(part)
    memory = dnn.Memory.from_numpy(x, whole)
    dnn.Primitive(pd).execute(src=dnn.Memory(src, memory.array), dst=dst)
    assert_near(dst.numpy(), x[2:] * base_of(x[2:], ACROSS, 5, 0.5, 1.5) ** -0.75, 5)


def test_infinities_and_nan(isa: str) -> None:
    """Of an infinity 0 is left of its neighbours, and NaN of itself; NaN reaches as far as its windows."""
    x = np.zeros((1, 20, 2, 8), np.float32)
    x[0, 10, 0, 0], x[0, 4, 1, 3], x[0, 11, 0, 0] = np.inf, np.nan, 2
    found = dnn.ops.lrn(x, 3, engine=dnn.Engine(isa=isa))
    assert found[0, 11, 0, 0] == 0
    assert np.isnan(found[0, 10, 0, 0])
    assert np.array_equal(np.isnan(found[0, :, 1, 3]), np.isin(np.arange(20), (3, 4, 5)))


def test_bad_input() -> None:
    desc, other, row = (dnn.MemoryDesc(dims, dnn.f32, "any") for dims in ((2, 3, 4), (2, 4, 4), (3,)))
    for arguments, says in (
        ((INFERENCE, "across", desc, desc), "must be one of lrn_across_channels, lrn_within_channel"),
        ((INFERENCE, ACROSS, desc, other), "dst has dims"),
        ((INFERENCE, ACROSS, row, row), "src must have 2 to 5 dims for lrn_across_channels, not 1"),
        ((INFERENCE, WITHIN, *[dnn.MemoryDesc((2, 3), dnn.f32, "ab")] * 2), "src must have 3 to 5 dims"),
        ((INFERENCE, ACROSS, desc, desc, 0), "local_size must be an integer of at least 1, not 0"),
        (
            (INFERENCE, ACROSS, desc, desc, 5, -1.0),
            "alpha -1, beta 0.75, k 1: alpha and beta must be from 0 on, k above",
        ),
        ((INFERENCE, ACROSS, desc, desc, 5, 1.0, 0.75, 0.0), "k above 0"),
        ((INFERENCE, ACROSS, desc, desc, 5, 1.0, 0.75, 1.0, desc), "workspace is of forward_training"),
        ((TRAINING, ACROSS, desc, desc, 5, 1.0, 0.75, 1.0, other), "workspace has dims"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.LRNForward(*arguments)
    with pytest.raises(dnn.Unimplemented, match="a window has 441 places, at most 343 are implemented"):
        dnn.ops.lrn(numbers(1, 1, 40, 40), 21, alg="lrn_within_channel")
    with pytest.raises(dnn.Unimplemented, match="post-ops"):
        dnn.primitive_desc(described(ACROSS, desc, 5), dnn.Attr([dnn.Sum()]))
    with pytest.raises(dnn.Unimplemented, match="src is s8"):
        dnn.primitive_desc(described(ACROSS, dnn.MemoryDesc((2, 3), dnn.s8, "ab"), 5))


def test_torch(isa: str) -> None:
    torch = pytest.importorskip("torch", reason="not compared with torch: pip install '.[torch]'")
    x = numbers(2, 30, 6, 7)
    wanted = torch.nn.functional.local_response_norm(torch.from_numpy(x), 5, 0.5, 0.75, 2.0).numpy()
    np.testing.assert_allclose(dnn.ops.lrn(x, 5, alpha=0.5, k=2.0, engine=dnn.Engine(isa=isa)), wanted, 1e-5)
