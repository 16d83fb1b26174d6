"""Optimizers: how a training step moves parameters, and learning rates that depend on the step.

An optimizer is a frozen value.  Its rule is written in a graph's operators, so it becomes part of the step's one native
call; what changes from step to step is computed in double precision by Python and passed as a few numbers.
"""

from asmdnn.optim.adaptive import Adam, AdamW, Lion, RMSprop
from asmdnn.optim.descent import SGD
from asmdnn.optim.optimizer import Optimizer
from asmdnn.optim.schedules import constant, cosine, linear

__all__ = ["SGD", "Adam", "AdamW", "Lion", "Optimizer", "RMSprop", "constant", "cosine", "linear"]
