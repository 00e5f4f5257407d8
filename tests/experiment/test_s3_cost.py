"""scripts/experiments/s3_cost.py: its table, from made-up runs, and the libcurl program that it
subtracts."""

import pathlib
import subprocess

import machine
import s3_cost


def line(round_, clients=64, **figures):
    return {"program": "new", "photograph": "a.jpg", "clients": clients, "round": round_,
            "file_ms": 2.0, "s3_ms": 2.5, "curl_ms": 0.3, "puts": 1,
            **figures}


def test_what_libcurl_needs_is_subtracted_in_each_round():
    lines = [line(0), line(1, file_ms=4.0, s3_ms=4.9, curl_ms=0.5), line(0, clients=8, s3_ms=4.3),
             line(1, clients=8, s3_ms=4.3)]
    rows = s3_cost.table(lines).splitlines()[2:]
    assert rows == [
        "| new | a.jpg | 64 | 1.00 | 3.000 ms | 3.700 ms | 0.400 ms | 1.237 (1.088 to 1.407) | 1.100 (1.100 to 1.100) | 1.05 does not hold |",
        "| new | a.jpg | 8 | 1.00 | 2.000 ms | 4.300 ms | 0.300 ms | 2.150 (2.150 to 2.150) | 2.000 (2.000 to 2.000) | 1.15 does not hold |"]


def test_bounds_are_judged_by_the_interval():
    def verdicts(*s3_ms):
        return s3_cost.table([line(i, s3_ms=ms) for i, ms in enumerate(s3_ms)]).splitlines()[2].split(" | ")[-1]
    assert verdicts(2.08, 2.08) == "1.05 holds |"
    assert verdicts(2.0, 2.2) == "1.05 cannot be told |"
    assert verdicts(2.2, 2.2) == "1.05 does not hold |"


def test_all_bytes_are_put(tmp_path):
    program = pathlib.Path(machine.ROOT) / "build/plain/tests/bench/s3_put"
    subprocess.run(["make", program.relative_to(machine.ROOT)], cwd=machine.ROOT, check=True)
    with s3_cost.sink(tmp_path) as url:
        small, large = (s3_cost.curl_ms(url, [size] * 4, 300) for size in (1, 1 << 20))
    assert 0 < small < large
