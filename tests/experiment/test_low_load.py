"""The table of scripts/experiments/low_load.py, from made-up runs."""

import low_load


def line(program, round_, **figures):
    return {"program": program, "round": round_, "policy": "drain", "rate_per_s": 20.0, "p50_s": 1.0,
            "p90_s": 2.0, "cpu_ms_per_image": 5.0, "sleeps_per_image": 4.0, **figures}


def test_programs_are_compared_with_the_first_in_each_round():
    lines = [line("new", 0, p50_s=1.1, sleeps_per_image=2.0), line("old", 0),
             line("old", 1, p50_s=2.0), line("new", 1, p50_s=2.2, sleeps_per_image=2.0)]
    row = low_load.table(lines, ["old", "new"]).splitlines()[-1]
    assert "| drain | 20 | new : old | 1.100 (1.100 to 1.100) |" in row
    assert row.endswith("| 0.500 (0.500 to 0.500) |")


def test_only_threads_that_process_images_count():
    stats = {"scheduler": {"groups": [{"name": "main", "sleeps": 3}, {"name": "io", "sleeps": 50}]}}
    assert low_load.sleeps(stats) == 3
