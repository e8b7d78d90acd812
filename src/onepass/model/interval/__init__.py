"""Models of rewards over an interval of actions."""
