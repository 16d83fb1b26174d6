"""Weights that shapes of an open network read in several formats: each is packed, held, kept and saved once in each."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.calls.weights import WeightPiece, WeightPieces, in_pieces
from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.joining.arena import aligned
from asmdnn.network.open import OpenNetwork
from tests.network import wire
from tests.network.keeping import files, is_kept, own_directory
from tests.network.nets import engine, random

pytestmark = pytest.mark.isa("avx2")

SHAPES = [(1, 64, 7, 7), (2, 64, 7, 7), (4, 64, 7, 7), (3, 64, 7, 7), (1, 64, 1, 7), (2, 64, 4, 7), (1, 64, 7, 7)]
CONSTANTS = {f"w{i}": random(n, 64, k, k) for i, (n, k) in enumerate(((64, 1), (64, 3), (32, 1)))}

directory = pytest.fixture(own_directory)


def convolutions() -> bytes:
    """Three, of which the middle one goes another way where there are few tiles, and the first one in low images."""
    names = ["x", "a", "b", "y"]
    nodes = [
        wire.node("Conv", [names[i], f"w{i}"], [names[i + 1]], pads=[w.shape[-1] // 2] * 4)
        for i, w in enumerate(CONSTANTS.values())
    ]
    return wire.model(wire.graph(nodes, {"x": ("n", 64, "h", 7)}, ["y"], CONSTANTS))


MODEL = convolutions()


def opened() -> OpenNetwork:
    net = dnn.load_onnx(MODEL, engine=engine())
    assert isinstance(net, OpenNetwork)
    return net


def run(net: dnn.Network) -> list[np.ndarray]:
    return [net(np.full(dims, 0.25, np.float32)) for dims in SHAPES]


def segment(net: OpenNetwork) -> CompiledSegment:
    (found,) = net.last.segments
    assert isinstance(found, CompiledSegment)
    return found


def weights_of(net: OpenNetwork) -> WeightPieces:
    return net.last._native("looked at").runner.weights


def sizes(packed: Sequence[WeightPieces]) -> int:
    """Bytes of all that they read."""
    return sum({piece.blob.ctypes.data: len(piece.blob) for one in packed for piece in one.pieces}.values())


def test_a_further_shape_packs_what_no_other_has_read_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASMDNN_CACHE", "0")
    net, held, numbers, lying = opened(), dict[tuple[str, object], int](), list[int](), list[WeightPieces]()
    for dims in SHAPES:
        x = random(*dims)
        alone = dnn.load_onnx(MODEL, {"x": dims}, engine=engine())
        np.testing.assert_array_equal(net(x), alone(x))
        own, packed = segment(net), weights_of(net)
        held |= {(name, weight.desc): aligned(weight.desc.size_bytes) for name, weight in own.weights.items()}
        assert own.pool.size_bytes == sum(held.values()) == sizes([*lying, packed])
        np.testing.assert_array_equal(packed.whole(), alone._native("looked at").runner.weights.whole())
        assert all(difference.fits for difference in net.verify({"x": x}))
        numbers.append(len(held))
        lying.append(packed)
    assert numbers[0] == len(CONSTANTS) and len(set(numbers)) > 3, "there are formats to choose from"
    assert max(len(packed.pieces) for packed in lying) > 1
    assert len(lying[0].pieces) == 1


def test_one_pack_has_each_format_once(tmp_path: Path) -> None:
    net = opened()
    wanted, path = run(net), tmp_path / "net.pack"
    net.save(path)
    other = dnn.load_network(path, 1)
    assert isinstance(other, OpenNetwork)
    for x, y in zip(run(other), wanted, strict=True):
        np.testing.assert_array_equal(x, y)
    packed = list[WeightPieces]()
    for dims in SHAPES:
        net.at({"x": dims}).prepare_to_run()
        other.at({"x": dims}).prepare_to_run()
        np.testing.assert_array_equal(weights_of(other).whole(), weights_of(net).whole())
        packed.append(weights_of(net))
    assert len({piece.blob.ctypes.data for dims in SHAPES for piece in pieces_at(other, dims)}) == 1
    assert len(pieces_at(other, SHAPES[0])[0].blob) == sizes(packed)
    other.at({"x": SHAPES[1]}).save(tmp_path / "one.pack")
    alone = dnn.load_network(tmp_path / "one.pack", 1)
    np.testing.assert_array_equal(alone(np.full(SHAPES[1], 0.25, np.float32)), wanted[1])


def pieces_at(net: OpenNetwork, dims: tuple[int, ...]) -> Sequence[WeightPiece]:
    net.at({"x": dims})
    return weights_of(net).pieces


def test_the_cache_on_disk_has_each_format_once(directory: Path) -> None:
    first = opened()
    first.prepare([{"x": dims} for dims in SHAPES])
    blobs = {piece.blob.ctypes.data for dims in SHAPES for piece in pieces_at(first, dims)}
    assert len(blobs) > 3
    assert len(files(directory)) == len(set(SHAPES)) + len(blobs) + 1, "shapes, weights, and what inputs may be"
    wanted, second = run(first), opened()
    for x, y in zip(run(second), wanted, strict=True):
        np.testing.assert_array_equal(x, y)
    for dims in SHAPES:
        assert is_kept(second.at({"x": dims}))
        second.check()
    assert len({piece.blob.ctypes.data for dims in SHAPES for piece in pieces_at(second, dims)}) == len(blobs)


def test_weights_that_are_gone_are_packed_again(directory: Path) -> None:
    """A cache on disk forgets the oldest files, which may be those that several shapes read."""
    first = opened()
    first.prepare([{"x": dims} for dims in SHAPES])
    wanted = run(first)
    (largest, *_) = sorted(files(directory), key=lambda file: -file.stat().st_size)
    largest.unlink()
    second = opened()
    for x, y in zip(run(second), wanted, strict=True):
        np.testing.assert_array_equal(x, y)


def test_pieces_of_a_tensor() -> None:
    one, two = np.arange(0, 100, dtype=np.uint8), np.arange(100, 200, dtype=np.uint8)
    parts = (one, 0, 10), (one, 10, 20), (two, 5, 7), (one, 30, 9)
    packed = in_pieces(WeightPiece(*part) for part in parts)
    assert [(piece.at, piece.size) for piece in packed.pieces] == [(0, 30), (5, 7), (30, 9)]
    assert packed.size == 46
    np.testing.assert_array_equal(packed.whole(), [*range(30), *range(105, 112), *range(30, 39)])
    for offset, blob, at in ((0, one, 0), (29, one, 29), (30, two, 5), (36, two, 11), (37, one, 30), (46, one, 39)):
        assert packed.address(offset) == blob.ctypes.data + at
    np.testing.assert_array_equal(packed.part(31, 3), [106, 107, 108])
    assert packed.holds(0, 30) and packed.holds(30, 7) and packed.holds(46, 0)
    assert not any(packed.holds(*part) for part in ((0, 31), (29, 2), (40, 7), (47, 0), (-1, 1)))
