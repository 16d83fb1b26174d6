"""A root file system that serves packs, for a chroot or a container: Python, numpy and this package, without PeachPy.

python -m examples.serve.rootfs FOLDER NAME=FILE.pack ... [--archive=root.tar.gz]

Debian's packages are unpacked, not installed, so that no root is needed: the closure of three packages, without pages
of manuals and tests.  It prints how to start the service.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import asmdnn as dnn
from asmdnn.setup.debian import Packages
from examples.serve.__main__ import paths_of
from examples.serve.work import Shelf

SOURCES: Final = Path(__file__).resolve().parents[2]
NEEDED: Final = ("python3-numpy", "python3-cffi", "libgomp1")
NOT_RUN: Final = {"dpkg", "media-types", "readline-common"}  # packages need these to be configured, or for a terminal
MERGED: Final = ("bin", "lib", "lib64", "sbin")  # are links into usr, as on every Debian of today
PYTHON: Final = "usr/bin/python3"
MODULES: Final = "usr/lib/python3/dist-packages"
FIELD: Final = re.compile(r"^(Package|Pre-Depends|Depends): (.*)$", re.MULTILINE)


def closure(names: Iterable[str]) -> list[str]:
    """These packages and all that they need, by the machine's package lists; of alternatives the first."""
    found, left = dict[str, None](), list(names)
    while left:
        shown = subprocess.run(["apt-cache", "show", "--no-all-versions", *left], capture_output=True, text=True)
        wanted = list[str]()
        for paragraph in shown.stdout.split("\n\n"):
            fields = dict(FIELD.findall(paragraph))
            if "Package" in fields:
                found[fields["Package"]] = None
                wanted += f"{fields.get('Pre-Depends', '')},{fields.get('Depends', '')}".split(",")
        first = [words.split("|")[0].split("(")[0].strip().partition(":")[0] for words in wanted]
        left = [name for name in dict.fromkeys(first) if name and name not in found and name not in NOT_RUN]
    return [*found]


def build(root: Path, packs: dict[str, Path]) -> None:
    """Fill the folder, which must be new or empty.  Raises InvalidArguments, and Unimplemented without packages."""
    if root.exists() and any(root.iterdir()):
        raise dnn.InvalidArguments(f"{root} is not empty: name a new folder")
    Shelf(packs)  # a pack that cannot be served is refused here, not in the container
    for name in MERGED:
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    with tempfile.TemporaryDirectory() as work:
        packages = Packages(Path(work))
        names = closure(NEEDED) or NEEDED
        if not packages.fetch(*names):
            raise dnn.Unimplemented(f"packages of Debian cannot be had: {packages.last_words()}")
        for number, archive in enumerate(sorted(packages.work.glob("*.deb"))):
            files = packages.work / str(number)
            if not packages.run("dpkg-deb", "-x", str(archive), str(files)):
                raise dnn.Unimplemented(f"{archive.name} cannot be unpacked: {packages.last_words()}")
            shutil.copytree(files, root, symlinks=True, dirs_exist_ok=True)
    for library in root.glob("usr/lib/*/*/lib*.so.3"):  # BLAS and LAPACK, which installing would have linked
        (library.parents[1] / library.name).symlink_to(library.relative_to(library.parents[1]))
    shutil.rmtree(root / "usr" / "share")
    for tests in [*root.glob(f"{MODULES}/numpy/**/tests"), *root.glob("usr/lib/python3*/**/test")]:
        shutil.rmtree(tests)
    skipped = shutil.ignore_patterns("__pycache__")
    for package in ("asmdnn", "examples/serve"):
        shutil.copytree(SOURCES / package, root / MODULES / package, ignore=skipped)
    shutil.copy(SOURCES / "examples" / "__init__.py", root / MODULES / "examples")
    (root / "packs").mkdir()
    for name, path in packs.items():
        shutil.copy(path, root / "packs" / f"{name}.pack")
    for folder in ("tmp", "proc", "dev", "root"):
        (root / folder).mkdir(exist_ok=True)
    compiled(root)


def compiled(root: Path) -> None:
    """Byte code beside the modules, by the interpreter that will run it: a container cannot keep what it compiles."""
    folders = [str(folder) for folder in (*root.glob("usr/lib/python3.*"), root / MODULES)]
    words = [str(root / PYTHON), "-m", "compileall", "-q", "-s", str(root), "-p", "/", *folders]
    subprocess.run(words, check=True, env={**os.environ, "PYTHONHOME": str(root / "usr"), "PYTHONPATH": ""})


def archived(root: Path, path: Path) -> int:
    """The folder as a tar file that `docker import` takes; its bytes."""

    def of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        return member

    with tarfile.open(path, "w:gz") as archive:
        archive.add(root, ".", filter=of_root)
    return path.stat().st_size


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m examples.serve.rootfs", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, help="to fill: new, or empty")
    parser.add_argument("packs", nargs="+", metavar="NAME=FILE", help="a network as Network.save writes it")
    parser.add_argument("--archive", type=Path, help="also write a tar.gz, for docker import")
    given = parser.parse_args(words)
    packs = paths_of(parser, given.packs)
    try:
        build(given.folder.absolute(), packs)
        size = archived(given.folder, given.archive) if given.archive else 0
    except (dnn.AsmdnnError, OSError, subprocess.CalledProcessError) as error:
        print(f"rootfs: {error}", file=sys.stderr)
        return 2
    served = " ".join(f"{name}=/packs/{name}.pack" for name in packs)
    print(f"chroot {given.folder} /{PYTHON} -m examples.serve {served} --port=8000")
    if given.archive:
        print(f"docker import {given.archive}    # {size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
