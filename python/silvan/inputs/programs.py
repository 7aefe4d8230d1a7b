"""Message-passing programs, built rank by rank.

A program becomes a GOAL schedule, the format in which traces of real applications come too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral

from silvan import _silvan
from silvan.errors import SilvanError, checked_argument
from silvan.inputs.quantities import Quantity
from silvan.inputs.toml_text import TomlValue

COLLECTIVES = (
    "barrier",
    "allreduce",
    "reduce-scatter",
    "allgather",
    "alltoall",
    "broadcast",
    "reduce",
    "incast",
    "scatter",
)

MOST_RANKS = 1 << 20

LARGEST_TAG = (1 << 32) - 1

LONGEST_S = 20 * 3600


@dataclass(frozen=True, slots=True)
class Request:
    """A started send or receive of a rank, with its label in the schedule."""

    rank: int
    label: str


@dataclass(slots=True)
class Rank:
    """A rank of a program: its operations, in order.

    Blocking operations (:meth:`compute`, :meth:`send`, :meth:`recv`) follow each other.
    :meth:`isend` and :meth:`irecv` only start; what comes after does not wait for them until
    :meth:`wait`.

    Attributes
    ----------
    number : int
        The rank's number.
    size : int
        Ranks of the program.
    """

    number: int
    size: int
    _lines: list[str] = field(default_factory=list)
    _after: list[str] = field(default_factory=list)
    _count: int = 0

    def compute(self, time: str) -> None:
        """Compute for a time such as ``"10 us"``; GOAL has whole nanoseconds."""
        span = Quantity(time)
        if span.ps > LONGEST_S * 10**12:
            raise SilvanError(
                f"rank {self.number} computes for {span}: at most 20 hours are supported",
                hint="divide it among several operations",
            )
        self._after = [self._add(f"calc {round(span.ps / 1e3)}").label]

    def send(self, to: int, size: str, tag: int = 0) -> None:
        """Send a message of a size such as ``"64 KiB"``, and wait until that is complete."""
        self._after = [self.isend(to, size, tag).label]

    def recv(self, source: int | None, size: str, tag: int | None = 0) -> None:
        """Receive a message; None means any source or any tag."""
        self._after = [self.irecv(source, size, tag).label]

    def isend(self, to: int, size: str, tag: int = 0) -> Request:
        """Start to send a message."""
        what = f"send {Quantity(size).bytes}b to {self._partner(to)} tag {self._tag(tag)}"
        return self._add(what)

    def irecv(self, source: int | None, size: str, tag: int | None = 0) -> Request:
        """Start to receive a message; None means any source or any tag."""
        partner = -1 if source is None else self._partner(source)
        wanted = -1 if tag is None else self._tag(tag)
        return self._add(f"recv {Quantity(size).bytes}b from {partner} tag {wanted}")

    def wait(self, *requests: Request) -> None:
        """Wait until what has been started is complete."""
        for request in requests:
            checked_argument("wait", request, Request, "what isend or irecv has returned")
            if request.rank != self.number:
                raise SilvanError(
                    f"rank {self.number} waits for an operation of rank {request.rank}",
                    hint="a rank waits for what it has started itself",
                )
        self._after = [*self._after, *(request.label for request in requests)]

    def take_part(self, operation: str, size: str = "0 B", algorithm: str | None = None) -> None:
        """Take part in a collective operation of all ranks, and wait for this rank's end.

        All ranks must call it in the same order; :meth:`Program.collective` is simpler.
        """
        checked_argument("operation", operation, str, f"one of {', '.join(COLLECTIVES)}")
        if algorithm is not None:
            checked_argument("algorithm", algorithm, str, "the name of an algorithm, or None")
        started: list[Request] = []
        try:
            count = Quantity(size).bytes
            ops = _silvan.collective(operation, algorithm, self.size, self.number, count)
        except ValueError as error:
            message, known = error.args
            raise SilvanError(message, hint=f"known: {known or ', '.join(COLLECTIVES)}") from None
        for kind, partner, count, tag in ops:
            match kind:
                case "send":
                    started.append(self._add(f"send {count}b to {partner} tag {tag}"))
                case "recv":
                    started.append(self._add(f"recv {count}b from {partner} tag {tag}"))
                case _:
                    self.wait(*started)
                    # Later operations wait for this one, and so for all earlier ones.
                    self._after = [request.label for request in started] or self._after
                    started = []

    def lines(self) -> Iterator[str]:
        """Give the rank's block of the schedule."""
        yield f"rank {self.number} {{"
        yield from self._lines
        yield "}"

    def _partner(self, rank: int) -> int:
        wanted = "the number of a rank, e.g. 0"
        checked_argument(f"rank {self.number}: partner", rank, Integral, wanted)
        if rank == self.number:
            raise SilvanError(
                f"rank {rank} communicates with itself",
                hint="use compute for what it does alone",
            )
        if not 0 <= rank < self.size:
            raise SilvanError(
                f"rank {self.number}: rank {rank} is out of range: there are {self.size} ranks",
                hint="ranks are numbered from 0",
            )
        return int(rank)

    def _tag(self, tag: int) -> int:
        checked_argument(f"rank {self.number}: tag", tag, Integral, "a number, e.g. tag=3")
        if not 0 <= tag <= LARGEST_TAG:
            raise SilvanError(
                f"rank {self.number}: tag {tag} is out of range: 0 to {LARGEST_TAG} are supported",
                hint="write e.g. tag=3",
            )
        return int(tag)

    def _add(self, what: str) -> Request:
        label = f"o{self._count}"
        self._count += 1
        self._lines.append(f"{label}: {what}")
        self._lines += [f"{label} requires {earlier}" for earlier in dict.fromkeys(self._after)]
        return Request(self.number, label)


