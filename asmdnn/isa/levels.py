"""ISA levels under oneDNN's names: what a kernel may use, and which level is the better one."""

from typing import Final

from asmdnn.errors import InvalidArguments, resembling, shown
from asmdnn.records import dataclass
from asmdnn.types import IsaName


@dataclass(frozen=True, slots=True)
class Isa:
    """A level: code for it runs on every CPU that has all its `features` (names as in `cpu.cpu_features()`).

    Levels of a higher `rank` are preferred.  They need not contain the lower ones: many CPUs with AVX-512 lack
    avx2_vnni.
    """

    name: IsaName
    rank: int
    vector_bytes: int
    features: frozenset[str]

    def __str__(self) -> str:
        return self.name


_AVX2_FEATURES: Final = frozenset(("avx", "avx2", "fma", "f16c", "bmi1", "bmi2"))
_AVX512_FEATURES: Final = _AVX2_FEATURES | {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"}

AVX2: Final = Isa("avx2", 0, 32, _AVX2_FEATURES)
AVX2_VNNI: Final = Isa("avx2_vnni", 1, 32, AVX2.features | {"avx_vnni"})
AVX512_CORE: Final = Isa("avx512_core", 2, 64, _AVX512_FEATURES)
AVX512_CORE_VNNI: Final = Isa("avx512_core_vnni", 3, 64, AVX512_CORE.features | {"avx512_vnni"})
AVX512_CORE_BF16: Final = Isa("avx512_core_bf16", 4, 64, AVX512_CORE_VNNI.features | {"avx512_bf16"})
AVX512_CORE_FP16: Final = Isa("avx512_core_fp16", 5, 64, AVX512_CORE_BF16.features | {"avx512_fp16"})
AVX512_CORE_AMX: Final = Isa("avx512_core_amx", 6, 64, AVX512_CORE_FP16.features | {"amx_tile", "amx_int8", "amx_bf16"})

LEVELS: Final = (
    AVX2, AVX2_VNNI, AVX512_CORE, AVX512_CORE_VNNI, AVX512_CORE_BF16, AVX512_CORE_FP16, AVX512_CORE_AMX,
)  # fmt: skip

ANY_CPU: Final = "x86_64"  # in the place of a level: code that needs nothing above the 64-bit baseline


def isa_of(name: str) -> Isa:
    """The level of that name.  Raises InvalidArguments listing the names."""
    for level in LEVELS:
        if isinstance(name, str) and level.name == name:
            return level
    known = [level.name for level in LEVELS]
    raise InvalidArguments(f"isa {shown(name)} is not one of {', '.join(known)}{resembling(name, known)}")
