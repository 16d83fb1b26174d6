"""PeachPy 0.2.0 for this Python: from the distribution's package, else built from upstream's repository.

It was never published for pip: what the index has under its name is older and unusable.
"""

import compileall
import hashlib
import os
import shutil
import site
import subprocess
import sys
import sysconfig
import tarfile
import urllib.request
from pathlib import Path
from typing import Final

from asmdnn.errors import Unimplemented
from asmdnn.isa.peachpy_version import PEACHPY_VERSION
from asmdnn.setup.debian import Packages, install_command

DIST_PACKAGES: Final = "usr/lib/python3/dist-packages"
METADATA: Final = "[Pp]each[Pp]y-*-info"
REVISION: Final = "349e8f836142b2ed0efeb6bb99b1b715d87202e9"
ARCHIVE: Final = f"https://github.com/Maratyszcza/PeachPy/archive/{REVISION}.tar.gz"
# Of names and contents of its files, as `digest_of` has it: how the archive is compressed is the server's affair.
DIGEST: Final = "533cb56debe83f7997280e4ac62214f726ef6cb7cd471fbc7945193098e4c8f2"
MOST_BYTES: Final = 1 << 24
CONSTRAINT: Final = "setuptools<80\n"  # its build imports pkg_resources

# A process of its own: this one may have looked for PeachPy, and would not see that it is there now.
_IS_INSTALLED: Final = f"""
import importlib.metadata, warnings
warnings.simplefilter("ignore")
import peachpy.x86_64
assert importlib.metadata.version("peachpy") == peachpy.__version__ == "{PEACHPY_VERSION}"
"""


def is_installed() -> bool:
    """Whether this Python finds PeachPy in the right version, and can import all of it."""
    return subprocess.run([sys.executable, "-c", _IS_INSTALLED], capture_output=True).returncode == 0


def install(packages: Packages) -> str:
    """Install it and say where it came from.  Raises Unimplemented with the way out where neither source can be had."""
    source = Path("/") / DIST_PACKAGES
    if not (source / "peachpy").is_dir():
        source = (packages.unpack("python3-peachpy") or packages.work) / DIST_PACKAGES
    if (source / "peachpy").is_dir():
        copy(source, site_packages())
        if is_installed():
            return f"the distribution's package, in {site_packages()}"
    _build(packages)
    if is_installed():
        return f"{ARCHIVE}, built by pip"
    way_out = f"run {install_command('python3-peachpy')}" if shutil.which("apt-get") else "see above"
    raise Unimplemented(f"PeachPy {PEACHPY_VERSION} cannot be had: {way_out}, then asmdnn setup again")


def copy(source: Path, target: Path) -> None:
    """Copy the package and its metadata; another version that lies in `target` is removed.

    The metadata come last: only with them PeachPy counts as installed, so an interrupted copy is made again.
    """
    for old in target.glob(METADATA):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    shutil.rmtree(target / "peachpy", ignore_errors=True)
    shutil.copytree(source / "peachpy", target / "peachpy", ignore=shutil.ignore_patterns("__pycache__"))
    # Importing it costs 55 ms compiled and 950 ms not, at every start where PYTHONDONTWRITEBYTECODE is set.
    compileall.compile_dir(target / "peachpy", quiet=2)
    for metadata in source.glob(METADATA):
        shutil.copytree(metadata, target / metadata.name)


def site_packages() -> Path:
    """Where packages of this Python can be put: its own directory, else the user's.  Raises Unimplemented."""
    own = Path(sysconfig.get_path("purelib"))
    if os.access(own, os.W_OK):
        return own
    if not site.ENABLE_USER_SITE:
        raise Unimplemented(f"{own} cannot be written to: run asmdnn setup in a virtual environment of your own")
    users = Path(site.getusersitepackages())
    users.mkdir(parents=True, exist_ok=True)
    return users


def digest_of(archive: Path) -> str:
    """SHA-256 of the files in a tar archive: name, size and bytes of each, in the order of names.  Raises TarError, and
    OSError for what cannot be read."""
    digest = hashlib.sha256()
    with tarfile.open(archive) as files:
        for member in sorted(files, key=lambda member: member.name):
            if stream := files.extractfile(member):  # None for a directory
                content = stream.read()
                digest.update(b"%s\0%d\0%s" % (member.name.encode(), len(content), content))
    return digest.hexdigest()


def _archive(packages: Packages) -> Path | None:
    """The upstream revision, downloaded and compared with its digest; None where that fails, and the log says why."""
    path = packages.work / "peachpy.tar.gz"
    try:
        with urllib.request.urlopen(ARCHIVE, timeout=60) as stream:
            path.write_bytes(stream.read(MOST_BYTES))
        if digest_of(path) == DIGEST:
            return path
        packages.log += f"{ARCHIVE} has other contents than revision {REVISION}: it is not installed\n"
    except (OSError, ValueError, tarfile.TarError) as error:
        packages.log += f"{ARCHIVE}: {error}\n"
    return None


def _build(packages: Packages) -> None:
    """Let pip build and install the upstream revision, once its contents are known to be that."""
    archive = _archive(packages)
    if archive is None:
        return
    constraint = packages.work / "constraint"
    constraint.write_text(CONSTRAINT)
    options = ("-qq", "--use-pep517", "--force-reinstall", "--no-deps")
    variables = {"PIP_CONSTRAINT": str(constraint), "PIP_BUILD_CONSTRAINT": str(constraint)}
    packages.run(sys.executable, "-m", "pip", "install", *options, str(archive), **variables)
