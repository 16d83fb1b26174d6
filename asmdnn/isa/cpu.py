"""What the CPU at hand is and can do, asked once a process.

A feature counts only if the operating system saves the registers it needs, as XCR0 says.  Those of tile registers count
only if Linux also permits this process to use them (arch_prctl(ARCH_REQ_XCOMP_PERM)), which is asked for here.

Source: Intel manual, volume 2, CPUID; AMD manual, volume 3, appendix E (cache topology).
"""

from collections.abc import Iterator, Sequence, Set
from functools import cache
from typing import Final, NamedTuple

from asmdnn.isa.cpuid import cpuid, is_x86_64, may_use_tiles, xcr0
from asmdnn.records import dataclass

_AVX_STATE: Final = 0x06  # XCR0: xmm and ymm
_AVX512_STATE: Final = 0xE6  # and k, upper halves of zmm0-15, zmm16-31
_TILE_STATE: Final = 0x60000


class CpuidBit(NamedTuple):
    """Where CPUID reports a feature, and the XCR0 bits without which it cannot be used."""

    name: str
    leaf: tuple[int, int]
    register: int  # 0 eax, 1 ebx, 2 ecx, 3 edx
    bit: int
    state: int


_EAX, _EBX, _ECX, _EDX = range(4)
_FEATURES: Final = (
    CpuidBit("avx", (1, 0), _ECX, 28, _AVX_STATE),
    CpuidBit("fma", (1, 0), _ECX, 12, _AVX_STATE),
    CpuidBit("f16c", (1, 0), _ECX, 29, _AVX_STATE),
    CpuidBit("avx2", (7, 0), _EBX, 5, _AVX_STATE),
    CpuidBit("bmi1", (7, 0), _EBX, 3, 0),
    CpuidBit("bmi2", (7, 0), _EBX, 8, 0),
    CpuidBit("avx_vnni", (7, 1), _EAX, 4, _AVX_STATE),
    CpuidBit("avx512f", (7, 0), _EBX, 16, _AVX512_STATE),
    CpuidBit("avx512dq", (7, 0), _EBX, 17, _AVX512_STATE),
    CpuidBit("avx512cd", (7, 0), _EBX, 28, _AVX512_STATE),
    CpuidBit("avx512bw", (7, 0), _EBX, 30, _AVX512_STATE),
    CpuidBit("avx512vl", (7, 0), _EBX, 31, _AVX512_STATE),
    CpuidBit("avx512_vnni", (7, 0), _ECX, 11, _AVX512_STATE),
    CpuidBit("avx512_fp16", (7, 0), _EDX, 23, _AVX512_STATE),
    CpuidBit("avx512_bf16", (7, 1), _EAX, 5, _AVX512_STATE),
    CpuidBit("amx_bf16", (7, 0), _EDX, 22, _TILE_STATE),
    CpuidBit("amx_tile", (7, 0), _EDX, 24, _TILE_STATE),
    CpuidBit("amx_int8", (7, 0), _EDX, 25, _TILE_STATE),
)


