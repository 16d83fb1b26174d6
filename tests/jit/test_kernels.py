"""The kernel cache: memory, disk, generator, in this order; shared mappings, threads, fork."""

import gc
import os
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from asmdnn.jit import kernels
from asmdnn.jit.digests import code_text, digest_of, source_digest
from asmdnn.jit.kernels import CacheCounts, KernelCache, LoadedKernel
from asmdnn.jit.native import ffi
from asmdnn.jit.store import DiskStore, default_store
from tests.support.python import python


@dataclass(frozen=True, slots=True)
class AnswerSpec:
    """A kernel that returns `value`."""

    value: float
    isa: str = "avx2"

    @property
    def name(self) -> str:
        return f"answer_{self.value}__{self.isa}"


class Generator:
    """MOV EAX, value; RET, and a record of what was generated."""

    def __init__(self) -> None:
        self.generated: list[AnswerSpec] = []

    def __call__(self, spec: AnswerSpec) -> bytes:
        self.generated.append(spec)
        return b"\xb8" + int(spec.value).to_bytes(4, "little") + b"\xc3"


def run(kernel: LoadedKernel) -> int:
    return int(ffi.cast("int (*)(void *)", kernel.address)(ffi.NULL))


@pytest.fixture
def generator() -> Generator:
    return Generator()


@pytest.fixture
def store(tmp_path: Path) -> DiskStore:
    return DiskStore(tmp_path / "cache")


def test_generated_then_from_memory_then_from_disk(generator: Generator, store: DiskStore) -> None:
    specs = [AnswerSpec(7), AnswerSpec(5), AnswerSpec(7)]
    cache = KernelCache(generator, store)
    first = cache.load(specs)
    assert [run(kernel) for kernel in first] == [7, 5, 7]
    assert [(kernel.name, kernel.size) for kernel in first[:2]] == [("answer_7__avx2", 6), ("answer_5__avx2", 6)]
    assert cache.counts == CacheCounts(memory_hits=1, generated=2)
    assert cache.load(specs) == first
    assert cache.counts == CacheCounts(memory_hits=4, generated=2)

    other = KernelCache(generator, store)
    assert [run(kernel) for kernel in other.load([*specs, AnswerSpec(9)])] == [7, 5, 7, 9]
    assert other.counts == CacheCounts(memory_hits=1, disk_hits=2, generated=1)
    assert generator.generated == [AnswerSpec(7), AnswerSpec(5), AnswerSpec(9)]


