"""Parts of explanations: terms and differences of a bandit's decision, reasons of a learner's prediction."""

from onepass.bandit.explanation import Difference, Gap, Term
from onepass.learner.explanation import Reason, Reasons

__all__ = [
    "Difference",
    "Gap",
    "Reason",
    "Reasons",
    "Term",
]
