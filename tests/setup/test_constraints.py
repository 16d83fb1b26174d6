"""Versions of what set-up installs: every requirement of every extra is pinned, or it is said here why not."""

import re
import sys
from pathlib import Path

import pytest

if sys.version_info < (3, 11):
    pytest.skip("tomllib comes with Python 3.11", allow_module_level=True)
import tomllib

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
UNPINNED = {
    "mkl": "a peer of bench --gemm, of 1 GB, which nothing installs by itself",
    "bochscpu-python": "needs a newer glibc than some machines have; who asks for it by BOCHS=1 installs it",
    "intel-openmp": "whichever the reader's system takes: GOMP_parallel has been in all of them",
    "jupyterlab": "an application of the reader's own, nothing here imports it",
}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found, requirement
    return plain(found[0])


def pins() -> dict[str, str]:
    lines = [line.partition("#")[0].strip() for line in (ROOT / "constraints.txt").read_text().splitlines()]
    found = [re.fullmatch(r'([\w.-]+)==([\w.]+)(; python_version >= "3\.1[0-9]")?', line) for line in lines if line]
    assert all(found), "a line is NAME==VERSION, with the Python that it needs"
    names = [plain(each[1]) for each in found if each]
    assert len(names) == len({*names}), "a name has one pin"
    return {plain(each[1]): each[2] for each in found if each}


def test_every_requirement_is_pinned_or_said_to_be_free() -> None:
    pinned, extras = pins(), PROJECT["optional-dependencies"]
    required = [*PROJECT["dependencies"], *(each for extra in extras.values() for each in extra)]
    free = {name_of(each) for each in required if "==" not in each} - pinned.keys()
    assert free == UNPINNED.keys()


def test_what_installs_is_told_of_the_pins() -> None:
    for file in ("Makefile", "tools/setup.sh"):
        commands = [line for line in (ROOT / file).read_text().splitlines() if "pip install" in line and "." in line]
        of_extras = [line for line in commands if re.search(r"\.\[", line)]
        assert of_extras, file
        assert all("--constraint constraints.txt" in line for line in of_extras), file
