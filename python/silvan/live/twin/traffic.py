"""Traffic that explains the counters of a subnet: flows between hosts, with bounds.

The load of a port is the sum of its flows. Few flows are searched first: by linear programmes with
weights from earlier solutions (Candes, Wakin and Boyd, "Enhancing Sparsity by Reweighted l1
Minimization", Journal of Fourier Analysis and Applications 14, 2008), or with too many pairs by
matching residuals. Otherwise the flows are those of largest entropy (Vardi, "Network Tomography",
JASA 91(433), 1996), by simultaneous multiplicative iterations from the product of what hosts send
and receive.

Bounds hold for each set of flows with these loads: for the largest flows, optima of linear
programmes; for others, propagated from the rest of the ports on their path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from silvan.errors import DiagnosisError
from silvan.extras import require_extra
from silvan.live.moments import Moment
from silvan.live.twin.paths import Paths, Router, Values

IDLE = 0.002
"""Loads below this part of a link count as none."""

DECIDED = 0.2
"""Counters decide a flow if its bounds are within this part of its rate."""

MOST_PAIRS = 4_000_000
"""Most pairs of hosts."""

_TOLERANCE = 0.004
_LEAST_TOLERANCE = 0.0005
_STORED_BYTES = 128 << 10
_MOST_PORTS_OF_RANK = 4096
_BOUND_ROUNDS = 60
_INDEPENDENT = 1e-9
_SCALINGS = 400
_CONVERGED = 0.002
_MOST_PAIRS_OF_PROGRAMMES = 3000
_PROGRAMMES = 200
_WEIGHTINGS = 5
_MOST_STARTS = 40
_MOST_SETS = 16
_NEARLY_AS_FEW = 6.0
_MISMATCH = 30.0
_NOISE = 0.003
_PARSIMONY = 0.005
_WITHOUT_REASON = 1.5
_STATED = 0.7
_NAMED = 0.2
_LIKELY = 0.85
_BOUND_WORK = 40_000
_MOST_BOUNDS = 60
_FEW = 0.75
_EXPLAINED = 0.02
_REASON = 0.25


@dataclass(frozen=True)
class Traffic:
    """Flows that explain the loads, in Gbit/s on the wire.

    ``equations`` are ports with a known load, ``rank`` the independent ones (``None`` above 4,096).
    ``unexplained`` is the part of loads that the flows miss or exceed. Unless ``is_sparse``, the
    flows are those of largest entropy.
    """

    paths: Paths
    rates: Values
    lowest: Values
    highest: Values
    pairs: int
    equations: int
    rank: int | None
    unexplained: float
    is_sparse: bool
    notes: tuple[str, ...]

    @property
    def decided(self) -> npt.NDArray[np.bool_]:
        """True for each rate that the counters determine."""
        return self.highest - self.lowest <= 2 * DECIDED * self.rates


def infer_traffic(moment: Moment, seed: int = 1) -> list[Traffic]:
    """Infer sets of flows that explain the loads about equally well, the smallest first."""
    require_extra("twin", "twins")
    subnet = moment.subnet
    links = subnet.ports[:, 3]
    loads = moment.loads[0].astype(np.float64)
    if not np.isfinite(loads).any():
        raise DiagnosisError(
            "no port has a known load",
            "read the counters of all ports twice, with the interval between",
        )
    router = Router(subnet)
    rates = np.where(loads < IDLE, 0.0, loads * links)
    # Packets in buffers have been counted before them, not behind them.
    stored_gbps = _STORED_BYTES * 8 / 1e9 / max(float(moment.report["interval_s"]), 1e-9)
    tolerance = np.maximum(_TOLERANCE * rates, _LEAST_TOLERANCE * links) + stored_gbps
    paths, notes = _candidates(moment, router, rates, seed)
    if not len(paths):
        return []
    lowest, highest = _bounds(paths, rates, tolerance)
    used = np.zeros(len(rates), bool)
    used[paths.steps] = True
    used &= np.isfinite(rates)
    evidence = _Evidence(moment, paths, rates)
    rank = _rank(paths, used)
    random = np.random.default_rng(seed)
    if len(paths) <= _MOST_PAIRS_OF_PROGRAMMES:
        loads = _Programme(paths, rates, tolerance, used)
        sets = loads.few_flows(evidence, random)
    else:
        loads = None
        sets = [_matched(paths, rates, tolerance, evidence, lowest, highest, random)]
    limit = max((rank or int(used.sum())) * _FEW, 8)
    sets = [one for one in sets if _unexplained(paths, rates, one) <= _EXPLAINED]
    if not sets or np.count_nonzero(sets[0]) > limit:
        dense = _entropy(paths, rates, evidence, lowest, highest)
        # Many flows may be few of a set of many, or many indeed.
        sets = [dense, *sets] if loads is not None else [dense]
    if loads is not None:
        lowest, highest = loads.bounds(sets[0], lowest, highest)
    found = []
    for one in sets:
        kept = one > 0
        if not kept.any():
            continue
        found.append(
            Traffic(
                paths.chosen(kept),
                one[kept],
                np.minimum(lowest[kept], one[kept]),
                np.maximum(highest[kept], one[kept]),
                len(paths),
                int(used.sum()),
                rank,
                _unexplained(paths, rates, one),
                int(np.count_nonzero(one)) <= int(used.sum()),
                tuple(notes),
            )
        )
    return found


def _candidates(
    moment: Moment, router: Router, rates: Values, seed: int
) -> tuple[Paths, list[str]]:
    ports = moment.subnet.ports
    notes = []
    own = router.host_ports
    cabled = own >= 0
    peers = np.where(cabled, ports[np.where(cabled, own, 0), 2], 2**32 - 1).astype(np.int64)
    cabled &= peers < len(ports)
    sends = cabled & ~(rates[np.where(cabled, own, 0)] == 0)
    receives = cabled & ~(rates[np.where(cabled, peers, 0)] == 0)
    sources = np.flatnonzero(sends).astype(np.int32)
    destinations = np.flatnonzero(receives).astype(np.int32)
    count = len(sources) * len(destinations)
    if count > MOST_PAIRS:
        random = np.random.default_rng(seed)
        drawn = random.choice(count, MOST_PAIRS, replace=False)
        notes.append(
            f"{MOST_PAIRS:,} of {count:,} pairs of hosts were drawn at random as candidates"
        )
    else:
        drawn = np.arange(count)
    first = sources[drawn // max(len(destinations), 1)] if count else sources[:0]
    second = destinations[drawn % max(len(destinations), 1)] if count else destinations[:0]
    apart = first != second
    paths, lost = router.paths(first[apart], second[apart])
    if lost:
        notes.append(f"{lost:,} pairs of hosts have no path in the forwarding tables")
    if len(paths):
        paths = paths.chosen(~(paths.least(np.nan_to_num(rates, nan=np.inf)) == 0))
    return paths, notes


class _Evidence:
    def __init__(self, moment: Moment, paths: Paths, rates: Values) -> None:
        hosts = {node["name"]: row for row, node in enumerate(moment.subnet.nodes)}
        rows = moment.subnet.rows
        pairs = {
            pair: flow
            for flow, pair in enumerate(
                zip(paths.sources.tolist(), paths.destinations.tolist(), strict=True)
            )
        }
        self.known: dict[int, float] = {}
        # Named by notifications.
        self.named: list[int] = []
        self.likely = np.zeros(len(paths), bool)
        congested = np.zeros(len(rates), bool)
        for tree in moment.report["trees"]:
            if tree["root"] in rows:
                congested[rows[tree["root"]]] = True
            for branch in tree["branches"]:
                if branch["port"] in rows:
                    congested[rows[branch["port"]]] = True
            peer = str(tree["peer"]).rpartition(":")[0]
            for one in tree["contributors"]:
                # Without a stated receiver, the host at the root.
                receiver = one.get("to") or peer
                flow = pairs.get((hosts.get(one["host"], -1), hosts.get(receiver, -1)))
                if flow is not None and tree["confidence"] == "high":
                    self.named.append(flow)
                if flow is not None:
                    self.known[flow] = max(self.known.get(flow, 0.0), float(one["gbps"]))
            # A victim sends past the root.
            if tree["root"] in rows and tree["victims"]:
                through = np.zeros(len(rates))
                through[rows[tree["root"]]] = 1.0
                victims = [hosts[one["host"]] for one in tree["victims"] if one["host"] in hosts]
                self.likely |= np.isin(paths.sources, victims) & (paths.most(through) == 0)
        # A waiting host sends through a port of a tree.
        own = paths.steps[paths.starts[:-1]]
        inside = np.where(congested, 1.0, 0.0)
        inside[own] = 0.0
        self.has_reason = (paths.most(inside) > 0) | ~congested[own]


def _bounds(paths: Paths, rates: Values, tolerance: Values) -> tuple[Values, Values]:
    """Propagate bounds of the flows until they do not change."""
    known = np.isfinite(rates)
    most = np.where(known, rates + tolerance, np.inf)
    least = np.where(known, np.maximum(rates - tolerance, 0.0), -np.inf)
    highest = paths.least(most)
    # A flow without a bound is bounded by no port.
    highest = np.where(np.isfinite(highest), highest, np.nanmax(np.where(known, most, np.nan)))
    lowest = np.zeros_like(highest)
    for _ in range(_BOUND_ROUNDS):
        room = np.where(known, least - paths.loads(highest), -np.inf)
        raised = np.maximum(lowest, paths.most(room) + highest)
        raised = np.minimum(raised, highest)
        left = np.where(known, most - paths.loads(raised), np.inf)
        lowered = np.maximum(np.minimum(highest, paths.least(left) + raised), raised)
        change = max(float((raised - lowest).max()), float((highest - lowered).max()))
        lowest, highest = raised, lowered
        if change <= 1e-4 * float(rates[known].max(initial=0.0)):
            break
    return lowest, highest


def _rank(paths: Paths, used: npt.NDArray[np.bool_]) -> int | None:
    from scipy.linalg import lapack

    count = int(used.sum())
    if count > _MOST_PORTS_OF_RANK:
        return None
    number = np.full(paths.ports, -1, np.int64)
    number[used] = np.arange(count)
    gram = np.zeros(count * count)
    longest = int(paths.hops.max(initial=0))
    columns = np.full((len(paths), longest), -1, np.int64)
    inside = np.arange(longest)[None, :] < paths.hops[:, None]
    columns[inside] = number[paths.steps]
    for one in range(longest):
        for other in range(longest):
            both = (columns[:, one] >= 0) & (columns[:, other] >= 0)
            places = columns[both, one] * count + columns[both, other]
            gram += np.bincount(places, minlength=count * count)
    # Cholesky with pivoting stops without another independent equation.
    largest = max(float(gram.max(initial=0.0)), 1.0)
    matrix = gram.reshape(count, count)
    return int(lapack.dpstrf(matrix, tol=_INDEPENDENT * largest)[2]) if count else 0


def _unexplained(paths: Paths, rates: Values, found: Values) -> float:
    known = np.isfinite(rates)
    wrong = np.abs(paths.loads(found) - rates)[known].sum()
    return float(wrong / max(float(rates[known].sum()), 1e-9))


class _Programme:
    def __init__(
        self, paths: Paths, rates: Values, tolerance: Values, used: npt.NDArray[np.bool_]
    ) -> None:
        from scipy import sparse

        number = np.cumsum(used) - 1
        inside = used[paths.steps]
        columns = np.repeat(np.arange(len(paths)), paths.hops)[inside]
        rows = number[paths.steps[inside]]
        shape = (int(used.sum()), len(paths))
        self._matrix = sparse.csc_array((np.ones(len(rows)), (rows, columns)), shape=shape)
        self._loads = rates[used]
        self._tolerance = tolerance[used]
        self._typical = float(np.median(self._loads[self._loads > 0])) if shape[0] else 1.0

    def few_flows(self, evidence: _Evidence, random: np.random.Generator) -> list[Values]:
        """Search for sets of few flows from several starts, the smallest first."""
        from scipy import optimize, sparse

        equations, flows = self._matrix.shape
        unit = sparse.eye_array(equations)
        matrix = sparse.hstack([self._matrix, unit, -unit]).tocsc()
        prior = np.where(evidence.has_reason, 1.0, _WITHOUT_REASON)
        prior[evidence.likely] *= _LIKELY
        prior[list(evidence.known)] = _STATED
        prior[evidence.named] = _NAMED
        starts = int(np.clip(_PROGRAMMES / _WEIGHTINGS / max(flows, 1) * 300, 2, _MOST_STARTS))
        sets: dict[bytes, tuple[float, Values]] = {}
        for _ in range(starts):
            weights = random.uniform(0.5, 1.5, flows) * prior
            found = np.zeros(flows)
            for _ in range(_WEIGHTINGS):
                costs = np.concatenate(
                    (weights / weights.mean(), np.full(2 * equations, _MISMATCH))
                )
                done = optimize.linprog(costs, A_eq=matrix, b_eq=self._loads, method="highs-ds")
                if done.x is None:
                    break
                found = done.x[:flows]
                weights = prior / (found + 0.02 * self._typical)
            found = np.where(found > _NOISE * self._typical, found, 0.0)
            wrong = np.abs(self._matrix @ found - self._loads).sum() / self._loads.sum()
            has_no_reason = (found > 0) & ~evidence.has_reason
            cost = float(
                wrong / _PARSIMONY + np.count_nonzero(found) + np.count_nonzero(has_no_reason)
            )
            sets.setdefault((found > 0).tobytes(), (cost, found))
        ordered = sorted(sets.values(), key=lambda one: one[0])
        best = ordered[0][0]
        return [found for cost, found in ordered if cost <= best + _NEARLY_AS_FEW][:_MOST_SETS]

    def bounds(self, found: Values, lowest: Values, highest: Values) -> tuple[Values, Values]:
        """Narrow the bounds of the largest flows to those that a set of flows can reach."""
        from scipy import optimize, sparse

        lowest, highest = lowest.copy(), highest.copy()
        matrix = sparse.vstack([self._matrix, -self._matrix]).tocsc()
        limits = np.concatenate((self._loads + self._tolerance, self._tolerance - self._loads))
        largest = np.argsort(-found)[: int(np.clip(_BOUND_WORK / len(found), 4, _MOST_BOUNDS))]
        for flow in largest.tolist():
            if found[flow] <= 0 or highest[flow] - lowest[flow] <= _TOLERANCE * found[flow]:
                continue
            for sign, bounds in ((1.0, lowest), (-1.0, highest)):
                costs = np.zeros(len(found))
                costs[flow] = sign
                done = optimize.linprog(costs, A_ub=matrix, b_ub=limits, method="highs-ds")
                if done.status == 0:
                    bounds[flow] = sign * done.fun
        return lowest, highest


def _matched(
    paths: Paths,
    rates: Values,
    tolerance: Values,
    evidence: _Evidence,
    lowest: Values,
    highest: Values,
    random: np.random.Generator,
) -> Values:
    found = np.where(highest - lowest <= 2 * _TOLERANCE * highest, lowest, 0.0)
    residual = np.where(np.isfinite(rates), rates, np.inf)
    residual = np.maximum(residual - paths.loads(found), 0.0)
    for flow, rate in evidence.known.items():
        steps = paths.steps[paths.starts[flow] : paths.starts[flow + 1]]
        more = min(rate - found[flow], float(residual[steps].min()))
        if more > 0:
            found[flow] += more
            residual[steps] -= more
    bonus = np.where(evidence.has_reason, _REASON, 0.0)
    active = np.arange(len(paths))
    part = paths
    rounds = 0
    while len(active) and rounds < 400:
        rounds += 1
        room = part.least(residual)
        open_ = room > part.most(tolerance)
        if not open_.any():
            break
        if not open_.all():
            part, active, room = part.chosen(open_), active[open_], room[open_]
        gap = residual[part.steps] - np.repeat(room, part.hops)
        # Share of the flow's ports whose remaining load it explains.
        near = np.maximum(1 - gap / tolerance[part.steps], 0.0)
        exact = np.add.reduceat(near, part.starts[:-1]) / part.hops
        ends = np.minimum(near[part.starts[:-1]], near[part.starts[1:] - 1])
        score = exact + ends + bonus[active] + 0.1 * room / room.max()
        score += random.random(len(score)) * 0.01
        order = np.argsort(-score)
        limit = score[order[0]] - 0.05
        touched: set[int] = set()
        taken = 0
        for flow in order[: max(1, len(order) // 4)].tolist():
            if score[flow] < limit:
                break
            steps = part.steps[part.starts[flow] : part.starts[flow + 1]]
            ports = steps.tolist()
            if touched.intersection(ports):
                continue
            touched.update(ports)
            found[active[flow]] += room[flow]
            residual[steps] -= room[flow]
            taken += 1
        if not taken:
            break
    kept = found > 0
    if not kept.any():
        return found
    few = paths.chosen(kept)
    found[kept] = _scaled(few, rates, found[kept], lowest[kept], highest[kept])
    return found


def _entropy(
    paths: Paths, rates: Values, evidence: _Evidence, lowest: Values, highest: Values
) -> Values:
    known = np.isfinite(rates)
    typical = float(np.median(rates[known & (rates > 0)])) if (rates[known] > 0).any() else 1.0
    filled = np.where(known, rates, typical)
    first = paths.steps[paths.starts[:-1]]
    last = paths.steps[paths.starts[1:] - 1]
    received = float(filled[np.unique(last)].sum())
    found = filled[first] * filled[last] / max(received, 1e-9)
    for flow, rate in evidence.known.items():
        found[flow] = max(found[flow], rate)
    found = np.where(evidence.has_reason, found, found * _REASON)
    found = np.clip(found, np.maximum(lowest, 1e-9), np.maximum(highest, 1e-9))
    return _scaled(paths, rates, found, lowest, highest)


def _scaled(paths: Paths, rates: Values, found: Values, lowest: Values, highest: Values) -> Values:
    known = np.isfinite(rates)
    total = max(float(rates[known].sum()), 1e-9)
    for _ in range(_SCALINGS):
        loads = paths.loads(found)
        if np.abs(loads - rates)[known].sum() < _CONVERGED * total:
            break
        ratios = np.ones_like(loads)
        counted = known & (loads > 0) & (rates > 0)
        ratios[counted] = rates[counted] / loads[counted]
        factor = np.exp(paths.sums(np.log(ratios)) / paths.hops)
        found = np.clip(found * factor, np.maximum(lowest, 1e-12), np.maximum(highest, 1e-12))
    return found
