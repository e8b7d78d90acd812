"""Ask and tell: settings to try next, what came of them, the best so far and what may be left, on kernel bandits."""

from onepass.tuning.space import Category, Dimension, Integer, Real, Space
from onepass.tuning.tuner import Best, Trial, Tuner

__all__ = ["Best", "Category", "Dimension", "Integer", "Real", "Space", "Trial", "Tuner"]
