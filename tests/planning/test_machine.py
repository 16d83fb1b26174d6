"""The table of CPU classes: which CPU belongs to which, and what is taken from CPUID instead."""

import pytest

from asmdnn.errors import InvalidArguments
from asmdnn.isa.cpu import CacheSizes, Signature
from asmdnn.isa.levels import AVX2, AVX512_CORE, LEVELS
from asmdnn.planning.machine import GENERIC, MACHINES, ROWS, describe, machine_of, typical_machine

UNKNOWN = CacheSizes(0, 0, 0)
INTEL, AMD = "GenuineIntel", "AuthenticAMD"


def test_rows_are_complete() -> None:
    assert len(MACHINES) == len(ROWS)
    for row in ROWS:
        assert row.isas, row.name
        assert row.name == row.name.lower()
        assert 0 < row.caches.l1d_bytes < row.caches.l2_bytes < row.caches.l3_bytes
        assert row.cores > 0
        assert row.source
        assert bool(row.models) == (row not in GENERIC)


def test_no_cpu_is_of_two_classes() -> None:
    for vendor in (INTEL, AMD):
        for family in {row.family for row in ROWS}:
            for model in range(256):
                cpu = Signature(vendor, family, model, 0)
                assert sum(row.is_class_of(cpu) for row in ROWS) <= 1, cpu


@pytest.mark.parametrize(
    ("vendor", "family", "model", "name"),
    [
        (AMD, 25, 1, "zen3"), (AMD, 25, 0x21, "zen3"), (AMD, 25, 0x11, "zen4"), (AMD, 25, 0x61, "zen4"),
        (AMD, 23, 0x31, "zen2"), (AMD, 26, 2, "zen5"), (INTEL, 6, 0x55, "skylake_sp"), (INTEL, 6, 0x6A, "icelake_sp"),
        (INTEL, 6, 0x8F, "sapphire_rapids"), (INTEL, 6, 0xCF, "sapphire_rapids"), (INTEL, 6, 0x8E, "haswell"),
        (INTEL, 6, 0x3C, "haswell"), (INTEL, 6, 0x97, "alder_lake"), (INTEL, 6, 0x01, "generic_avx2"),
        ("HygonGenuine", 24, 1, "generic_avx2"),
    ],
)  # fmt: skip
def test_classes(vendor: str, family: int, model: int, name: str) -> None:
    assert describe(Signature(vendor, family, model, 1), AVX2.features, UNKNOWN, 2).name == name


def test_an_unknown_cpu_is_of_a_generic_class() -> None:
    cpu = Signature("GenuineSomebody", 1, 2, 3)
    assert describe(cpu, AVX512_CORE.features, UNKNOWN, 2).name == "generic_avx512"
    assert describe(cpu, frozenset(), UNKNOWN, 2).isas == ()


def test_what_cpuid_says_goes_before_the_table() -> None:
    cpu = Signature(INTEL, 6, 0x8F, 1)
    machine = describe(cpu, AVX2.features, CacheSizes(0, 3 << 20, 0), 2)
    row = machine_of("sapphire_rapids")
    assert (machine.name, machine.features, machine.cores) == (row.name, AVX2.features, 2)
    assert machine.caches == CacheSizes(row.caches.l1d_bytes, 3 << 20, row.caches.l3_bytes)


def test_every_level_has_a_typical_machine() -> None:
    for level in LEVELS:
        assert level in typical_machine(level.name).isas


def test_an_unknown_name_lists_the_names() -> None:
    with pytest.raises(InvalidArguments, match=r"machine 'z80' is not one of generic_avx512, .*, zen5"):
        machine_of("z80")
