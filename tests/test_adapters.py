"""Hosts with several adapters, hosts named by files, and bursts, from a scenario."""

from __future__ import annotations

from pathlib import Path

import pytest

import silvan
from silvan.errors import ScenarioError
from silvan.inputs.toml_text import TomlValue


def scenario(program: dict[str, TomlValue], **tables: TomlValue) -> silvan.Scenario:
    """Make a scenario of one program on two leaves of four hosts each."""
    fabric = {"generator": "leaf-spine", "leaf-hosts": [4, 4], "spine-cables": [1, 1]}
    more = tables.pop("fabric", {})
    assert isinstance(more, dict)
    return silvan.Scenario(
        fabric={**fabric, **more},
        traffic={
            "program": [{"name": "job", "kind": "alltoall", "bytes": "1 MiB", **program}],
            "messaging": {"rendezvous": "read"},
        },
        run={"duration": "50 ms"},
        **tables,
    )


def test_two_adapters_take_half_the_time() -> None:
    """Oracle: twice the rate."""
    one = silvan.run(scenario({"hosts": ["host-0000", "host-0004"], "bytes": "16 MiB"}))
    chosen = ["host-0000", "host-0001", "host-0004", "host-0005"]
    two = silvan.run(scenario({"hosts": chosen, "rails": 2, "bytes": "16 MiB"}))
    times = [run.programs["completion_ps"][0].as_py() for run in (one, two)]
    assert times[1] == pytest.approx(times[0] / 2, rel=0.02)
    assert two.ranks.num_rows == 2


@pytest.mark.parametrize(
    ("program", "key", "words"),
    [
        ({"rails": 0}, "rails", "it is zero"),
        ({"rails": 3}, "rails", "8 adapters are not whole hosts of 3"),
        ({"rails": 2, "hosts": 4}, "rails", "are listed"),
        ({"rails": 2, "placement": "rail", "server-ranks": 2}, "rails", "are listed"),
        ({"burst": "1 ms"}, "burst", "no pause beside it"),
        ({"pause": "1 ms"}, "pause", "no burst beside it"),
        ({"burst": "1 ms", "pause": "1 ms", "chunk": "4 KiB"}, "burst", "in one piece"),
        ({"hosts": {"folder": "x"}}, "hosts", "list of host names"),
    ],
)
def test_what_does_not_fit_is_refused(program: dict[str, TomlValue], key: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words) as refusal:
        scenario(program)
    assert key in str(refusal.value)
    assert refusal.value.hint


def test_a_file_of_hosts_is_for_programs(tmp_path: Path) -> None:
    file = tmp_path / "uniform.toml"
    file.write_text(
        '[fabric]\ngenerator = "single-switch"\nhosts = 4\n'
        '[[traffic.incast]]\nto = "host-0000"\nfrom = { file = "hosts" }\n'
    )
    with pytest.raises(ScenarioError, match="a file of hosts is for programs"):
        silvan.Scenario.from_file(file)


def test_hosts_have_the_names_and_places_of_a_file(tmp_path: Path) -> None:
    """Oracle: the cables of the fabric."""
    (tmp_path / "places").write_text(
        "# node, leaf\nnode-9, leaf-01\nnode-3 leaf-00  # a comment\n\nnode-5\tleaf-01\n"
    )
    (tmp_path / "job").write_text("node-5\nnode-9  # the second rank\n")
    file = tmp_path / "scenario.toml"
    file.write_text(
        '[fabric]\ngenerator = "leaf-spine"\nleaf-hosts = [2, 2]\nspine-cables = [1, 1]\n'
        'hosts-file = "places"\n'
        '[[traffic.program]]\nname = "job"\nkind = "alltoall"\nbytes = "64 KiB"\n'
        'hosts = { file = "job" }\n[run]\nduration = "5 ms"\n'
    )
    read = silvan.Scenario.from_file(file)
    graph = read.to_networkx()
    leaves = {host: next(iter(graph.neighbors(host))) for host in ("node-9", "node-3", "node-5")}
    assert leaves == {"node-9": "leaf-01", "node-3": "leaf-00", "node-5": "leaf-01"}
    # The host that no line names keeps its own.
    assert sum(name.startswith("host-") for name in graph) == 1
    hosts = read.tables["traffic"]["program"][0]["hosts"]
    assert list(hosts) == ["node-5", "node-9"]
    result = silvan.run(read)
    # The text of the scenario needs the files no longer.
    again = silvan.Scenario.from_toml(read.to_toml())
    assert silvan.run(again).tables["program_marks"].equals(result.tables["program_marks"])


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ("node-1\n", "not a host and its switch"),
        ("node-1 leaf-00 3\n", "not a host and its switch"),
        ("node-1 leaf-07\n", "there is no switch"),
        ("node-1 host-0000\n", "there is no switch"),
        ("a leaf-00\nb leaf-00\nc leaf-00\n", "no host left"),
        ("a leaf-00\na leaf-01\n", "two nodes"),
        ("leaf-01 leaf-00\n", "two nodes"),
    ],
)
def test_places_that_do_not_fit_are_refused(tmp_path: Path, places: str, words: str) -> None:
    (tmp_path / "places").write_text(places)
    file = tmp_path / "scenario.toml"
    file.write_text(
        '[fabric]\ngenerator = "leaf-spine"\nleaf-hosts = [2, 2]\nspine-cables = [1, 1]\n'
        'hosts-file = "places"\n'
    )
    with pytest.raises(ScenarioError, match=words) as refusal:
        silvan.Scenario.from_file(file)
    assert refusal.value.hint


def test_names_are_of_generated_hosts() -> None:
    with pytest.raises(ScenarioError, match="there is no generator"):
        silvan.Scenario(
            fabric={
                "switch": [{"name": "S", "ports": 2}],
                "host": [{"name": "A"}, {"name": "B"}],
                "cable": [{"from": "A", "to": "S:1"}, {"from": "B", "to": "S:2"}],
                "host-names": [["C", "S"]],
            }
        )


def test_free_ports_share_the_load() -> None:
    """Oracle: four saturating hosts fill four cables, as they do where each port is compared."""

    def total(choice: str) -> float:
        flows: list[TomlValue] = [
            {"from": f"host-000{host}", "to": f"host-000{4 + host}"} for host in range(4)
        ]
        run = silvan.run(
            silvan.Scenario(
                fabric={
                    "generator": "leaf-spine",
                    "leaf-hosts": [4, 4],
                    "spine-cables": [1, 1, 1, 1],
                    "path-choice": choice,
                },
                traffic={"flow": flows},
                run={"duration": "200 us", "warm-up": "50 us"},
            )
        )
        return float(sum(run.hosts["delivered_bytes"].to_pylist()))

    assert total("adaptive-free") > 0.97 * total("adaptive")