_EXTENSIONS: Final = (  # that no level has; what functions of their own may ask for
    CpuidBit("fxsr", (1, 0), _EDX, 24, 0),
    CpuidBit("pclmulqdq", (1, 0), _ECX, 1, 0),
    CpuidBit("movbe", (1, 0), _ECX, 22, 0),
    CpuidBit("popcnt", (1, 0), _ECX, 23, 0),
    CpuidBit("aes", (1, 0), _ECX, 25, 0),
    CpuidBit("xsave", (1, 0), _ECX, 27, 0),
    CpuidBit("rdrand", (1, 0), _ECX, 30, 0),
    CpuidBit("fsgsbase", (7, 0), _EBX, 0, 0),
    CpuidBit("rtm", (7, 0), _EBX, 11, 0),
    CpuidBit("rdseed", (7, 0), _EBX, 18, 0),
    CpuidBit("adx", (7, 0), _EBX, 19, 0),
    CpuidBit("avx512_ifma", (7, 0), _EBX, 21, _AVX512_STATE),
    CpuidBit("sha", (7, 0), _EBX, 29, 0),
    CpuidBit("avx512_vbmi", (7, 0), _ECX, 1, _AVX512_STATE),
    CpuidBit("pku", (7, 0), _ECX, 4, 0),
    CpuidBit("waitpkg", (7, 0), _ECX, 5, 0),
    CpuidBit("avx512_vbmi2", (7, 0), _ECX, 6, _AVX512_STATE),
    CpuidBit("cet_ss", (7, 0), _ECX, 7, 0),
    CpuidBit("gfni", (7, 0), _ECX, 8, 0),
    CpuidBit("vaes", (7, 0), _ECX, 9, _AVX_STATE),
    CpuidBit("vpclmulqdq", (7, 0), _ECX, 10, _AVX_STATE),
    CpuidBit("avx512_bitalg", (7, 0), _ECX, 12, _AVX512_STATE),
    CpuidBit("avx512_vpopcntdq", (7, 0), _ECX, 14, _AVX512_STATE),
    CpuidBit("rdpid", (7, 0), _ECX, 22, 0),
    CpuidBit("cldemote", (7, 0), _ECX, 25, 0),
    CpuidBit("movdiri", (7, 0), _ECX, 27, 0),
    CpuidBit("movdir64b", (7, 0), _ECX, 28, 0),
    CpuidBit("enqcmd", (7, 0), _ECX, 29, 0),
    CpuidBit("uintr", (7, 0), _EDX, 5, 0),
    CpuidBit("avx512_vp2intersect", (7, 0), _EDX, 8, _AVX512_STATE),
    CpuidBit("serialize", (7, 0), _EDX, 14, 0),
    CpuidBit("tsxldtrk", (7, 0), _EDX, 16, 0),
    CpuidBit("sha512", (7, 1), _EAX, 0, _AVX_STATE),
    CpuidBit("sm3", (7, 1), _EAX, 1, _AVX_STATE),
    CpuidBit("sm4", (7, 1), _EAX, 2, _AVX_STATE),
    CpuidBit("rao_int", (7, 1), _EAX, 3, 0),
    CpuidBit("cmpccxadd", (7, 1), _EAX, 7, 0),
    CpuidBit("amx_fp16", (7, 1), _EAX, 21, _TILE_STATE),
    CpuidBit("avx_vnni_int8", (7, 1), _EDX, 4, _AVX_STATE),
    CpuidBit("avx_ne_convert", (7, 1), _EDX, 5, _AVX_STATE),
    CpuidBit("amx_complex", (7, 1), _EDX, 8, _TILE_STATE),
    CpuidBit("avx_vnni_int16", (7, 1), _EDX, 10, _AVX_STATE),
    CpuidBit("prefetchiti", (7, 1), _EDX, 14, 0),
    CpuidBit("xsaveopt", (13, 1), _EAX, 0, 0),
    CpuidBit("xsavec", (13, 1), _EAX, 1, 0),
    CpuidBit("ptwrite", (20, 0), _EBX, 4, 0),
    CpuidBit("aeskle", (25, 0), _EBX, 0, 0),
    CpuidBit("wide_kl", (25, 0), _EBX, 2, 0),
    CpuidBit("lzcnt", (0x80000001, 0), _ECX, 5, 0),
    CpuidBit("monitorx", (0x80000001, 0), _ECX, 29, 0),
    CpuidBit("rdpru", (0x80000008, 0), _EBX, 4, 0),
    CpuidBit("mcommit", (0x80000008, 0), _EBX, 8, 0),
)
EXTENSIONS: Final = tuple(bit.name for bit in _EXTENSIONS)


@dataclass(frozen=True, slots=True)
class CacheSizes:
    """Bytes of the data caches one core sees: its own first and second level, and the shared third; 0 for none."""

    l1d_bytes: int
    l2_bytes: int
    l3_bytes: int


@dataclass(frozen=True, slots=True)
class Signature:
    """Vendor, family, model and stepping, as CPUID tells them; family and model with their extensions."""

    vendor: str
    family: int
    model: int
    stepping: int


