"""The machines that plans are made for: a table of CPU classes, and the machine at hand as a value of the same form.

A class is what plans distinguish: CPUs with the same core and the same L2.  `describe()` looks its class up by vendor,
family and model, and takes from CPUID what may differ from it: a hypervisor may hide features and shrink caches.

Sources of the rows: CPUID on the CPU that `source` names; else Intel's and AMD's optimization manuals, and for families
and models the manuals' tables of CPUID signatures.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from asmdnn.errors import InvalidArguments, resembling, shown
from asmdnn.forking import importing
from asmdnn.isa.cpu import CacheSizes, Signature
from asmdnn.isa.levels import (
    AVX2,
    AVX2_VNNI,
    AVX512_CORE,
    AVX512_CORE_AMX,
    AVX512_CORE_BF16,
    AVX512_CORE_VNNI,
    LEVELS,
    Isa,
)
from asmdnn.records import dataclass, field, replace

if TYPE_CHECKING:  # what runs from a pack plans nothing
    from asmdnn.planning.tuning import Tuning

MANUALS: Final = "manuals"
KB: Final = 1 << 10
MB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Machine:
    """A CPU class, or one CPU of it.

    name: of the class.  features: as in `isa.cpu`.  cores: of a socket of a typical one, or those that this process may
    use.  caches: bytes, as one core sees them.  source: the CPU on which features and caches were read, or MANUALS.
    vendor, family, models: what CPUID says of CPUs of this class; empty where no CPU is meant.  own_tuning: what
    planners choose by, if not by the numbers of the class.
    """

    name: str
    features: frozenset[str]
    cores: int
    caches: CacheSizes
    source: str = MANUALS
    vendor: str = field(default="", repr=False)
    family: int = field(default=0, repr=False)
    models: tuple[range, ...] = field(default=(), repr=False)
    own_tuning: "Tuning | None" = field(default=None, hash=False, repr=False)

    def tuning_at(self, isa: str) -> "Tuning":
        """The numbers by which planners choose, for a level."""
        with importing():
            from asmdnn.planning.of_classes import tuning_of

        return self.own_tuning or tuning_of(self.name, isa)

    @property
    def isas(self) -> tuple[Isa, ...]:
        """The levels that it has, best last."""
        return tuple(level for level in LEVELS if level.features <= self.features)

    def is_class_of(self, cpu: Signature) -> bool:
        """Whether CPUs that identify themselves so belong to this class."""
        return (self.vendor, self.family) == (cpu.vendor, cpu.family) and any(cpu.model in each for each in self.models)


def _caches(l1d_kb: int, l2_kb: int, l3_mb: int) -> CacheSizes:
    return CacheSizes(l1d_kb * KB, l2_kb * KB, l3_mb * MB)


def _one(*models: int) -> tuple[range, ...]:
    return tuple(range(model, model + 1) for model in models)


_AMD: Final = "AuthenticAMD"
_INTEL: Final = "GenuineIntel"
# For a CPU without a row: the best of these whose features it has.
GENERIC: Final = (
    Machine("generic_avx512", AVX512_CORE.features, 8, _caches(32, 1024, 16)),
    Machine("generic_avx2", AVX2.features, 4, _caches(32, 512, 8)),
)
ROWS: Final = (
    *GENERIC,
    # Haswell to Comet Lake: the laptops with 256 KB of L2
    Machine(
        "haswell", AVX2.features, 4, _caches(32, 256, 8), MANUALS, _INTEL, family=6,
        models=_one(0x3C, 0x3D, 0x3F, 0x45, 0x46, 0x47, 0x4E, 0x4F, 0x56, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6),
    ),
    Machine(
        "alder_lake", AVX2_VNNI.features, 8, _caches(48, 1280, 24), MANUALS, _INTEL, family=6,
        models=_one(0x97, 0x9A, 0xB7, 0xBA, 0xBF),
    ),
    Machine(
        "skylake_sp", AVX512_CORE.features, 20, _caches(32, 1024, 28), MANUALS, _INTEL, family=6, models=_one(0x55),
    ),
    Machine(
        "icelake_sp", AVX512_CORE_VNNI.features, 32, _caches(48, 1280, 48), MANUALS, _INTEL, family=6,
        models=_one(0x6A, 0x6C),
    ),
    Machine(  # and Emerald Rapids
        "sapphire_rapids", AVX512_CORE_AMX.features | AVX2_VNNI.features, 48, _caches(48, 2048, 260),
        "a virtual machine of Emerald Rapids class", _INTEL, family=6, models=_one(0x8F, 0xCF),
    ),
    Machine("zen2", AVX2.features, 8, _caches(32, 512, 16), MANUALS, _AMD, family=0x17, models=(range(0x30, 0xA8),)),
    Machine(
        "zen3", AVX2.features, 8, _caches(32, 512, 32), "AMD EPYC (family 25, model 1)", _AMD, family=0x19,
        models=(range(0x10), range(0x20, 0x60)),
    ),
    Machine(
        "zen4", AVX512_CORE_BF16.features, 8, _caches(32, 1024, 32), MANUALS, _AMD, family=0x19,
        models=(range(0x10, 0x20), range(0x60, 0x80), range(0xA0, 0xB0)),
    ),
    Machine(
        "zen5", AVX512_CORE_BF16.features | AVX2_VNNI.features, 8, _caches(48, 1024, 32), MANUALS, _AMD, family=0x1A,
        models=(range(0x80),),
    ),
)  # fmt: skip
MACHINES: Final[Mapping[str, Machine]] = MappingProxyType({row.name: row for row in ROWS})

# Of a level that the machine at hand lacks: a class that brought it.  Plans for it are made for its caches.
_TYPICAL: Final = {
    "avx2": "generic_avx2", "avx2_vnni": "alder_lake", "avx512_core": "skylake_sp", "avx512_core_vnni": "icelake_sp",
    "avx512_core_bf16": "zen4", "avx512_core_fp16": "sapphire_rapids", "avx512_core_amx": "sapphire_rapids",
}  # fmt: skip


def machine_of(name: str) -> Machine:
    """The class of that name.  Raises InvalidArguments listing the names."""
    if not isinstance(name, str) or name not in MACHINES:
        raise InvalidArguments(f"machine {shown(name)} is not one of {', '.join(MACHINES)}{resembling(name, MACHINES)}")
    return MACHINES[name]


def typical_machine(isa: str) -> Machine:
    """A class that has the level of that name."""
    return MACHINES[_TYPICAL[isa]]


def describe(cpu: Signature, features: frozenset[str], caches: CacheSizes, cores: int) -> Machine:
    """The value for a CPU: its class with its own features, cores and caches; of what CPUID hides, the class's."""
    known = [row for row in ROWS if row.is_class_of(cpu)]
    fallback = next((row for row in GENERIC if row.features <= features), GENERIC[-1])
    row = known[0] if known else fallback
    sizes = CacheSizes(
        caches.l1d_bytes or row.caches.l1d_bytes,
        caches.l2_bytes or row.caches.l2_bytes,
        caches.l3_bytes or row.caches.l3_bytes,
    )
    return replace(row, features=features, cores=cores, caches=sizes)
