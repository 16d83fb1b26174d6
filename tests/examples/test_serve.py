"""The service on the loopback: right answers under load, refusals for each bad input, and nothing lost."""

import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from examples.serve import load, overload
from examples.serve.__main__ import options
from examples.serve.bodies import JSON, NPY, Refused, npy_array
from examples.serve.peer import Peer, network_at
from examples.serve.processes import reload
from examples.serve.server import PREFIX, Limits, Service
from examples.serve.work import Crew, Shelf
from tests.network import wire

ROOT = Path(__file__).parents[2]
LIMITS = Limits(read_s=0.5, answer_s=20.0, body_bytes=4096, connections=16)
ROW = [float(i) for i in range(8)]


def saved(path: Path, factor: float = 2.0) -> Path:
    graph = dnn.Graph("small")
    x = graph.input("x", (1, 8))
    y = graph.apply("Gemm", x, np.eye(8, dtype=np.float32) * np.float32(factor))
    graph.compile(y=graph.apply("Relu", y), engine=dnn.Engine(isa="avx2", threads=1)).save(path)
    return path


def pair(path: Path) -> Path:
    graph = dnn.Graph("pair")
    a, b = graph.input("a", (2,)), graph.input("b", (2,))
    graph.compile(y=a + b, engine=dnn.Engine(isa="avx2", threads=1)).save(path)
    return path


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    shelf = Shelf({"small": saved(tmp_path / "small.pack"), "pair": pair(tmp_path / "pair.pack")})
    running = Service(("127.0.0.1", 0), shelf, Crew(2, 16), LIMITS)
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    yield running
    running.stop()


def host(service: Service) -> str:
    return f"127.0.0.1:{service.server_address[1]}"


def asked(
    service: Service, body: bytes, kind: str = JSON, name: str = "small", method: str = "POST"
) -> tuple[int, Any]:
    """Status and body of an answer; what is JSON, as values."""
    connection = http.client.HTTPConnection(host(service), timeout=30)
    connection.request(method, name if name.startswith("/") else f"{PREFIX}/{name}", body, {"Content-Type": kind})
    response = connection.getresponse()
    answer = response.read()
    connection.close()
    if response.status == 503:
        assert response.headers["Retry-After"] == "1"
    return response.status, json.loads(answer) if response.headers["Content-Type"] == JSON else answer


def inputs(**arrays: Any) -> bytes:
    return json.dumps({"inputs": arrays}).encode()


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_answers(service: Service) -> None:
    assert asked(service, inputs(x=[ROW])) == (200, {"outputs": {"y": [[2 * x for x in ROW]]}})
    assert asked(service, inputs(a=[1, 2], b=[3, 4]), name="pair") == (200, {"outputs": {"y": [4.0, 6.0]}})
    status, answer = asked(service, npy(np.array([ROW], np.float32)), NPY)
    assert (status, npy_array(answer).tolist()) == (200, [[2 * x for x in ROW]])


def test_health_and_descriptions(service: Service) -> None:
    asked(service, inputs(x=[ROW]))
    status, found = asked(service, b"", name="/healthz", method="GET")
    assert (status, found["status"], found["networks"], found["waiting"]) == (200, "ok", ["small", "pair"], 0)
    assert found["answers"] == {"200": 1}
    status, found = asked(service, b"", name=PREFIX, method="GET")
    assert (status, found["small"]["inputs"]) == (200, {"x": {"dims": [1, 8], "type": "float32"}})
    assert asked(service, b"", name="/nowhere", method="GET")[0] == 404


@pytest.mark.parametrize(
    ("body", "kind", "name", "status", "says"),
    [
        (b"{}", JSON, "nobody", 404, "no network"),
        (b"{}", "text/plain", "small", 415, "Content-Type must be"),
        (b"x" * 4097, JSON, "small", 413, "4096 bytes"),
        (b"", JSON, "small", 400, "must be JSON"),
        (b"{", JSON, "small", 400, "must be JSON"),
        (b"[]", JSON, "small", 400, "must be JSON"),
        (b'{"inputs": 1}', JSON, "small", 400, "must be JSON"),
        (b"\xff\xfe", JSON, "small", 400, "must be JSON"),
        (b"[" * 4000, JSON, "small", 400, "must be JSON"),
        (b'{"inputs": {"x": [NaN]}}', JSON, "small", 400, "must be JSON"),
        (b'{"inputs": {"x": [1e999]}}', JSON, "small", 400, "finite numbers"),
        (inputs(z=[ROW]), JSON, "small", 400, "inputs must be x, not 'z'"),
        (inputs(x=[ROW], z=1), JSON, "small", 400, "inputs must be x"),
        (inputs(x=ROW), JSON, "small", 400, "x"),
        (inputs(x=[[1, 2], [3]]), JSON, "small", 400, "nested lists of equal lengths"),
        (inputs(x="words"), JSON, "small", 400, "nested lists"),
        (inputs(x=[["1"] * 8]), JSON, "small", 400, "nested lists"),
        (inputs(x=[[True] * 8]), JSON, "small", 200, ""),
        (inputs(x=[[1e39] * 8]), JSON, "small", 400, "finite numbers"),
        (inputs(x=[[3e38] * 8]), JSON, "small", 422, "not finite"),
        (b"no file", NPY, "small", 400, "no npy file"),
        (npy(np.zeros((1, 8))), NPY, "small", 400, "x must be float32, not float64"),
        (npy(np.zeros((8, 1), np.float32)), NPY, "small", 400, "x"),
        (npy(np.zeros((1, 8), np.float32))[:-1], NPY, "small", 400, "says 32 bytes of data, and has 31"),
        (npy(np.zeros(2, np.float32)), NPY, "pair", 415, "several inputs"),
    ],
)
def test_refusals(body: bytes, kind: str, name: str, status: int, says: str, service: Service) -> None:
    found, answer = asked(service, body, kind, name)
    assert found == status
    assert says in json.dumps(answer).replace('\\"', '"')
    assert asked(service, inputs(x=[ROW]))[0] == 200  # and the next request is answered


