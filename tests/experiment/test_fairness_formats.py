"""scripts/experiments/fairness_formats.py: its table, from made-up measurements."""

import fairness_formats


def test_rows_of_fairness_are_medians_of_rounds():
    lines = [{"program": "build", "output": "JPEG", "beside": beside, "small": 10, "large": 3, "p50_ms": p50,
              "p99_ms": 9 * p50}
             for beside, values in (("nothing", (2, 4, 3)), ("PNG", (6, 12, 7)))
             for p50 in values]
    assert list(fairness_formats.rows(lines)) == [
        ("build", "JPEG", "nothing", "30", "9", "3.0", "27.0", "1.00"),
        ("build", "JPEG", "PNG", "30", "9", "7.0", "63.0", "2.33")]