@cache
def cpu_features() -> frozenset[str]:
    """Names of the features that levels know, the CPU has and the system enables.  Empty on other machines."""
    return _enabled(_FEATURES)


@cache
def cpu_extensions() -> frozenset[str]:
    """As `cpu_features`, of EXTENSIONS."""
    return _enabled(_EXTENSIONS)


def _enabled(bits: Sequence[CpuidBit]) -> frozenset[str]:
    if not is_x86_64():
        return frozenset()
    state = xcr0()
    found = [feature for feature in bits if cpuid(*feature.leaf)[feature.register] >> feature.bit & 1]
    saved = [feature for feature in found if state & feature.state == feature.state]
    if any(feature.state == _TILE_STATE for feature in saved) and not may_use_tiles():
        saved = [feature for feature in saved if feature.state != _TILE_STATE]
    return frozenset(feature.name for feature in saved)


def tiles_are_refused() -> bool:
    """Whether the CPU and the system have tile registers that this process may not use."""
    has_tiles = any(cpuid(*bit.leaf)[bit.register] >> bit.bit & 1 for bit in _FEATURES if bit.name == "amx_tile")
    return is_x86_64() and has_tiles and xcr0() & _TILE_STATE == _TILE_STATE and not may_use_tiles()


def feature_bits(names: Set[str]) -> list[CpuidBit]:
    """Where CPUID says whether a CPU has features of levels."""
    return [bit for bit in _FEATURES if bit.name in names]


@cache
def signature() -> Signature:
    """Whose CPU this is, and which: what tells apart CPUs that have the same features."""
    if not is_x86_64():
        return Signature("", 0, 0, 0)
    _, ebx, ecx, edx = cpuid(0)
    vendor = b"".join(part.to_bytes(4, "little") for part in (ebx, edx, ecx)).decode("ascii", "replace")
    version = cpuid(1)[_EAX]
    family = (version >> 8 & 15) + (version >> 20 & 255) * (version >> 8 & 15 == 15)
    return Signature(vendor, family, version >> 4 & 15 | version >> 12 & 0xF0, version & 15)


@cache
def cpu_name() -> str:
    """What the CPU calls itself, and its family, model and stepping, which tell apart what shares a name."""
    if not is_x86_64():
        return "unknown"
    words = b""
    if cpuid(0x80000000)[_EAX] >= 0x80000004:
        words = b"".join(part.to_bytes(4, "little") for leaf in range(0x80000002, 0x80000005) for part in cpuid(leaf))
    brand, cpu = words.partition(b"\0")[0].decode("ascii", "replace"), signature()
    return f"{' '.join(brand.split()) or 'unknown'} (family {cpu.family}, model {cpu.model}, stepping {cpu.stepping})"


@cache
def cache_sizes() -> CacheSizes:
    """Sizes of the data and unified caches; all 0 when the CPU does not tell."""
    if not is_x86_64():
        return CacheSizes(0, 0, 0)
    sizes = dict(_caches(_cache_leaf()))
    return CacheSizes(sizes.get(1, 0), sizes.get(2, 0), sizes.get(3, 0))


def _cache_leaf() -> int:
    """Where the caches are described in the format of leaf 4: there on Intel, in 8000001D on AMD and Hygon."""
    topology_extensions = cpuid(0x80000001)[_ECX] >> 22 & 1
    return 0x8000001D if topology_extensions else 4


def _caches(leaf: int) -> Iterator[tuple[int, int]]:
    """(level, bytes) of each data or unified cache."""
    for subleaf in range(16):
        eax, ebx, ecx, _ = cpuid(leaf, subleaf)
        kind, level = eax & 31, eax >> 5 & 7
        if kind == 0:
            return
        ways, partitions, line_bytes, sets = (ebx >> 22) + 1, (ebx >> 12 & 0x3FF) + 1, (ebx & 0xFFF) + 1, ecx + 1
        if kind in (1, 3):
            yield level, ways * partitions * line_bytes * sets
