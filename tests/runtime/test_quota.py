"""CPU quotas of control groups: read as Linux writes them, and honoured by the default number of threads."""

from pathlib import Path

import pytest

from asmdnn.runtime.quota import allowed_cpus
from tests.support.python import OF_OPENMP, python

ROOT = Path(__file__).parents[2]
LIMITS = {"cgroup2": ("cpu.max",), "cgroup": ("cpu.cfs_quota_us", "cpu.cfs_period_us")}


def process_of(tmp_path: Path, kind: str, limits: dict[str, str], group: str = "/pod/box", root: str = "/") -> Path:
    """A folder as /proc has it, of a process in `group`; limits by folder below the mount, words apart by blanks."""
    process, mount = tmp_path / "process", tmp_path / "mount"
    process.mkdir()
    line = f"0::{group}" if kind == "cgroup2" else f"0::/\n4:memory:/else\n3:cpu,cpuacct:{group}"
    (process / "cgroup").write_text(f"{line}\n")
    options = "rw" if kind == "cgroup2" else "rw,cpu,cpuacct"
    (process / "mountinfo").write_text(
        "30 23 0:28 / / rw - overlay overlay rw\n"
        f"32 31 0:30 / {tmp_path}/memory rw - cgroup cgroup rw,memory\n"
        f"31 30 0:29 {root} {mount} rw,relatime shared:9 - {kind} cgroup {options}\n"
    )
    for folder, text in limits.items():
        (mount / folder).mkdir(parents=True, exist_ok=True)
        words = [text] if kind == "cgroup2" else text.split(" ")
        for name, word in zip(LIMITS[kind], words, strict=True):
            (mount / folder / name).write_text(f"{word}\n")
    return process


@pytest.mark.parametrize("kind", list(LIMITS))
@pytest.mark.parametrize(
    ("limits", "cpus"),
    [
        ({"pod/box": "200000 100000"}, 2),
        ({"pod/box": "150000 100000"}, 2),  # rounded up
        ({"pod/box": "1000 100000"}, 1),
        ({"pod/box": "400000 100000", "pod": "300000 100000"}, 3),  # the group above has less
        ({"": "250000 50000"}, 5),
        ({"other": "100000 100000"}, None),
        ({}, None),
        ({"pod/box": "x y"}, None),
        ({"pod/box": "100000 0"}, None),
        ({"pod/box": "0 100000"}, None),
    ],
)
def test_quotas(kind: str, limits: dict[str, str], cpus: int | None, tmp_path: Path) -> None:
    assert allowed_cpus(process_of(tmp_path, kind, limits)) == cpus


@pytest.mark.parametrize(("kind", "text"), [("cgroup2", "max 100000"), ("cgroup", "-1 100000")])
def test_no_quota(kind: str, text: str, tmp_path: Path) -> None:
    assert allowed_cpus(process_of(tmp_path, kind, {"pod/box": text})) is None


@pytest.mark.parametrize(
    ("group", "root", "folder"), [("/pod/box", "/pod", "box"), ("/pod/box", "/pod/box", ""), ("/../box", "/", "box")]
)
def test_a_container_sees_a_part_of_the_hierarchy(group: str, root: str, folder: str, tmp_path: Path) -> None:
    process = process_of(tmp_path, "cgroup2", {folder: "300000 100000"}, group, root)
    assert allowed_cpus(process) == 3


@pytest.mark.parametrize("text", ["", "\n", "::::\n", "0::/x\n \n", "\0\xff"])
def test_what_makes_no_sense_is_no_quota(text: str, tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text(text)
    (tmp_path / "mountinfo").write_text(text)
    assert allowed_cpus(tmp_path) is None


@pytest.mark.parametrize(
    ("variables", "cpus", "wanted"),
    [({}, "1", 1), ({}, "None", 5), ({}, "9", 5), ({"OMP_NUM_THREADS": "4"}, "1", 5)],
)
def test_engines_honour_the_quota(variables: dict[str, str], cpus: str, wanted: int) -> None:
    """A team of 5 by omp_set_num_threads, so that the machine does not matter; what a user has said holds."""
    script = f"""
import asmdnn as dnn
from asmdnn.jit.native import function, open_library
from asmdnn.runtime import threads
threads.allowed_cpus = lambda: {cpus}
function(open_library(threads.openmp().path), "void (*)(int)", "omp_set_num_threads")(5)
print(dnn.Engine(isa="avx2").threads)
"""
    assert python(script, without=OF_OPENMP, **variables) == str(wanted)
