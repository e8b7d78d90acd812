"""Metrics for Prometheus: requests, their durations, and counters for every loop."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from onepass.service.drift import EVERY
from onepass.service.loop import Loop
from onepass.service.overview_thread import OverviewThread

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # bounds of a histogram
GAUGES = {  # name of the metric -> key of `Loop.numbers` and help text
    "pending_decisions": ("waiting", "Decisions that wait for their deadline."),
    "learned_rewards": ("rounds", "Rewards that the serving model has learned."),
    "learner_queue": ("lag", "Commits that the learner has not processed yet."),
    "log_seq": ("last", "Sequence number of the last record of the log."),
    "learned_seq": ("through", "Sequence number of the last join learned."),
    "model_number": ("model", "Number of the serving model, from 0. It grows when another model takes over."),
    "model_resets": ("alarms", "Number of times that the model forgot everything after a change it detected."),
    "checkpoint_failed": (
        "checkpoint_failed",
        "1 if the last checkpoint could not be saved: nothing is lost, but a restart takes longer.",
    ),
    "evicted_arms": ("evicted", "Arms that models forgot since the start, beyond limits.known_arms."),
}
BUDGETS = {  # key of `Ledger.budgets` -> help text
    "spent": "Amount spent of a budget, today for a budget per day. Outcomes that have not come count as predicted.",
    "left": "Amount that may still be spent by now; below 0 if the budget is exceeded.",
    "price": "Price of one unit of the outcome, in units of reward.",
    "decisions": "Decisions within the budget, today for a budget per day.",
}
BASELINE = {  # key of `Ledger.guard` -> help text
    "share": "Share of the bandit in the next decision, beside the baseline.",
    "slack": "Reward beyond the promised part of the baseline's.",
    "reward": "Sum of rewards beyond the least possible ones.",
    "baseline": "Upper limit of this sum for the baseline.",
}
STOPPED = "1 if the guardrail is broken, so that the baseline decides alone."
READY = "1 if decisions are accepted, logged and learned."
DRIFT = f"Number of drift alarms; at most one false alarm in {EVERY:,} decisions on average."


class Metrics(Collector):
    """Metrics of a service; `loops` and `watchers` map a loop's name to the loop and its overview thread."""

    def __init__(self, loops: Mapping[str, Loop], watchers: Mapping[str, OverviewThread]) -> None:
        self._loops, self._watchers = loops, watchers
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._served: dict[tuple[str, str, int], tuple[Any, Any]] = {}
        labels = ("loop", "operation")
        self.requests = Counter(
            "onepass_requests", "Requests by operation and status.", (*labels, "status"), registry=self._registry
        )
        self.seconds = Histogram(
            "onepass_request_seconds",
            "Seconds from a request to its answer.",
            labels,
            registry=self._registry,
            buckets=SECONDS,
        )

    def count_refused(self, status: int) -> None:
        """Count a request that was refused before it was read, by its HTTP status."""
        self.requests.labels("", "", status).inc()

    def count_request(self, loop: str, operation: str, status: int, seconds: float) -> None:
        """Count a request by loop name ("" if it has none), operation and HTTP status, with its duration in seconds."""
        found = self._served.get((loop, operation, status))
        if found is None:
            found = self.requests.labels(loop, operation, status), self.seconds.labels(loop, operation)
            self._served[loop, operation, status] = found
        found[0].inc()
        found[1].observe(seconds)

    def collect(self) -> Iterable[Metric]:
        found: list[Metric] = []
        for name, (key, text) in GAUGES.items():
            gauge = GaugeMetricFamily(f"onepass_{name}", text, labels=["loop"])
            for loop in self._loops.values():
                gauge.add_metric([loop.name], loop.numbers()[key])
            found.append(gauge)
        ready = GaugeMetricFamily("onepass_ready", READY, labels=["loop"])
        for loop in self._loops.values():
            ready.add_metric([loop.name], float(loop.problem() is None))
        found.append(ready)
        drift = GaugeMetricFamily("onepass_drift_alarms", DRIFT, labels=["loop"])
        for name, watcher in self._watchers.items():
            drift.add_metric([name], watcher.alarms)
        found.append(drift)
        found += [*self._ledgers()]
        events = CounterMetricFamily(
            "onepass_events", "Decisions and outcomes, by what became of them.", labels=["loop", "kind"]
        )
        for loop in self._loops.values():
            for what, count in [*loop.joiner.counts.items()]:
                events.add_metric([loop.name, what], count)
        return [*found, events]

    def _ledgers(self) -> Iterable[Metric]:
        """Yield gauges of budgets, baselines and guardrails."""
        budgets = {name: loop.ledger.budgets() for name, loop in self._loops.items()}
        guards = {name: guard for name, loop in self._loops.items() if (guard := loop.ledger.guard()) is not None}
        for key, text in BUDGETS.items():
            gauge = GaugeMetricFamily(f"onepass_budget_{key}", text, labels=["loop", "outcome"])
            for name, each in budgets.items():
                for outcome, one in each.items():
                    gauge.add_metric([name, outcome], float(one[key]))
            yield gauge
        for key, text in BASELINE.items():
            gauge = GaugeMetricFamily(f"onepass_baseline_{key}", text, labels=["loop"])
            for name, guard in guards.items():
                gauge.add_metric([name], float(guard[key]))
            yield gauge
        stopped = GaugeMetricFamily("onepass_guardrail_stopped", STOPPED, labels=["loop", "outcome"])
        for name, guard in guards.items():
            for outcome, one in guard["guardrails"].items():
                stopped.add_metric([name, outcome], float(one["stopped"]))
        yield stopped

    def text(self, readable: Collection[str]) -> bytes:
        """Return the metrics of the loops named in `readable` in the text format of Prometheus, as bytes.

        Metrics that belong to no loop are included only if all loops are readable.
        """
        if set(readable) == set(self._loops):
            return generate_latest(self._registry)
        return generate_latest(LoopMetrics(self._registry, readable))


class LoopMetrics(CollectorRegistry):
    """Prometheus registry restricted to the metrics of some loops.

    `whole` is the registry of all metrics, and `loops` holds the names of the loops.
    """

    def __init__(self, whole: CollectorRegistry, loops: Collection[str]) -> None:
        super().__init__()
        self._whole, self._loops = whole, loops

    def collect(self) -> Iterable[Metric]:
        for metric in self._whole.collect():
            metric.samples = [sample for sample in metric.samples if sample.labels["loop"] in self._loops]
            yield metric
