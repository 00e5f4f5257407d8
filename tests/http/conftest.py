"""Fixtures: the daemon that most tests share, and daemons of a test's own with other settings. Each is stopped with
SIGTERM and must exit with 0 and a clean log."""

import sys

import pytest

sys.dont_write_bytecode = sys.pycache_prefix is None  # not beside the sources

from darkroom import BINARY, POLICY, SETTINGS, Daemon  # noqa: E402 (after the line above, on purpose)

DEFAULT_POLICY = "drain"


def pytest_configure(config):
    if not BINARY.exists():
        pytest.exit(f"{BINARY} is not there: build it first, or name it in DARKROOMD", returncode=4)


def pytest_report_header(config):
    import darkroom
    return (f"darkroomd: {BINARY}, policy {darkroom.POLICY or 'of the configuration'}, "
            f"slow factor {darkroom.SLOW:g}{', sanitized' if darkroom.IS_SANITIZED else ''}")


def is_selected(item):
    """Returns whether a test says anything new under this policy and layout; tests/README.md has the rules."""
    if SETTINGS and item.get_closest_marker("shared_layout"):
        return False
    if POLICY in ("", DEFAULT_POLICY) or item.get_closest_marker("every_policy"):
        return True
    return any(POLICY in mark.args for mark in item.iter_markers("also_with"))


def pytest_collection_modifyitems(config, items):
    dropped = [item for item in items if not is_selected(item)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if is_selected(item)]


@pytest.fixture(scope="session")
def shared_daemon(tmp_path_factory):
    daemon = Daemon(tmp_path_factory.mktemp("shared"))
    yield daemon
    daemon.stop()


@pytest.fixture
def daemon(shared_daemon):
    """The daemon with the shipped configuration; it must survive the test."""
    yield shared_daemon
    assert shared_daemon.is_alive(), shared_daemon.log[-20000:]
    shared_daemon.assert_no_alarm()


@pytest.fixture
def start(tmp_path):
    """start(*settings) gives a daemon of the test's own; all are stopped and checked at the test's end."""
    started = []

    def start_daemon(*settings, **options):
        store = options.pop("store", tmp_path / f"store{len(started)}")
        started.append(Daemon(store, *settings, **options))
        return started[-1]

    yield start_daemon
    failures = []
    for daemon in started:
        try:
            daemon.stop()
        except AssertionError as failure:
            failures.append(str(failure))
    assert not failures, "\n".join(failures)


def pytest_make_parametrize_id(config, val, argname):
    """Whole files and long lines are no names for tests."""
    if isinstance(val, (bytes, str)) and len(val) > 40:
        return f"{argname}-{len(val)}"
    return None
