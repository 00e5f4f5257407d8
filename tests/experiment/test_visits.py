"""The visits of a run: what is taken from /stats, and their table."""

import results as r
import visits


def worker(busy_ms):
    return {"busy_ms": busy_ms}


def stats(groups):
    return {"scheduler": {"groups": groups},
            "stages": [{"max_events_per_visit": 3, "max_queued_at_visit": 9,
                        "max_wait_us": 1500},
                       {"max_events_per_visit": 7, "max_queued_at_visit": 2,
                        "max_wait_us": 900}]}


def test_group_that_serves_the_images_counts():
    io = {"name": "io", "visit_success": 0.25, "workers": [worker(10)]}
    main = {"name": "main", "visit_success": 0.75, "workers": [worker(300), worker(100)]}
    found = visits.of(stats([io, main]))
    assert found == {"visit_success": 0.75, "max_events_per_visit": 7, "max_queued_at_visit": 9,
                     "max_wait_ms": 1.5, "busy_ms": [300, 100]}
    assert visits.imbalance(found) == 1.5
    # thread-per-connection: the main group has nothing to do
    main = {"name": "main", "workers": [worker(0), worker(0)]}
    assert visits.of(stats([io, main]))["visit_success"] == 0.25


def test_table_has_the_medians_and_leaves_out_runs_without_visits():
    lines = [{"kind": "policies", "name": "cohort", "workload": 16, "round": number,
              "input_bytes_per_s": 1e6,
              "visits": {"visit_success": share, "max_events_per_visit": 4,
                         "max_queued_at_visit": 8, "max_wait_ms": 12.3, "busy_ms": [2, 1]}}
             for number, share in enumerate((0.2, 0.4, 0.9))]
    table = visits.table(r.Results(lines), 16)
    assert "| cohort | 40 % | 4 | 8 | 12 | 1.33 |" in table
    for line in lines:
        del line["visits"]
    assert visits.table(r.Results(lines), 16) == ""
