"""The service: one thread a connection that reads and writes, a crew after a bounded queue that computes.

GET  /healthz               200: networks, requests that wait, and how many were answered and refused
GET  /v1/networks           names, dims and types of inputs and outputs
POST /v1/networks/NAME      an answer in the type of the request, application/json or application/x-npy

400 wrong data, 404 no such network, 408 a body that came too slowly, 411 no length, 413 too long, 415 wrong type,
503 with Retry-After: the queue is full, or the turn did not come in time; 504: the network took too long.
"""

import io
import json
import queue
import socket
import threading
from collections.abc import Callable
from concurrent.futures import TimeoutError as NotDone
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any, Final

import asmdnn as dnn
from examples.serve.bodies import JSON, TYPES, Refused, body_of, feeds_of
from examples.serve.peer import Peer
from examples.serve.work import Crew, Shelf

RETRY_S: Final = 1
PREFIX: Final = "/v1/networks"
BUSY: Final = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds for a request to come, and for its answer to be made; bytes of a body; connections at a time."""

    read_s: float = 10.0
    answer_s: float = 5.0
    body_bytes: int = 16 << 20
    connections: int = 256


class TimedReader(io.RawIOBase):
    """A socket that must have said everything by `deadline`, however slowly it drips."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.deadline = connection, 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.deadline - monotonic()
        if left <= 0:
            raise TimeoutError
        self.connection.settimeout(left)
        return self.connection.recv_into(buffer)


class Service(ThreadingHTTPServer):
    """Networks after an address; port 0 takes a free one.  Several processes may share a port."""

    request_queue_size = 128
    daemon_threads = False  # closing waits for answers that are being written

    def __init__(self, address: tuple[str, int], shelf: Shelf, crew: Crew, limits: Limits | None = None) -> None:
        self.shelf, self.crew, self.limits = shelf, crew, limits or Limits()
        self.stopping, self.counts, self._lock = False, dict[int, int](), threading.Lock()
        self._places = threading.BoundedSemaphore(self.limits.connections)
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(blocking=False):
            request.settimeout(0.0)
            with suppress(OSError):
                request.send(BUSY)
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no error of the service."""

    def count(self, status: int) -> None:
        with self._lock:
            self.counts[status] = self.counts.get(status, 0) + 1

    def stop(self) -> None:
        """Take no more connections, answer what has come, and return; from another thread than serve_forever's."""
        self.stopping = True
        self.shutdown()
        self.server_close()
        self.crew.close()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Service

    def setup(self) -> None:
        super().setup()
        self.timed = TimedReader(self.connection)
        self.rfile = io.BufferedReader(self.timed)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def handle_one_request(self) -> None:
        self.timed.deadline = monotonic() + self.server.limits.read_s
        self.close_connection = True  # unless parse_request finds otherwise
        super().handle_one_request()

    def do_GET(self) -> None:
        self._answer(self._found)

    def do_POST(self) -> None:
        self._answer(self._computed)

    def _answer(self, make: Callable[[], tuple[bytes, str]]) -> None:
        self.unread = True
        try:
            (body, kind), status = make(), 200
        except Refused as refused:
            body, kind, status = json.dumps({"error": refused.why}).encode(), JSON, refused.status
        self.server.count(status)
        self.connection.settimeout(self.server.limits.read_s)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", str(RETRY_S))
        if self.server.stopping or (self.unread and self.command == "POST"):  # what is unread is no next request
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _found(self) -> tuple[bytes, str]:
        crew, counts = self.server.crew, dict(self.server.counts)
        if self.path == "/healthz":
            found = {"status": "ok", "networks": list(self.server.shelf.paths), "waiting": crew.waiting}
            return json.dumps({**found, "answers": counts}).encode(), JSON
        if self.path == PREFIX:
            return json.dumps(self.server.shelf.described()).encode(), JSON
        raise Refused(404, f"nothing is at {self.path[:200]}: /healthz and {PREFIX} are there")

    def _computed(self) -> tuple[bytes, str]:
        body = self._body()
        prefix, _, name = self.path.rpartition("/")
        net = self.server.shelf.get(name) if prefix == PREFIX else None
        if net is None:
            raise Refused(404, f"no network is at {self.path[:200]}: see {PREFIX}")
        kind = self.headers.get_content_type()
        if kind not in TYPES:
            raise Refused(415, f"Content-Type must be {' or '.join(TYPES)}, not {kind[:80]}")
        return body_of(self._run(net, feeds_of(body, kind, net)), kind), kind

    def _run(self, net: dnn.Network | Peer, feeds: dict[str, Any]) -> dict[str, Any]:
        try:
            future = self.server.crew.submit(net.run, feeds)
        except queue.Full:
            raise Refused(503, "too many requests wait: come again later") from None
        try:
            results: dict[str, Any] = future.result(self.server.limits.answer_s)
            return results
        except NotDone:
            if future.cancel():
                raise Refused(503, "the turn of the request did not come in time: come again later") from None
            raise Refused(504, "the network takes too long") from None
        except dnn.InvalidArguments as error:
            raise Refused(400, str(error)) from None
        except (dnn.AsmdnnError, MemoryError) as error:
            raise Refused(500, f"the network cannot be run: {error}") from None

    def _body(self) -> bytes:
        text, most = self.headers.get("Content-Length", ""), self.server.limits.body_bytes
        if "Transfer-Encoding" in self.headers or not text:
            raise Refused(411, "Content-Length is missing")
        if not (text.isascii() and text.isdecimal()):
            raise Refused(400, "Content-Length is no number")
        if len(text) > 18 or int(text) > most:
            raise Refused(413, f"a body may have {most} bytes")
        try:
            body = self.rfile.read(int(text))
        except TimeoutError:
            raise Refused(408, "the body did not come in time") from None
        if len(body) != int(text):
            raise Refused(400, "the body is shorter than Content-Length says")
        self.unread = False
        return body

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: /healthz has the counts."""
