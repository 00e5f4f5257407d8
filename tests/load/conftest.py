"""Fixtures: darkroom-load, the answer server, the daemon, and files to send."""

import subprocess
import sys

import pytest

sys.dont_write_bytecode = sys.pycache_prefix is None  # not next to the sources

from generator import LOAD, SERVER, Run  # noqa: E402 (after the line above, on purpose)
from darkroom import Daemon  # noqa: E402 (generator sets the path)


def pytest_configure(config):
    for binary in (LOAD, SERVER):
        if not binary.exists():
            pytest.exit(f"{binary} is missing; 'make all check' builds it", returncode=4)


@pytest.fixture
def load():
    """load(*arguments) runs darkroom-load; load.json(*arguments) returns its status and report."""
    def run(*arguments, **options):
        return Run(*arguments, **options)

    def run_json(*arguments, **options):
        done = Run("--json", *arguments, **options)
        return done.status, done.report

    run.json = run_json
    return run


@pytest.fixture
def serve():
    """serve(*options) starts an answer server and returns its URL; serve.pid is the last one's."""
    started = []

    def start(*options):
        process = subprocess.Popen([SERVER, *map(str, options)], stdout=subprocess.PIPE, text=True)
        started.append(process)
        start.pid = process.pid
        return f"http://127.0.0.1:{int(process.stdout.readline())}/images"

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def files(tmp_path):
    """Ten files of 1000 to 1009 bytes. They are not JPEGs, which the answer server ignores."""
    folder = tmp_path / "files"
    folder.mkdir()
    for i in range(10):
        (folder / f"{i}.jpg").write_bytes(b"x" * (1000 + i))
    return folder


@pytest.fixture
def daemon(tmp_path):
    daemon = Daemon(tmp_path / "store")
    yield daemon
    daemon.stop()
