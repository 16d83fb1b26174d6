"""Random numbers: by seed, stream and index alone, on all levels; distributions; the documented error; bad input."""

from hashlib import sha256
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.random_numbers import NORMAL_ERROR, drawn
from asmdnn.generators.functions.eltwise.box_muller import UPPER, box_muller
from asmdnn.generators.functions.program import Predicate, Program

COUNT = 1_000_000
RELATIONS = {Predicate.less: np.less, Predicate.greater_equal: np.greater_equal}
SUMS = {"uniform": "15178a165969f32b", "normal": "aa737355876d0655"}  # of bits, that no machine changes
SIGMAS = 5  # by which a mean of so many may be off; seeds are fixed, so it is or it is not


def evaluated(program: Program, inputs: list[Any]) -> list[Any]:
    """A program in f32, bits and all; products and sums that round once, in more bits than f64 has."""

    def bits(x: Any) -> Any:
        return x.view(np.uint32)

    functions: dict[str, Any] = {
        "input": lambda step: inputs[step.immediate],
        "constant": lambda step: np.full(inputs[0].shape, step.immediate, np.uint32).view(np.float32),
        "add": lambda step, a, b: a + b, "sub": lambda step, a, b: a - b, "mul": lambda step, a, b: a * b,
        "fma": lambda step, a, b, c: np.float32(np.longdouble(a) * b + c),
        "fnma": lambda step, a, b, c: np.float32(c - np.longdouble(a) * b),
        "sqrt": lambda step, a: np.sqrt(a),
        "and": lambda step, a, b: (bits(a) & bits(b)).view(np.float32),
        "or": lambda step, a, b: (bits(a) | bits(b)).view(np.float32),
        "xor": lambda step, a, b: (bits(a) ^ bits(b)).view(np.float32),
        "iadd": lambda step, a, b: (bits(a) + bits(b)).view(np.float32),
        "isub": lambda step, a, b: (bits(a) - bits(b)).view(np.float32),
        "shl": lambda step, a: (bits(a) << np.uint32(step.immediate)).view(np.float32),
        "shr": lambda step, a: (bits(a) >> np.uint32(step.immediate)).view(np.float32),
        "sar": lambda step, a: (a.view(np.int32) >> np.int32(step.immediate)).view(np.float32),
        "to_float": lambda step, a: a.view(np.int32).astype(np.float32),
        "select": lambda step, a, b, c, d: np.where(RELATIONS[Predicate(step.immediate)](a, b), c, d),
    }  # fmt: skip
    values = list[Any]()
    for step in program.steps:
        values.append(functions[step.op](step, *[values[a] for a in step.args]))
    return [values[result] for result in program.results]


def numbers(count: int, distribution: str, seed: int, stream: int = 0, isa: str = "avx2", threads: int = 1) -> Any:
    desc = dnn.RandomNumbers(dnn.MemoryDesc((count,), dnn.f32, "a"), distribution, stream)
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=threads))
    assert pd.implementation == f"random:{isa}"
    words, dst = np.array([seed], np.int64).view(np.int32), dnn.Memory(desc.dst)
    dnn.Primitive(pd).execute(seed=dnn.Memory.from_array(words), dst=dst)
    return dst.numpy()


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("distribution", ["uniform", "normal"])
def test_values(distribution: str) -> None:
    for seed, stream in ((0, 0), (-1, 2**63 - 1), (2**63 - 1, -(2**63)), (1 << 32, 77)):
        for count in (1, 9, 9001):
            wanted = drawn(distribution, seed, stream, count)
            found = numbers(count, distribution, seed, stream)
            assert (np.abs(found - wanted) <= (distribution == "normal") * NORMAL_ERROR * np.abs(wanted)).all()
            assert np.array_equal(numbers(count, distribution, seed, stream, threads=2), found)


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in ("avx2", "avx512_core")])
@pytest.mark.parametrize("distribution", SUMS)
def test_levels_have_equal_bits(isa: str, distribution: str) -> None:
    found = numbers(10_001, distribution, 5, 3, isa)
    assert sha256(found.tobytes()).hexdigest()[:16] == SUMS[distribution]


