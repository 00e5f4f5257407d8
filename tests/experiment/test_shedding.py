"""The report and the plots of scripts/experiments/shedding.py, from made-up runs."""

import json
import xml.etree.ElementTree

import pytest

import shedding
import shedding_cases
import shedding_plots


def request(due, took, status):
    return {"intended": str(due), "start": str(due), "done": str(due + took), "status": status}


def test_seconds_have_the_requests_that_were_due_in_them():
    rows = [request(100.1, 0.2, "201"), request(100.9, 0.4, "201"), request(100.95, 0.01, "503"),
            request(102.2, 3, "201"), request(102.3, 0.01, "503")]
    assert shedding_plots.by_second(rows) == [
        {"s": 0, "admitted": 2, "refused": 1, "p90_s": pytest.approx(0.4)},
        {"s": 2, "admitted": 1, "refused": 1, "p90_s": pytest.approx(3)}]
    assert shedding_plots.by_second([]) == []


def line(name, workload, round_=0, spike=0, p90=1.0):
    rows = [request(i / 10, p90, "201") for i in range(30)]
    return {"name": name, "workload": workload, "round": round_, "spike": spike, "cores": 2,
            "capacity_per_s": 100, "target_s": 1, "seconds": 3, "goodput_per_s": 90.0,
            "refused_share": 0.25, "admitted_p50_s": p90 / 2, "admitted_p90_s": p90,
            "admitted_p99_s": None if workload == 10 else 2 * p90, "refusal_p50_s": 0.001,
            "refusal_p99_s": 0.002, "peak_rss_bytes": 1e8, "unsent": 0,
            "over_time": shedding_plots.by_second(rows)}


def test_panels_have_medians_over_the_rounds():
    lines = [line(name, load, round_, p90=1 + round_) for name in ("backlog", "off")
             for load in (10, 2) for round_ in range(3)]
    panels = {(title, name): points for title, _, _, curves in shedding_plots.load_panels(lines)
              for name, _, points in curves}
    assert len(panels) == 12
    assert panels["p90 of the admitted, s", "backlog"] == [(2, 2), (10, 2)]
    assert panels["p99 of the admitted, s", "off"] == [(2, 4)]  # none was admitted at 10
    assert panels["refused, %", "off"] == [(2, 25), (10, 25)]


def test_report_has_each_run_and_its_plots(tmp_path):
    lines = [line(name, load) for name in ("backlog", "off") for load in (0.5, 2, 10)]
    lines += [line(name, 0.5, spike=10) for name in ("backlog", "off")]
    (tmp_path / "raw.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    shedding.write_report(tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert text.count("\n| backlog |") == 4 and "| 0.5, spike of 10 |" in text
    for name, panels in (("load.svg", 6), ("spike.svg", 3)):
        assert f"]({name})" in text
        picture = (tmp_path / name).read_text()
        assert xml.etree.ElementTree.fromstring(picture).tag.endswith("svg")
        titles = shedding_plots.LOAD if name == "load.svg" else shedding_plots.TIME
        assert len(titles) == panels
        for text_ in [title for title, *_ in titles] + ["backlog", "off"]:
            assert picture.count(f">{text_}<") == 1, text_


def seconds(*p90s):
    return [{"s": second, "admitted": int(p90 is not None), "p90_s": p90 or 0}
            for second, p90 in enumerate(p90s)]


@pytest.mark.parametrize("p90s, since, expected", [
    ((1, 1, 1), 0, 0), ((1, 1.2, 1.1), 0, 0), ((3, 1, 1, 1), 0, 1), ((1, 1, 3, 1, 1, 1), 0, 3),
    ((1, 1, 3), 0, None), ((1, None, 1, 1, 1), 0, 2), ((), 0, None),
    ((1, 1, 1, 3, 3, 1, 1, 1), 3, 2), ((1, 1, 1, 3), 2, None)])
def test_target_is_kept_from_the_first_of_three_seconds_on(p90s, since, expected):
    assert shedding_cases.settled_after(seconds(*p90s), since, len(p90s), 1) == expected


def test_cases_tell_their_figures():
    rows = [request(0, 1, "201"), request(0, 1, "503"), request(1, 1, "503")]
    assert shedding_cases.refused_share(rows) == pytest.approx(2 / 3)
    assert shedding_cases.refused_share([]) == 0
    assert "refused 2.0 % of 100 uploads" in shedding_cases.text_of(
        {"kind": "classes", "gold_refused_share": 0.02, "gold_sent": 100,
         "other_refused_share": 0.7, "other_sent": 300})
    assert "None s after the change" in shedding_cases.text_of(
        {"kind": "slower", "settled_after_start_s": 1, "settled_after_change_s": None})


def test_crowd_is_compared_with_the_few_before_it():
    def sent(at, took, status="201"):
        return {"start": str(at), **request(at, took, status), "done": str(at + took)}
    few = [sent(at, 0.02) for at in range(10)]
    few += [sent(at, 0.9) for at in range(10, 20)] + [sent(20, 0.3), sent(21, 0.04), sent(22, 0.02)]
    many = [sent(0, 9), sent(5, 1.1), sent(6, 1.1), sent(7, 0.004, "503")]
    figures = shedding_cases.crowd_summary(few, many, 10, 10)
    assert figures["goodput_per_s"] == pytest.approx((5 + 2) / 5)  # the first five seconds are left out
    assert figures["admitted_p90_s"] == pytest.approx(1.1) and figures["refused"] == 1
    assert figures["refusal_p99_s"] == pytest.approx(0.004)
    assert figures["normal_after_s"] == 2  # twice 20 ms and 10 ms
    assert shedding_cases.crowd_summary(few[:20], [], 10, 10)["normal_after_s"] is None


def test_crowd_tells_its_figures():
    text_ = shedding_cases.text_of({
        "kind": "crowd", "think_ms": 0, "capacity_per_s": 200, "goodput_per_s": 190, "target_s": 1,
        "admitted_p90_s": 1.05, "refused": 0, "refusal_p99_s": None, "peak_rss_bytes": 9e7,
        "normal_after_s": 1})
    assert "are 0.95 of the capacity (bound 0.9), p90 1050.0 ms (bound 1200)" in text_
    assert "0 refusals with a p99 of none" in text_ and "90 MB" in text_
