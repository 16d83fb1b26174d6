"""Packages of Debian and its relatives, unpacked instead of installed, which needs no root.

The standard library alone is imported: tools/setup.sh runs this with a Python that has nothing else yet.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

TICK_S: Final = 0.25
LOG_LINES: Final = 15  # enough of what apt-get said to see why it failed


class Packages:
    """Unpacks packages into `work`, a directory that was empty.  `log` holds what the commands said.  watch: called
    some times a second while a command runs, with its words."""

    def __init__(self, work: Path, watch: Callable[[str], None] = lambda words: None) -> None:
        self.work, self._watch = work, watch
        self._options: tuple[str, ...] = ()
        self._refreshed = self._refreshes()
        self.log = ""

    def unpack(self, name: str) -> Path | None:
        """The directory with the files of package `name`; None where it cannot be had, and then the log says why."""
        if not self.fetch(name):
            return None
        archive = next(self.work.glob(f"{name}_*.deb"))
        target = self.work / name
        return target if self.run("dpkg-deb", "-x", str(archive), str(target)) else None

    def fetch(self, *names: str) -> bool:
        """Download packages into `work`; apt compares them with the signed hashes of its lists."""
        if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
            return False
        while not self.run("apt-get", "-q", *self._options, "download", *names):
            if not next(self._refreshed, False):
                return False
        return True

    def _refreshes(self) -> Iterator[bool]:
        """First the machine's own package lists, where the rights are there; then private ones, which need none.

        Whether an update succeeds is not asked: one broken source must not hide the package in another.
        """
        self.run(*([] if os.geteuid() == 0 else ["sudo", "-n"]), "apt-get", "-q", "update")
        yield True
        lists, cache = self.work / "lists", self.work / "cache"
        for directory in (lists / "partial", cache / "archives/partial"):
            directory.mkdir(parents=True)
        settings = (f"Dir::State::lists={lists}", f"Dir::Cache={cache}", "APT::Sandbox::User=root")
        self._options = tuple(word for setting in settings for word in ("-o", setting))
        self.run("apt-get", "-q", *self._options, "update")
        yield True

    def run(self, *command: str, **environment: str) -> bool:
        """Run a command in `work`, with these variables too; whether it succeeded."""
        try:
            done = subprocess.Popen(
                command, cwd=self.work, env=os.environ | environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
        except OSError as error:  # there is no sudo
            self.log += f"{error}\n"
            return False
        with done:
            while True:
                self._watch(" ".join(command))
                try:
                    self.log += done.communicate(timeout=TICK_S)[0]
                    return done.returncode == 0
                except subprocess.TimeoutExpired:
                    pass

    def last_words(self) -> str:
        """The end of the log, which says what went wrong."""
        return "\n".join(self.log.splitlines()[-LOG_LINES:])


def install_command(name: str) -> str:
    """The command with which an administrator of this machine installs a package."""
    if os.geteuid() == 0:
        return f"apt-get update && apt-get install {name}"
    if shutil.which("sudo"):
        return f"sudo apt-get update && sudo apt-get install {name}"
    return f"su -c 'apt-get update && apt-get install {name}'"