@pytest.mark.isa("avx2")
def test_distributions() -> None:
    """Moments, neighbours, and other seeds and streams."""
    for distribution, mean, deviation, fourth in (("uniform", 0.5, 12**-0.5, 1 / 80), ("normal", 0, 1, 3)):
        x = numbers(COUNT, distribution, 3).astype(np.float64)
        off = (x - mean) / deviation
        assert abs(off.mean()) < SIGMAS / COUNT**0.5
        assert abs((off**2).mean() - 1) < SIGMAS * ((fourth / deviation**4 - 1) / COUNT) ** 0.5
        others = [numbers(COUNT, distribution, *each).astype(np.float64) for each in ((4, 0), (3, 1))]
        for other in (np.roll(x, 1), np.roll(x, 2), *others):
            assert abs((off * (other - mean) / deviation).mean()) < SIGMAS / COUNT**0.5
        if distribution == "uniform":
            assert x.min() >= 0 and x.max() < 1
            counts = np.bincount((256 * x).astype(int), minlength=256)
            assert abs(((counts - COUNT / 256) ** 2 / (COUNT / 256)).sum() - 255) < SIGMAS * (2 * 255) ** 0.5
        else:
            assert 4.5 < np.abs(x).max() < 6.77


def test_error_of_normal_numbers_at_edges() -> None:
    """Words around those where formulas change, and of ends; the reference has more bits than f64."""
    places = (int(UPPER) << 16, 2**31, 2**24, 2**25, 2**29, 3 << 29, 5 << 29, 7 << 29, 1 << 30)
    around = [np.arange(-300, 300) + at for at in places]
    ends = [np.arange(600), 2**32 - 1 - np.arange(600)]
    words = np.concatenate([*around, *ends]).astype(np.uint64)
    a, b = words, np.roll(words, 1001)
    cosine, sine = evaluated(box_muller(), [x.astype(np.uint32).view(np.float32) for x in (a, b)])
    u, turn = ((x.astype(np.longdouble) + 0.5) / 2**32 for x in (a, b))
    pi = np.longdouble("3.14159265358979323846264338327950288")
    radius, eighth = np.sqrt(-2 * np.log(u)), np.rint(4 * turn)
    angle = (turn - eighth / 4) * 2 * pi  # near 0, where sin and cos of a large angle would lose bits
    cos, sin = np.cos(angle), np.sin(angle)
    ways = (eighth % 4).astype(int)
    wanted = radius * np.choose(ways, [cos, -sin, -cos, sin]), radius * np.choose(ways, [sin, cos, -sin, -cos])
    for found, exact in zip((cosine, sine), wanted, strict=True):
        assert (np.abs(found - exact) <= NORMAL_ERROR * np.abs(exact)).all()


@pytest.mark.isa("avx2")
def test_bad_input() -> None:
    dst = dnn.MemoryDesc((8,), dnn.f32, "a")
    with pytest.raises(dnn.InvalidArguments, match="distribution must be 'uniform' or 'normal', not 'gamma'"):
        dnn.RandomNumbers(dst, "gamma")
    with pytest.raises(dnn.InvalidArguments, match="distribution must be"):
        dnn.RandomNumbers(dst, np.zeros(3))  # type: ignore[arg-type]
    for wrong in (2**63, -(2**63) - 1, 0.5, True, None):
        with pytest.raises(dnn.InvalidArguments, match="stream must be an integer from"):
            dnn.RandomNumbers(dst, "normal", wrong)  # type: ignore[arg-type]
    with pytest.raises(dnn.InvalidArguments, match="dst"):
        dnn.RandomNumbers(8)  # type: ignore[arg-type]
    with pytest.raises(dnn.Unimplemented, match="post-ops, scales and zero points"):
        dnn.primitive_desc(dnn.RandomNumbers(dst), dnn.Attr([dnn.Eltwise("relu")]))
    primitive = dnn.Primitive(dnn.primitive_desc(dnn.RandomNumbers(dst)))
    with pytest.raises(dnn.InvalidArguments, match="seed"):
        primitive.execute(seed=dnn.Memory.from_array(np.int32([1])), dst=dnn.Memory(dst))
