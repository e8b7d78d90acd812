"""Data sets as bandits whose arms cost money, within budgets."""
