"""Files of inputs at the command line: their arrays say dims that the model leaves open."""

from pathlib import Path

import numpy as np
import pytest

from asmdnn.cli.main import main
from tests.network.nets import random

pytestmark = pytest.mark.isa("avx2")


@pytest.fixture
def words(model: str, tmp_path: Path) -> list[str]:
    """Of the model of the fixture, whose input x has open dims, and of a file for it."""
    np.save(tmp_path / "x.npy", random(1, 3, 6, 7))
    return ["--constant=s:2", "--threads=1", f"--input=x:{tmp_path}/x.npy", model]


@pytest.mark.parametrize("command", [["run"], ["explain"], ["analyze"], ["bench", "--network", "--max-ms=5"]])
def test_a_file_has_its_dims(command: list[str], words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, *words]) == 0
    printed = capsys.readouterr().out
    expected = {"run": "y float32 1x8x6x7 from", "explain": "x 1x3x6x7", "analyze": "Conv 'first'", "bench": "asmdnn"}
    assert expected[command[0]] in printed


def test_a_pack_with_open_dims(
    model: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pack = str(tmp_path / "x.pack")
    assert main(["pack", "--constant=s:2", "--threads=1", "--shape=x:1x3x6x7", model, "-o", pack]) == 0
    assert main(["run", "--threads=1", words[2], pack]) == 0
    assert "y float32 1x8x6x7 from" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["run", "explain", "analyze"])
@pytest.mark.parametrize("shape", [[], ["--shape=x:1x3x6x7"]])
def test_files_of_what_is_no_input(
    command: str, shape: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Random numbers took its place."""
    other = [word.replace("--input=x:", "--input=ex:") for word in words]
    assert main([command, *shape, *other]) == 2
    assert "--input=ex: 'ex' is no input of the model: did you mean x?" in capsys.readouterr().err


def test_dims_that_a_file_contradicts(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--shape=x:1x3x9x9", *words]) == 2
    assert "x is float32[1, 3, 6, 7], the network takes float32[1, 3, 9, 9]" in capsys.readouterr().err
    assert main(["analyze", "--input=x.npy", words[-1]]) == 2
    assert "--input=x.npy is not of the form --input=NAME:FILE.npy" in capsys.readouterr().err
