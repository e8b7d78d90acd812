"""Requests as `decide` takes them: a context and the arms on offer, with their names or features."""

from typing import Any, NamedTuple


class Request(NamedTuple):
    """Request: a context and the arms on offer.

    Use it as `decide(request.context, request.arms)` and `learn(request.context, 1.0, request.arm(place))`.

    Parameters
    ----------
    context : dict
        The context.
    arms : dict or list
        {name: features}, features of arms without names, or names of arms without features.
    eligible : sequence, default None
        Eligible arms, as in `decide`. None means all.
    """

    context: Any
    arms: Any
    eligible: Any = None

    def arm(self, place: int) -> Any:
        """Return the arm at an index as `learn` takes it: a name, {name: features}, or [features].

        Parameters
        ----------
        place : int
            Index of the arm.

        Returns
        -------
        str, dict or list
            The arm.
        """
        if isinstance(self.arms, dict):
            name = list(self.arms)[place]
            return {name: self.arms[name]}
        found = self.arms[place]
        return [found] if isinstance(found, dict) else found
