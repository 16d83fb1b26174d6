"""`asmdnn setup`: packages unpacked without root, PeachPy copied so that an interruption shows, and the way out."""

import hashlib
import re
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

from asmdnn.cli.main import main
from asmdnn.errors import Unimplemented
from asmdnn.setup import openmp, peachpy
from asmdnn.setup.debian import Packages, install_command

ROOT = Path(__file__).parents[2]

# apt-get whose download succeeds once it has been updated $NEEDED times, and dpkg-deb that makes one file.
APT_GET = """#!/bin/sh
echo "apt-get $*" >>"$LOG"
case "$*" in
*update) exit 100 ;; # one broken source must not end it
*download*)
    [ "$(grep -c update "$LOG")" -ge "$NEEDED" ] || { echo "no candidate"; exit 100; }
    touch some_1.0_amd64.deb
    ;;
esac
"""
DPKG_DEB = '#!/bin/sh\nmkdir -p "$3/usr" && cp "$2" "$3/usr/file"\n'
SUDO = '#!/bin/sh\nshift; exec "$@"\n'


@pytest.fixture
def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


@pytest.fixture
def apt_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tools of Debian that only pretend; the log of their calls."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, script in (("apt-get", APT_GET), ("dpkg-deb", DPKG_DEB), ("sudo", SUDO)):
        (tools / name).write_text(script)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    (tmp_path / "log").touch()
    return tmp_path / "log"


@pytest.mark.parametrize(("updates", "options"), [(0, "-q"), (1, "-q"), (2, "-q -o Dir::State::lists=")])
def test_a_package_is_unpacked_after_as_few_updates_as_it_takes(
    updates: int, options: str, work: Path, apt_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEEDED", str(updates))
    unpacked = Packages(work).unpack("some")
    assert unpacked is not None
    assert (unpacked / "usr/file").is_file()
    calls = apt_log.read_text().splitlines()
    assert sum("update" in call for call in calls) == updates
    assert calls[-1].startswith(f"apt-get {options}")


def test_a_package_that_cannot_be_had(work: Path, apt_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEEDED", "9")
    packages = Packages(work)
    assert packages.unpack("some") is None
    assert packages.last_words().endswith("no candidate")


def test_without_the_tools_there_is_nothing_to_unpack(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert Packages(work).unpack("some") is None


@pytest.mark.parametrize(
    ("user", "sudo", "command"),
    [
        (0, True, "apt-get update && apt-get install x"),
        (1, True, "sudo apt-get update && sudo apt-get install x"),
        (1, False, "su -c 'apt-get update && apt-get install x'"),
    ],
)
def test_the_administrators_command(user: int, sudo: bool, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}" if sudo else None)
    assert install_command("x") == command


def test_a_copy_replaces_what_was_there(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "peachpy/x86_64").mkdir(parents=True)
    (source / "peachpy/x86_64/__init__.py").write_text("")
    (source / "PeachPy-0.2.0.egg-info").mkdir()
    (target / "peachpy").mkdir(parents=True)
    (target / "peachpy/older.py").touch()
    (target / "peachpy-0.0.1.dist-info").mkdir()
    peachpy.copy(source, target)
    assert sorted(path.name for path in target.iterdir()) == ["PeachPy-0.2.0.egg-info", "peachpy"]
    assert [path.name for path in (target / "peachpy").iterdir()] == ["x86_64"]
    assert list(target.rglob("*.pyc"))


def test_where_packages_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path(sysconfig.get_path("purelib"))
    monkeypatch.setattr("os.access", lambda path, mode: path == own)
    assert peachpy.site_packages() == own
    monkeypatch.setattr("os.access", lambda path, mode: False)
    monkeypatch.setattr("site.ENABLE_USER_SITE", True)
    monkeypatch.setattr("site.getusersitepackages", lambda: str(tmp_path / "user"))
    assert peachpy.site_packages() == tmp_path / "user"
    monkeypatch.setattr("site.ENABLE_USER_SITE", False)
    with pytest.raises(Unimplemented, match="cannot be written to: run asmdnn setup in a virtual environment"):
        peachpy.site_packages()


def test_what_is_there_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup"]) == 0
    assert capsys.readouterr().out.splitlines() == ["setup: PeachPy is there", "setup: OpenMP is there"]


def test_what_cannot_be_had_is_named_with_the_way_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No package, and a pip that reaches nobody: both failures are told, each in a line."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(peachpy, "DIST_PACKAGES", "nowhere")
    monkeypatch.setattr(peachpy, "ARCHIVE", str(tmp_path / "none.tar.gz"))
    monkeypatch.setattr(peachpy, "is_installed", lambda: False)
    monkeypatch.setattr(openmp, "missing", lambda: "There is no OpenMP runtime.")
    assert main(["setup"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert "setup: PeachPy 0.2.0 cannot be had: see above, then asmdnn setup again" in said
    assert said[-1].startswith("setup: no OpenMP runtime can be had: install libgomp")


def test_an_archive_of_other_contents_is_not_installed(
    work: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """However it is compressed, only what is in it counts; a file that is no archive is refused, too."""
    (tmp_path / "module.py").write_text("x = 1\n")
    for mode in ("w:gz", "w:xz", "w"):
        with tarfile.open(tmp_path / "found.tar", mode) as archive:  # type: ignore[call-overload]
            archive.add(tmp_path / "module.py", "P-1/module.py")
        assert (
            peachpy.digest_of(tmp_path / "found.tar") == hashlib.sha256(b"P-1/module.py\0" + b"6\0x = 1\n").hexdigest()
        )
    packages, ran = Packages(work), list[tuple[str, ...]]()
    monkeypatch.setattr(packages, "run", lambda *words, **_: ran.append(words))
    monkeypatch.setattr(peachpy, "ARCHIVE", (tmp_path / "found.tar").as_uri())
    peachpy._build(packages)
    assert not ran and "has other contents than revision" in packages.log
    monkeypatch.setattr(peachpy, "DIGEST", peachpy.digest_of(tmp_path / "found.tar"))
    peachpy._build(packages)
    assert ran and ran[0][-1].endswith("peachpy.tar.gz")
    monkeypatch.setattr(peachpy, "ARCHIVE", (tmp_path / "module.py").as_uri())
    peachpy._build(packages)
    assert len(ran) == 1 and "module.py" in packages.log


def test_bad_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "now"]) == 2
    assert capsys.readouterr().err == "asmdnn: setup: no word 'now': see asmdnn setup --help\n"


def test_the_wheel_is_for_machines_that_it_runs_on() -> None:
    tags = pytest.importorskip("packaging.tags")
    found = re.search(r'^TAG = "(.*?)"', (ROOT / "tools/wheel_tag.py").read_text(), re.MULTILINE)
    assert found
    (tag,) = tags.parse_tag(found[1])
    assert (tag.interpreter, tag.abi) == ("py3", "none")
    assert tag.platform.startswith("manylinux")
    assert tag.platform.endswith("x86_64")
    assert tag in set(tags.sys_tags()), f"pip of {sys.version} would refuse the wheel"
