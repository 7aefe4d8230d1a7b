"""Results: Arrow tables in memory, Parquet on disk."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from silvan import _silvan
from silvan.errors import OutputError, ScenarioError, SilvanError, checked_argument, one_line
from silvan.folders import (
    MANIFEST,
    Origin,
    claim_result,
    replaced_folder,
    require_regular,
    results_below,
)
from silvan.inputs.scenario import Scenario
from silvan.results.result_check import digest, require_undamaged

# Arrow takes more memory than many a simulation: import it only to read tables.
if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from silvan.figures.result_plots import ResultPlots
    from silvan.results.arrow import Columns


class Result:
    """Counts, samples and deliveries of one run.

    A result never changes: neither its attributes nor its tables can be assigned to.

    Parameters
    ----------
    scenario : Scenario
        Scenario that was simulated.
    seed : int
        Seed of the run.
    tables : Mapping
        Arrow tables by name.
    summary : Mapping
        Numbers about the run itself.

    Attributes
    ----------
    scenario : Scenario
        Scenario that was simulated.
    seed : int
        Seed of the run.
    tables : Mapping of str to pyarrow.Table
        All tables by name. Each column that has a unit ends with it.
    summary : Mapping
        ``events``, ``packet_hops``, ``wall_s``, ``simulated_ps``, ``threads`` (the most that the
        run could use) and the memory used.
    version : str
        Version of silvan that made the result.

    See Also
    --------
    silvan.run : make a result.

    Examples
    --------
    >>> import silvan
    >>> scenario = silvan.Scenario(
    ...     fabric={"generator": "single-switch", "hosts": 2},
    ...     traffic={"flow": [{"from": "host-0000", "to": "host-0001"}]},
    ...     run={"duration": "100 us"},
    ... )
    >>> result = silvan.run(scenario, seed=1)
    >>> result.hosts.num_rows
    2
    """

    scenario: Scenario
    seed: int
    summary: Mapping[str, Any]
    version: str
    _tables: Mapping[str, pa.Table]
    _columns: Mapping[str, Columns]

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        tables: Mapping[str, pa.Table],
        summary: Mapping[str, Any],
        version: str | None = None,
    ) -> None:
        self._set(
            scenario=scenario,
            seed=seed,
            summary=MappingProxyType(dict(summary)),
            version=version or _silvan.version(),
            _tables=MappingProxyType(dict(tables)),
            _columns={},
        )

    def _set(self, **attributes: object) -> None:
        self.__dict__.update(attributes)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a result never changes: its {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a result never changes: its {name} cannot be deleted")

    @classmethod
    def from_columns(
        cls,
        scenario: Scenario,
        seed: int,
        tables: Mapping[str, Columns],
        summary: Mapping[str, Any],
    ) -> Result:
        """Take the columns of the compiled module; the tables wrap them without a copy."""
        result = cls(scenario, seed, {}, summary)
        result._set(_columns=tables)
        return result

    @cached_property
    def tables(self) -> Mapping[str, pa.Table]:
        """All tables by name. Each column that has a unit ends with it."""
        if self._columns:
            from silvan.results.arrow import table_from_columns

            wrapped = {name: table_from_columns(columns) for name, columns in self._columns.items()}
            return MappingProxyType({**self._tables, **wrapped})
        return self._tables

    @cached_property
    def measures(self) -> Mapping[str, float]:
        """The run in numbers by name, such as ``result.measures["slowdown_p99"]``.

        The reference lists all measures with their definitions. One that the run does not have is
        missing; one that depends on a flow that has not finished is infinite.
        """
        from silvan.results.measures import measure

        return MappingProxyType(measure(self))

    def __reduce__(self) -> tuple[Any, ...]:
        # The compiled module's columns stay in their process; Arrow's can be pickled.
        mappings = dict(self.tables), dict(self.summary)
        return Result, (self.scenario, self.seed, *mappings, self.version)

    @property
    def hosts(self) -> pa.Table:
        """One row per host: bytes delivered and injected after the warm-up, and its role."""
        return self.tables["hosts"]

    @property
    def host_series(self) -> pa.Table:
        """Bytes delivered to every host in each probe interval."""
        return self.tables["host_series"]

    @property
    def classes(self) -> pa.Table:
        """One row per traffic class: bytes, packets and latency."""
        return self.tables["classes"]

    @property
    def flows(self) -> pa.Table:
        """One row per flow with a number of bytes: start, end, completion time, slowdown.

        Values that an unfinished flow lacks are null.
        """
        return self._of("flows", "no traffic entry has a number of bytes", "give one a key bytes")

    @property
    def flow_sizes(self) -> pa.Table:
        """One row per class of many flows and range of sizes: percentiles, confidence interval.

        The first row of a class is all sizes; its ``trend_t`` says whether the run is stationary.
        """
        return self._of("flow_sizes", "there are no such flows", "add [[traffic.flows]]")

    @property
    def sequences(self) -> pa.Table:
        """One row per sequence: messages and iterations delivered, and its end or null."""
        return self._of("sequences", "there are no sequences", "add [[traffic.sequence]]")

    @property
    def programs(self) -> pa.Table:
        """One row per message-passing program: ranks, and its end, null if it has not ended."""
        return self._of("programs", "there are no programs", "add [[traffic.program]]")

    @property
    def ranks(self) -> pa.Table:
        """One row per rank of a program: host, end, messages, time at work and waiting."""
        return self._of("ranks", "there are no programs", "add [[traffic.program]]")

    @property
    def ports(self) -> pa.Table:
        """One row per port: the counters that a real port has."""
        return self.tables["ports"]

    @property
    def port_series(self) -> pa.Table:
        """One row per port and probe interval: bytes sent, waits and queues."""
        return self._of("port_series", "ports are not sampled", "set probe.ports = true")

    @property
    def packet_hops(self) -> pa.Table:
        """One row per recorded packet and port that it leaves: times, waits, FECN and BECN."""
        return self._of("packet_hops", "no packets are recorded", "add [probe.packets]")

    @property
    def forest(self) -> pa.Table:
        """One row per sample of the congestion trees: their number, size and victims, together."""
        return self._of_trees("forest")

    @property
    def trees(self) -> pa.Table:
        """One row per sample and congestion tree: root, size, depth, contributors, victims."""
        return self._of_trees("trees")

    @property
    def tree_ports(self) -> pa.Table:
        """One row per sample and Port VL of a congestion tree: its role, depth and parent."""
        return self._of_trees("tree_ports")

    @property
    def tree_hosts(self) -> pa.Table:
        """One row per sample, congestion tree and host with packets in it."""
        return self._of_trees("tree_hosts")

    @property
    def tree_lifetimes(self) -> pa.Table:
        """One row per congestion tree: birth, death, peaks, and which tree it moved from."""
        return self._of_trees("tree_lifetimes")

    def _of_trees(self, name: str) -> pa.Table:
        return self._of(
            name,
            "the run did not look for congestion trees",
            "use silvan run --trees, or give the scenario a table [probe.trees]",
        )

    def _of(self, name: str, reason: str, hint: str) -> pa.Table:
        if name not in self.tables:
            raise SilvanError(f"{self.scenario.name}: {reason}", hint=hint)
        return self.tables[name]

    @property
    def plot(self) -> ResultPlots:
        """Figures of the result, such as ``result.plot.receive_rates()``.

        They need the extra ``figures``.
        """
        from silvan.figures.result_plots import ResultPlots

        return ResultPlots([self], [""])

    def to_numpy(self) -> dict[str, dict[str, npt.NDArray[Any]]]:
        """Give all tables as NumPy arrays by column, numbers over the same memory and read-only.

        Missing numbers are not a number (NaN); text and truth values are copied.

        Returns
        -------
        dict of str to dict of str to ndarray
            The columns by name, of each table by its name.

        Examples
        --------
        >>> import silvan
        >>> scenario = silvan.Scenario(
        ...     fabric={"generator": "single-switch", "hosts": 2},
        ...     traffic={"flow": [{"from": "host-0000", "to": "host-0001"}]},
        ...     run={"duration": "100 us"},
        ... )
        >>> silvan.run(scenario).to_numpy()["hosts"]["host"]
        array([0, 1], dtype=uint32)
        """
        return {
            name: {column: table[column].to_numpy() for column in table.column_names}
            for name, table in self.tables.items()
        }

    def to_polars(self) -> dict[str, pl.DataFrame]:
        """Give all tables as polars data frames over the same memory.

        Returns
        -------
        dict of str to polars.DataFrame
            The tables by name. Needs polars, which silvan does not install.
        """
        import polars as pl

        frames: dict[str, pl.DataFrame] = {}
        for name, table in self.tables.items():
            frame = pl.from_arrow(table)
            assert isinstance(frame, pl.DataFrame)
            frames[name] = frame
        return frames

    def to_pandas(self) -> dict[str, pd.DataFrame]:
        """Give all tables as pandas data frames; numeric columns share their memory.

        Returns
        -------
        dict of str to pandas.DataFrame
            The tables by name. Needs pandas, which silvan does not install.
        """
        return {
            name: table.to_pandas(split_blocks=True, zero_copy_only=False)
            for name, table in self.tables.items()
        }

    @property
    def origin(self) -> Origin:
        """The scenario and the version that made this result."""
        return Origin(self.scenario.name, self.scenario.hash, self.version)

    def manifest(self) -> dict[str, Any]:
        """Say what made this result: scenario, seed, version and the run's own numbers."""
        return {
            "name": self.scenario.name,
            "scenario_hash": self.scenario.hash,
            "seed": self.seed,
            "version": self.version,
            "summary": dict(self.summary),
            "tables": {name: _shape(table) for name, table in self.tables.items()},
            "scenario": self.scenario.to_toml(),
        }

    def write(self, directory: str | Path, *, overwrite: bool = False) -> Path:
        """Write Parquet files and a manifest into a folder.

        The folder appears whole or not at all; a result of the same scenario and version that was
        there is replaced.

        Parameters
        ----------
        directory : str or Path
            The folder to make. Its parents are made too.
        overwrite : bool, optional
            Whether to replace a result of another scenario or version, too.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        OutputError
            The folder cannot be made, or holds something else than a result, or one of another
            scenario or version.
        SilvanError
            `directory` is no path.
        """
        import pyarrow.parquet as pq

        target = _folder(directory)
        claim_result(target, self.origin, overwrite=overwrite)
        with replaced_folder(target) as folder:
            manifest = self.manifest()
            for name, table in self.tables.items():
                file = folder / f"{name}.parquet"
                # Arrow takes no paths that are not UTF-8.
                with file.open("wb") as opened:
                    pq.write_table(table, opened)
                with file.open("rb") as opened:
                    manifest["tables"][name]["sha256"] = digest(opened)
            text = json.dumps(manifest, indent=2) + "\n"
            (folder / MANIFEST).write_text(text, encoding="utf-8")
        return target

    def write_fct(self, file: str | Path) -> int:
        """Write the completion times of flows as ns-3's ``fct.txt``, for its scripts.

        Parameters
        ----------
        file : str or Path
            The file.

        Returns
        -------
        int
            The number of flows that have finished, each a line.

        Raises
        ------
        SilvanError
            The run has no flows with a number of bytes.
        OutputError
            The file cannot be written.
        """
        from silvan.results.fct import write_fct

        checked_argument("file", file, str | os.PathLike, "the path of a file")
        return write_fct(self, Path(file))

    def export(self, name: str) -> str:
        """Print the programs with collective operations as a benchmark prints its results.

        Parameters
        ----------
        name : str
            ``nccl-tests`` or ``osu`` (OSU micro-benchmarks).

        Returns
        -------
        str
            The text, a table for each kind of operation.

        Raises
        ------
        SilvanError
            There is no such format, or no program has measured rounds.
        """
        from silvan.results.benchmark_tables import export_programs

        return export_programs(self, name)

    @classmethod
    def read(cls, directory: str | Path) -> Result:
        """Read a result that :meth:`write` wrote.

        Parameters
        ----------
        directory : str or Path
            The folder.

        Returns
        -------
        Result
            The result, equal to the one that was written.

        Raises
        ------
        OutputError
            The folder holds no result, or a damaged one.
        SilvanError
            `directory` is no path.
        """
        import pyarrow as pa

        folder = _folder(directory)
        manifest: Any = None
        try:
            require_regular(folder / MANIFEST)
            manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            tables = {}
            for name, noted in manifest["tables"].items():
                tables[name] = _read_table(folder / f"{name}.parquet", noted)
            require_undamaged(manifest["seed"], tables, manifest["summary"])
            return cls(
                Scenario.from_toml(manifest["scenario"], source=one_line(str(folder / MANIFEST))),
                manifest["seed"],
                tables,
                manifest["summary"],
                manifest["version"],
            )
        except FileNotFoundError as error:
            missing = Path(error.filename).name
            reason = f"it has no {missing}" if folder.exists() else "there is no such folder"
        except NotADirectoryError:
            reason = "it is no folder"
        except json.JSONDecodeError as error:
            reason = f"its {MANIFEST} is no JSON: {error}"
        except RecursionError:
            reason = f"its {MANIFEST} is nested too deeply"
        except ScenarioError as error:
            if _newer_version(manifest) is None:
                raise
            reason = str(error)
        except (AttributeError, KeyError, TypeError):
            reason = f"its {MANIFEST} lacks a key or has one of another type"
        except (OSError, ValueError, pa.ArrowException) as error:
            reason = str(error)
        hint = (
            "name a folder that silvan run --out or Result.write made; if it is damaged, run again"
        )
        if newer := _newer_version(manifest):
            hint = f"silvan {newer} has written it, this is {_silvan.version()}: install {newer}"
        if (report := folder / "report.html").exists():
            hint = f"it is the folder of a sweep; {report} has its figures"
        if inner := results_below(folder, "*"):
            hint = f"it holds results of several seeds, name one: {inner[0]}"
        raise OutputError(f"{folder}: no readable result: {reason}", hint=hint)

    def __repr__(self) -> str:
        return f"<silvan.Result of {self.scenario.name!r}, seed {self.seed}>"

    def _repr_html_(self) -> str:
        from silvan.results.result_html import result_html

        return result_html(self)


