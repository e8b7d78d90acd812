"""Feature maps x -> z that come before a design: identity, Gaussian projection."""
