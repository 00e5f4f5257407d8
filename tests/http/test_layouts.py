"""Layouts give the same files as the shared layout, and /stats reports the work of each domain. The
tests switch policies while the daemon runs."""

import os
import pathlib
import re

import pytest

import pictures
from client import form
from darkroom import IS_SANITIZED, eventually, load, overrides, run, slow
from uploads import fetch_all, files_of, in_parallel, sources
from control import Site, command

pytestmark = pytest.mark.shared_layout

TWO = "scheduler.threads=2"
# Policies with one thread for each core.
CORES = ["drain", "cohort", "mg1", "srpt", "dbr", "color", "user-threads"]
POLICIES = ["seda", *CORES]
THREADS_REFUSED = "scheduler.policy = thread-per-connection: expected layout.mode = shared"
PROFILE = pathlib.Path(__file__).with_name("profile.ini")


def layout(daemon):
    return daemon.get("/stats").json()["layout"]


def queued(daemon):
    """Returns the number of queued events, after waiting for it to become 0. The last response may
    arrive before that."""
    def count():
        return sum(stage["queued"] for stage in daemon.get("/stats").json()["stages"])
    return 0 if eventually(lambda: count() == 0) else count()


def upload_all(daemon, inputs, expected, count):
    """Uploads forms of two images and single images in parallel. Every file must be as expected."""
    def work(i):
        picked = [i % len(inputs), (i + 1) % len(inputs)][:1 + i % 2]
        content_type, body = form([("f", f"{k}.jpg", "image/jpeg", inputs[k]) for k in picked])
        with daemon.client(timeout=slow(60)) as c:
            answer = c.request("POST", "/images", body, [("Content-Type", content_type)])
            assert answer.status == 201, answer
            for k, image in zip(picked, answer.json()["images"]):
                assert fetch_all(c, image) == expected[k]

    in_parallel(count, work)


@pytest.fixture
def files(daemon):
    """Returns inputs and their files under the default layout."""
    inputs = sources()
    return inputs, files_of(daemon, inputs)


def under_policies(daemon, files, policies, settings=()):
    count = load(8, 4)
    for policy in policies:
        assert command(daemon, f"policy {policy}")[0] == 0
        for setting in settings:
            assert command(daemon, f"set {setting}")[0] == 0
            upload_all(daemon, *files, count)
        if not settings:
            upload_all(daemon, *files, count)
    return count * len(policies) * max(1, len(settings))


def bound(daemon, group):
    """Returns the CPUs that each thread of a group may use, in the order of the threads."""
    return [re.search(r"^Cpus_allowed_list:\s+(\S+)", (task / "status").read_text(), re.M)[1]
            for task in daemon.threads(group)]


