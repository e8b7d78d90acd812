"""A request as `decide` takes it: a context, and the arms on offer with their names or features."""

from typing import Any, NamedTuple


class Request(NamedTuple):
    """A context and arms: `decide(request.context, request.arms)`, `learn(request.context, 1.0, request.arm(place))`.

    context: a record; arms: {name: features}, or features of arms without names, or names of arms without features, in
    the order of their places; eligible: as of `decide` (default None: all).
    """

    context: Any
    arms: Any
    eligible: Any = None

    def arm(self, place: int) -> Any:
        """The arm at a place, as `learn` takes it: a name, {name: features}, or [features]."""
        if isinstance(self.arms, dict):
            name = list(self.arms)[place]
            return {name: self.arms[name]}
        found = self.arms[place]
        return [found] if isinstance(found, dict) else found
