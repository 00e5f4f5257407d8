"""scripts/experiments/formats.py: its figures, from made-up measurements, and the committed report."""

import json
import re
import statistics

import numpy as np
import PIL.Image
import pytest

import formats
import readme


def line(kind, photograph, factor):
    """Bytes that grow twentyfold while the error of SSIM falls to a hundredth."""
    points = [(q, round(factor * 1000 * 20 ** (q / 100)), 1 - 0.1 * 100 ** -(q / 100))
              for q in formats.QUALITIES]
    return {"kind": kind, "photograph": photograph, "points": points}


def test_bytes_are_compared_at_the_same_ssim():
    lines = [line("jpeg", "a", 1), line("jpeg", "b", 2), line("webp", "a", 0.8),
             line("webp", "b", 1.2)]
    for each in lines[2:]:  # another scale of quality: of the file, not of its bytes
        each["points"] = [(q, size, similar) for (q, _, _), (_, size, similar) in
                          zip(each["points"][1:], each["points"])]
    (a, equal_a, same_a, beyond), (b, equal_b, _, _) = formats.ratios(lines, "webp")
    assert (a, b) == ("a", "b") and not beyond
    assert equal_a == pytest.approx(0.8, rel=1e-3) and equal_b == pytest.approx(0.6, rel=1e-3)
    assert same_a < 0.8


def similarity(a, b):
    return formats.ssim(formats.statistics_of(a), formats.statistics_of(b))


def test_ssim_is_that_of_its_definition():
    rows = np.random.default_rng(1).uniform(0, 255, (40, 50))
    assert similarity(rows, rows) == pytest.approx(1)
    flat = np.full((20, 20), 100.0)  # without contrast only the means count
    c1 = (0.01 * 255) ** 2
    assert similarity(flat, flat + 10) == pytest.approx(
        (2 * 100 * 110 + c1) / (100 ** 2 + 110 ** 2 + c1))
    assert similarity(rows, rows + np.random.default_rng(2).normal(0, 9, rows.shape)) < 0.995
    grey = PIL.Image.new("RGB", (20, 20), (10, 10, 10))
    assert formats.luma(grey)[3, 3] == pytest.approx(10)


def committed():
    lines = readme.RESULTS / "formats" / "raw.jsonl"
    return [json.loads(text) for text in lines.read_text().splitlines()]


def test_the_committed_table_follows_from_the_raw_results():
    lines = committed()
    assert len({each["photograph"] for each in lines}) >= 40
    assert formats.table(lines) in (readme.RESULTS / "formats" / "report.md").read_text()


def test_the_manual_says_what_was_measured():
    manual = (readme.ROOT / "src/conf/conf_rows.h").read_text().replace('\\n"\n', "")
    manual = re.sub(r'\s+"|\s+', " ", manual)
    lines = committed()
    of = {kind: [each[1] for each in formats.ratios(lines, kind)] for kind in formats.KINDS[1:]}
    assert (f"an AVIF has about {statistics.median(of['avif fast']):.1f} of the bytes" in manual
            and f"a WebP {statistics.median(of['webp']):.1f}," in manual)
    fewer = [100 * (1 - small / fast) for fast, small in zip(of["avif fast"], of["avif small"])]
    assert (f"for {min(fewer):.0f} to {max(fewer):.0f} % fewer bytes, "
            f"{statistics.median(fewer):.0f} % in the median" in manual)
