"""Named studies of news sites."""

from functools import partial

from onepass.lab.definition import Study
from onepass.lab.news import delays, late_conversions
from onepass.lab.news.policies import Dense, Popularity, Uniform, VowpalWabbit, make_crossed_bandit
from onepass.lab.news.simulator import Site
from onepass.lab.news.study import NewsStudy
from onepass.lab.policy import Policy

OURS = (
    Policy("InteractionBandit", make_crossed_bandit),
    Policy("InteractionBandit, upper bounds", make_crossed_bandit, {"rule": "upper bounds"}),
    Policy("CBSCFD", Dense, {"recipe": "CBSCFD"}),
    Policy("CBSCFD, Newton steps", Dense, {"recipe": "CBSCFD newton"}),
    Policy("GLBOMD on robust FD", Dense, {"recipe": "robust"}),
    Policy("Popularity", Popularity),
    Policy("Uniform", Uniform),
)
GAMMAS = (10.0, 100.0, 1000.0)
PEERS = tuple(
    Policy(f"VW gamma={gamma:g}{', names' if named else ''}", VowpalWabbit, {"gamma": gamma, "named": named}, "VW")
    for named in (False, True)
    for gamma in GAMMAS
)
SUITES: tuple[Study, ...] = (
    NewsStudy("news", "a simulated news site: users crossed with articles that come and go, late clicks", Site, OURS),
    NewsStudy(
        "news-own",
        "the same where articles have an appeal that no feature tells, and users less in common with them",
        partial(Site, crossed=0.6, own=0.7),
        OURS,
    ),
    NewsStudy(
        "news-curved",
        "the same with a little of both, and users in the middle of their lives who differ from old and young",
        partial(Site, crossed=0.8, own=0.3, curved=0.3),
        OURS,
    ),
    delays.STUDY,
    late_conversions.STUDY,
)