def _newer_version(manifest: Any) -> str | None:
    found = manifest.get("version") if isinstance(manifest, dict) else None
    if not isinstance(found, str) or not re.fullmatch(r"\d{1,9}(\.\d{1,9}){2}", found):
        return None
    numbers = [
        [int(part) for part in re.findall(r"\d+", one)[:3]] for one in (found, _silvan.version())
    ]
    return found if numbers[0] > numbers[1] else None


def _shape(table: pa.Table) -> dict[str, Any]:
    return {"rows": table.num_rows, "columns": table.column_names}


def _read_table(file: Path, noted: Mapping[str, Any]) -> pa.Table:
    import pyarrow.parquet as pq

    another = ValueError(f"its {file.name} is not the one that {MANIFEST} tells of")
    require_regular(file)
    with file.open("rb") as opened:
        wanted = dict(noted)
        if "sha256" in wanted and wanted.pop("sha256") != digest(opened):
            raise another
        opened.seek(0)
        metadata = pq.read_metadata(opened)
        columns = metadata.schema.to_arrow_schema().names
        if {"rows": metadata.num_rows, "columns": columns} != wanted:
            raise another
        opened.seek(0)
        return pq.read_table(opened)


def _folder(directory: object) -> Path:
    checked_argument("directory", directory, str | os.PathLike, "the path of a folder")
    return Path(directory)  # type: ignore[arg-type]
