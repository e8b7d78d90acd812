"""Made-up logs of other tools: events with features of all kinds."""

import numpy as np

from onepass.log import Decision, Event, Outcome

HOUR = 3_600_000_000  # microseconds


def features(rng, arms):
    """Return features of a decision: strings, numbers, booleans, nested objects, arrays, and names to leave out."""
    return {
        "GUser": {"id": f"u{rng.integers(5)}", "age": int(rng.integers(20, 60)), "pro": bool(rng.integers(2))},
        "hour": float(rng.integers(1, 24)),
        "Hist": [float(x) for x in np.round(rng.normal(size=3), 3)],
        "_note": "not a feature",
        "_multi": [
            {"TAction": {"topic": f"t{rng.integers(4)}", "length": round(float(rng.random()), 4)},
             "j": [{"Vision": {"person": 0.5, "tag": "a b"}}, {"Sentiment": 0.25}]}
            for _ in range(arms)
        ],
    }  # fmt: skip


def events(count, arms=4, seed=0, slots=0):
    """Yield events whose rewards depend on topics. `slots` is the number per decision, 0 for a line without."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        contexts, name, time = features(rng, arms), f"e{number}", 1_700_000_000_000_000 + number * HOUR
        p = rng.dirichlet(np.ones(arms) * 3)
        if not slots:
            place = int(rng.choice(arms, p=p))
            reward = float(contexts["_multi"][place]["TAction"]["topic"] == "t1")
            decision = Decision(
                loop="imported", time=time, id=name, places=[place], propensities=[float(p[place])],
                probabilities=p.tolist(), contexts=contexts, model="m/1",
                ranking=sorted(range(arms), key=lambda at: (at != place, -p[at])),
            )  # fmt: skip
            yield Event(decision, (Outcome(loop="imported", time=time, id=name, value=reward),))
            continue
        contexts["_slots"], rows, places = [{"size": f"s{j}"} for j in range(slots)], [], []
        for _ in range(slots):
            row = p.copy()
            row[places] = 0.0
            row /= row.sum()
            places.append(int(rng.choice(arms, p=row)))
            rows.append(row.tolist())
        outcomes = tuple(
            Outcome(loop="imported", time=time, id=name, value=float(rng.integers(2)), slot=j) for j in range(slots)
        )
        decision = Decision(
            loop="imported", time=time, id=name, places=places, contexts=contexts, probabilities=rows[0], slots=rows,
            propensities=[row[place] for row, place in zip(rows, places, strict=True)],
            slot_names=[f"slot{j}" for j in range(slots)],
        )  # fmt: skip
        yield Event(decision, outcomes)
