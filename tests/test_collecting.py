"""The collector of cycles: off while plans are made, and afterwards as the program had it."""

import gc
import os
import threading
from collections.abc import Iterator

import pytest

import asmdnn as dnn
from asmdnn.collecting import without_collections
from tests.network.nets import engine, random


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_it_is_off_inside_and_on_afterwards() -> None:
    with without_collections():
        assert not gc.isenabled()
        with without_collections():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), without_collections():
        raise ZeroDivisionError
    assert gc.isenabled()


def test_what_a_program_switched_off_stays_off() -> None:
    gc.disable()
    with without_collections():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_the_last_thread_switches_it_on() -> None:
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with without_collections():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=stay)
    thread.start()
    assert entered.wait(10)
    with without_collections():
        pass
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_a_fork_has_it_on() -> None:
    with without_collections():
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.isa("avx2")
def test_a_network_leaves_it_on() -> None:
    graph = dnn.Graph()
    graph.compile(y=graph.apply("Relu", graph.input("x", (2, 3))), engine=engine())(random(2, 3))
    assert gc.isenabled()
