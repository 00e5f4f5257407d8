"""The figures of scripts/experiments/addresses.py, from made-up requests."""

import types

import pytest

import addresses


def request(due, took, status, size="small"):
    return {"intended": str(due), "start": str(due), "done": str(due + took), "status": status,
            "file": f"/files/{size}-1.jpg"}


def test_sizes_have_their_own_percentiles_and_refusals():
    rows = [request(100, 0.1, "201")]
    rows += [request(106 + i / 100, 0.2, "201") for i in range(30)]
    rows += [request(106 + i / 100, 0.002, "503") for i in range(10)]
    rows += [request(107, 1.5, "201", "large") for _ in range(3)]
    rows += [request(107, 0.004, "503", "large")]
    found = addresses.summary(rows, {"small": 20, "large": 4}, 10, "intended")
    assert found["small"] == {"admitted": 30, "refused": 10, "p90_s": pytest.approx(0.2),
                              "refusal_p99_s": pytest.approx(0.002)}
    assert found["large"] == {"admitted": 3, "refused": 1, "p90_s": pytest.approx(1.5),
                              "refusal_p99_s": pytest.approx(0.004)}
    assert found["refusal_p99_s"] == pytest.approx(0.004)
    seconds = 10 - 10 / 3
    assert found["goodput"] == pytest.approx((30 / 20 + 3 / 4) / seconds)
    assert addresses.refusal_ratio(found) == pytest.approx(1)
    assert addresses.refusal_ratio(found | {"large": {"admitted": 1, "refused": 1}}) == 2


def test_goodput_is_of_the_capacity_and_the_time_that_the_generator_left():
    rates, options = {"small": 20, "large": 4}, types.SimpleNamespace(overload_s=9)
    rows = [request(100, 0.1, "201")] + [request(105 + i / 10, 0.1, "201") for i in range(30)]
    alone = [{"work": work, "load_share": 0.1} for work in (0.5, 0.4)]
    found = addresses._figures(options, rates, (rows, [], 0.55, alone), "intended")
    assert found["done"] == pytest.approx(30 / 20 / 6)
    assert found["goodput"] == pytest.approx(found["done"] / 0.45 * 2)
    assert found["capacity_per_s"] == pytest.approx(addresses.capacity(rates) / 2)


def test_time_of_the_generator_is_not_lost_if_the_clients_are_elsewhere():
    line = {"loop": "open", "factor": 10, "goodput": 0.7, "load_share": 0.3}
    assert addresses.goodput_elsewhere(line) == pytest.approx(0.79)
    assert addresses.goodput_elsewhere(line | {"factor": 0.95}) is None
    assert addresses.goodput_elsewhere(line | {"loop": "jump"}) is None


def test_what_is_answered_after_the_end_of_a_load_is_not_of_its_time():
    rows = [request(100 + i / 10, 0.1, "201") for i in range(20)]
    rows += [request(101.9, 0.3, "201", "large") for _ in range(8)]
    rates = {"small": 20, "large": 4}
    assert addresses.work_per_s(rows, rates, 0.95, 2.05) == pytest.approx(11 / 20 / 1.1)


def test_few_refusals_have_no_ratio():
    few = {"admitted": 97, "refused": 3}
    assert addresses.refusal_ratio({"small": few, "large": {"admitted": 10, "refused": 0}}) is None


def test_recovery_ends_with_the_last_late_window():
    rows = [request(i / 20, 2 if 4 <= i / 20 < 5.1 else 0.1, "201") for i in range(200)]
    assert addresses.last_late_s(rows, 4, 8, 1) == pytest.approx(1.25)
    assert addresses.last_late_s(rows, 6, 8, 1) == 0


def test_refusals_in_a_row_are_counted_in_the_order_of_arrival():
    rows = [request(at, 0.1, status) for at, status in (
        (3, "503"), (1, "503"), (2, "201"), (4, "503"), (5, "201"))]
    assert addresses.in_a_row(rows) == 2


def test_controllers_and_loops_can_be_chosen():
    def names(*chosen):
        options = types.SimpleNamespace(configurations=chosen, overload_s=10)
        return [job.name for job in addresses.jobs(options, None, 0)]
    assert len(names()) == len(set(zip(names(), range(1000)))) == 6 * (3 * (6 + 3) + 1) - 2 * 3
    assert "off, open, 2" in names() and "off, open, 4" not in names()
    assert set(names("backlog-jump")) == {"backlog, jump, 1.4"}
    assert len(names("codel-at-once")) == 3 and len(names("welsh")) == 28
    assert names("backlog-open-10") == ["backlog, open, 10"] * 3
    assert names("backlog-open-10-600") == ["backlog, open, 10"]
