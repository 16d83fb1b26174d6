"""How an implementation says no: it raises Refused inside, and outside there is a Refusal."""

from asmdnn.records import dataclass


class Refused(Exception):
    """Why an implementation does not take a description, raised by its planner."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an implementation does not take a description."""

    implementation: str
    reason: str

    def __str__(self) -> str:
        return f"{self.implementation}: {self.reason}"
