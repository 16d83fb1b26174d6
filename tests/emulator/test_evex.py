"""What EVEX adds to an instruction, over all forms: masks, zeroing, embedded broadcast, 512 bits, 32 registers.

An unmasked form of 128 or 256 bits must do what the VEX form does, which `test_native_vectors` compares with the CPU;
the masked, broadcast and 512-bit forms are then derived from the unmasked ones.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from iced_x86 import Decoder, MemorySizeExt

from asmdnn.emulator.arithmetic import PACKED
from asmdnn.emulator.cpu import mask_array
from tests.emulator.assembling import Mem, assemble, ins
from tests.emulator.forms import VECTOR_FORMS, Form, by_mnemonic
from tests.emulator.single import State, after, random_state

Array = npt.NDArray[np.uint8]
Operands = list[str | int | Mem]
EVEX = [f for f in VECTOR_FORMS if f.name.startswith("EVEX") and not re.search("GATHER|SCATTER", f.mnemonic)]
# Those whose masks choose lane by lane: what compressions and expansions do, test_native_evex.py asks the CPU.
BY_LANE = [f for f in EVEX if not re.search("COMPRESS|EXPAND", f.mnemonic)]
EVEX_NAMES = {form.name for form in EVEX}
VEX_NAMES = {form.name for form in VECTOR_FORMS if form.name.startswith("VEX")}
VEX_MNEMONICS = {"VRNDSCALEPS": "VROUNDPS", "VINSERTF32X4": "VINSERTF128", "VINSERTI32X4": "VINSERTI128",
                 "VEXTRACTF32X4": "VEXTRACTF128", "VEXTRACTI32X4": "VEXTRACTI128", "VBROADCASTF32X4": "VBROADCASTF128",
                 "VBROADCASTI32X4": "VBROADCASTI128"}  # fmt: skip
# Bytes of the types that the names of conversions name.
CONVERTED = {**dict.fromkeys(("PH", "PHX", "SH", "W", "UW", "BF16"), 2),
             **dict.fromkeys(("PS", "PSX", "SS", "DQ", "UDQ"), 4),
             **dict.fromkeys(("PD", "SD", "QQ", "UQQ"), 8)}  # fmt: skip
UNSIGNED: dict[int, type] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def samples(forms: Iterable[Form]) -> Iterator[tuple[Form, np.random.Generator, State]]:
    """Each form with a random state."""
    for form in forms:
        rng = np.random.default_rng(zlib.crc32(form.name.encode()))
        yield form, rng, random_state(rng)


def variants(form: Form) -> list[bool]:
    """Whether the operand that may be memory is."""
    return [False] * form.has_register_variant + [True] * form.has_memory


def vex_twin(form: Form) -> str | None:
    name = re.sub(r"(?<=VMOVDQ[AU])\d+$|(?<=^VPANDN)[DQ]$|(?<=^VPAND)[DQ]$|(?<=^VPXOR)[DQ]$|(?<=^VPOR)[DQ]$", "",
                  VEX_MNEMONICS.get(form.mnemonic, form.mnemonic))  # fmt: skip
    twin = "_".join(("VEX", name, *(re.sub(r"(?<=\d)B\d+$", "", operand) for operand in form.operands)))
    return twin if twin in VEX_NAMES else None


@pytest.mark.parametrize("forms", by_mnemonic(form for form in EVEX if vex_twin(form)))
def test_unmasked_is_the_vex_form(forms: tuple[Form, ...]) -> None:
    for form, rng, state in samples(forms):
        twin = replace(form, name=str(vex_twin(form)))
        for memory in variants(form):
            operands = twin.values(rng, memory=memory)
            a, b = after(ins(form.name, *operands), state), after(ins(twin.name, *operands), state)
            assert np.array_equal(a.vectors, b.vectors), form.name
            assert np.array_equal(a.memory, b.memory), form.name
            assert a.gpr == b.gpr, form.name


def lane_bytes(form: Form) -> tuple[int, int]:
    """(bytes of a lane of the result, number of lanes that are masked), by the mnemonic's own words."""
    name = form.mnemonic
    if conversion := re.fullmatch(r"VCVT(?:T|NE)?([PSUWDQ]+[SDHWQ]?X?)2(\w+)", name):
        source, lane = CONVERTED[conversion[1]], CONVERTED[conversion[2]]
        return lane, 1 if conversion[1] in ("SS", "SD", "SH") else form.vector_bytes // max(source, lane)
    if name.startswith(("VMOVSHDUP", "VMOVSLDUP", "VPDPBUSD", "VPDPWSSD")):
        lane = 4
    elif named := re.fullmatch(r"VP(?:M(?:AX|IN)[SU]|ABS)([BWDQ])", name):
        lane = {"B": 1, "W": 2, "D": 4, "Q": 8}[named[1]]
    elif name == "VPALIGNR":
        lane = 1
    elif unpack := re.fullmatch(r"VPUNPCK[LH](BW|WD|DQ|QDQ)", name):
        lane = {"BW": 1, "WD": 2, "DQ": 4, "QDQ": 8}[unpack[1]]
    elif sized := re.search(r"(?:(8|16|32|64)|[FI](32|64)X\d)$", name):
        lane = int(sized[1] or sized[2]) // 8
    else:
        kinds = {"DDUP": 8, "PS": 4, "SS": 4, "PD": 8, "SD": 8, "PH": 2, "SH": 2, "B": 1, "W": 2, "D": 4, "Q": 8}
        lane = next(size for end, size in kinds.items() if name.endswith(end))
    if re.fullmatch(r"V(ADD|SUB|MUL|DIV|MAX|MIN|MOV|SQRT|F\w+)S[SDH]", name):
        return lane, 1
    source = lane
    if narrowing := re.fullmatch(r"VPMOV(?:S|US)?([WDQ])[BWD]", name):
        source = {"W": 2, "D": 4, "Q": 8}[narrowing[1]]
    size = {"X": 16, "Y": 32, "Z": 64}[form.operands[0][0]]
    return lane, (size if source == lane else form.vector_bytes) // source


