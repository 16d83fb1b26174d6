from pathlib import Path
from types import SimpleNamespace

import pytest

from asmdnn.isa import cpu
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.levels import LEVELS


def test_features_equal_those_of_the_system() -> None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        pytest.skip("no /proc/cpuinfo")
    flags = set(next(line for line in lines if line.startswith("flags")).split(":")[1].split())
    known = {feature.name for feature in cpu._FEATURES}
    assert cpu.cpu_features() == flags & known


def test_the_signature_equals_that_of_the_system() -> None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        pytest.skip("no /proc/cpuinfo")
    said = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    wanted = (said["vendor_id"], int(said["cpu family"]), int(said["model"]), int(said["stepping"]))
    found = cpu.signature()
    assert (found.vendor, found.family, found.model, found.stepping) == wanted


@pytest.mark.parametrize(
    ("state", "kept"),
    [(0xE7, {"avx2", "avx512f", "bmi2"}), (0x07, {"avx2", "bmi2"}), (0x67, {"avx2", "bmi2"}), (0x03, {"bmi2"}),
     (0x600E7, {"avx2", "avx512f", "bmi2", "amx_tile"}), (0x20007, {"avx2", "bmi2"})],
)  # fmt: skip
def test_a_feature_needs_the_registers_saved(state: int, kept: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "cpuid", lambda leaf, subleaf=0: (0xFFFFFFFF,) * 4)
    monkeypatch.setattr(cpu, "xcr0", lambda: state)
    monkeypatch.setattr(cpu, "may_use_tiles", lambda: True)
    watched = {"avx2", "avx512f", "bmi2", "amx_tile"}
    assert cpu.cpu_features.__wrapped__() & watched == kept


def test_tiles_that_linux_refuses_are_no_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the permission an instruction of tiles would end the process."""
    monkeypatch.setattr(cpu, "cpuid", lambda leaf, subleaf=0: (0xFFFFFFFF,) * 4)
    monkeypatch.setattr(cpu, "xcr0", lambda: 0x600E7)
    for granted in (True, False):
        monkeypatch.setattr(cpu, "may_use_tiles", lambda granted=granted: granted)
        tiles = {name for name in cpu.cpu_features.__wrapped__() if name.startswith("amx")}
        assert bool(tiles) is granted and cpu.tiles_are_refused() is not granted
        assert "avx512f" in cpu.cpu_features.__wrapped__()


def test_linux_is_asked_only_if_there_are_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "xcr0", lambda: 0xE7)
    monkeypatch.setattr(cpu, "may_use_tiles", lambda: pytest.fail("asked"))
    cpu.cpu_features.__wrapped__()
    assert not cpu.tiles_are_refused()


def test_another_architecture_has_no_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(machine="aarch64", sysname="Linux"))
    assert cpu.cpu_features.__wrapped__() == frozenset()
    assert cpu.cache_sizes.__wrapped__() == cpu.CacheSizes(0, 0, 0)
    assert cpu.signature.__wrapped__() == cpu.Signature("", 0, 0, 0)


def test_cache_sizes_equal_those_of_the_system() -> None:
    directory = Path("/sys/devices/system/cpu/cpu0/cache")
    if not directory.is_dir():
        pytest.skip(f"no {directory}")
    sizes = {}
    for index in directory.glob("index*"):
        if (index / "type").read_text().strip() in ("Data", "Unified"):
            kilobytes = (index / "size").read_text().strip().removesuffix("K")
            sizes[int((index / "level").read_text())] = int(kilobytes) << 10
    found = cpu.cache_sizes()
    assert (found.l1d_bytes, found.l2_bytes, found.l3_bytes) == (sizes.get(1, 0), sizes.get(2, 0), sizes.get(3, 0))


def test_caches_of_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaf_4(kind: int, level: int, ways: int, sets: int) -> tuple[int, int, int, int]:
        return level << 5 | kind, (ways - 1) << 22 | 63, sets - 1, 0

    caches = [leaf_4(1, 1, 12, 64), leaf_4(2, 1, 8, 64), leaf_4(3, 2, 16, 2048), leaf_4(3, 3, 15, 1 << 16), (0,) * 4]
    monkeypatch.setattr(cpu, "cpuid", lambda leaf, subleaf=0: caches[subleaf] if leaf == 4 else (0, 0, 0, 0))
    assert cpu.cache_sizes.__wrapped__() == cpu.CacheSizes(48 << 10, 2 << 20, 60 << 20)


def test_code_for_every_level_is_generated_everywhere() -> None:
    for level in LEVELS:
        asm = Assembler(level.name)
        x = asm.vectors(level.vector_bytes, 16).take("x")
        asm.VMOVUPS(x, mem(asm.frame, level.vector_bytes))
        asm.ret()
        assert asm.finish().data.endswith(b"\xc5\xf8\x77\xc3")  # vzeroupper, ret
