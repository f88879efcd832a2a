"""What the benchmark says of its figures."""

import json
import random

import pytest

from benchmarks import report, run
from benchmarks.figures import percentile, spread


def test_a_percentile_is_a_sample_that_so_many_do_not_exceed():
    samples = [float(number) for number in range(1, 101)]
    random.shuffle(samples)
    assert percentile(samples, 0.50) == 50
    assert percentile(samples, 0.99) == 99
    assert percentile([7.0], 0.99) == 7


def test_no_samples_have_no_percentile():
    with pytest.raises(ValueError, match="no samples"):
        percentile([], 0.5)


def test_a_spread_is_median_least_and_greatest_of_the_rounds():
    assert spread([3.0, 1.0, 10.0]) == {"median": 3.0, "min": 1.0, "max": 10.0}


def test_a_ratio_is_taken_inside_one_round():
    fast = {"pure_step.steps_per_s": 100.0, "langgraph_sync.steps_per_s": 50.0}
    slow = {"pure_step.steps_per_s": 30.0, "langgraph_sync.steps_per_s": 10.0}
    rounds = [report.with_ratios(figures) for figures in (fast, slow, slow)]
    summary = report.summarise(rounds)
    assert summary["pure_step_vs_langgraph_sync"] == {"median": 3.0, "min": 2.0, "max": 3.0}


def test_a_ratio_with_one_side_unmeasured_is_left_out():
    assert "pure_step_vs_dbos" not in report.with_ratios({"pure_step.steps_per_s": 1.0})


def test_counters_stand_beside_the_figures_of_their_kind():
    flat = report.flatten("decide", {"p50_ms": 2.0, "counters": {"commits": 1.0}})
    assert flat == {"decide.p50_ms": 2.0, "decide.commits": 1.0}


def test_the_file_holds_the_rounds_and_every_metric(tmp_path):
    metrics = report.summarise([{"decide.p50_ms": 2.0}])
    report.write(1, metrics, tmp_path / "new" / "latest.json")
    assert json.loads((tmp_path / "new" / "latest.json").read_text()) == {
        "rounds": 1,
        "metrics": {"decide.p50_ms": {"median": 2.0, "min": 2.0, "max": 2.0}},
    }


def test_the_table_names_ratios_first_with_what_is_asked():
    metrics = report.summarise(
        [{"decide.p50_ms": 2.0, "decide_vs_bare_insert": 0.61, "bare_insert.p50_ms": 1.0}]
    )
    lines = report.table(metrics).splitlines()
    assert lines[1].startswith("decide_vs_bare_insert")
    assert lines[1].endswith("0.5, goal 0.7")
    assert [line.split()[0] for line in lines[2:]] == ["bare_insert.p50_ms", "decide.p50_ms"]


def test_one_figure_is_measured_with_all_that_it_is_made_of():
    assert run.chosen("pure_step_vs_dbos") == [run.steps, run.dbos]
    assert run.chosen("propose_to_receipt_p99_ms_20") == [run.waiting]
    assert run.chosen("decide.commits") == [run.requests]
    assert run.chosen("bytes_per_step_vs_dbos") == [run.growth, run.dbos_growth]
    assert run.chosen("load_to_resume_1000_over_10") == [run.growth]
    assert run.chosen("policy_200_vs_1") == [run.policies]
    assert run.chosen("auto_approved_vs_ungated_step") == [run.delegated]
    assert run.chosen(None) == list(run.PARTS)


def test_what_takes_minutes_is_measured_only_where_it_is_named():
    assert run.chosen("deciding.p99_ms") == [run.deciding]
    assert run.chosen("rebuild") == [run.rebuild]
    assert run.BY_NAME.keys().isdisjoint(run.chosen(None))


def test_a_figure_that_nothing_measures_is_refused():
    with pytest.raises(ValueError, match="nothing measures speed"):
        run.chosen("speed")


def test_each_part_is_first_in_its_turn_and_none_is_left_out():
    parts = list(run.PARTS)
    rounds = [run.in_turn(parts, number) for number in range(len(parts))]
    assert [order[0] for order in rounds] == parts
    assert all(set(order) == set(parts) for order in rounds)
