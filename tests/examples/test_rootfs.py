"""A root file system that is made of Debian's packages serves a pack, without PeachPy."""

import http.client
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import asmdnn as dnn
from examples.serve import rootfs

LARGEST_BYTES = 60_000_000  # of the archive


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    graph = dnn.Graph("twice")
    y = graph.apply("Gemm", graph.input("x", (1, 8)), np.eye(8, dtype=np.float32) * np.float32(2))
    graph.compile(y=y, engine=dnn.Engine(isa="avx2", threads=1)).save(tmp_path / "twice.pack")
    return tmp_path / "twice.pack"


@pytest.mark.slow
@pytest.mark.isa("avx2")
@pytest.mark.skipif(not shutil.which("apt-get") or os.geteuid() != 0, reason="needs apt-get, and root for chroot")
def test_a_chroot_serves_a_pack(pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, archive = tmp_path / "root", tmp_path / "root.tar.gz"
    assert rootfs.main([str(root), f"twice={pack}", f"--archive={archive}"]) == 0
    assert capsys.readouterr().out.startswith(f"chroot {root} /usr/bin/python3 -m examples.serve twice=")
    assert archive.stat().st_size <= LARGEST_BYTES
    python = [shutil.which("chroot") or "/usr/sbin/chroot", str(root), "/usr/bin/python3"]
    refused = subprocess.run([*python, "-c", "import peachpy"], capture_output=True, text=True, check=False)
    assert "No module named 'peachpy'" in refused.stderr
    words = [*python, "-m", "examples.serve", "twice=/packs/twice.pack", "--port=0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={}) as service:
        try:
            assert service.stdout
            address = service.stdout.readline().split()[-1]
            connection = http.client.HTTPConnection(address, timeout=30)
            body = json.dumps({"inputs": {"x": [[1, 2, 3, 4, 5, 6, 7, 8]]}})
            connection.request("POST", "/v1/networks/twice", body, {"Content-Type": "application/json"})
            assert json.loads(connection.getresponse().read()) == {"outputs": {"y": [[2, 4, 6, 8, 10, 12, 14, 16]]}}
        finally:
            service.terminate()


def test_bad_words(pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none.pack").write_text("no pack")
    for words, says in (
        ([str(tmp_path), f"twice={pack}"], "is not empty: name a new folder"),
        ([str(tmp_path / "new"), f"twice={tmp_path}/none.pack"], "none.pack"),
    ):
        assert rootfs.main(words) == 2
        assert says in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    with pytest.raises(SystemExit):
        rootfs.main([str(tmp_path / "new"), "twice"])


def test_the_closure_takes_the_first_of_alternatives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "apt-cache").write_text(
        '#!/bin/sh\nshift 2\nfor name; do echo "Package: $name"\n'
        'case $name in a) echo "Pre-Depends: dpkg (>= 1)"; echo "Depends: b:any (>= 2) | c, d";; esac\necho; done\n'
    )
    (tmp_path / "apt-cache").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert rootfs.closure(["a"]) == ["a", "b", "d"]
