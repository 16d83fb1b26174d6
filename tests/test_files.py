"""Files that are replaced as a whole: what is said where that cannot be done."""

import os
from pathlib import Path

import pytest

import asmdnn as dnn
from asmdnn import optim
from asmdnn.files import replace_file


@pytest.mark.parametrize(("where", "error"), [("no/file", FileNotFoundError), (".", IsADirectoryError)])
def test_errors_name_the_file_that_was_asked_for(where: str, error: type[OSError], tmp_path: Path) -> None:
    path = str(tmp_path / where)
    with pytest.raises(error) as caught:
        replace_file(path, b"new")
    assert caught.value.filename == path and ".tmp" not in str(caught.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.isa("avx2")
def test_a_state_and_a_model_that_cannot_be_written(tmp_path: Path) -> None:
    g = dnn.Graph()
    scaled = g.parameter("w", (3,), 1.0) * g.input("x", (3,))
    loss = g.apply("ReduceSum", scaled, keepdims=0)
    step = g.train(loss, optim.SGD(0.1), {"scaled": scaled}, engine=dnn.Engine(isa="avx2", threads=1))
    for write in (step.save, step.export):
        message = "cannot be written to '.*no/file': No such file or directory$"
        with pytest.raises(dnn.InvalidArguments, match=message):
            write(tmp_path / "no" / "file")
