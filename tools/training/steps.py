"""A training step of a model on this side: stochastic gradient descent with momentum, cross entropy."""

from collections.abc import Callable
from typing import Any

import numpy as np

import asmdnn as dnn
from tools.training.layers import Array, GraphLayers
from tools.training.models import Model

RATE, MOMENTUM = 0.01, 0.9
Step = Callable[[], float]


def data(model: Model, batch: int) -> tuple[Array, Array]:
    random = np.random.default_rng(3)
    x = random.standard_normal(model.dims(batch)).astype(np.float32)
    return x, random.integers(0, model.classes, model.labels(batch))


def own_step(model: Model, batch: int, engine: dnn.Engine, **options: Any) -> dnn.TrainingStep:
    x, t = data(model, batch)
    g = dnn.Graph("model")
    scores = model.scores(GraphLayers(g), g.input("x", x.shape), batch)
    if len(model.labels(batch)) == 2:  # a class for every place of a sequence
        scores = g.apply("Reshape", scores, np.array([t.size, model.classes]))
    labels = t.shape if len(t.shape) != 2 else (t.size,)
    loss = g.apply("SoftmaxCrossEntropyLoss", scores, g.input("t", labels, np.int64))
    return g.train(loss, dnn.optim.SGD(RATE, momentum=MOMENTUM), engine=engine, **options)


def own(model: Model, batch: int, engine: dnn.Engine, **options: Any) -> Step:
    step, (x, t) = own_step(model, batch, engine, **options), data(model, batch)
    t = t.reshape(step.inputs["t"][0])
    return lambda: step(x=x, t=t)
