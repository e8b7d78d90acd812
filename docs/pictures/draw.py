"""Draws the pictures of the concepts and of how it works: `python docs/pictures/draw.py [NAME ...]`, a minute in all.

Labels stand at their curves; colours are those of Okabe and Ito, which colour-blind people tell apart; every curve that
is a result is computed here, by onepass.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import onepass as op

HERE = Path(__file__).parent
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#666666"
STYLE = {
    "font.size": 12.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 2.0,
    "svg.hashsalt": "onepass",  # the same picture is the same file
    "figure.constrained_layout.use": True,
}
WIDTH, HEIGHT = 7.0, 3.6  # inches


def axes(columns=1, height=HEIGHT, **options):
    return plt.subplots(1, columns, figsize=(WIDTH, height), **options)


def at(ax, x, y, text, color, **options):
    """A label in the colour of its curve."""
    ax.text(x, y, text, color=color, **{"va": "center", **options})


def regret():
    """Three bandits on one world of 10 arms and 10 numbers."""
    rng = np.random.default_rng(0)
    rounds = 2000
    contexts = rng.standard_normal((rounds, 10, 10)) / 10**0.5
    worth = contexts @ rng.standard_normal(10)
    rewards = worth + 0.5 * rng.standard_normal(worth.shape)
    figure, ax = axes()
    for name, bandit, color in [
        ("any arm, by chance", None, GREY),
        ("10% by chance, for ever", op.OFUL(dim=10, exploration=op.EpsilonGreedy(0.1)), ORANGE),
        ("explores what it does not know", op.OFUL(dim=10, exploration=0.3), BLUE),
    ]:
        arms = rng.integers(10, size=rounds) if bandit is None else bandit.play(contexts, rewards)
        lost = np.cumsum(worth.max(axis=1) - worth[np.arange(rounds), arms])
        ax.plot(range(0, rounds, 10), lost[::10], color=color)
        shown = lost[-1] if bandit is not None else 560.0
        at(ax, rounds + 30 if bandit is not None else 330.0, shown, f"{name}: {lost[-1]:,.0f}", color)
    ax.set(xlabel="rounds", ylabel="lost so far, against the best arm", ylim=(0, 600), xlim=(0, rounds * 1.75))
    ax.set_xticks([0, 500, 1000, 1500, 2000])
    return figure


def propensity():
    """What a log says of a policy that always takes arm 0, with probabilities and without."""
    rng = np.random.default_rng(3)
    theta, rounds = np.array([0.5, -0.3, 0.2, 0.0, 0.1]), 6000
    figure, ax = axes()
    for share, color, name in [
        (0.2, BLUE, "uniform share of 0.2,\nweighed by 1 / probability"),
        (0.0, ORANGE, "no uniform share:\nthe log looks as good,\nand is wrong"),
    ]:
        bandit = op.OFUL(dim=5, exploration=op.UCB(0.1, uniform_share=share))
        total, truth, along = 0.0, 0.0, np.empty(rounds)
        for t in range(rounds):
            rows = rng.standard_normal((4, 5))
            decision = bandit.decide(rows)
            reward = rows[decision.arm] @ theta + 0.3 * rng.standard_normal()
            bandit.learn(decision, reward)
            total += (decision.arm == 0) / decision.propensity * reward
            truth += rows[0] @ theta
            along[t] = (total - truth) / (t + 1)
        ax.plot(np.arange(200, rounds, 20), along[200::20], color=color)
        at(ax, rounds + 100, along[-1], name, color)
    ax.axhline(0.0, color=GREY, linewidth=1.0, linestyle=":")
    at(ax, rounds + 100, -0.055, "the truth", GREY)
    ax.set(xlabel="rounds in the log", ylabel="estimate less the truth", xlim=(0, rounds * 1.7), ylim=(-0.1, 0.25))
    ax.set_xticks([0, 2000, 4000, 6000])
    return figure


def certificate():
    """The error that a sketch makes, and the bound that it states, row after row."""
    rng = np.random.default_rng(0)
    dim, rows = 100, 1500
    stream = rng.standard_normal((rows, dim)) * 0.97 ** np.arange(dim)
    figure, panels = axes(2, sharey=True)
    for ax, (title, design) in zip(
        panels,
        [
            ("Frequent Directions, 20 rows", op.FrequentDirections(dim=dim, size=20)),
            ("dyadic blocks, error 200 promised", op.Dyadic(dim=dim, size=10, error=200.0)),
        ],
        strict=True,
    ):
        whole, made, stated, when = np.zeros((dim, dim)), [], [], range(50, rows + 1, 50)
        for t in when:
            part = stream[t - 50 : t]
            design.append(part)
            whole += part.T @ part
            made.append(np.linalg.norm(design.matrix() - np.eye(dim) - whole, 2))
            stated.append(design.error_bound())
        ax.plot(when, stated, color=BLUE)
        ax.plot(when, made, color=ORANGE)
        if stated[-1] < 1.05 * made[-1]:
            at(ax, rows, 0.2 * stated[-1], "certified, and made:\nthe same", BLUE, ha="right", va="top")
        else:
            at(ax, rows, stated[-1] + 45.0, "what it certifies", BLUE, ha="right")
            at(ax, rows, made[-1] - 45.0, "the error it makes", ORANGE, ha="right")
        ax.set_title(title, fontsize=12)
        ax.set(xlabel="rows")
        if "promised" in title:
            ax.axhline(400.0, color=GREY, linewidth=1.0, linestyle=":")
            at(ax, 20, 415.0, "promised: at most 2 x 200", GREY)
    panels[0].set(ylabel="spectral norm")
    return figure


def bounds():
    """Means and widths of five arms after 10, 100 and 1,000 rounds."""
    rng = np.random.default_rng(2)
    worth = np.array([0.2, 0.35, 0.5, 0.6, 0.75])
    beta = 1.5
    bandit = op.OFUL(dim=5, exploration=beta, seed=1)
    figure, panels = axes(3, sharey=True)
    for ax, (begin, end) in zip(panels, [(0, 10), (10, 100), (100, 1000)], strict=True):
        for _ in range(begin, end):
            decision = bandit.decide(np.eye(5))
            bandit.learn(decision, worth[decision.arm] + 0.3 * rng.standard_normal())
        found = bandit.decide(np.eye(5))
        means, widths = np.asarray(found.means), beta * np.asarray(found.widths)
        best = int((means + widths).argmax())
        for arm in range(5):
            color = BLUE if arm == best else GREY
            ax.errorbar(arm, means[arm], widths[arm], color=color, marker="o", capsize=5.0, linewidth=2.0)
        ax.plot(range(5), worth, "x", color=ORANGE, markersize=8.0)
        ax.annotate(
            "next",
            (best, means[best] + widths[best]),
            (best, means[best] + widths[best] + 0.1),
            color=BLUE,
            ha="center",
        )
        ax.set_title(f"{end:,} rounds", fontsize=12)
        ax.set(xlabel="arm", xticks=range(5), ylim=(-0.6, 1.6))
    at(panels[1], 0.2, 1.35, "x: the truth", ORANGE)
    panels[0].set(ylabel="mean and upper bound")
    return figure


def cut():
    """What a shrink of Frequent Directions does to the eigenvalues of S^T S."""
    values = 10.0 * 0.75 ** np.arange(12)
    size = 6
    figure, panels = axes(2, sharey=True)
    panels[0].bar(range(1, 13), values, color=[BLUE] * (size - 1) + [GREY] * (13 - size))
    panels[0].axhline(values[size - 1], color=ORANGE)
    at(panels[0], 7.0, values[size - 1] + 0.5, f"the {size}th, {values[size - 1]:.1f}, is shed", ORANGE)
    panels[0].set_title("full: 12 directions", fontsize=12)
    panels[1].bar(range(1, size), values[: size - 1] - values[size - 1], color=BLUE)
    panels[1].set_title("cut: 5 are left, all a little shorter", fontsize=12)
    for ax in panels:
        ax.set(xlabel="direction", xlim=(0, 13))
    panels[0].set(ylabel="eigenvalue")
    return figure


def influence():
    """How far a residual moves the estimate."""
    residual = np.linspace(-8.0, 8.0, 401)
    figure, ax = axes()
    ax.plot(residual, residual, color=ORANGE)
    ax.plot(residual, np.clip(residual, -3.0, 3.0), color=BLUE)
    at(ax, 5.2, 6.6, "ridge regression", ORANGE, ha="right")
    at(ax, 8.2, 3.0, "clipped at\n3 deviations", BLUE)
    ax.set(xlabel="reward less prediction, in deviations", ylabel="moves the estimate by", xlim=(-8, 14), ylim=(-8, 8))
    ax.set_xticks([-8, -4, 0, 4, 8])
    return figure


def link():
    """An interval of the log odds, and what it is as a rate."""
    z = np.linspace(-6.0, 3.0, 300)
    rate = 1.0 / (1.0 + np.exp(-z))
    figure, ax = axes()
    ax.plot(z, rate, color=BLUE)
    for middle, color, name in [(-4.0, ORANGE, "a rare click"), (0.5, GREEN, "an even chance")]:
        low, mean, high = 1.0 / (1.0 + np.exp(-np.array([middle - 1.0, middle, middle + 1.0])))
        ax.plot([middle - 1.0, middle + 1.0], [0.0, 0.0], color=color, linewidth=6.0, solid_capstyle="butt")
        ax.plot([-6.0, -6.0], [low, high], color=color, linewidth=6.0, solid_capstyle="butt")
        ax.plot(middle, mean, "o", color=color)
        at(
            ax,
            middle + (0.3 if middle > 0 else -1.8),
            mean + (0.0 if middle > 0 else 0.2),
            f"{name}: {low:.1%} to {high:.1%}",
            color,
        )
    ax.set(xlabel="log odds z: the same width for both", ylabel="click rate", xlim=(-6.1, 4.5), ylim=(-0.03, 1.0))
    return figure


def posterior():
    """GP-UCB on [0, 1] after 4, 8 and 16 plays."""
    rng = np.random.default_rng(0)
    grid = np.linspace(0.0, 1.0, 201)[:, None]
    truth = np.sin(5.0 * grid[:, 0]) * (1.0 - grid[:, 0]) + 0.5 * np.cos(14.0 * grid[:, 0])
    bandit = op.BKB(grid, op.Matern(2.5, 0.15), reg=0.01)
    played = []
    figure, panels = axes(3, sharey=True)
    for ax, plays in zip(panels, [4, 8, 16], strict=True):
        while len(played) < plays:
            arm = int(bandit.decide().arm)
            played.append((grid[arm, 0], truth[arm] + 0.05 * rng.standard_normal()))
            bandit.learn(None, played[-1][1], arm)
        found = bandit.model.posterior(grid)
        means, deviations = np.asarray(found.means), np.asarray(found.deviations)
        ax.fill_between(grid[:, 0], means - 2 * deviations, means + 2 * deviations, color=BLUE, alpha=0.2, linewidth=0)
        ax.plot(grid[:, 0], truth, color=ORANGE, linestyle="--")
        ax.plot(grid[:, 0], means, color=BLUE)
        ax.plot(*zip(*played, strict=True), "o", color="black", markersize=4.0)
        ax.set_title(f"{plays} plays", fontsize=12)
        ax.set(xlabel="setting", xticks=[0.0, 0.5, 1.0])
    at(panels[2], 0.0, -1.0, "truth", ORANGE)
    at(panels[2], 0.0, -1.4, "mean and width", BLUE)
    panels[0].set(ylabel="pays")
    return figure


def landmarks():
    """Two moons, learned one example at a time: what is decided after 20, 100 and 500."""
    from sklearn.datasets import make_moons

    rows, labels = make_moons(500, noise=0.2, random_state=0)
    learner = op.OnlineKernelClassifier()
    x, y = np.meshgrid(np.linspace(-1.8, 2.8, 80), np.linspace(-1.3, 1.8, 60))
    figure, panels = axes(3, height=2.8, sharey=True)
    done = 0
    for ax, until in zip(panels, [20, 100, 500], strict=True):
        learner.partial_fit(rows[done:until], labels[done:until], classes=[0, 1])
        done = until
        found = learner.predict(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
        ax.contourf(x, y, found, levels=[-0.5, 0.5, 1.5], colors=["#cfe3f2", "#f7dccb"])
        for label, color in [(0, BLUE), (1, ORANGE)]:
            ax.plot(*rows[:until][labels[:until] == label].T, "o", color=color, markersize=2.5)
        wrong = np.mean(learner.predict(rows) != labels)
        ax.set_title(f"{until} examples: {wrong:.0%} wrong", fontsize=12)
        ax.set(xticks=[], yticks=[])
    return figure


def interactions():
    """The table of pairs after a thousand rounds: which topic at which hour."""
    rng = np.random.default_rng(0)
    topics = ["sport", "news", "food"]
    rates = {"morning": [0.1, 0.6, 0.1], "noon": [0.1, 0.2, 0.6], "evening": [0.6, 0.1, 0.3]}
    bandit = op.InteractionBandit(seed=0)
    for _ in range(1000):
        time = str(rng.choice(list(rates)))
        decision = bandit.decide({"time": time}, arms={topic: {"topic": topic} for topic in topics})
        bandit.learn(decision, float(rng.random() < rates[time][topics.index(decision.arm)]))
    arms = {topic: {"topic": topic} for topic in topics}
    found = np.array([bandit.decide({"time": time}, arms=arms).means for time in rates])
    figure, panels = axes(2, height=2.8)
    for ax, table, title in zip(
        panels, [found, np.array(list(rates.values()))], ["expected, after 1,000 rounds", "the truth"], strict=True
    ):
        ax.imshow(table, cmap="Blues", vmin=0.0, vmax=0.8, aspect="auto")
        for i in range(3):
            for j in range(3):
                ax.text(
                    j,
                    i,
                    f"{table[i, j]:.2f}",
                    ha="center",
                    va="center",
                    color="white" if table[i, j] > 0.4 else "black",
                )
        ax.set_title(title, fontsize=12)
        ax.set(xticks=range(3), xticklabels=topics, yticks=range(3), yticklabels=list(rates))
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
    return figure


def first_days():
    """Clicks on the simulated news site: by chance, ours, and by one who knows the truth."""
    from onepass.lab.news.simulator import Site

    bandit = op.PendingRewards(op.InteractionBandit(seed=0), after=1800.0)
    waiting, seen = [], []
    for number, request in zip(range(8000), Site(seed=0).requests(), strict=False):
        now = 3600.0 * request.hour
        while waiting and waiting[0][0] <= now:
            when, which = waiting.pop(0)
            bandit.reward(which, 1.0, now=when)
        decision = bandit.decide(request.user, arms=request.articles, id=f"request {number}", now=now)
        place = list(request.articles).index(decision.arm)
        seen.append((request.chances.mean(), request.chances[place], request.chances.max()))
        if request.lot < request.chances[place] and request.delay < 0.5:
            waiting = sorted([*waiting, (now + 3600.0 * request.delay, f"request {number}")])
    parts = 100.0 * np.array(seen).reshape(-1, 400, 3).mean(axis=1)
    days = (np.arange(len(parts)) + 0.5) * 400 / 2000
    figure, ax = axes()
    for column, color, name in [
        (0, GREY, "by chance"),
        (1, BLUE, "onepass, nothing tuned"),
        (2, GREEN, "by one who\nknows the truth"),
    ]:
        ax.plot(days, parts[:, column], color=color)
        at(ax, days[-1] + 0.1, parts[-1, column], name, color)
    ax.set(xlabel="days since the site began", ylabel="clicks in 100 visits", ylim=(0, 17), xlim=(0, 5.6))
    ax.set_xticks([0, 1, 2, 3, 4])
    return figure


def bake_off():
    """The table of the bake-off on docs/recommended_measured.md, as `onepass run bake-off` draws it."""
    from onepass.lab.bakeoff.figures import ARGMAX, OURS, PEER, TUNED, draw

    page = (HERE.parent / "recommended_measured.md").read_text()
    table = [line for line in page.splitlines() if line.startswith("| ")]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    names = next(line for line in lines if "ContextualBandit / VW" in line)
    wanted = {"ContextualBandit": OURS, "argmax": ARGMAX, "best VW": PEER, "best linear bandit": TUNED[0]}
    rows = [
        {"set": line[0], "policy": label, "group": label, "rate": float(line[names.index(column)])}
        for line in lines[lines.index(names) + 2 :]
        if len(line) == len(names)
        for column, label in wanted.items()
    ]
    return draw(rows, [])


PICTURES = (
    regret,
    propensity,
    certificate,
    bounds,
    cut,
    influence,
    link,
    posterior,
    landmarks,
    interactions,
    first_days,
    bake_off,
)


def main(names):
    mpl.use("Agg")
    with plt.rc_context(STYLE):
        for picture in PICTURES:
            if not names or picture.__name__ in names:
                picture().savefig(HERE / f"{picture.__name__}.svg", metadata={"Date": None})
                plt.close()
                print(f"{picture.__name__}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