def test_a_spec_is_written_down_once_and_no_other_one_for_it(
    generator: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal specs may have other bytes, as those of 0.0 and -0.0: only the very object is known."""
    written = list[object]()
    monkeypatch.setattr(kernels, "code_text", lambda spec: written.append(spec) or code_text(spec))
    monkeypatch.setattr(kernels, "MOST_TEXTS", 4)
    cache, spec = KernelCache(generator, None), AnswerSpec(0.0)
    for _ in range(3):
        cache.load([spec])
    assert len(written) == 1
    cache.load([AnswerSpec(-0.0)])
    assert len(written) == 2
    assert [str(one.value) for one in generator.generated] == ["0.0"] * 3 + ["-0.0"]  # nobody holds their kernels
    for value in range(1, 9):  # what is kept of them has a limit
        cache.load([AnswerSpec(value)])
    cache.load([spec])
    assert len(written) == 2 + 8 + 1


def test_notice_of_what_is_new_to_the_process(generator: Generator, store: DiskStore) -> None:
    """Once a kernel, generated or from disk, with the bytes that run."""
    for _ in range(2):
        told: list[tuple[AnswerSpec, bytes]] = []
        cache = KernelCache(generator, store, notice=lambda spec, kernel, to=told: to.append((spec, kernel.code)))
        held = cache.load([AnswerSpec(7), AnswerSpec(7)])
        assert cache.load([AnswerSpec(7), AnswerSpec(5)])[0] is held[0]
        assert told == [(AnswerSpec(7), b"\xb8\x07\0\0\0\xc3"), (AnswerSpec(5), b"\xb8\x05\0\0\0\xc3")]
    assert generator.generated == [AnswerSpec(7), AnswerSpec(5)]


def test_without_a_store(generator: Generator) -> None:
    cache = KernelCache(generator, None)
    assert cache.load([]) == ()
    assert [run(kernel) for kernel in cache.load([AnswerSpec(3)])] == [3]
    assert cache.counts == CacheCounts(generated=1)


def test_the_environment_keeps_kernels_off_the_disk(
    generator: Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASMDNN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ASMDNN_CACHE", "0")
    KernelCache(generator, default_store()).load([AnswerSpec(3)])
    assert not (tmp_path / "cache").exists()
    monkeypatch.delenv("ASMDNN_CACHE")
    KernelCache(generator, default_store()).load([AnswerSpec(3)])
    assert len(os.listdir(tmp_path / "cache")) == 1


def test_what_is_new_in_one_call_shares_a_mapping(generator: Generator) -> None:
    cache = KernelCache(generator, None)
    old = cache.load([AnswerSpec(0)])[0]
    again, *new = cache.load([AnswerSpec(i) for i in range(20)])
    assert again is old
    assert {id(kernel.keep_alive) for kernel in new} == {id(new[0].keep_alive)}
    assert new[0].keep_alive is not old.keep_alive
    assert len({kernel.address for kernel in new}) == 19


def test_a_kernel_outlives_its_cache(generator: Generator) -> None:
    kernel = KernelCache(generator, None).load([AnswerSpec(11)])[0]
    gc.collect()
    assert run(kernel) == 11


def test_kernels_that_nobody_uses_are_unmapped(generator: Generator) -> None:
    cache = KernelCache(generator, None)
    first, second = cache.load([AnswerSpec(1), AnswerSpec(2)])
    unmapped = weakref.ref(first.keep_alive)
    del first
    gc.collect()
    assert [kernel.name for kernel in cache.loaded()] == ["answer_2__avx2"]
    assert unmapped() is not None, "one kernel of the mapping is in use"
    assert run(second) == 2
    del second
    gc.collect()
    assert cache.loaded() == []
    assert unmapped() is None
    assert [run(kernel) for kernel in cache.load([AnswerSpec(1)])] == [1]
    assert generator.generated == [AnswerSpec(1), AnswerSpec(2), AnswerSpec(1)]


def test_specs_that_are_equal_but_not_the_same_have_their_own_kernels(generator: Generator) -> None:
    specs = [AnswerSpec(0.0), AnswerSpec(-0.0), AnswerSpec(1), AnswerSpec(True)]
    KernelCache(generator, None).load(specs)
    assert [str(spec.value) for spec in generator.generated] == ["0.0", "-0.0", "1", "True"]


def test_the_key_covers_spec_sources_and_version(generator: Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = KernelCache(generator, None, version="0.2.0")
    keys = {
        cache.key(AnswerSpec(1)),
        cache.key(AnswerSpec(2)),
        cache.key(AnswerSpec(1, "avx512_core")),
        KernelCache(generator, None, version="0.2.1").key(AnswerSpec(1)),
    }
    assert KernelCache(generator, None, version="0.2.0").key(AnswerSpec(1)) in keys
    monkeypatch.setattr(kernels, "source_digest", lambda: "other sources")
    keys.add(cache.key(AnswerSpec(1)))
    assert len(keys) == 5
    assert all(len(key) == 64 and set(key) <= set("0123456789abcdef") for key in keys)


def test_the_source_digest_sees_every_change(tmp_path: Path) -> None:
    def digest() -> str:
        return digest_of(tmp_path.rglob("*.py"))

    (tmp_path / "conv.py").write_text("one")
    (tmp_path / "gemm.py").write_text("two")
    digests = [digest(), digest()]
    (tmp_path / "gemm.py").write_text("twa")
    digests.append(digest())
    (tmp_path / "gemm.py").rename(tmp_path / "dot.py")
    digests.append(digest())
    (tmp_path / "empty.py").touch()
    digests.append(digest())
    assert digests[0] == digests[1]
    assert len(set(digests)) == 4


def test_the_source_digest_reads_generators_and_isa() -> None:
    package = Path(kernels.__file__).parents[1]
    assert source_digest() == digest_of([*(package / "generators").rglob("*.py"), *(package / "isa").rglob("*.py")])
    assert source_digest() != digest_of([])


def test_the_key_is_the_same_in_every_process() -> None:
    """Sets, hashes and addresses in a key would make every process generate anew."""
    script = (
        "from tests.jit.test_kernels import AnswerSpec, Generator, KernelCache\n"
        "print(KernelCache(Generator(), None).key(AnswerSpec(1)))"
    )
    assert len({python(script, PYTHONHASHSEED=seed) for seed in ("1", "2")}) == 1


@pytest.mark.parametrize(
    "damage", [lambda image: image[:-1], lambda image: image[:-2] + b"\xcc\xcc", lambda image: b""]
)
def test_a_damaged_file_is_regenerated_and_repaired(generator: Generator, store: DiskStore, damage) -> None:  # type: ignore[no-untyped-def]
    KernelCache(generator, store).load([AnswerSpec(4)])
    (file,) = Path(store.directory).iterdir()
    image = file.read_bytes()
    file.write_bytes(damage(image))
    cache = KernelCache(generator, store)
    assert run(cache.load([AnswerSpec(4)])[0]) == 4
    assert cache.counts == CacheCounts(generated=1)
    assert file.read_bytes() == image


def test_an_unwritable_directory_costs_one_warning(generator: Generator, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = KernelCache(generator, DiskStore(tmp_path / "file" / "cache"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = [cache.load([AnswerSpec(i)])[0] for i in range(4)]
    assert [run(kernel) for kernel in loaded] == [0, 1, 2, 3]
    assert len(caught) == 1


def test_a_failing_generator_leaves_the_cache_usable(generator: Generator) -> None:
    def fail_once(spec: AnswerSpec) -> bytes:
        if not generator.generated:
            generator.generated.append(spec)
            raise ValueError("out of registers")
        return generator(spec)

    cache = KernelCache(fail_once, None)
    with pytest.raises(ValueError, match="out of registers"):
        cache.load([AnswerSpec(6)])
    assert run(cache.load([AnswerSpec(6)])[0]) == 6


@pytest.mark.parametrize("threads", [2, 8])
def test_threads_that_ask_for_the_same_specs_get_the_same_kernels(
    generator: Generator, store: DiskStore, threads: int
) -> None:
    cache = KernelCache(generator, store)
    start = threading.Barrier(threads)

    def work(thread: int) -> dict[int, LoadedKernel]:
        start.wait(timeout=60)
        order = [(i * 7 + thread * 13) % 40 for i in range(40)]
        return {value: cache.load([AnswerSpec(value), AnswerSpec(100)])[0] for value in order}

    with ThreadPoolExecutor(threads) as pool:
        results = list(pool.map(work, range(threads)))
    for value in range(40):
        kernel = results[0][value]
        assert run(kernel) == value
        assert all(result[value] is kernel for result in results)
        assert 1 <= generator.generated.count(AnswerSpec(value)) <= threads
    counts = cache.counts
    assert counts.generated == len(generator.generated)
    assert counts.memory_hits + counts.disk_hits + counts.generated == threads * 40 * 2


FORK = """
import os, threading
from tests.jit.test_kernels import AnswerSpec, Generator, KernelCache, run
cache = KernelCache(Generator(), None)
old = cache.load([AnswerSpec(1)])[0]
cache._lock.acquire()  # as if another thread were inside at the moment of the fork
child = os.fork()
if child == 0:
    old_again, new = cache.load([AnswerSpec(1), AnswerSpec(2)])
    os._exit(10 * run(old_again) + run(new) if old_again is old else 1)
cache._lock.release()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 12
assert run(cache.load([AnswerSpec(2)])[0]) == 2
"""


def test_a_forked_child_uses_the_cache() -> None:
    python(FORK)
