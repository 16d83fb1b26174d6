"""The command as a process: exit statuses, one line for an error, and nothing but the output in a pipe."""

import subprocess
import sys

import pytest

import asmdnn
from asmdnn.cli.main import main

COMMAND = [sys.executable, "-m", "asmdnn"]
PROBLEM = "mb1ic3ih4oc4kh1"


def test_as_a_process() -> None:
    for option in ("--version", "-V"):
        done = subprocess.run([*COMMAND, option], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"asmdnn {asmdnn.__version__}\n", "")
    done = subprocess.run([*COMMAND, "bench", "ic3oc4"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("command", ["info", "doctor", "cache", "bench", "dump"])
def test_help_is_there_for_every_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert f"\n  {command} " in capsys.readouterr().out
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"asmdnn {command}")
    assert main(["help", command]) == 0
    assert capsys.readouterr().out == text


def test_no_command_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capsys.readouterr().out.startswith("usage: asmdnn")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("frobnicate",), "no command 'frobnicate'; these are info, setup, doctor"),
        (("bnech",), "no command 'bnech'; did you mean bench?"),
        (("Dump",), "no command 'Dump'; did you mean dump?"),
        (("bench", "--mamtul", "8x8:8x8"), "--mamtul: no such option: did you mean --matmul?"),
        (("bench", "--batch=resnet50"), "did you mean resnet_50?"),
        (("bench", "resnet_50"), "resnet_50: a problem set is written --batch=resnet_50"),
        (("bench", "matmul", "8x8:8x8"), "matmul: a driver is written --matmul"),
        (("help", "bnech"), "no command 'bnech'; did you mean bench?"),
        (("info", "x"), "info: no word 'x': see asmdnn info --help"),
        (("doctor", "x"), "doctor: no word 'x': see asmdnn doctor --help"),
        (("cache",), "cache: expected list, prune [SIZE] or clear, not ''"),
        (("cache", "list", "all"), "cache: expected list, prune [SIZE] or clear, not 'list all'"),
        (("bench", "--mode=L"), "bench: no problem is given"),
        (("bench", "--mode=L", "ic3oc4"), "problem 'ic3oc4': a spatial size is missing"),
        (("bench", "--json=/nonexistent/file", PROBLEM), "--json=/nonexistent/file: No such file or directory"),
        (("bench", "--isa=pentium", PROBLEM), "pentium"),
        (("bench", "--stag=nchwx", PROBLEM), "nchwx"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("asmdnn: ")
    assert says in output.err
    assert output.err.count("\n") == 1


def test_listing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--mode=L", "--mb=1", "--dir=FWD_I", "--batch=resnet_50_network"]) == 0
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert (output.err, len(lines)) == ("", 53)
    assert lines[0] == '--conv --attr-post-ops=relu mb1ic3ih224oc64oh112kh7sh2ph3n"resnet_50_network:conv1"'


def test_listing_loads_neither_peachpy_nor_the_peer() -> None:
    code = (
        "import sys; from asmdnn.cli.main import main; main(['bench', '--mode=L', '--batch=vgg_16'])\n"
        "assert not {'peachpy', 'asmdnn.bench.case', 'asmdnn.bench.peers.onednn'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60).returncode == 0


def test_a_closed_pipe_is_no_error() -> None:
    with subprocess.Popen([*COMMAND, "bench", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0