@pytest.mark.parametrize("forms", by_mnemonic(f for f in BY_LANE if f.masking and re.match("[XYZ]MM", f.operands[0])
                                              and "BLENDM" not in f.mnemonic))  # fmt: skip
@pytest.mark.one_in(3)
def test_masked_register(forms: tuple[Form, ...]) -> None:
    """Lanes whose mask bit is off keep the old value or become zero; the others are as without a mask."""
    for form, rng, state in samples(forms):
        lane, count = lane_bytes(form)
        off = np.flatnonzero(~mask_array(state.k[5], count))
        for memory in variants(form) if "MMM" not in form.operands[0] else [False]:
            operands = form.values(rng, memory=memory)
            number = int(str(operands[0])[3:])
            plain = after(ins(form.name, *operands), state).lanes(number, UNSIGNED[lane])
            for zeroing in (False, True):
                want = plain.copy()
                want[off] = 0 if zeroing else state.lanes(number, UNSIGNED[lane])[off]
                got = after(ins(form.name, *operands, mask="k5", zeroing=zeroing), state)
                assert np.array_equal(got.lanes(number, UNSIGNED[lane]), want), form.name


@pytest.mark.parametrize("forms", by_mnemonic(f for f in BY_LANE if f.masking and f.has_memory
                                              and re.search("MMM|^M", f.operands[0])))  # fmt: skip
