"""Fixtures: darkroom-load, the answer server, the daemon, and files to send."""

import subprocess
import sys

import pytest

sys.dont_write_bytecode = sys.pycache_prefix is None  # not beside the sources

from generator import LOAD, SERVER, Run  # noqa: E402 (after the line above, on purpose)
from darkroom import Daemon  # noqa: E402 (generator knows where it is)


def pytest_configure(config):
    for binary in (LOAD, SERVER):
        if not binary.exists():
            pytest.exit(f"{binary} is not there: 'make all check' builds it", returncode=4)


@pytest.fixture
def load():
    """load(*arguments) runs it; load.json(*arguments) gives the exit status and the report."""
    def run(*arguments, **options):
        return Run(*arguments, **options)

    def run_json(*arguments, **options):
        done = Run("--json", *arguments, **options)
        return done.status, done.report

    run.json = run_json
    return run


@pytest.fixture
def serve():
    """serve(*options) starts an answer server and gives its URL; serve.pid is that of the last one."""
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
    """Ten files that are no JPEGs, of 1000 to 1009 bytes: the answer server does not look."""
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
