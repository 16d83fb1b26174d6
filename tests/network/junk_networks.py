"""Valid calls of networks, in which junk is put in the place of every argument."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import asmdnn as dnn
from tests.network import wire
from tests.processes.junk import ENGINE, Arguments, Call, array

MODEL = wire.small()
PRODUCT = wire.model(wire.graph([wire.node("MatMul", ["x", "w"], ["y"])], {"x": (2, 4)}, ["y"], {"w": array(4, 3)}))


def one_relu(**arguments: Any) -> dnn.Network:
    """A network of one node, whose input has these arguments."""
    graph = dnn.Graph()
    x = graph.input(**arguments)
    return graph.compile(y=graph.apply("Relu", x), engine=ENGINE)


def applied(**arguments: Any) -> dnn.Network:
    """A network of one node with these arguments."""
    graph = dnn.Graph()
    x = graph.input("x", (2, 3))
    y = graph.apply(arguments.pop("op"), x, arguments.pop("operand"), **arguments)
    return graph.compile(y=y, engine=ENGINE)


def normalized(**arguments: Any) -> dnn.Network:
    """A network whose node has attributes."""
    graph = dnn.Graph()
    x = graph.input("x", (1, 2, 5, 5))
    return graph.compile(y=graph.apply("Conv", x, array(3, 2, 3, 3), **arguments), engine=ENGINE)


def of_any_dims() -> dnn.OpenNetwork:
    """A network of one node, with one dim that has a range."""
    graph = dnn.Graph()
    y = graph.apply("Relu", graph.input("x", ("m", "n")))
    net = graph.compile({"x": ("m", dnn.Dim("n", 1, 64, multiple=3))}, y=y, engine=ENGINE)
    assert isinstance(net, dnn.OpenNetwork)
    return net


def with_state(**arguments: Any) -> dnn.Network:
    """A network with a state that has these arguments."""
    graph = dnn.Graph()
    return graph.compile(y=graph.state(**arguments) + 1.0, engine=ENGINE)


def updated(**arguments: Any) -> dnn.Network:
    """A network that writes to a state."""
    graph = dnn.Graph()
    state = graph.state("s", (4, 3))
    graph.update(state, **arguments)
    return graph.compile(y=state * 2.0, engine=ENGINE)


def sum_of(a: Any, b: Any) -> Any:
    return a + b


def mapped(**arguments: Any) -> dnn.Network:
    """A network with a function of the caller's."""
    graph = dnn.Graph()
    x = graph.input("x", (2, 3))
    y = graph.map(arguments.pop("function"), x, arguments.pop("operand"), **arguments)
    return graph.compile(y=y, engine=ENGINE)


def compiled(**arguments: Any) -> dnn.Network:
    graph = dnn.Graph()
    y = graph.apply("Relu", graph.input("x", (2, "n")))
    return graph.compile(**{"y": y, **arguments})


def differentiated(**arguments: Any) -> dnn.Network:
    """A network that computes a gradient; loss, wrt: symbols of it where they are names."""
    graph = dnn.Graph()
    x = graph.input("x", (2, 3))
    known = {"x": x, "loss": graph.apply("ReduceSum", graph.apply("Exp", x), keepdims=0)}
    loss, wrt = (known.get(a, a) if isinstance(a, str) else a for a in (arguments["loss"], arguments["wrt"]))
    found = graph.gradients(loss, [wrt] if wrt is x else wrt)
    return graph.compile(y=found[0] if found else loss, engine=ENGINE)


def learning(**arguments: Any) -> dnn.TrainingStep:
    """A training step; loss, outputs: symbols of it where they are names."""
    graph = dnn.Graph()
    w = graph.parameter("w", (3, 2))
    y = graph.apply("Relu", graph.input("x", (2, 3)) @ w)
    loss = graph.apply("ReduceMean", y, keepdims=0)
    known = {"loss": loss, "outputs": {"y": y}}
    return graph.train(**{name: known.get(x, x) if isinstance(x, str) else x for name, x in arguments.items()})


def parameter_of(**arguments: Any) -> dnn.Network:
    graph = dnn.Graph()
    return graph.compile(y=graph.parameter(**arguments) + 1.0, engine=ENGINE)


