"""A profile: the times of all launches, put together by kernel and by ONNX node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sardonyx.profiling.peak import Peak

__all__ = ["Event", "Figures", "KernelTime", "LaunchTime", "Node", "NodeTime", "Profile"]


@dataclass(frozen=True)
class Node:
    """An ONNX node: the path of its graph, its name and operator."""

    path: str
    name: str
    op_type: str


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What a kernel or one of its launches costs, per run of the model.

    ``kind`` is ``kernel``, ``copy`` (of memory) or ``external`` (a function of the user's).  ``calls``: how often
    it is launched; ``seconds`` on the calling thread, ``busy`` the same summed over threads, of which ``threads``
    took part; ``bytes`` of memory touched; ``operations`` of arithmetic on elements.  ``peak_share`` is the larger
    part of what the machine can do, and ``bound`` says of what: ``memory`` or ``arithmetic``.
    """

    kind: str
    kernel: str
    nodes: tuple[Node, ...]
    calls: float
    seconds: float
    busy: float
    threads: int
    bytes: float
    operations: float
    peak_share: float
    bound: str


@dataclass(frozen=True, kw_only=True)
class LaunchTime(Figures):
    """One place in the program where a kernel is launched.

    ``products`` are those of the operations that are floating-point multiply-adds.  ``node_seconds`` is an
    estimate: the time split by the instructions that each node executes.
    """

    number: int
    products: float
    node_seconds: Mapping[Node, float]


@dataclass(frozen=True, kw_only=True)
class KernelTime(Figures):
    """All launches of one kernel together; ``launches`` is their number."""

    launches: int


@dataclass(frozen=True)
class NodeTime:
    """The time of one ONNX node, estimated where it shares kernels with others."""

    node: Node
    seconds: float
    kernels: tuple[str, ...]
    estimated: bool


@dataclass(frozen=True)
class Event:
    """A stretch of time for the trace: ``launch`` is a number (-1: a whole run), times in nanoseconds."""

    launch: int
    thread: int
    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, repr=False)