@pytest.mark.parametrize("header", ["(10000000000, 10000000000)", "(-1,)", "(1 << 70,)"])
def test_an_npy_file_that_claims_too_much_allocates_nothing(header: str) -> None:
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {header}, }}\n".encode()
    with pytest.raises(Refused):
        npy_array(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(32))


def test_an_npy_file_of_objects_is_refused() -> None:
    text = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n"
    with pytest.raises(Refused, match="cannot be taken"):
        npy_array(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(8))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("", b"411"),
        ("Transfer-Encoding: chunked\r\n", b"411"),
        ("Content-Length: -1\r\n", b"400"),
        ("Content-Length: 99999999999999999999999\r\n", b"413"),
        ("Content-Length: 9\r\n", b"408"),  # and nothing follows
    ],
)
def test_lengths_and_slow_clients(headers: str, status: bytes, service: Service) -> None:
    with socket.create_connection(service.server_address[:2], timeout=30) as connection:
        connection.sendall(f"POST {PREFIX}/small HTTP/1.1\r\nContent-Type: {JSON}\r\n{headers}\r\n".encode())
        answer = connection.makefile("rb").read()  # to the end: the connection is closed
    assert answer.split()[1] == status


def test_a_client_that_never_says_anything_is_left(service: Service) -> None:
    with socket.create_connection(service.server_address[:2], timeout=30) as connection:
        connection.sendall(b"POST ")
        assert connection.recv(1) == b""


def test_more_connections_than_allowed(service: Service) -> None:
    held = [socket.create_connection(service.server_address[:2], timeout=30) for _ in range(LIMITS.connections + 1)]
    assert held[-1].recv(100).startswith(b"HTTP/1.1 503 ")
    for connection in held:
        connection.close()


def test_a_full_queue_is_a_503_and_loses_nothing(tmp_path: Path) -> None:
    crew, gate, begun = Crew(1, 1), threading.Event(), threading.Event()
    running = Service(("127.0.0.1", 0), Shelf({"small": saved(tmp_path / "small.pack")}), crew, LIMITS)
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    try:
        held = crew.submit(lambda: (begun.set(), gate.wait(30)))
        assert begun.wait(30)
        waiting = crew.submit(lambda: "my turn")
        status, answer = asked(running, inputs(x=[ROW]))
        assert (status, answer["error"]) == (503, "too many requests wait: come again later")
        gate.set()
        assert (held.result(30), waiting.result(30)) == ((None, True), "my turn")
        assert asked(running, inputs(x=[ROW]))[0] == 200
    finally:
        gate.set()
        running.stop()


def test_a_turn_that_does_not_come_is_a_503(tmp_path: Path) -> None:
    crew, gate = Crew(1, 4), threading.Event()
    shelf, limits = Shelf({"small": saved(tmp_path / "small.pack")}), Limits(read_s=5, answer_s=0.05)
    running = Service(("127.0.0.1", 0), shelf, crew, limits)
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    try:
        crew.submit(gate.wait, 30)
        status, answer = asked(running, inputs(x=[ROW]))
        assert (status, "did not come in time" in answer["error"]) == (503, True)
    finally:
        gate.set()
        running.stop()


@pytest.mark.parametrize("rate", [0.0, 300.0])
def test_all_answers_under_load_are_right(rate: float, service: Service) -> None:
    pairs = load.exchanges(dnn.load_network(service.shelf.paths["small"], threads=1))
    target = load.Target(host(service), f"{PREFIX}/small", rate, 0.4)
    tally, _ = load.loaded(target, pairs, clients=8)
    assert (tally.wrong, tally.failed) == (0, 0)
    assert tally.seconds
    if rate:
        assert len(tally.seconds) + tally.busy == rate * 0.4


