"""All pairs of types: every element of the small types, and what is special of the large; the documented values, and
oneDNN's where it has the pair."""

from contextlib import closing
from itertools import product

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.driver import TensorData
from tests.primitives.raw import Bits
from tests.primitives.reorder_case import TYPES, prepared, run
from tests.primitives.reorder_numbers import FLOAT8, bits, decoded, encoded, telling
from tests.support.cases import read
from tests.support.peers import PEER_ISA, onednn
from tests.support.plans import emulate_plan

PAIRS = [pytest.param(a, b, id=f"{a}-{b}") for a, b in product(TYPES.values(), repeat=2)]
ROW = 73  # a multiple of no vector
PLACES = (  # strides on both sides; how many elements at most
    (((ROW, 1), (ROW, 1)), 1 << 16),  # rows of 8 at a time, and a rest
    (((ROW, 1), (1, 1000)), 1 << 16),  # a transpose
    (((2 * ROW, 2), (3 * ROW, 3)), 2000),  # element by element, whose footprints are long
)


def same(found: Bits, wanted: Bits, dtype: dnn.DataType) -> bool:
    """Bit by bit; but a NaN of f16 and f32 is any NaN."""
    nan = np.isnan(decoded(wanted, dtype))
    return bool(np.array_equal(found[~nan], wanted[~nan]) and np.isnan(decoded(found[nan], dtype)).all())


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("sdt", "ddt"), PAIRS)
@pytest.mark.one_in(3)
def test_every_pair_of_types(sdt: dnn.DataType, ddt: dnn.DataType) -> None:
    whole = telling(sdt)
    for (here, there), most in PLACES:
        values = whole[:: -(-len(whole) // most)]
        values = np.resize(values, (-(-len(values) // ROW), ROW))
        wanted = values if sdt == ddt else encoded(decoded(values, sdt), ddt)
        src, dst = (dnn.MemoryDesc(values.shape, t, strides=s) for t, s in ((sdt, here), (ddt, there)))
        found = run(prepared(dnn.Reorder(src, dst)), values)
        assert np.array_equal(found, wanted) if sdt == ddt else same(found, wanted, ddt)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    ("ddt", "values", "wanted"),
    [
        (dnn.s8, [0.5, 1.5, 2.5, -0.5, -1.5, 127.5, -128.5, 1e9, np.inf, -np.inf, np.nan, -0.0],
         [0, 2, 2, 0, -2, 127, -128, 127, 127, -128, -128, 0]),
        (dnn.u8, [0.5, 1.5, 254.5, 255.5, -0.5, -3, 1e9, np.inf, -np.inf, np.nan],
         [0, 2, 254, 255, 0, 0, 255, 255, 0, 0]),
        (dnn.s32, [0.5, 1.5, 2147483520, 2147483648, -2147483648, np.inf, -np.inf, np.nan],
         [0, 2, 2147483520, 2147483520, -(2**31), 2147483520, -(2**31), -(2**31)]),
        (dnn.f16, [65504, 65519, 65520, -np.inf, 2**-24, 2**-25, 2**-25 * 1.5],
         [0x7BFF, 0x7BFF, 0x7C00, 0xFC00, 1, 0, 1]),
        (dnn.bf16, [1, 1.00390625, 1.01171875, 3.4e38, np.inf, -0.0], [0x3F80, 0x3F80, 0x3F82, 0x7F80, 0x7F80, 0x8000]),
        (dnn.f8_e5m2, [57344, 61439, 61440, 1e9, -np.inf, 2**-16, 2**-17, 2**-17 * 1.5, 1.125, 1.375, -0.0],
         [0x7B, 0x7B, 0x7C, 0x7C, 0xFC, 1, 0, 1, 0x3C, 0x3E, 0x80]),
        (dnn.f8_e4m3, [448, 464, 464.0001, 1e9, -np.inf, 2**-9, 2**-10, 2**-10 * 1.5, 1.0625, 1.1875, -0.0],
         [0x7E, 0x7E, 0x7F, 0x7F, 0xFF, 1, 0, 1, 0x38, 0x3A, 0x80]),
    ],
    ids=lambda value: str(value) if isinstance(value, dnn.DataType) else "",
)  # fmt: skip
def test_the_documented_values(ddt: dnn.DataType, values: list[float], wanted: list[int]) -> None:
    numbers = np.array(values, np.float32)
    src, dst = (dnn.MemoryDesc(numbers.shape, t, "a") for t in (dnn.f32, ddt))
    found = run(prepared(dnn.Reorder(src, dst)), bits(numbers))
    stored = found if ddt in (dnn.f16, dnn.bf16, *FLOAT8) else found.view(ddt.numpy)
    assert stored.tolist() == wanted


peer = pytest.fixture(scope="module")(onednn)


@pytest.mark.isa("avx2")
@pytest.mark.usefixtures("peer")
@pytest.mark.parametrize(("sdt", "ddt"), [pair for pair in PAIRS if not FLOAT8.keys() & pair.values])
def test_the_values_are_onednns(sdt: dnn.DataType, ddt: dnn.DataType) -> None:
    """Where it has the pair on this CPU.  But NaN as an integer is the largest, or 0, there, as the kernel has it, and
    bf16 loses its denormals."""
    values = telling(sdt)
    numbers = decoded(values, sdt)
    if ddt in (dnn.s32, dnn.s8, dnn.u8):
        values = values[~np.isnan(numbers)]
    elif ddt == dnn.bf16:
        values = values[(numbers == 0) | ~(np.abs(numbers) < np.finfo(np.float32).tiny)]
    (case,) = read(f"--reorder --sdt={sdt} --ddt={ddt} {len(values)}")
    stored = values.view(sdt.numpy)
    try:
        other = case.driver.work(case).peer(PEER_ISA, 1)
    except dnn.Unimplemented as error:
        pytest.skip(str(error))
    with closing(other):
        theirs = other.compute(TensorData({"src": stored, "dst": np.zeros(len(values), ddt.numpy)}, exact=True))
    src, dst = (dnn.MemoryDesc(values.shape, t, "a") for t in (sdt, ddt))
    ours = run(prepared(dnn.Reorder(src, dst)), values)
    found = decoded(ours, ddt) if ddt == dnn.bf16 else ours.view(ddt.numpy)
    assert np.array_equal(found, theirs, equal_nan=ddt in (dnn.f32, dnn.bf16, dnn.f16))


@pytest.mark.parametrize("isa", ["avx512_core", "avx512_core_bf16"])
def test_bf16_of_what_an_instruction_does_not_round(isa: str) -> None:
    """Denormals in one vector of a pair, in the other, in both and in none; emulated, so at every level."""
    random = np.random.default_rng(7)
    values = random.integers(0, 1 << 32, (5, ROW), np.uint32)
    values[:3] |= 0x0080_0000  # no denormals
    values[0, 3] = values[1, 20] = 0x0000_8001
    values[2, ::16] = 0x8012_8000  # a tie
    values[4] &= 0x807F_FFFF
    src, dst = (dnn.MemoryDesc(values.shape, dtype, "ab") for dtype in (dnn.f32, dnn.bf16))
    plan = dnn.primitive_desc(dnn.Reorder(src, dst), engine=dnn.Engine(isa=isa)).plan
    assert {spec.isa for spec in plan.specs} == {isa}
    memories = {
        "src": dnn.Memory.from_array(values.view(np.float32)),
        "dst": dnn.Memory.from_array(np.zeros(values.shape, np.uint16), dnn.bf16),
    }
    emulate_plan(plan, memories)
    found = memories["dst"].array.view(np.uint16).reshape(values.shape)
    assert same(found, encoded(values.view(np.float32), dnn.bf16).view(np.uint16), dnn.bf16)
