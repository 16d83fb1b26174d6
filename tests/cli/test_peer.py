"""oneDNN through its C interface: its results are numpy's, its limits are clear errors."""

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing

import pytest

from asmdnn.cli.peers import onednn_library
from asmdnn.cli.peers.onednn import OnednnConvolution
from asmdnn.cli.problems import parse_problem
from asmdnn.cli.reference import judge, make_data, numpy_answer
from asmdnn.errors import AsmdnnError, InvalidArguments
from asmdnn.isa.cpu import effective_isa

PROBLEM = parse_problem("mb1ic16ih6oc16kh3ph1")
ANY = ("any", "any", "any")


@pytest.fixture(scope="module", autouse=True)
def peer() -> Iterator[onednn_library.Onednn]:
    try:
        yield onednn_library.load()
    except AsmdnnError as error:
        warnings.warn(f"The peer's tests did not run: {error}", stacklevel=1)
        pytest.skip(str(error))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("text", "direction", "post_ops", "tags"),
    [
        ("mb2ic3ih13oc7kh3sh2ph1", "FWD_B", ("sum", "relu"), ANY),
        ("mb1ic16ih7iw9oc32oh7ow5kh3kw1sh1sw2ph1pw0", "FWD_I", (), ("aBcd8b", "any", "aBcd8b")),
        ("mb2ic17ih9oc16oh5kh3dh1", "FWD_D", ("relu",), ("acdb", "abcd", "acdb")),
        ("mb1ic8ih8oc8oh4kh1sh2", "FWD_B", (), ANY),  # the last row and column stay unread
    ],
)
def test_results_are_numpys(
    text: str, direction: str, post_ops: tuple[str, ...], tags: tuple[str, str, str], threads: int
) -> None:
    problem = parse_problem(text)
    peer = OnednnConvolution(problem, direction, post_ops, tags, effective_isa().name, threads)
    with closing(peer):
        assert ":" in peer.implementation
        for exact in (True, False):
            data = make_data(problem, direction == "FWD_B", post_ops, exact)
            assert judge(peer.compute(data), numpy_answer(problem, data, post_ops), exact).reason == ""


def test_a_run_repeats_the_result() -> None:
    data = make_data(PROBLEM, False, (), exact=False)
    with closing(OnednnConvolution(PROBLEM, "FWD_I", (), ANY, effective_isa().name, 1)) as peer:
        first = peer.compute(data)
        assert peer.run() == 0
        assert (peer.compute(data) == first).all()


@pytest.mark.parametrize("tag", ["ABcd8a8b", "abc", "abce", "nchw"])
def test_unknown_tags_are_refused(tag: str) -> None:
    with pytest.raises(InvalidArguments, match=f"tag {tag}: the peer onednn takes any, plain layouts and"):
        OnednnConvolution(PROBLEM, "FWD_I", (), (tag, "any", "any"), effective_isa().name, 1)


def test_the_isa_is_final(peer: onednn_library.Onednn) -> None:
    used = effective_isa().name
    peer.cap_isa(used)
    peer.cap_isa(used)
    other = "avx2" if used != "avx2" else "avx512_core"
    with pytest.raises(InvalidArguments, match=f"--isa={other}: the peer onednn is already held to {used}"):
        peer.cap_isa(other)


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_LIB", "/nonexistent/libdnnl.so.3")
    with pytest.raises(AsmdnnError, match=r"pip install 'asmdnn\[bench\]', or point ONEDNN_LIB"):
        onednn_library.load.__wrapped__()


def test_a_library_that_is_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_LIB", "libc.so.6")
    with pytest.raises(AsmdnnError, match="no oneDNN 3 library"):
        onednn_library.load.__wrapped__()


def test_from_the_command_line_a_missing_library_is_one_line() -> None:
    command = [sys.executable, "-m", "asmdnn", "bench", "--peer=onednn", "ic3ih8oc4kh3"]
    environment = os.environ | {"ONEDNN_LIB": "/nonexistent"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("asmdnn: --peer=onednn: no oneDNN 3 library")
    assert done.stderr.count("\n") == 1