class Program:
    """A message-passing program.

    Parameters
    ----------
    ranks : int
        Number of ranks.

    Examples
    --------
    >>> import silvan
    >>> from silvan.inputs.programs import Program
    >>> program = Program(2)
    >>> program[0].compute("1 us")
    >>> program[0].send(1, "64 KiB", tag=3)
    >>> program[1].recv(0, "64 KiB", tag=3)
    >>> scenario = silvan.Scenario(
    ...     fabric={"generator": "single-switch", "hosts": 2},
    ...     traffic={"program": [program.entry(name="pair")]},
    ... )
    >>> result = silvan.run(scenario, seed=1)
    >>> result.tables["ranks"]["receives"].to_pylist()
    [0, 1]
    """

    def __init__(self, ranks: int) -> None:
        checked_argument("ranks", ranks, Integral, "a number of ranks, e.g. Program(8)")
        if not 1 <= ranks <= MOST_RANKS:
            raise SilvanError(
                f"a program of {ranks} ranks: 1 to {MOST_RANKS} are supported",
                hint="write e.g. Program(8)",
            )
        size = int(ranks)
        self._ranks = tuple(Rank(number, size) for number in range(size))

    def __len__(self) -> int:
        return len(self._ranks)

    def __getitem__(self, rank: int) -> Rank:
        return self._ranks[rank]

    def __iter__(self) -> Iterator[Rank]:
        return iter(self._ranks)

    def collective(self, operation: str, size: str = "0 B", algorithm: str | None = None) -> None:
        """Let all ranks do a collective operation.

        Parameters
        ----------
        operation : str
            One of `COLLECTIVES`, from or to rank 0 if it has a root.
        size : str
            Bytes such as ``"1 MiB"``: of one message for ``alltoall``, ``incast`` and ``scatter``,
            of the vector with the parts of all ranks for the others.
        algorithm : str or None
            An algorithm that the operation is offered by; None is the default of scenarios.
        """
        for rank in self:
            rank.take_part(operation, size, algorithm)

    def goal(self) -> str:
        """Give the program as a GOAL schedule, which LogGOPSim reads too."""
        lines = [f"num_ranks {len(self)}"]
        for rank in self:
            lines += rank.lines()
        return "\n".join(lines) + "\n"

    def entry(
        self,
        *,
        name: str,
        hosts: Sequence[str] | str = "all",
        ranks_per_host: int = 1,
        background: bool = False,
    ) -> dict[str, TomlValue]:
        """Give the program as an entry of ``traffic.program`` in a scenario.

        Parameters
        ----------
        name : str
            Name in the statistics.
        hosts : sequence of str or "all"
            The hosts, in the order of the ranks.
        ranks_per_host : int
            Ranks on each host.
        background : bool
            Whether the run may end before the program does.
        """
        return {
            "name": name,
            "kind": "goal",
            "trace": self.goal(),
            "hosts": hosts,
            "ranks-per-host": ranks_per_host,
            "background": background,
        }
