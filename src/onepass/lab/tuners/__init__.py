"""Studies of ask-and-tell tuners, which look for good settings in few trials."""