def steps(directory: Path) -> dict[str, Call]:
    """What training steps take."""
    step = learning(loss="loss", optimizer=dnn.optim.SGD(0.1), outputs="outputs", engine=ENGINE)
    model = directory / "learned.onnx"
    step.export(model)
    state, kept = step.state_dict(), directory / "step.npz"
    step.save(kept)
    optim, x = dnn.optim, array(2, 3)
    both: Arguments = {"weight_decay": 0.1, "groups": {"*.bias": {"weight_decay": 0}, "w": None}}
    falling: Arguments = {"peak": 0.1, "steps": 9, "warmup": 2, "least": 0.01}
    moments: Arguments = {"lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-8, **both}
    return {
        "Graph.parameter": (parameter_of, lambda: {"name": "w", "shape": (3, 4), "init": "he_normal"}),
        "Graph.from_onnx": (dnn.Graph.from_onnx, lambda: {"path": model, "shapes": {"x": (2, 3)}, "train": ["w"]}),
        "Graph.value": (dnn.Graph.from_onnx(model).value, lambda: {"name": "y"}),
        "Graph.train": (
            learning,
            lambda: {
                "loss": "loss",
                "optimizer": optim.Adam(),
                "outputs": "outputs",
                "clip_norm": 1.0,
                "accumulate": 2,
                "ema": 0.9,
                "check_finite": True,
                "engine": ENGINE,
            },
        ),
        "TrainingStep": (step, lambda: {"x": x}),
        "TrainingStep.run": (step.run, lambda: {"feeds": {"x": x}}),
        "TrainingStep.bind": (step.bind, lambda: {"x": x, "y": array(2, 2)}),
        "TrainingStep.profile": (step.profile, lambda: {"feeds": {"x": x}, "repeats": 2}),
        "TrainingStep.gradients": (step.gradients, lambda: {"x": x}),
        "TrainingStep.apply": (step.apply, lambda: {"gradients": {"w": array(3, 2)}}),
        "TrainingStep.export": (step.export, lambda: {"path": directory / "model.onnx"}),
        "TrainingStep.verify": (step.verify, lambda: {"feeds": {"x": x}}),
        "TrainingStep.page": (step.page, lambda: {"feeds": {"x": x}, "repeats": 1}),
        "TrainingStep.load_state_dict": (step.load_state_dict, lambda: {"state": state, "strict": True}),
        "TrainingStep.save": (step.save, lambda: {"path": directory / "saved.npz"}),
        "TrainingStep.load": (step.load, lambda: {"path": kept, "strict": True}),
        "optim.SGD": (optim.SGD, lambda: {"lr": 0.1, "momentum": 0.9, "nesterov": True, **both}),
        "optim.Adam": (optim.Adam, lambda: moments),
        "optim.AdamW": (optim.AdamW, lambda: moments),
        "optim.RMSprop": (optim.RMSprop, lambda: {"lr": 0.1, "alpha": 0.9, "eps": 1e-8, "momentum": 0.5, **both}),
        "optim.Lion": (optim.Lion, lambda: {"lr": 0.1, "betas": (0.9, 0.99), **both}),
        "optim.constant": (optim.constant, lambda: {"peak": 0.1, "warmup": 2}),
        "optim.linear": (optim.linear, lambda: falling),
        "optim.cosine": (optim.cosine, lambda: falling),
    }


def of_torch() -> dict[str, Call]:
    """None where torch is not installed."""
    if find_spec("torch") is None:
        return {}
    import torch

    module, x = torch.nn.Sequential(torch.nn.Linear(3, 2)).eval(), torch.ones(2, 3)
    options = {"engine": ENGINE, "fallback": "numpy"}
    net = dnn.from_torch(module, (x,), engine=ENGINE)
    return {
        "from_torch": (dnn.from_torch, lambda: {"module": module, "example_inputs": (x,), **options}),
        "TorchNetwork.run": (net.run, lambda: {"tensors": [x]}),
        "TorchNetwork.load_state_dict": (net.load_state_dict, lambda: {"state": module.state_dict()}),
        "TorchNetwork.load_state_dict by names": (lambda **state: net.load_state_dict(state), module.state_dict),
    }


def calls(directory: Path) -> dict[str, Call]:
    return of_torch() | steps(directory) | of_files(directory) | of_graphs() | of_losses() | of_networks(directory)


def of_losses() -> dict[str, Call]:
    """Each with symbols of a graph of its own."""
    losses = dnn.losses

    def given(**kinds: Any) -> Callable[[], Arguments]:
        def arguments() -> Arguments:
            graph = dnn.Graph()
            return {name: graph.input(name, *kind) if isinstance(kind, tuple) else kind for name, kind in kinds.items()}

        return arguments

    floats, labels, counts = ((3, 4), np.float32), ((3,), np.int64), ((2,), np.int64)
    sequences = {"scores": ((5, 2, 4), np.float32), "targets": ((2, 2), np.int64)}
    lengths = {"target_lengths": counts, "input_lengths": counts, "blank": 0}
    return {
        "losses.mean_squared_error": (losses.mean_squared_error, given(x=floats, target=floats)),
        "losses.mean_absolute_error": (losses.mean_absolute_error, given(x=floats, target=floats)),
        "losses.binary_cross_entropy_with_logits": (
            losses.binary_cross_entropy_with_logits, given(logits=floats, target=floats),
        ),
        "losses.cross_entropy": (losses.cross_entropy, given(scores=floats, target=labels, smoothing=0.1)),
        "losses.ctc": (losses.ctc, given(**sequences, **lengths)),
    }  # fmt: skip


def of_files(directory: Path) -> dict[str, Call]:
    path = directory / "valid.onnx"
    path.write_bytes(MODEL)
    loaded: Arguments = {"shapes": {"x": (1, 3, 4, 8)}, "constants": {}, "engine": ENGINE, "fallback": "numpy"}
    return {
        "load_onnx": (dnn.load_onnx, lambda: {"path": path, **loaded}),
        "load_onnx within an error": (
            lambda **given: dnn.load_onnx(MODEL, {"x": (1, 3, 4, 8)}, engine=ENGINE, **given),
            lambda: {
                "precision": "f32", "io": "file", "keep_f32": (), "max_error": 1.0, "feeds": {"x": array(1, 3, 4, 8)}
            },
        ),
        "quantize": (
            dnn.quantize,
            lambda: {
                "source": PRODUCT, "feeds": {"x": array(2, 4)}, "method": "static", "keep_f32": (), "max_error": 1.0,
                "calibration": dnn.Calibration(), "engine": ENGINE,
            },
        ),
        "Calibration": (
            dnn.Calibration,
            lambda: {"rule": "entropy", "percentile": 99.9, "activations": "s8", "correct_bias": False},
        ),
        "load_onnx by dims": (
            lambda **shapes: dnn.load_onnx(MODEL, shapes, engine=ENGINE, fallback="numpy"), lambda: {"x": (1, 3, 4, 8)}
        ),
    }  # fmt: skip


def of_graphs() -> dict[str, Call]:
    x = array(2, 3)
    return {
        "Graph": (dnn.Graph, lambda: {"name": "graph", "seed": 0}),
        "Graph.input": (one_relu, lambda: {"name": "x", "shape": (2, 3), "dtype": np.float32}),
        "Graph.apply": (applied, lambda: {"op": "Add", "operand": array(3), "results": 1, "name": "sum"}),
        "Graph.apply with attributes": (
            normalized,
            lambda: {"pads": (1, 1, 1, 1), "strides": (1, 1), "dilations": (1, 1), "group": 1, "auto_pad": "NOTSET"},
        ),
        "Graph.map": (mapped, lambda: {"function": sum_of, "operand": array(3), "name": "sum"}),
        "Graph.state": (
            with_state,
            lambda: {"name": "s", "shape": (2, 3), "dtype": np.float32, "initial": array(2, 3), "trainable": True},
        ),
        "Graph.update": (updated, lambda: {"value": array(2, 3), "at": 1}),
        "Graph.gradients": (differentiated, lambda: {"loss": "loss", "wrt": "x"}),
        "Graph.compile": (compiled, lambda: {"shapes": {"x": (2, 3)}, "engine": ENGINE, "fallback": None}),
        "Graph.compile with parameters": (compiled, lambda: {"shapes": {"x": (2, 3)}, "parameters": {}}),
        "Graph.compile within an error": (
            compiled,
            lambda: {"precision": "f32", "io": "file", "keep_f32": (), "max_error": 1.0, "feeds": {"x": x}},
        ),
    }  # fmt: skip


def of_networks(directory: Path) -> dict[str, Call]:
    net, anything = one_relu(name="x", shape=(2, 3)), of_any_dims()
    kept, x = directory / "kept.pack", array(2, 3)
    net.save(kept)
    return {
        "Network": (net, lambda: {"x": x}),
        "Network.run": (net.run, lambda: {"feeds": {"x": x}}),
        "Network.run by name": (lambda **feeds: net.run(feeds), lambda: {"x": x}),
        "Network.bind": (net.bind, lambda: {"x": x, "y": array(2, 3)}),
        "Network.profile": (net.profile, lambda: {"feeds": {"x": x}, "repeats": 1}),
        "Network.times": (net.times, lambda: {"feeds": {"x": x}, "repeats": 1}),
        "Network.page": (net.page, lambda: {"feeds": {"x": x}, "repeats": 1}),
        "Network.analyze": (net.analyze, lambda: {"feeds": {"x": x}, "repeats": 1}),
        "Network.dump": (net.dump, lambda: {"path": directory / "dumped", "formats": ("bin",)}),
        "Network.save": (net.save, lambda: {"path": directory / "saved.pack"}),
        "export_c": (dnn.export_c, lambda: {"source": net, "folder": directory / "c", "name": "net"}),
        "load_network": (dnn.load_network, lambda: {"path": kept, "threads": 1, "sha256": ""}),
        "Network.of_image": (dnn.Network.of_image, lambda: {"image": kept.read_bytes(), "threads": 1}),
        "OpenNetwork.of_image": (dnn.OpenNetwork.of_image, lambda: {"image": kept.read_bytes(), "threads": 1}),
        "Network.verify": (net.verify, lambda: {"feeds": {"x": x}}),
        "Dim": (dnn.Dim, lambda: {"name": "n", "least": 1, "most": 64, "multiple": 8}),
        "OpenNetwork": (anything, lambda: {"x": x}),
        "OpenNetwork.run": (anything.run, lambda: {"feeds": {"x": x}}),
        "OpenNetwork.at": (anything.at, lambda: {"shapes": {"x": (2, 3)}}),
        "OpenNetwork.at by dims": (lambda **shapes: anything.at(shapes), lambda: {"x": (2, 3)}),
        "OpenNetwork.prepare": (anything.prepare, lambda: {"shapes": [{"x": (2, 3)}]}),
        "OpenNetwork.bind": (anything.bind, lambda: {"x": x, "y": array(2, 3)}),
        "OpenNetwork.profile": (anything.profile, lambda: {"feeds": {"x": x}, "repeats": 1}),
        "OpenNetwork.times": (anything.times, lambda: {"feeds": {"x": x}, "repeats": 1}),
        "OpenNetwork.page": (anything.page, lambda: {"feeds": {"x": x}, "repeats": 1}),
        "OpenNetwork.analyze": (anything.analyze, lambda: {"feeds": {"x": x}, "repeats": 1}),
        "OpenNetwork.dump": (anything.dump, lambda: {"path": directory / "dumped", "formats": ("bin",)}),
        "OpenNetwork.save": (anything.save, lambda: {"path": directory / "saved.pack"}),
        "OpenNetwork.save of a shape": (
            anything.save,
            lambda: {"path": directory / "saved.pack", "shape": {"x": (2, 3)}},
        ),
        "OpenNetwork.check": (anything.check, lambda: {"shape": {"x": (2, 3)}}),
        "OpenNetwork.explain": (anything.explain, lambda: {"shape": {"x": (2, 3)}}),
        "OpenNetwork.page of a shape": (anything.page, lambda: {"title": "a page", "shape": {"x": (2, 3)}}),
        "OpenNetwork.dump of a shape": (
            anything.dump,
            lambda: {"path": directory / "dumped", "formats": ("bin",), "shape": {"x": (2, 3)}},
        ),
        "OpenNetwork.verify": (anything.verify, lambda: {"feeds": {"x": x}}),
    }  # fmt: skip
