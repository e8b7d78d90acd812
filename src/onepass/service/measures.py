"""What Prometheus is told: requests, how long decisions took, and what every loop counts."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from onepass.service.drift import EVERY
from onepass.service.loop import Loop
from onepass.service.watching import Watcher

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # bounds of a histogram
GAUGES = {
    "waiting": "Decisions that wait for their deadline.",
    "rounds": "Rewards that the serving model has learned.",
    "lag": "Commits that are not learned yet.",
    "last": "The last place of the log.",
    "through": "The place of the last join learned.",
    "model": "The number of the model that serves, from 0: others took over since.",
    "alarms": "How often the model forgot all, since what it had learned held no more.",
    "checkpoint_failed": "1 where the last checkpoint could not be saved: nothing is lost, but a restart takes longer.",
    "evicted": "Arms that models forgot since the start, beyond limits.known_arms.",
    "ready": "1 where decisions are taken, logged and learned.",
}
DRIFT = f"How often rewards left what the model expected; by chance at most once in {EVERY:,} decisions on average."


class Measures(Collector):
    """The metrics of a service. loops, watchers: by name."""

    def __init__(self, loops: Mapping[str, Loop], watchers: Mapping[str, Watcher]):
        self._loops, self._watchers = loops, watchers
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._served: dict[tuple[str, str, int], tuple[Any, Any]] = {}
        labels = ("loop", "operation")
        self.requests = Counter(
            "onepass_requests", "Requests by what came of them.", (*labels, "status"), registry=self._registry
        )
        self.seconds = Histogram(
            "onepass_seconds", "Seconds from a request to its answer.", labels, registry=self._registry, buckets=SECONDS
        )

    def refused(self, status: int) -> None:
        """A request that was refused before it was read. status: of HTTP."""
        self.requests.labels("", "", status).inc()

    def served(self, loop: str, operation: str, status: int, seconds: float) -> None:
        """A request. loop: its name; status: of HTTP."""
        found = self._served.get((loop, operation, status))
        if found is None:
            found = self.requests.labels(loop, operation, status), self.seconds.labels(loop, operation)
            self._served[loop, operation, status] = found
        found[0].inc()
        found[1].observe(seconds)

    def collect(self) -> Iterable[Metric]:
        found: list[Metric] = []
        for name, help in GAUGES.items():
            gauge = GaugeMetricFamily(f"onepass_{name}", help, labels=["loop"])
            for loop in self._loops.values():
                value = float(loop.trouble() is None) if name == "ready" else loop.numbers()[name]
                gauge.add_metric([loop.name], value)
            found.append(gauge)
        drift = GaugeMetricFamily("onepass_drift_alarms", DRIFT, labels=["loop"])
        for name, watcher in self._watchers.items():
            drift.add_metric([name], watcher.alarms)
        found.append(drift)
        events = CounterMetricFamily(
            "onepass_events", "What became of decisions and outcomes.", labels=["loop", "what"]
        )
        for loop in self._loops.values():
            for what, count in [*loop.joiner.counts.items()]:
                events.add_metric([loop.name, what], count)
        return [*found, events]

    def text(self, readable: Collection[str]) -> bytes:
        """Return the metrics of some loops in Prometheus' format; of all, with requests that are of no loop."""
        if set(readable) == set(self._loops):
            return generate_latest(self._registry)
        return generate_latest(Part(self._registry, readable))


class Part(CollectorRegistry):
    """The metrics of some loops of a registry."""

    def __init__(self, whole: CollectorRegistry, loops: Collection[str]):
        super().__init__()
        self._whole, self._loops = whole, loops

    def collect(self) -> Iterable[Metric]:
        for metric in self._whole.collect():
            metric.samples = [sample for sample in metric.samples if sample.labels["loop"] in self._loops]
            yield metric
