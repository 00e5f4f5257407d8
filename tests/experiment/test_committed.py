"""The committed reports and documents say what follows from the committed raw results."""

import json
import re
import statistics

import pytest
import readme
import report
import results

# Other measurements have a first line of their own.
FOLDERS = sorted(path.parent for path in readme.RESULTS.glob("*/raw.jsonl")
                 if "memory_gb" in results.read(path)[0])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_report_follows_from_its_raw_results(folder):
    found = results.Results(results.read(folder / "raw.jsonl"))
    written = (folder / "report.md").read_text()
    assert report.text(found, report.command_of(found, folder, ""))[1] == written
    for name in re.findall(r"\((\S+\.svg)\)", written):
        assert (folder / name).exists()


def test_the_readme_follows_from_the_raw_results():
    text = readme.PATH.read_text()
    assert readme.generated(text) == text
    assert {folder.name for folder in FOLDERS} == {
        found[2] for found in readme.BLOCK.finditer(text) if found[1] == "verdicts"}


def rows(path):
    """Returns the cells of all rows of all tables."""
    return [[cell.strip() for cell in line.strip("|").split("|")]
            for line in path.read_text().splitlines() if line.startswith("|")]


def test_the_performance_of_the_readme_follows_from_the_raw_results():
    """CPU ms per image, the ratio to darkroom's, images per second and p50."""
    lines = [json.loads(line) for line in
             (readme.RESULTS / "2026-11-21-bench" / "peers.jsonl").read_text().splitlines()]
    names = {"darkroom": "darkroom", "sharp": "sharp", "sharp with a true Gaussian":
             "sharp-exact-blur", "Pillow": "pillow",
             "a script of ImageMagick processes": "imagemagick"}
    checked = set()
    for cells in rows(readme.ROOT / "README.md"):
        if cells[0] not in names or len(cells) != 5:
            continue
        runs = [line for line in lines if line["peer"] == names[cells[0]]]
        ours = {line["round"]: line["cpu_ms"] for line in lines if line["peer"] == "darkroom"}
        expected = [statistics.median(line["cpu_ms"] for line in runs),
                    statistics.median(line["cpu_ms"] / ours[line["round"]] for line in runs),
                    statistics.median(line["images_per_s"] for line in runs),
                    statistics.median(line.get("p50_ms") or 0 for line in runs)]
        for cell, value in zip(cells[1:], expected):
            decimals = len(cell.partition(".")[2])
            assert not cell or float(cell) == pytest.approx(value, abs=0.51 * 10 ** -decimals), cell
        checked.add(cells[0])
    assert checked == set(names)
