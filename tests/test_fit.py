"""Fits: the value that made the numbers is found, and what numbers do not say is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from silvan.comparing.tuning.fit import fit
from silvan.comparing.tuning.problem import parse_problem, read_problem
from silvan.comparing.tuning.space import cct_entries
from tests.conftest import DDR_TOML, Command

pytestmark = pytest.mark.usefixtures("inline_pool")

FIT = """\
scenario = "incast.toml"
[parameters."host.sink-rate"]
range = "4..12 Gbit/s"
start = 12
[parameters."control.ib-cc.adapter.ccti-timer"]
range = "10..600 log"
start = 150
[cases]
one = {}
two = { "host.injection-rate" = "1 Gbit/s" }
[[target]]
id = "rate.many"
measure = "one.hotspots_gbps"
value = 6.0
tol = 0.02
[[target]]
id = "rate.ratio"
measure = "one.hotspots_gbps / two.hotspots_gbps"
value = 2.0
tol = 0.02
group = "ratio"
held-out = true
"""
INCAST = f"""\
[fabric]
generator = "single-switch"
hosts = 4
{DDR_TOML}
[[traffic.incast]]
to = "host-0000"
[run]
duration = "100 us"
"""


@pytest.mark.slow
def test_a_fit_finds_the_value_that_made_the_numbers(tmp_path: Path) -> None:
    tmp_path.joinpath("incast.toml").write_text(INCAST)
    problem = parse_problem(FIT, "fit.toml", tmp_path)
    result = fit(problem, tmp_path / "out", trials=60, check_seeds=1)
    sink, timer = result.profiles
    assert (sink.key, sink.start) == ("host.sink-rate", "12 Gbit/s")
    assert float(str(sink.fitted).split()[0]) == pytest.approx(6, abs=0.6)
    # Without congestion control the timer has no effect.
    assert sink.is_identified
    assert timer.is_identified is False
    few = fit(problem, tmp_path / "out", trials=59, check_seeds=0)
    assert [one.is_identified for one in few.profiles] == [None, None]
    many, ratio = result.rows
    assert many.is_within(many.fitted)
    assert not many.is_within(many.start)
    assert (many.held_out, ratio.held_out) == (False, True)
    # Three hosts at 1 Gbit/s each, and at most what the sink takes.
    assert ratio.fitted == pytest.approx(many.fitted / 3, rel=0.02)  # type: ignore[operator]
    assert many.fitted_elsewhere == pytest.approx(many.fitted, rel=0.01)
    assert result.front[0]["number"] == result.found.best.number
    again = fit(problem, tmp_path / "out", trials=60, check_seeds=1)
    assert again.runs == 0
    assert again.to_dict() == result.to_dict()


def test_the_fit_of_gran2012_is_about_the_papers_numbers() -> None:
    problem = read_problem("gran2012")
    assert len(problem.targets) == 25
    assert len(problem.fitted) == 14
    by_id = {one.id: one for one in problem.targets}
    assert (by_id["fig8c.peak"].value, by_id["fig8c.peak"].tol) == (17.0, 0.25)
    assert by_id["fig8c.peak"].error(17.0 * 1.25) == pytest.approx(1)
    # The start is the study's own set: with it, a case is the study.
    values = problem.values("hot_on", problem.start)
    built = problem.scenario.override({key: values[key] for key in ("switch.buffer",)})
    assert built == problem.scenario
    assert values["control.feedback.delay"] == "2 us"
    assert cct_entries(0.95, 1.0, 127) == values["control.ib-cc.adapter.cct"]["entries"]  # type: ignore[index,call-overload]
    off = problem.values("hot_off", problem.start)
    assert list(off) == ["switch.buffer", "control.scheme"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[cases]", "[cases", "not TOML"),
        ('"host.sink-rate"', '"host.sink"', "host.sink"),
        ('range = "4..12 Gbit/s"', 'range = "12..4 Gbit/s"', "the range '12..4 Gbit/s' is empty"),
        ("start = 12", "start = 13", "the start value 13 is outside of 4 to 12"),
        ("one.hotspots_gbps", "three.hotspots_gbps", "there is no case three"),
        ("/ two", "** two", "cannot be part of a formula"),
        ("tol = 0.02", "tol = 0", "and a tol above 0"),
        ("tol = 0.02", "tolerance = 1", "unknown key"),
        ("rate.ratio", "rate.many", "target rate.many: there are 2 of this id"),
        ("value = 6.0\n", "", "target rate.many.value: missing"),
        ('scenario = "incast.toml"', "", "no scenario"),
        ("one = {}", "1one = {}", "cases.1one: a name that formulas cannot have"),
        ("one.hotspots_gbps", "one.bogus_gbps", "a run has no measure one.bogus_gbps"),
    ],
)
def test_a_wrong_fit_is_refused(
    tmp_path: Path, command: Command, old: str, new: str, message: str
) -> None:
    tmp_path.joinpath("incast.toml").write_text(INCAST)
    file = tmp_path / "fit.toml"
    assert old in FIT
    file.write_text(FIT.replace(old, new))
    done = command("fit", file, "--trials", "2", "--out", tmp_path / "out")
    assert done.status == 2, done.stderr
    assert message.replace("'", "") in done.stderr.replace("'", "")
    assert "Traceback" not in done.stderr


def test_the_command_says_that_fitted_values_are_no_defaults(
    tmp_path: Path, command: Command
) -> None:
    tmp_path.joinpath("incast.toml").write_text(INCAST)
    tmp_path.joinpath("fit.toml").write_text(FIT)
    fitted = command("fit", tmp_path / "fit.toml", "--trials", "8", "--out", tmp_path / "fit")
    assert fitted.status == 0, fitted.stderr
    assert "fitted, not defaults" in fitted.stdout
    assert "held out: 0 of 1" in fitted.stderr or "held out: 1 of 1" in fitted.stderr