def test_the_load_client_sees_wrong_answers(service: Service) -> None:
    pairs = load.exchanges(dnn.load_network(service.shelf.paths["small"], threads=1))
    swapped = [(body, pairs[i - 1][1]) for i, (body, _) in enumerate(pairs)]
    tally, _ = load.loaded(load.Target(host(service), f"{PREFIX}/small", 100.0, 0.1), swapped, clients=1)
    assert tally.wrong == 10
    assert not tally.seconds


def test_a_pack_that_is_replaced_serves_from_reload_on(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    path = service.shelf.paths["small"]
    saved(path, 3.0)
    assert asked(service, inputs(x=[ROW]))[1]["outputs"]["y"][0][1] == 2.0
    reload(service.shelf)
    assert asked(service, inputs(x=[ROW]))[1]["outputs"]["y"][0][1] == 3.0
    path.unlink()
    path.write_bytes(b"no pack")
    reload(service.shelf)
    assert "the old networks stay" in capsys.readouterr().err
    assert asked(service, inputs(x=[ROW]))[1]["outputs"]["y"][0][1] == 3.0


def kill_one(parent: int) -> None:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    serving = [child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    os.kill(int(serving[0]), signal.SIGKILL)


@pytest.mark.parametrize("processes", [1, 2])
def test_as_processes(processes: int, tmp_path: Path) -> None:
    """Started, asked by the load client, told to load again, and ended."""
    pack = saved(tmp_path / "small.pack")
    command = [sys.executable, "-m", "examples.serve", f"small={pack}", "--port=0", f"--processes={processes}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ) as process:
        assert process.stdout
        lines = [process.stdout.readline() for _ in range(processes)]
        address = lines[0].split()[-1]
        assert all(line == f"serving small on {address}\n" for line in lines)
        try:
            assert load.main([f"http://{address}", "small", str(pack), "--seconds=0.3"]) == 0
            if processes > 1:
                kill_one(process.pid)
                assert process.stdout.readline() == lines[0]  # another one has begun
            process.send_signal(signal.SIGHUP)
            assert load.main([f"http://{address}", "small", str(pack), "--seconds=0.3"]) == 0
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.parametrize(
    "words",
    [["small"], ["=x"], ["a/b=x"], ["a=x", "--port=70000"], ["a=x", "--waiting=0"], ["a=x", "--timeout=nan"], []],
)
def test_wrong_options(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        options(words)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_a_pack_that_is_not_there_is_one_sentence() -> None:
    command = [sys.executable, "-m", "examples.serve", "a=/nowhere.pack", "--port=0"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "/nowhere.pack" in done.stderr


def onnx_file(path: Path) -> Path:
    nodes = [wire.node("MatMul", ["x", "w"], ["y"])]
    path.write_bytes(wire.model(wire.graph(nodes, {"x": ("n", 8)}, ["y"], {"w": np.eye(8, dtype=np.float32)})))
    return path


def test_onnxruntime_answers_behind_the_same_service(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    path = onnx_file(tmp_path / "net.onnx")
    shelf = Shelf({"small": path})
    running = Service(("127.0.0.1", 0), shelf, Crew(1, 4), LIMITS)
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    try:
        target = load.Target(host(running), f"{PREFIX}/small", 0.0, 0.2)
        tally, _ = load.loaded(target, load.exchanges(network_at(path, 1), (1, 8)), 2)
    finally:
        running.stop()
    assert isinstance(shelf.get("small"), Peer)
    assert len(tally.seconds) == len(tally.served) > 0 and not (tally.wrong or tally.failed or tally.busy)
    assert max(tally.served) <= tally.longest


def test_what_onnxruntime_refuses_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    with pytest.raises(dnn.InvalidArguments, match=r"broken.onnx: onnxruntime says"):
        network_at(tmp_path / "broken.onnx", 1)
    peer = network_at(onnx_file(tmp_path / "net.onnx"), 1)
    with pytest.raises(dnn.InvalidArguments, match="x"):
        peer.run({"x": np.zeros((1, 3), np.float32)})


@pytest.mark.parametrize("words", [["--shape=1xx3"], ["--requests=0"], ["--clients=251"], ["--rounds=0"]])
def test_wrong_words_of_overload(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        overload.main(["none.onnx", "--shape=1x8", *words])
    assert stopped.value.code == 2 and words[0].partition("=")[0] in capsys.readouterr().err


@pytest.mark.slow
def test_twice_the_capacity_loses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    words = [str(onnx_file(tmp_path / "net.onnx")), "--shape=1x8", "--requests=400", "--rounds=1", "--clients=8"]
    assert overload.main(words) == 0
    assert capsys.readouterr().out.count(" 0 failed, 0 wrong; ") == 4