def test_masked_store(forms: tuple[Form, ...]) -> None:
    """Bytes whose mask bit is off are not written."""
    for form, rng, state in samples(forms):
        lane, count = lane_bytes(form) if "MMM" in form.operands[0] else (int(form.operands[0][1:]) // 8, 1)
        operands = form.values(rng, memory=True)
        unmasked, masked = (after(ins(form.name, *operands, mask=mask), state) for mask in ("", "k5"))
        target = slice(operands[0].displacement, operands[0].displacement + lane * count)  # type: ignore[union-attr]
        active = np.repeat(mask_array(state.k[5], count), lane)
        want = state.memory.copy()
        want[target][active] = unmasked.memory[target][active]
        assert np.array_equal(masked.memory, want), form.name
        assert np.array_equal(masked.footprint.written[target], active), form.name
        assert masked.footprint.written.sum() == active.sum(), form.name


@pytest.mark.parametrize("forms", by_mnemonic(form for form in EVEX if form.broadcast))
def test_embedded_broadcast(forms: tuple[Form, ...]) -> None:
    """{1toN} is the memory form on memory that repeats the element, and reads nothing but the element."""
    for form, rng, state in samples(forms):
        size = int(next(operand for operand in form.operands if "B" in operand)[-2:]) // 8
        operands = [Mem("rcx", 64, broadcast=True) if isinstance(x, Mem) else x for x in form.values(rng, memory=True)]
        repeated = state.copy()
        repeated.memory[64:128] = np.tile(state.memory[64 : 64 + size], 64 // size)
        whole = [replace(x, broadcast=False) if isinstance(x, Mem) else x for x in operands]
        a, b = after(ins(form.name, *operands), state), after(ins(form.name, *whole), repeated)
        assert np.array_equal(a.vectors, b.vectors), form.name
        assert a.k == b.k, form.name
        assert np.flatnonzero(a.footprint.read).tolist() == list(range(64, 64 + size)), form.name


@pytest.mark.parametrize("forms", by_mnemonic(f for f in VECTOR_FORMS if f.has_memory and not f.needs_mask
                                              and not re.search("MASKMOV|GATHER", f.mnemonic)))  # fmt: skip
def test_access_size(forms: tuple[Form, ...]) -> None:
    """Exactly the bytes that iced-x86 says the memory operand has are read or written."""
    for form, rng, state in samples(forms):
        instruction = ins(form.name, *form.values(rng, memory=True))
        decoded = Decoder(64, assemble(instruction)).decode()
        touched = after(instruction, state).footprint
        first = decoded.memory_displacement
        want = list(range(first, first + MemorySizeExt.size(decoded.memory_size)))
        assert np.flatnonzero(touched.read | touched.written).tolist() == want, form.name
        assert not (touched.read & touched.written).any(), form.name


IN_128_BITS = re.compile(r"VUNPCK|VSHUFPS|VPERMILPS|VPSHUFD|VPACK|VMOVS[HL]DUP|VMOVDDUP|VF(N?M)|VRNDSCALE|VSQRT|VPTERN"
                         r"|VPS[LR][LA][WDQ]|VPMADD|VP?DPB|VMOV[UA]P|VMOVDQ|VCVTDQ2PS|VCVTT?PS2DQ"
                         r"|V(ADD|SUB|MUL|DIV|MAX|MIN)PH|VCVTT?PH2U?W|VCVTU?W2PH")  # fmt: skip


@pytest.mark.parametrize("forms", by_mnemonic(f for f in EVEX if f.vector_bytes == 64 and "ZMM" in f.operands[0]
                                              and (IN_128_BITS.match(f.mnemonic) or f.mnemonic in PACKED)))  # fmt: skip
def test_512_bits_are_two_halves(forms: tuple[Form, ...]) -> None:
    """Instructions that work lane by lane, or in each 128 bits, do so in the upper half too."""
    for form, rng, state in samples(forms):
        name = re.sub("ZMM", "YMM", form.name).replace("MM512", "MM256").removesuffix("_ER").removesuffix("_SAE")
        assert name in EVEX_NAMES
        for memory in variants(form):
            operands = form.values(rng, memory=memory)
            whole = after(ins(form.name, *operands), state)
            halves = [half(name, operands, state, offset) for offset in (0, 32)]
            joined = np.concatenate([state.vectors[:, :32] for state in halves], axis=1)
            assert np.array_equal(*(one_nan(x, form) for x in (whole.vectors, joined))), form.name


def one_nan(vectors: Array, form: Form) -> Array:
    """The same with one NaN for all in results of arithmetic: which operand's NaN it is depends on numpy's loops."""
    dtype = np.float16 if form.mnemonic.endswith("PH") else np.float32
    lanes = vectors.view(dtype)
    is_arithmetic = dtype == np.float16 or form.mnemonic.startswith(("VF", "VDPBF16"))
    return np.where(np.isnan(lanes), dtype(np.nan), lanes).view(np.uint8) if is_arithmetic else vectors


def half(name: str, operands: Operands, state: State, offset: int) -> State:
    """The form with ymm registers, on the lower or upper halves of all registers and of the memory operand."""
    part = state.copy()
    part.vectors[:, :32] = state.vectors[:, offset : offset + 32]

    def value(x: str | int | Mem) -> str | int | Mem:
        if isinstance(x, Mem):
            return replace(x, displacement=x.displacement + offset)
        return x.replace("zmm", "ymm") if isinstance(x, str) else x

    return after(ins(name, *map(value, operands)), part)


def test_most_forms_are_derived_from_vex() -> None:
    """The twins are found by the shape of iced-x86's names, which must not silently stop matching."""
    assert sum(1 for form in EVEX if vex_twin(form)) > 200
