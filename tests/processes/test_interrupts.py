"""Ctrl-C: no descriptor and no temporary file is left, no process says a word, and the exit status is 130."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from asmdnn.cli.main import main
from asmdnn.files import replace_file
from asmdnn.jit.store import DiskStore

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "asmdnn"]
KEY = "a" * 64
INTERRUPTED = 130

INTERRUPT_AN_IMPORT = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path, target=None):
        if name == "MODULE":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """SIGINT as in a terminal: a shell without job control has background jobs, and their children, ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


def interruptions(action: Callable[[], object]) -> Iterator[int]:
    """Run `action` interrupted where Python looks for signals: on entry to a function and after a call of C, at each
    such place in turn; as often as there are places."""
    place = 0
    while True:
        place += 1
        seen = 0

        def interrupt(frame: FrameType, event: str, argument: object) -> None:
            nonlocal seen
            del frame, argument  # an exception that holds what it interrupted would keep it open
            if event in ("call", "c_return"):
                seen += 1
                if seen == place:  # noqa: B023 - used before the next turn
                    sys.setprofile(None)
                    raise KeyboardInterrupt

        try:
            sys.setprofile(interrupt)
            action()
            sys.setprofile(None)
            return
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        yield place


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # interrupted in __del__
@pytest.mark.parametrize("what", ["put", "get", "list"])
def test_a_store_interrupted_anywhere_leaves_nothing(what: str, tmp_path: Path) -> None:
    store = DiskStore(tmp_path / "cache", 1 << 20)
    store.put(KEY, "kernel", b"\xc3" * 100)
    actions: dict[str, Callable[[], object]] = {
        "put": lambda: store.put(KEY, "kernel", b"\xc3" * 100),
        "get": lambda: store.get(KEY, "kernel"),
        "list": store.list,
    }
    before = descriptors()
    places = 0
    for places in interruptions(actions[what]):
        assert descriptors() == before, f"place {places}"
        assert os.listdir(store.directory) == [f"{KEY}.kernel"], f"place {places}"
    assert places > 20
    assert store.get(KEY, "kernel") == b"\xc3" * 100


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_file_interrupted_anywhere_is_old_or_new(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    before = descriptors()
    for place in interruptions(lambda: replace_file(path, b"new")):
        assert path.read_bytes() in (b"old", b"new"), f"place {place}"
        assert os.listdir(tmp_path) == ["file"], f"place {place}"
        assert descriptors() == before, f"place {place}"
    assert path.read_bytes() == b"new"


def run(*words: str, directory: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *words],
        env=os.environ | {"PYTHONPATH": f"{directory}:{ROOT}"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("module", ["asmdnn.cli.explain", "asmdnn.bench.options", "numpy"])
def test_an_interrupted_import_is_silent(module: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPT_AN_IMPORT.replace("MODULE", module))
    done = run("explain", "mb1ic8ih6oc16oh6kh1", directory=tmp_path)
    assert (done.returncode, done.stderr) == (INTERRUPTED, "")


def test_an_interrupted_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(words: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("asmdnn.cli.info.run", interrupted)
    assert main(["info"]) == INTERRUPTED
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "seconds", [0.6, pytest.param(2.5, marks=pytest.mark.slow), pytest.param(6.0, marks=pytest.mark.slow)]
)
def test_interrupted_proofs_of_many_processes(seconds: float, tmp_path: Path) -> None:
    """As a terminal does it: the signal goes to the command and all its processes."""
    pytest.importorskip("iced_x86")
    with subprocess.Popen(
        [*COMMAND, "prove", "--isa=avx2", "--jobs=2"],
        env=os.environ | {"PYTHONPATH": str(ROOT), "ASMDNN_CACHE_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        until = time.monotonic() + 60
        while len(children_of(process.pid)) < 2 and time.monotonic() < until:  # the first of them is multiprocessing's
            time.sleep(0.02)
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (INTERRUPTED, ""), out


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
