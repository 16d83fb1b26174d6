"""Published networks as programs: the bits of Python's, for every number of threads."""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from examples import models
from tests.dump.tools import need
from tests.export.programs import RUN_ANY, Library, program, results
from tests.export.published import FILES, loaded
from tests.network.nets import engine

pytestmark = [pytest.mark.slow, pytest.mark.isa("avx2")]
MOST_SECONDS = 900
WATCHED = {"sanitizer": (), "valgrind": ("valgrind", "-q", "--error-exitcode=9", "--leak-check=full")}


def found(name: str) -> tuple[dnn.Network, dict[str, Any]]:
    try:
        return loaded(name, engine(2))
    except models.MissingModel as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", FILES)
def test_bits_are_those_of_python(name: str, tmp_path: Path) -> None:
    need("cc")
    net, feeds = found(name)
    wanted = net.run(feeds)
    *_, shared = dnn.export_c(net, tmp_path, "some")
    for threads in (1, 2):
        for key, array in results(Library(shared, "some"), feeds, wanted, threads).items():
            np.testing.assert_array_equal(array.view(np.uint8), wanted[key].view(np.uint8), key)


@pytest.mark.parametrize("tool", WATCHED)
@pytest.mark.parametrize("name", FILES)
def test_programs_are_clean(name: str, tool: str, tmp_path: Path) -> None:
    """No byte outside of tensors of their exact sizes; valgrind sees what kernels touch, too."""
    need("gcc", *WATCHED[tool][:1])
    net, feeds = found(name)
    wanted = list(net.run(feeds).values())
    dnn.export_c(net, tmp_path, "some")
    options = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all") if tool == "sanitizer" else ()
    main = program(tmp_path, "some", RUN_ANY, *options)
    (tmp_path / "in").write_bytes(b"".join(array.tobytes() for array in feeds.values()))
    sizes = [str(array.nbytes) for array in feeds.values()] + [str(-array.nbytes) for array in wanted]
    for threads in ("1", "2"):
        words = (*WATCHED[tool], main, threads, *sizes)
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert (tmp_path / "out").read_bytes() == b"".join(array.tobytes() for array in wanted)