def test_replicas_make_the_same_files_in_turns(start, files):
    daemon = start("layout.mode=replicate", TWO)
    requests = under_policies(daemon, files, ["seda", *CORES],
                              ("experiment.distribution round-robin", "experiment.steal yes"))
    seen = layout(daemon)
    assert seen["mode"] == "replicate" and seen["distribution"] == "round-robin"
    assert seen["steal"] is True
    assert [replica["workers"] for replica in seen["replicas"]] == [1, 1]
    # The replicas take turns for any requests.
    assert [replica["requests"] for replica in seen["replicas"]] == [requests / 2] * 2
    assert [replica["queued_bytes"] for replica in seen["replicas"]] == [0, 0]
    assert queued(daemon) == 0


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_threads_are_bound_to_the_cores_of_their_replica(start):
    """The kernel reports the allowed CPUs of each thread while policies change."""
    daemon = start("layout.mode=replicate")
    replicas = [str(cpu) for cpu in bound(daemon, "main")]
    if len(set(replicas)) < 2 or not replicas[0].isdigit():
        pytest.skip("threads are not bound, or cores have several hardware threads")
    one, two = replicas[0], replicas[-1]
    # Cores have numbers of their own, without gaps.
    cores = [replica["cores"] for replica in layout(daemon)["replicas"]]
    assert sum(cores, []) == list(range(len(replicas)))
    assert [len(of_one) for of_one in cores] == [len(replicas) // 2] * 2
    assert command(daemon, "policy seda")[0] == 0
    assert len(replicas) > 2 or bound(daemon, "main") == [one] * 8 + [two] * 8
    assert command(daemon, "policy drain")[0] == 0
    assert one not in bound(daemon, "io") and two not in bound(daemon, "io")
    daemon = start("layout.mode=partition", f"layout.profile={PROFILE}", "scheduler.policy=seda")
    assert len(replicas) > 2 or bound(daemon, "main") == [one] * 2 + [two] * 6
    assert [part["workers"] for part in layout(daemon)["parts"]] == [2, 6]


def test_least_loaded_distribution_uses_all_replicas(start, files):
    """No replica is idle while another one has queued bytes of several requests."""
    daemon = start("layout.mode=replicate", TWO, "layout.replicas=3", "scheduler.threads=3",
                   "experiment.form_decode.pass_through=no")
    upload_all(daemon, *files, load(30, 6))
    seen = layout(daemon)
    assert seen["distribution"] == "least-loaded"
    assert sum(replica["requests"] for replica in seen["replicas"]) == load(30, 6)
    assert all(replica["requests"] for replica in seen["replicas"])
    assert [replica["queued_bytes"] for replica in seen["replicas"]] == [0, 0, 0]


def test_parts_make_the_same_files_and_report_their_load(start, files):
    daemon = start("layout.mode=partition", f"layout.profile={PROFILE}", TWO)
    under_policies(daemon, files, POLICIES)
    seen = layout(daemon)
    assert [part["stages"] for part in seen["parts"]] == [
        ["jpeg_decode"], ["scale", "blur", "jpeg_encode"]]
    assert [part["workers"] for part in seen["parts"]] == [1, 1]
    stages = {stage["name"]: stage for stage in daemon.get("/stats").json()["stages"]}
    # The load equals the sum of the stages' own counters.
    spent = [sum(stages[name]["service"]["sum_ms"] for name in part["stages"])
             for part in seen["parts"]]
    assert [part["load_ms"] for part in seen["parts"]] == pytest.approx(spent, rel=0.01)
    assert seen["imbalance"] == pytest.approx(max(spent) / (sum(spent) / 2), rel=0.01)
    assert 0 < seen["edge_cut"] < seen["edge_events"]
    assert ([stages[name]["threads"] for name in ("jpeg_decode", "scale", "blur", "jpeg_encode")]
            == [1, 1, 1, 1])
    assert queued(daemon) == 0 and not seen["online"] and seen["repartitions"] == 0
    assert re.search("layout partition: 1 core for jpeg_decode; 1 core for scale blur jpeg_encode; "
                     "imbalance 1.00", daemon.log)


@pytest.mark.skipif(IS_SANITIZED, reason="needs many images within seconds")
def test_parts_follow_the_measured_load(start, tmp_path):
    """In this profile all work is blurring, but the uploads have nothing to blur."""
    profile = tmp_path / "profile.ini"
    profile.write_text("[stage.blur]\nservice_ns = 1000\n[stage.jpeg_decode]\nservice_ns = 10\n"
                       "[stage.jpeg_encode]\nservice_ns = 10\n")
    site = tmp_path / "site.ini"
    site.write_text("[variant.medium]\noperations = scale 400x400 inside\n")
    daemon = start("layout.mode=partition", f"layout.profile={profile}", "layout.online=yes",
                   "experiment.online_interval=200ms", TWO, config=site)
    data = pictures.photo_jpeg(640, 480, 1)
    content_type, body = form([("f", f"{i}.jpg", "image/jpeg", data) for i in range(60)])
    assert [part["stages"] for part in layout(daemon)["parts"]][1] == ["blur"]

    def more():
        with daemon.client(timeout=slow(60)) as c:
            assert c.request("POST", "/images", body,
                             [("Content-Type", content_type)]).status == 201
        return layout(daemon)["repartitions"]

    assert eventually(more, 30) >= 1
    assert [part["stages"] for part in layout(daemon)["parts"]][1] != ["blur"]
    # Measured costs override the profile, also after a change of another key.
    assert command(daemon, "set experiment.spin 40us")[0] == 0
    assert [part["stages"] for part in layout(daemon)["parts"]][1] != ["blur"]


def test_reload_names_layout_keys_that_need_a_restart(start, tmp_path):
    site = Site(start, tmp_path)
    for old, new in (("mode = shared", "mode = replicate"), ("replicas = 2", "replicas = 1"),
                     ("profile =\n", "profile = /x\n")):
        site.write("drain", (old, new))
        assert re.findall(r"<4>(\S+) needs a restart", site.reload()) == [
            f"layout.{old.split()[0]}"]
    assert layout(site.daemon) == {"mode": "shared"}


def test_live_change_that_contradicts_the_layout_is_refused(start):
    daemon = start("layout.mode=replicate", "layout.replicas=33", "scheduler.policy=drain")
    status, said = command(daemon, "policy seda")
    assert status == 1 and "more than 256 threads together, in all replicas" in said
    status, said = command(daemon, "set scheduler.threads 8")
    assert status == 1 and "8 threads (scheduler.threads) are too few for 33 replicas" in said
    assert daemon.get("/stats").json()["scheduler"]["policy"] == "drain"


def test_connection_threads_are_refused_live(start, tmp_path):
    """ctl is refused, and so is a reload whose layout would need a restart."""
    site = Site(start, tmp_path, edits=[("mode = shared", "mode = replicate")])
    status, said = command(site.daemon, "policy thread-per-connection")
    assert status == 1 and THREADS_REFUSED in said
    site.write("thread-per-connection")
    assert THREADS_REFUSED in site.reload()
    site.write("thread-per-connection", ("mode = shared", "mode = partition"),
               ("online = no", "online = yes"))
    assert re.search(rf"site\.ini:\d+: .*{THREADS_REFUSED}", site.reload())
    assert site.policy() == "drain" and layout(site.daemon)["mode"] == "replicate"


@pytest.mark.parametrize("settings,said", [
    (["layout.mode=partition"], "expected layout.profile"),
    (["layout.mode=partition", "layout.profile=/nonexistent"],
     "layout.profile=/nonexistent: /nonexistent: cannot be read"),
    (["layout.mode=partition", "layout.online=yes", "layout.parts=5"], "5 parts of 4 stages"),
    (["layout.mode=replicate", "layout.replicas=3", "scheduler.threads=2"],
     "2 threads .* are too few for 3 replicas"),
    (["layout.mode=replicate", "layout.replicas=33", "scheduler.policy=seda"],
     "more than 256 threads together, in all replicas"),
    (["layout.mode=replicate", "scheduler.policy=thread-per-connection"], THREADS_REFUSED),
    (["layout.mode=partition", "layout.online=yes", "scheduler.policy=thread-per-connection"],
     THREADS_REFUSED)])
def test_contradictions_are_reported(settings, said):
    done = run("-t", *overrides(*settings))
    assert done.returncode == 78 and re.search(said, done.stderr), done.stderr
