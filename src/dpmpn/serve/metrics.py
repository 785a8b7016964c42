"""What a server did, for Prometheus."""

import os
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

_SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # in which several processes count together
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_QUESTIONS = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """The metrics of one application, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        if _SHARED_FOLDER not in os.environ:
            ProcessCollector(registry=self.registry)
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, multiprocess_mode="livesum", registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self.requests = counter(
            "dpmpn_requests", "Requests by route and status of the answer", ["route", "status"]
        )
        self.seconds = histogram(
            "dpmpn_request_seconds", "Seconds until a request was answered", ["route"], buckets=_SECONDS
        )
        self.in_flight = gauge("dpmpn_requests_in_flight", "Requests being answered")
        self.waiting = gauge("dpmpn_waiting", "What waits to be worked on", ["queue"])
        self.batches = histogram("dpmpn_batch_questions", "Questions asked together", buckets=_QUESTIONS)
        self.refused = counter("dpmpn_refused", "Requests refused because of too many others", ["queue"])
        self.recent = counter("dpmpn_asked_recently", "Questions that did not have to be asked again")

    def text(self) -> bytes:
        """All metrics as Prometheus reads them, those of other processes of this server included."""
        if _SHARED_FOLDER not in os.environ:
            return generate_latest(self.registry)
        from prometheus_client.multiprocess import MultiProcessCollector

        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)
