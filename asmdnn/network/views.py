"""What networks say of their plans, and measure of their primitives."""

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from asmdnn.errors import InvalidArguments
from asmdnn.forking import importing
from asmdnn.memory.allocation import within_memory
from asmdnn.network.keeping import KeepsState
from asmdnn.planning.host import require_executable

if TYPE_CHECKING:  # a network from a pack runs without planners
    from asmdnn.network.accuracy import Verification
    from asmdnn.network.compiled import CompiledSegment
    from asmdnn.network.graph import Model
    from asmdnn.network.narrow.storage import Precision
    from asmdnn.network.packs.saved import PackedNetwork
    from asmdnn.network.planned import NetworkPlan
    from asmdnn.network.segments import GraphSegment
    from asmdnn.network.static import StaticGraph


class PlanViews(KeepsState):
    """What Network has of that.  Each is said by a network of fixed dims: the one for the arrays that are given, else
    the one that is looked at."""

    _source: "NetworkPlan | PackedNetwork"

    def _for(self, feeds: Mapping[str, Any]) -> "PlanViews":
        """The network for arrays of these dims.  Raises InvalidArguments."""
        raise NotImplementedError

    def _looked_at(self) -> "PlanViews":
        """The network that is meant where nothing says dims.  Raises InvalidArguments."""
        raise NotImplementedError

    def _own_plan(self, what: str) -> "NetworkPlan":
        """As `planned`, of a network of fixed dims."""
        raise NotImplementedError

    def planned(self, what: str = "looked at") -> "NetworkPlan":
        """All that planning finds out; it is planned now if the network came from the cache.
        Raises InvalidArguments for a network from a pack: it cannot be `what`."""
        return self._looked_at()._own_plan(what)

    @property
    def is_native(self) -> bool:
        """Whether it has no nodes in numpy."""
        return self._looked_at()._runnable.native is not None

    @property
    def kept_bytes(self) -> int:
        """What its schedules take."""
        return self._looked_at()._source.kept_bytes

    @property
    def precision(self) -> "Precision":
        """What kernels may multiply and store: its `word`, and what stays f32, `keep_f32`, by word or by max_error."""
        return self._looked_at()._source.precision

    @property
    def graph(self) -> "StaticGraph":
        """What is left of the model for these dims."""
        return self.planned("looked at").graph

    @property
    def segments(self) -> "tuple[GraphSegment | CompiledSegment, ...]":
        """Native parts, with their primitives and plans, and nodes in numpy, in the order in which they run."""
        return self.planned("looked at").segments

    @property
    def refused(self) -> Mapping[str, str]:
        """Why nodes are computed in numpy, by the label of their group."""
        return self.planned("looked at").refused

    @property
    def any_batch(self) -> bool:
        """Whether an item's bits are those that it has alone; to find out, all primitives are planned so."""
        return self.planned("looked at").any_batch

    @property
    def model(self) -> "Model":
        """The model as it was given."""
        return self.planned("looked at").model

    def profile(self, feeds: Mapping[str, Any], repeats: int = 20) -> str:
        """A line for each primitive, and for nodes in numpy: its least time of `repeats` runs (1 to 100000), in
        microseconds, and its share.  Each is a call of its own here: the sum is a little more than what run() takes."""
        net = self._for(feeds)
        seconds = list(chain(*net._times("profiled", feeds, repeats)))
        with importing():
            from asmdnn.network.report import profile
            from asmdnn.network.timing import steps_of

        return profile(steps_of(net.planned()), seconds)

    def times(self, feeds: Mapping[str, Any], repeats: int = 20) -> list[float]:
        """The seconds of each primitive that `profile` prints."""
        return list(chain(*self._for(feeds)._times("timed", feeds, repeats)))

    def analyze(self, feeds: Mapping[str, Any], repeats: int = 20) -> str:
        """A line for each primitive, slowest first: as `profile`, with the share of the time that was expected, and the
        bytes of its arguments a second."""
        net = self._for(feeds)
        seconds = list(chain(*net._times("analysed", feeds, repeats)))
        with importing():
            from asmdnn.network.report import analysis
            from asmdnn.network.timing import steps_of

        return analysis(steps_of(net.planned()), seconds)

    @within_memory
    def verify(self, feeds: Mapping[str, Any]) -> "Verification":
        """Compare every primitive with its operators in double precision, on the operands it got; those that do not
        `fit` are wrong.  `steps` and `outputs` say how far all is from definitions."""
        net = self._for(feeds)
        plan = net._known_dims("verified")
        with importing():
            from asmdnn.network.accuracy import verification

        values = net._with_states(feeds)
        return verification(plan, values, net._outputs_of(values))

    @within_memory
    def _times(self, what: str, feeds: Mapping[str, Any], repeats: int) -> list[list[float]]:
        """The least seconds of each primitive, by parts, of a network of fixed dims."""
        plan = self._known_dims(what)
        with importing():
            from asmdnn.network.timing import check_repeats, times

        check_repeats(repeats)
        return times(plan, self._with_states(feeds), repeats)

    def _known_dims(self, what: str) -> "NetworkPlan":
        """The plan.  Raises where data decide dims, and where this CPU cannot run it."""
        plan = self.planned(what)
        if plan.later:
            raise InvalidArguments(f"a network in which data decide dims cannot be {what}, use run()")
        require_executable(self._runnable.isa)
        return plan