class Profile:
    """Where the time of a run goes.

    ``seconds`` is the time of a run inside native code.  All times are means of the faster half of the
    ``runs``, measured with the instrumentation, which adds some 0.1 us to a launch.  ``events`` are what was
    recorded of all runs, complete unless ``truncated``.
    """

    seconds: float
    runs: int
    threads: int
    peak: Peak
    launches: tuple[LaunchTime, ...]
    events: tuple[Event, ...]
    truncated: bool
    target: Mapping[str, str]

    def __repr__(self) -> str:
        return f"<Profile: {self.seconds:.3g} s a run, {len(self.launches)} launches of {len(self.kernels)} kernels>"

    @property
    def in_kernels(self) -> float:
        """Seconds of a run inside of launches; the rest binds dims and prepares launches."""
        return sum(launch.seconds for launch in self.launches)

    @property
    def kernels(self) -> list[KernelTime]:
        """By kernel, the slowest first."""
        groups: dict[str, list[LaunchTime]] = defaultdict(list)
        for launch in self.launches:
            groups[launch.kernel].append(launch)
        return sorted(map(_together, groups.values()), key=lambda k: -k.seconds)

    @property
    def nodes(self) -> list[NodeTime]:
        """By ONNX node, the slowest first."""
        seconds: dict[Node, float] = defaultdict(float)
        kernels: dict[Node, dict[str, None]] = defaultdict(dict)
        shared: set[Node] = set()
        for launch in self.launches:
            for node in launch.nodes:
                seconds[node] += launch.node_seconds.get(node, 0.0)
                kernels[node][launch.kernel] = None
            if len(launch.nodes) > 1:
                shared.update(launch.nodes)
        times = [NodeTime(n, s, tuple(kernels[n]), n in shared) for n, s in seconds.items()]
        return sorted(times, key=lambda one: -one.seconds)

    def share(self, seconds: float) -> float:
        """A time as a part of the whole run."""
        return seconds / self.seconds if self.seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        """Everything but the events, as JSON knows it; docs/debugging.md describes the keys."""
        return {
            "format": "sardonyx-profile",
            "version": 1,
            "target": dict(self.target),
            "threads": self.threads,
            "runs": self.runs,
            "seconds": self.seconds,
            "seconds_in_kernels": self.in_kernels,
            "peak": {
                "operations_per_second": self.peak.operations,
                "bytes_per_second": [{"working_set": s, "rate": r} for s, r in self.peak.bandwidth],
            },
            "launches": [{"number": one.number, **self._figures(one)} for one in self.launches],
            "kernels": [{"launches": one.launches, **self._figures(one)} for one in self.kernels],
            "nodes": [
                {
                    **_node(one.node),
                    "seconds": one.seconds,
                    "share": self.share(one.seconds),
                    "kernels": list(one.kernels),
                    "estimated": one.estimated,
                }
                for one in self.nodes
            ],
        }

    def _figures(self, one: Figures) -> dict[str, Any]:
        def per_second(amount: float) -> float:
            return amount / one.seconds if one.seconds else 0.0

        return {
            "kernel": one.kernel,
            "kind": one.kind,
            "nodes": [_node(n) for n in one.nodes],
            "calls": one.calls,
            "seconds": one.seconds,
            "share": self.share(one.seconds),
            "busy_seconds": one.busy,
            "threads": one.threads,
            "bytes": one.bytes,
            "operations": one.operations,
            "bytes_per_second": per_second(one.bytes),
            "operations_per_second": per_second(one.operations),
            "share_of_peak": one.peak_share,
            "bound": one.bound,
        }

    def trace(self) -> dict[str, Any]:
        """The events in Chrome's trace format, which Perfetto reads too: times in microseconds, a track a thread.

        On a thread's track, runs contain launches, and these the pieces of work the thread did.
        """
        first = min((e.start for e in self.events), default=0)
        threads = {t: i for i, t in enumerate(dict.fromkeys(e.thread for e in self.events))}
        named = [
            {"name": "thread_name", "ph": "M", "pid": 1, "tid": i, "args": {"name": f"thread {i}"}}
            for i in threads.values()
        ]
        return {
            "displayTimeUnit": "ns",
            "traceEvents": [
                *named,
                *(
                    {
                        **self._described(event),
                        "ph": "X",
                        "pid": 1,
                        "tid": threads[event.thread],
                        "ts": (event.start - first) / 1e3,
                        "dur": (event.end - event.start) / 1e3,
                    }
                    for event in sorted(self.events, key=lambda e: (e.start, -e.end))
                ),
            ],
        }

    def _described(self, event: Event) -> dict[str, Any]:
        if event.launch < 0:
            return {"name": "run", "cat": "run"}
        launch = self.launches[event.launch]
        names = [n.name for n in launch.nodes]
        arguments: dict[str, Any] = {"kernel": launch.kernel, "nodes": names}
        if event.first < 0:
            title = ", ".join(names[:3]) + ("" if len(names) <= 3 else f" and {len(names) - 3} more")
            return {"name": title or launch.kernel, "cat": launch.kind, "args": arguments}
        arguments["range"] = [event.first, event.last]
        return {"name": launch.kernel, "cat": "piece", "args": arguments}


def _node(node: Node) -> dict[str, str]:
    return {"name": node.name, "op_type": node.op_type, "path": node.path}


def _together(launches: list[LaunchTime]) -> KernelTime:
    seconds = sum(one.seconds for one in launches)
    slowest = max(launches, key=lambda one: one.seconds)

    return KernelTime(
        kind=slowest.kind,
        kernel=slowest.kernel,
        nodes=tuple(dict.fromkeys(n for one in launches for n in one.nodes)),
        launches=len(launches),
        calls=sum(one.calls for one in launches),
        seconds=seconds,
        busy=sum(one.busy for one in launches),
        threads=max(one.threads for one in launches),
        bytes=sum(one.bytes for one in launches),
        operations=sum(one.operations for one in launches),
        peak_share=sum(one.peak_share * one.seconds for one in launches) / seconds if seconds else 0.0,
        bound=slowest.bound,
    )
