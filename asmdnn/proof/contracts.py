"""From a spec to the kernel under proof: generated with a listing, and the contract that its kind has."""

import sys
from typing import Final

from asmdnn.corpus.families import Spec
from asmdnn.errors import InvalidArguments
from asmdnn.generators.executor import ExecutorSpec
from asmdnn.generators.footprint import Footprint
from asmdnn.generators.probes.bandwidth import BandwidthSpec, ClockSpec
from asmdnn.generators.probes.peak import PeakSpec
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.levels import isa_of
from asmdnn.proof.kernel import Contract, Kernel

NOTHING: Final = Footprint(reads=(), writes=())


def contract_of(spec: Spec) -> Contract:
    """Raises InvalidArguments for a spec whose module does not name its kernels' ARGUMENTS."""
    if isinstance(spec, ExecutorSpec):
        return Contract(None, arguments=None, footprint=None, calls=True)
    if isinstance(spec, BandwidthSpec):
        return Contract(isa_of(spec.isa), arguments=3, footprint=None)
    if isinstance(spec, PeakSpec | ClockSpec):
        return Contract(isa_of(spec.isa), arguments=1, footprint=NOTHING)
    module = type(spec).__module__
    arguments = getattr(spec, "frame_names", None) or getattr(sys.modules[module], "ARGUMENTS", None)
    if arguments is None:
        raise InvalidArguments(f"{spec.name}: {module} has no ARGUMENTS, so the size of the frame is not known: add it")
    return Contract(isa_of(spec.isa), len(arguments), spec.footprint())


def kernel_of(spec: Spec) -> Kernel:
    """The kernel that the spec generates now.  Raises Unimplemented when PeachPy is missing."""
    asm = Assembler(spec.name, listing=True)
    spec.generate(asm)
    return Kernel(spec.name, contract_of(spec), asm.finish())
