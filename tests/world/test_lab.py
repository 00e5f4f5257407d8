"""The page of `make lab` runs the scheduler itself: an execution there is that of the program."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "http"))
import browser  # noqa: E402

POLICIES = "drain", "cohort", "mg1", "srpt", "dbr", "color", "seda"
RUN = """
const fs = require("fs"), [program, script, out, world, policy, cores] = process.argv.slice(1);
const { run, wordsOf } = new Function(fs.readFileSync(script) + "; return { run, wordsOf };")();
const words = wordsOf(policy, Number(cores), 0.8, 1);
WebAssembly.compile(fs.readFileSync(program)).then((module) => run(module, words, world)).then(({ trace, ...done }) => {
	fs.writeFileSync(out, trace);
	console.log(JSON.stringify({ words, ...done }));
});
"""


@pytest.fixture(scope="module", autouse=True)
def built():
    subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "lab", "build/plain/world/synthetic"],
                   cwd=ROOT, check=True)


def in_node(tmp_path, policy, cores):
    """Returns the arguments, what WebAssembly prints, and the hash of its trace."""
    file = tmp_path / "trace"
    done = subprocess.run(["node", "-e", RUN, ROOT / "build/lab/lab.wasm", ROOT / "tests/world/lab/run.js", file,
                           f"cpus={cores} skip=1", policy, str(cores)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["status"] == 0, found["errors"]
    return found["words"], found["text"], hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cores", [4, 16])
def test_webassembly_has_the_execution_of_the_program(policy, cores, tmp_path):
    words, text, trace = in_node(tmp_path, policy, cores)
    native = subprocess.run(["setarch", "-R", ROOT / "build/plain/world/synthetic", *words[:-1], "trace=native"],
                            cwd=tmp_path, env=dict(os.environ, WORLD=f"cpus={cores} skip=1"),
                            capture_output=True, text=True, check=True)
    assert native.stdout == text
    assert hashlib.sha256((tmp_path / "native").read_bytes()).hexdigest() == trace


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs chromium")
def test_the_page_shows_the_executions_of_two_policies(tmp_path):
    """From a file, without a server: no request but for the page, and no error."""
    with browser.tab(tmp_path / "profile") as page:
        page.open(f"file://{ROOT}/build/lab.html")
        assert page.wait("shown.length === 2", 60)
        for side, policy in enumerate(("drain", "cohort")):
            _, text, trace = in_node(tmp_path, policy, 8)
            assert page.js(f"shown[{side}].hash") == trace
            assert page.js(f"shown[{side}].report") == json.loads(text)
            cells = page.js(f"[...panels[{side}].querySelectorAll('td')].map((cell) => cell.textContent)")
            assert trace[:12] in cells and cells[2::3] == ["simulated"] * (len(cells) // 3)
        first = page.js("Number(time.value)")
        assert page.wait(f"Number(time.value) !== {first}")
        assert re.fullmatch(r"Worker \d+ came to stage 1, where \d+ events waited. It served [1-9]\d* of them in .* ms.",
                            page.js("explain(shown[0], shown[0].visits.find((one) => one.events).worker, "
                                    "shown[0].visits.find((one) => one.events).begin)"))
        assert page.errors == []
        assert len(page.requests) == 1 and page.requests[0].startswith("file:")
