"""Bandits beside a baseline rule, whose total reward they must keep up to 5%."""
