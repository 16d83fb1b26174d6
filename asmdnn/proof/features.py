"""Rule "features": no instruction needs a CPU feature that the kernel's level does not promise."""

from typing import Final

from asmdnn.proof.kernel import Kernel

RULE: Final = "features"


def check(kernel: Kernel) -> None:
    """Raise BrokenRule for the first instruction that does; executed or not."""
    level = kernel.contract.level
    allowed = level.features if level else frozenset()
    for step in kernel.steps.values():
        if not step.fact.features <= allowed:
            missing = ", ".join(sorted(step.fact.features - allowed))
            raise kernel.broken(RULE, f"{missing} is not a feature of {level or 'every 64-bit CPU'}", step)
