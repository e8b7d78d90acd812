"""Recommenders: interactions of users with items, scored month by month before they are learned."""
