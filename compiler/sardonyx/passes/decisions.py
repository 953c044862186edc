"""Why fusion put two ops into one kernel or left them apart, in the words of the code that decided.

`fuse` and its helpers are given a `Decisions` and tell it of every pair of a producer and a consumer that
they look at.  Nothing here knows a rule of fusion: a reason comes from the condition that was tested.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sardonyx.ir.graph import Location, Op

__all__ = ["UNRECORDED", "Decision", "Decisions"]


@dataclass(frozen=True)
class Decision:
    """A producer and a consumer, ops of the core level with the nodes they stem from: fused or not, and why."""

    producer: str
    producer_nodes: Location
    consumer: str
    consumer_nodes: Location
    fused: bool
    reason: str


@dataclass(eq=False)
class Decisions:
    """Collects reasons by pairs of ops; `settle` makes them decisions once the groups are known."""

    enabled: bool = True
    made: list[Decision] = field(default_factory=list)
    _joined: dict[tuple[Op, Op], str] = field(default_factory=dict)
    _refused: dict[tuple[Op, Op], list[str]] = field(default_factory=dict)

    def join(self, producer: Op | None, consumer: Op, reason: str) -> None:
        """Both go into one kernel."""
        if self.enabled and producer is not None:
            self._joined[producer, consumer] = reason

    def refuse(self, producer: Op | None, consumer: Op, reason: str) -> None:
        """They do not: a group was tried and is not to hold both."""
        if self.enabled and producer is not None:
            reasons = self._refused.setdefault((producer, consumer), [])
            if reason not in reasons:
                reasons.append(reason)

    def settle(self, producer: Op, consumer: Op, *, fused: bool, certain: str, otherwise: str) -> None:
        """The outcome for a pair.

        ``certain`` is the reason where one holds before any group is tried; ``otherwise`` is that of a pair for
        which no group was tried.
        """
        if certain:
            reason = certain
        elif fused:
            reason = self._joined.get((producer, consumer), otherwise)
        else:
            reason = "; ".join(self._refused.get((producer, consumer), [otherwise]))
        self.made.append(
            Decision(producer.name, producer.location, consumer.name, consumer.location, fused, reason)
        )


UNRECORDED = Decisions(enabled=False)
