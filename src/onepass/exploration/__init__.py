"""Exploration: from means, widths and draws to *probabilities* over arms; it knows nothing of designs.

    p = (1 - uniform_share) rule(means, widths, draws) + uniform_share / K     over the K eligible arms; arm ~ p

The arm is drawn from the very p that is returned, so what is logged can be evaluated. One rule a file:

    UCB            the largest mean + beta width
    Greedy         the largest mean                                 EpsilonGreedy: the same with uniform_share = epsilon
    Thompson       the share of M draws of theta in which an arm is best
    InverseGap     1 / (K + gamma (best mean - mean))
    Softmax        exp(mean / temperature), normalized
"""
