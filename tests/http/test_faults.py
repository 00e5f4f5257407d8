"""System calls and allocations fail at each call site that a small workload reaches. There must be
no crash, no leak and no wrong response, and the service must continue.

DARKROOM_FAULT_SITES=all tests each site with each possible error, once and for 200 ms, and all
sites of the start and the end. Otherwise a part of them is tested, for some seconds."""

import errno
import os
import pathlib
import re
import shutil
import signal
import tempfile
import time

import pytest

import pictures
from darkroom import IS_SANITIZED, Daemon, eventually
from fault_workload import GONE, SETTINGS, SOURCES, Site, Wrong
from faults import ALLOCATORS, ERRORS, Faults, name_of
from store_files import directory_of, spool

pytestmark = pytest.mark.skipif(IS_SANITIZED,
                                reason="faults.so cannot be loaded before the sanitizer")

IS_FULL = os.environ.get("DARKROOM_FAULT_SITES") == "all"
WINDOW_S = 0.2
# Allocations that are tested at the start. Without memory, hwloc, libseccomp, iniparser and the
# dynamic linker end the process.
OURS = re.compile(r"^\S+( libc\S+)* (darkroomd|libevent)")
# iniparser does not check the allocation of its dictionary, neither at the start nor at a reload.
INIPARSER = re.compile(r"^\S+( libc\S+)* libiniparser")
VARIANT_FILES = {f"{v}.jpg" for v in pictures.VARIANTS}


