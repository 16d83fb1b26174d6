"""The programs that this tool needs: qemu-user's x86-64 emulator, and gcc for the loader."""

import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
FETCHED = HERE.parents[1] / "build" / "qemu"
CPU = "Haswell"  # AVX2, FMA, F16C, BMI; no AVX-512
# What a user program cannot see, and TCG lacks: without these words qemu warns about each.
WITHOUT = ("pcid", "x2apic", "tsc-deadline", "hle", "invpcid", "rtm")
NAMES = ("qemu-x86_64", "qemu-x86_64-static")


class Missing(Exception):
    """A program that is not there: what to do."""


def qemu() -> Path:
    """The emulator on PATH, or the one that `fetch_qemu` got.  Raises Missing."""
    for name in NAMES:
        found = shutil.which(name) or shutil.which(name, path=str(FETCHED / "usr" / "bin"))
        if found:
            return Path(found)
    raise Missing(
        "qemu-x86_64 is not on PATH: apt-get install qemu-user, or without root python -m tools.isa_matrix --fetch-qemu"
    )


def fetch_qemu() -> Path:
    """Unpack the distribution's statically linked qemu-user into build/qemu; needs no root.  Raises Missing."""
    FETCHED.mkdir(parents=True, exist_ok=True)
    unpack = f"dpkg-deb --fsys-tarfile *.deb | tar -x ./usr/bin/{NAMES[1]}"  # of some forty emulators, one
    for command in (["apt-get", "-q", "download", "qemu-user-static"], ["sh", "-c", unpack]):
        try:
            done = subprocess.run(command, cwd=FETCHED, capture_output=True, text=True)
        except FileNotFoundError:
            raise Missing(f"{command[0]} is not there: install qemu-user as your distribution has it") from None
        if done.returncode:
            raise Missing(f"{' '.join(command)} failed: {' '.join(done.stderr.split())}")
    for package in FETCHED.glob("*.deb"):
        package.unlink()
    return qemu()


def compiler() -> str:
    """gcc.  Raises Missing."""
    found = shutil.which("gcc")
    if found is None:
        raise Missing("gcc is not on PATH: apt-get install gcc libc6-dev")
    return found


def compile_loader(folder: Path) -> Path:
    """loader.c as a static program, so that the emulator needs no libraries.  Raises Missing."""
    program = folder / "loader"
    command = [compiler(), "-O2", "-Wall", "-Werror", "-static", str(HERE / "loader.c"), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"loader.c does not compile: {' '.join(done.stderr.split())}")
    return program


def emulated(command: list[str]) -> list[str]:
    """The command line that runs `command` on the emulated CPU."""
    return [str(qemu()), "-cpu", ",".join((CPU, *(f"-{feature}" for feature in WITHOUT))), *command]
