"""Fixtures: a daemon that most tests share, and daemons of one test with its own settings. Each
daemon is stopped with SIGTERM, and must exit with 0 and a clean log. Also selects the tests of a
policy."""

import contextlib
import functools
import pathlib
import subprocess
import sys

import pytest

sys.dont_write_bytecode = sys.pycache_prefix is None  # keeps the source tree clean

from browser import Browser, Page  # noqa: E402
from darkroom import (BINARY, IS_SANITIZED, POLICY, SCOPE, SETTINGS, SHARD, SLOW,  # noqa: E402
                      Daemon)
from slow_disk import SlowDisk  # noqa: E402

DEFAULT_POLICY = "drain"
MARKS = "every_policy", "also_with", "shared_layout"  # of tests that is_selected() takes


def pytest_configure(config):
    if not BINARY.exists():
        pytest.exit(f"{BINARY} does not exist: run make, or set DARKROOMD", returncode=4)


def pytest_report_header(config):
    return (f"darkroomd: {BINARY}, policy {POLICY or 'of the configuration'}, slow factor {SLOW:g}"
            f"{', sanitized' if IS_SANITIZED else ''}")


def is_selected(item):
    """Returns whether a test can show anything new under this policy and layout. tests/README.md
    has the rules."""
    if SETTINGS and item.get_closest_marker("shared_layout"):
        return False
    if item.get_closest_marker("every_policy"):
        return True
    others = {policy for mark in item.iter_markers("also_with") for policy in mark.args}
    # Threads that serve one connection each have no scheduler.
    if SCOPE == "scheduling" and not (item.get_closest_marker("shared_layout")
                                      or others - {"thread-per-connection"}):
        return False
    if POLICY in ("", DEFAULT_POLICY):
        return True
    return POLICY in others


@functools.cache
def text_of(path):
    return path.read_text()


@functools.cache
def modules():
    """Returns the modules of this shard, without those of which is_selected() takes no test."""
    found = sorted(pathlib.Path(__file__).parent.glob("test_*.py"))[SHARD[0] - 1::SHARD[1]]
    if POLICY in ("", DEFAULT_POLICY) and SCOPE != "scheduling":
        return found
    return [path for path in found if any(mark in text_of(path) for mark in MARKS)]


def pytest_ignore_collect(collection_path):
    """Leaves out the other modules, since it takes long to import them."""
    is_module = collection_path.match("tests/http/test_*.py")
    return True if is_module and collection_path not in modules() else None


def pytest_collection_modifyitems(config, items):
    for item in items:
        hidden = [mark for mark in MARKS if item.get_closest_marker(mark) and mark not in text_of(item.path)]
        assert not hidden, f"{item.nodeid}: modules() does not find the mark {hidden[0]}"
    others = [item for item in items if not is_selected(item)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if is_selected(item)]


@pytest.fixture(scope="session")
def shared_daemon(tmp_path_factory):
    daemon = Daemon(tmp_path_factory.mktemp("shared"))
    yield daemon
    daemon.stop()


@pytest.fixture
def daemon(shared_daemon):
    """A daemon with the shipped configuration. It must survive the test."""
    yield shared_daemon
    assert shared_daemon.is_alive(), shared_daemon.log[-20000:]
    shared_daemon.assert_no_alarm()


@pytest.fixture
def disk(tmp_path):
    """A disk for a daemon that gets its environ. It is fast until the test delays it."""
    if IS_SANITIZED:
        pytest.skip("a sanitizer's library must be the first")
    slow = SlowDisk(tmp_path / "delay")
    yield slow
    slow.delay_all(0)


@pytest.fixture
def small_disk(tmp_path):
    """small_disk(option) mounts a file system in memory with this option, such as size=4m. Returns its
    path."""
    path = tmp_path / "small"

    def mount(option):
        path.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", option, "tmpfs", path],
                          capture_output=True).returncode:
            pytest.skip("needs the right to mount")
        return path
    yield mount
    if path.is_mount():
        subprocess.run(["umount", "-l", path], check=True)


@contextlib.contextmanager
def starting(directory):
    """Yields a function that starts daemons with their stores below a directory. All are stopped and
    checked at the end."""
    started = []

    def start_daemon(*settings, **options):
        store = options.pop("store", directory / f"store{len(started)}")
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


@pytest.fixture
def start(tmp_path):
    """start(*settings) returns a daemon of this test. All are stopped and checked after the
    test."""
    with starting(tmp_path) as start_daemon:
        yield start_daemon


@pytest.fixture(scope="module")
def start_for_all(tmp_path_factory):
    """As start, for daemons that the tests of a module share."""
    with starting(tmp_path_factory.mktemp("all")) as start_daemon:
        yield start_daemon


@pytest.fixture(scope="module")
def shared_daemons(start_for_all):
    """Daemons by their settings."""
    return {}


@pytest.fixture
def share(start_for_all, shared_daemons):
    """share(*settings) returns a daemon with these settings, which other tests of the module use as
    well. It must survive the test."""
    used = set()

    def get(*settings):
        if settings not in shared_daemons:
            shared_daemons[settings] = start_for_all(*settings)
        used.add(settings)
        return shared_daemons[settings]

    yield get
    for daemon in [shared_daemons[settings] for settings in used]:
        assert daemon.is_alive(), daemon.log[-20000:]
        daemon.assert_no_alarm()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture
def browse(browser):
    """browse(...) returns a page; after the test none may have an error, or have asked others."""
    pages = []

    def new(**options):
        pages.append(Page(browser, **options))
        return pages[-1]

    yield new
    for page in pages:
        page.close()
        assert not page.errors
        hosts = {url.split("/")[2] for url in page.requests if not url.startswith(("blob:", "about:"))}
        assert all(host.startswith("127.0.0.1:") for host in hosts) and len(hosts) <= 1, hosts


def pytest_make_parametrize_id(config, val, argname):
    """Keeps whole files and long lines out of the names of tests."""
    if isinstance(val, (bytes, str)) and len(val) > 40:
        return f"{argname}-{len(val)}"
    return None