@pytest.fixture
def directory(tmp_path):
    """A directory in memory if possible, since flushes of a disk are slow."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=parent) as path:
        yield pathlib.Path(path)


def trial(site, faults, key, error, window):
    """Runs the workload with one fault. Returns how often the fault happened."""
    doomed = site.daemon.image(SOURCES[0])["id"]
    if window:
        faults.arm(key, error, -1, seconds=WINDOW_S)
    else:
        faults.arm(key, error)
    try:
        site.work()
        site.connected(site.remove_under_fault, doomed)
        while time.monotonic_ns() < faults.control.until_ns and window:
            time.sleep(WINDOW_S / 10)
    finally:
        fired = faults.disarm()
    site.check()
    return fired


def turn(sites, key, error):
    """Returns the rank of an error of a site: each site starts with another error."""
    errors = ERRORS[sites[key][1]]
    return (errors.index(error) + key) % len(errors)


def tried(name, function, error, window):
    return f"{name_of(error)}{' for a while' if window else ''} at {name}"


def test_faults_while_serving_cost_at_most_one_request(directory, request):
    faults = Faults(directory / "faults")
    site = Site(directory / "store", faults.environ)
    request.addfinalizer(site.daemon.kill)
    before = {k: calls for k, (_, _, _, calls) in faults.sites().items()}
    for _ in range(6):
        site.rest()
    trial(site, faults, 1, errno.EIO, False)
    sites = {k: s for k, s in faults.sites().items() if s[3] > before.get(k, 0) and not (
        s[1] in ALLOCATORS and INIPARSER.search(s[0]))}
    descriptors, allocations = site.descriptors(), faults.control.allocations
    trials = fired = 0
    failures = []
    end = time.monotonic() + (3600 if IS_FULL else 8)
    plan = [(k, e, w) for k, (_, f, _, _) in sorted(sites.items()) for e in ERRORS[f]
            for w in (False, True)]
    if not IS_FULL:  # first one error of each site
        plan.sort(key=lambda t: (t[2], turn(sites, *t[:2]), t[0]))
    for key, error, window in plan:
        if time.monotonic() > end or len(failures) > 20:
            break
        trials += 1
        what = tried(*sites[key][:2], error, window)
        try:
            fired += trial(site, faults, key, error, window) > 0
            if len(site.descriptors()) > len(descriptors):
                _ = eventually(lambda: len(site.descriptors()) <= len(descriptors), 10)
            if len(site.descriptors()) > len(descriptors):
                raise Wrong(f"{site.descriptors()}\nthere were {descriptors}")
        except Exception as failure:  # pylint: disable=broad-except
            failures.append(f"{what}: {type(failure).__name__} {failure}")
            if not site.daemon.is_alive():
                failures.append(site.daemon.log[-2000:])
                break
            descriptors = site.descriptors()
            site.acknowledged.clear()
            for left in (*site.daemon.leftovers(), *(site.daemon.store / ".spool").iterdir()):
                shutil.rmtree(left, ignore_errors=True)
    faults.disarm()
    print(f"{len(sites)} sites, {trials} faults tried, {fired} happened, outcomes {site.outcomes}")
    assert not failures, "\n".join(failures)
    site.rest()
    assert faults.control.allocations < allocations + 300, (allocations, faults.control.allocations)
    site.c.close()
    site.daemon.stop()


ACKNOWLEDGED = "01K6Z0000000000000000000AA"


def prepare(store):
    """Writes what a killed daemon leaves: an acknowledged image, and parts of an unfinished and a
    removed one."""
    spool(store, ACKNOWLEDGED, SOURCES[1])
    for name in (".incoming/01K6Z0000000000000000000BB", ".trash/01K6Z0000000000000000000CC.1"):
        (store / name).mkdir(parents=True)
        (store / name / "thumb.jpg").write_bytes(b"part")


def left_to_do(store):
    """Returns the paths that the next start must process."""
    return [p for name in (".spool", ".incoming", ".trash") for p in (store / name).glob("*")]


def life(store, environ):
    """Runs a daemon: start, recovery, an upload, end. Returns (exit status, log, URL)."""
    try:
        daemon = Daemon(store, *SETTINGS, environ=environ, wait=False)
        daemon.ready.wait(3)
        if not daemon.url and daemon.is_alive():  # the ready line was lost
            daemon.signal(signal.SIGTERM)
        if daemon.url:
            try:
                answer = daemon.upload(SOURCES[0])
                if answer.status == 201:
                    image = answer.json()["images"][0]
                    assert daemon.get(image["variants"]["thumb"]["url"]).status in (200, 500, 503)
                assert answer.status in (201, 500, 503, 507), answer
            except GONE:
                pass
            # With a fault an image may stay there.
            _ = eventually(lambda: not any((store / ".spool").iterdir()), 1.5 if environ else 60)
            daemon.signal(signal.SIGTERM)
        return daemon.wait_exit(), daemon.log, daemon.url
    finally:
        if daemon.is_alive():
            daemon.kill()


def judge_life(status, log, url):
    """Returns what is wrong with a run. Returns None if it ended well, or reported why it could not
    start."""
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    if status and url:
        return f"served, and then exit status {status}"
    if status not in (0, 1, 78):
        return f"exit status {status}"
    if status and not re.search(r"^<3>|: ", log, re.M):
        return f"exit status {status} without a message"
    return None


def judge_store(store):
    """Returns what another run without a fault did not repair."""
    if left_to_do(store):
        status, log, _ = life(store, None)
        if status:
            return f"the next start has exit status {status}: {log[-400:]}"
    directory = directory_of(store, ACKNOWLEDGED)
    if left := left_to_do(store):
        return f"left behind: {left}"
    names = {"image.json", "original.jpg", *VARIANT_FILES}
    if not directory.is_dir() or {p.name for p in directory.iterdir()} != names:
        return "the acknowledged image is missing"
    return None


def test_faults_at_start_and_end_lose_nothing(directory):
    faults = Faults(directory / "faults")
    prepare(directory / "store")
    assert life(directory / "store", faults.environ)[0] == 0
    assert not judge_store(directory / "store")
    sites = faults.sites()
    plan = [(k, e) for k, (n, f, _, _) in sorted(sites.items())
            if f not in ALLOCATORS or OURS.search(n) for e in ERRORS[f]]
    if not IS_FULL:
        plan.sort(key=lambda t: (turn(sites, *t), t[0]))
    end = time.monotonic() + (3600 if IS_FULL else 4)
    outcomes, failures = {}, []
    for i, (key, error) in enumerate(plan):
        if time.monotonic() > end or len(failures) > 20:
            break
        store = directory / f"store{i}"
        prepare(store)
        faults.arm(key, error)
        try:
            result = life(store, faults.environ)
            faults.disarm()
            wrong = judge_life(*result) or judge_store(store)
            outcomes[result[0]] = outcomes.get(result[0], 0) + 1
        except Exception as failure:  # pylint: disable=broad-except
            wrong, result = f"{type(failure).__name__} {failure}", (None, "", None)
        if wrong:
            failures.append(f"{tried(*sites[key][:2], error, False)}: {wrong}\n{result[1][-400:]}")
        shutil.rmtree(store, ignore_errors=True)
    print(f"{len(sites)} sites, {i + 1} faults tried, exit statuses {outcomes}")
    assert not failures, "\n".join(failures)
