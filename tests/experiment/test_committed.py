"""The committed reports and documents say what follows from the committed raw results."""

import json
import statistics

import cost_model
import pytest
import readme
import report
import results

# Other measurements have a first line of their own.
FOLDERS = sorted(path.parent for path in readme.RESULTS.glob("*/raw.jsonl")
                 if {"memory_gb", "costs"} & results.read(path)[0].keys() == {"memory_gb"})
COST_MODEL = readme.RESULTS / "cost-model"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_report_follows_from_its_raw_results(folder):
    found = results.Results(results.read(folder / "raw.jsonl"))
    written = (folder / "report.md").read_text()
    assert report.text(found, report.command_of(found, folder, ""))[1] == written


def test_the_report_of_the_cost_model_follows_from_its_raw_results():
    about, *found = results.read(COST_MODEL / "raw.jsonl")
    assert cost_model.report(about, found) == (COST_MODEL / "report.md").read_text()


def test_the_readme_follows_from_the_raw_results():
    text = readme.PATH.read_text()
    assert readme.generated(text) == text
    measured = {found[2] for found in readme.BLOCK.finditer(text) if found[1] == "verdicts"
                and readme.NOT_MEASURED not in found[0]}
    assert {folder.name for folder in FOLDERS} == measured


def rows(path):
    """Returns the cells of all rows of all tables."""
    return [[cell.strip() for cell in line.strip("|").split("|")]
            for line in path.read_text().splitlines() if line.startswith("|")]


PERFORMANCE = readme.RESULTS / "peers"


def raw(name):
    return [json.loads(line) for line in (PERFORMANCE / name).read_text().splitlines()]


def medians_of_limit():
    runs = raw("bench.jsonl")
    return [statistics.median(line["limit"]["cpu_ms"] for line in runs),
            statistics.median(line["limit"]["cpu_ms"] / line["daemon"]["cpu_ms"] for line in runs)]


def medians_of(peer):
    lines = raw("peers.jsonl")
    runs = [line for line in lines if line["peer"] == peer]
    ours = {line["round"]: line["cpu_ms"] for line in lines if line["peer"] == "darkroom"}
    return [statistics.median(line["cpu_ms"] for line in runs),
            statistics.median(line["cpu_ms"] / ours[line["round"]] for line in runs),
            statistics.median(line["images_per_s"] for line in runs),
            statistics.median(line["p50_ms"] for line in runs)]


def test_the_performance_of_the_readme_follows_from_the_raw_results():
    """CPU ms per image, the ratio to darkroom's, images per second and p50."""
    expected = {"the same pixel code without a server": medians_of_limit(),
                "darkroom": medians_of("darkroom"), "sharp": medians_of("sharp"),
                "sharp with a true Gaussian": medians_of("sharp-exact-blur"),
                "Pillow": medians_of("pillow")}
    found = {cells[0]: [cell for cell in cells[1:] if cell]
             for cells in rows(readme.ROOT / "README.md") if cells[0] in expected and len(cells) == 5}
    assert set(found) == set(expected)
    for name, cells in found.items():
        assert len(cells) == len(expected[name]), name
        for cell, value in zip(cells, expected[name]):
            decimals = len(cell.partition(".")[2])
            assert float(cell) == pytest.approx(value, abs=0.51 * 10 ** -decimals), (name, cell)
