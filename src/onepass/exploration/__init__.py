"""Exploration rules, which turn means, widths and draws into *probabilities* over arms; they know nothing of designs.

Every rule gives the action probabilities

    p = (1 - uniform_share) rule(means, widths, draws) + uniform_share / K     over the K eligible arms; arm ~ p

The arm is drawn from exactly the p that is returned, so what is logged can be evaluated. Each rule has its own file:

    UCB            plays the arm with the largest mean + beta width
    Greedy         plays the arm with the largest mean; EpsilonGreedy is the same with uniform_share = epsilon
    Thompson       plays an arm with the share of M draws of theta in which it is best
    InverseGap     has p proportional to 1 / (K + gamma (best mean - mean)), except for the best arm
    Softmax        has p proportional to exp(mean / temperature)
"""
