"""GET /metrics: its format, and its numbers after known requests."""

import os
import pathlib
import signal
import time

import pytest

import pictures
from client import form
from darkroom import IS_SANITIZED, TooLate, attempts, eventually, every_key, run, slow
from prometheus_text import Malformed, Metrics, parse

SMALL = pictures.photo_jpeg(320, 240, 2)


def scrape(daemon):
    answer = daemon.get("/metrics")
    assert answer.status == 200
    assert answer["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer["cache-control"] == "no-store"
    return Metrics(answer.body)


def is_at_rest(daemon, variants=3):
    """Returns whether all events are counted, and all other connections are closed. Stages count an
    event when its handler returns, which may be after the response."""
    metrics = scrape(daemon)
    images = metrics("darkroom_images_stored_total")
    events = {"jpeg_decode": images, "jpeg_encode": variants * images, "disk_write": images,
              "stats": images}
    return metrics("darkroom_http_connections") == 1 and all(
        metrics("darkroom_stage_events_total", stage=name) == count
        for name, count in events.items())


# ---- the checker ----

HEAD = "# HELP a_total A.\n# TYPE a_total counter\n"
BUCKETS = '# HELP h_seconds H.\n# TYPE h_seconds histogram\n' + \
    'h_seconds_bucket{le="1"} %s\nh_seconds_bucket{le="+Inf"} %s\n' \
    'h_seconds_sum 3\nh_seconds_count %s\n'


def test_checker_accepts_good_documents():
    parse((HEAD + 'a_total{x="1\\n\\"\\\\",y="2"} 1\na_total{x="1",y="3"} 1.5e3\n'
           + BUCKETS % (1, 2, 2)).encode())


@pytest.mark.parametrize("text", [
    HEAD, HEAD + "a_total 1", "a_total 1\n", HEAD + "a_total 1\n\n",
    HEAD + "a_total 1\na_total 2\n", HEAD + "b_total 1\n", HEAD + "a_total -1\n",
    HEAD + "a_total NaN\n",
    HEAD + 'a_total{x="1",x="2"} 1\n', HEAD + 'a_total{x="1",} 1\n', HEAD + 'a_total{x="a"b"} 1\n',
    HEAD + 'a_total{x="\\t"} 1\n', HEAD + 'a_total{x="1"} 1\na_total{y="1"} 1\n',
    HEAD + "a_total{} 1\n", HEAD + 'a_total{le="1"} 1\n',
    HEAD + "a_total 1\n" + HEAD + "a_total 1\n", "# TYPE a_total counter\na_total 1\n",
    "# HELP a_total A.\na_total 1\n",
    "# HELP a A.\n# TYPE a counter\na 1\n", "# HELP a_total A.\n# TYPE a_total gauge\na_total 1\n",
    "# HELP a_ms A.\n# TYPE a_ms gauge\na_ms 1\n",
    "# HELP a_bytes_free A.\n# TYPE a_bytes_free gauge\na_bytes_free 1\n",
    BUCKETS % (3, 2, 2), BUCKETS % (1, 2, 3),
    (BUCKETS % (1, 2, 2)).replace("h_seconds_sum 3\n", ""),
    (BUCKETS % (1, 2, 2)).replace('le="+Inf"', 'le="0.5"')])
def test_checker_refuses_bad_documents(text):
    with pytest.raises(Malformed):
        parse(text.encode())


# ---- the numbers ----

def test_metrics_count_requests_images_and_bytes(start):
    daemon = start("server.damaged=accept")
    before = scrape(daemon)
    images = [daemon.image(pictures.photo_jpeg(640, 480, seed)) for seed in range(3)]
    damaged = daemon.upload(pictures.photo_jpeg(640, 480, 1)[:-3000]).json()["images"][0]
    assert damaged["damaged"] is True
    assert daemon.upload(b"no picture").status == 415
    kind, body = form([("a", "a.jpg", "image/jpeg", SMALL),
                       ("b", "b.jpg", "image/jpeg", b"nothing")])
    assert daemon.upload(body, kind).status == 201
    assert daemon.get("/nowhere").status == 404
    variant = daemon.fetch(images[0], "medium")
    assert eventually(lambda: is_at_rest(daemon))
    after = scrape(daemon)

    def grown(name, **labels):
        return after(name, **labels) - before(name, **labels)

    assert grown("darkroom_http_responses_total", code="201") == 5
    assert grown("darkroom_http_responses_total", code="415") == grown(
        "darkroom_http_responses_total", code="404") == 1
    assert grown("darkroom_rejections_total",
                 reason="unsupported-media-type") == 2, "one request, and one part of a form"
    assert grown("darkroom_rejections_total", reason="not-found") == 1
    assert grown("darkroom_images_stored_total") == 5 and grown("darkroom_images_failed_total") == 0
    assert grown("darkroom_degradations_total", kind="damaged") == 1
    assert grown("darkroom_stage_service_seconds_count", stage="jpeg_decode") == 5
    assert grown("darkroom_stage_events_total", stage="jpeg_encode") == 15
    sent = 3 * len(pictures.photo_jpeg(640, 480, 1)) // 2
    assert grown("darkroom_http_received_bytes_total") > sent
    assert grown("darkroom_http_sent_bytes_total") > len(variant)
    assert after("darkroom_http_connections") == 1 and after("darkroom_images_in_flight") == 0
    assert after("darkroom_ready") == 1
    version = run("--version").stdout.split(" ", 1)[1].strip()
    compiler = dict(next(iter(after.families["darkroom_build_info"].samples))[1])["compiler"]
    assert after("darkroom_build_info", version=version, compiler=compiler) == 1


def test_requests_are_measured_by_route(start):
    daemon = start("server.public_list=yes")
    before = scrape(daemon)
    image = daemon.image(SMALL)
    assert daemon.get("/images").status == 200 and daemon.get("/images?limit=x").status == 400
    assert daemon.upload(b"no picture").status == 415
    assert daemon.get(image["url"]).status == 200
    daemon.fetch(image, "medium")
    assert daemon.get("/nowhere").status == 404 and daemon.get("/healthz").status == 200
    with daemon.client() as client:
        assert client.request("DELETE", image["url"]).status == 204
    after = scrape(daemon)
    expected = {("/images", "POST", "2xx"): 1, ("/images", "POST", "4xx"): 1,
                ("/images", "GET", "2xx"): 1, ("/images", "GET", "4xx"): 1,
                ("/images/ID", "GET", "2xx"): 1, ("/images/ID/VARIANT", "GET", "2xx"): 1,
                ("/images/ID", "DELETE", "2xx"): 1, ("probe", "GET", "2xx"): 1,
                ("report", "GET", "2xx"): 1, ("other", "other", "4xx"): 1}
    for series in after.families["darkroom_http_route_responses_total"].samples:
        labels = dict(series[1])
        key = labels["route"], labels["method"], labels["status"]
        name = "darkroom_http_route_responses_total"
        assert after(name, **labels) - before(name, **labels) == expected.get(key, 0), key
    name = "darkroom_http_request_duration_seconds"
    for route, method, count in (("/images", "POST", 2), ("/images/ID/VARIANT", "GET", 1)):
        assert after(f"{name}_count", route=route, method=method) == count
        assert 0 < after(f"{name}_sum", route=route, method=method) < slow(20)


def test_reloads_are_reported(start, tmp_path):
    config = tmp_path / "site.ini"
    good = every_key()
    config.write_text(good)
    daemon = start(config=config)
    started = scrape(daemon)("darkroom_config_last_reload_success_timestamp_seconds")
    assert 0 <= time.time() - started < slow(60)
    for text, is_good in (("[nonsense]\n", 0), (good, 1)):
        config.write_text(text)
        daemon.signal(signal.SIGHUP)
        assert eventually(
            lambda: scrape(daemon)("darkroom_config_last_reload_successful") == is_good)
    assert scrape(daemon)("darkroom_config_last_reload_success_timestamp_seconds") >= started


def test_metrics_and_stats_agree(start):
    daemon = start()
    daemon.image(SMALL)
    assert eventually(lambda: is_at_rest(daemon))
    stats, metrics = daemon.get("/stats").json(), scrape(daemon)
    assert metrics("darkroom_images_stored_total") == stats["images"]["stored"]
    assert metrics("darkroom_images_output_bytes_total") == stats["images"]["output_bytes_stored"]
    assert metrics("darkroom_memory_budget_bytes") == stats["memory"]["budget_bytes"]
    for group in stats["scheduler"]["stage_groups"]:
        assert metrics("darkroom_scheduler_info", group=group["name"], policy=group["policy"]) == 1
        assert metrics("darkroom_scheduler_threads", group=group["name"]) == group["threads"]
    for stage in stats["stages"]:
        if stage["name"] in ("accept_read", "http_parse"):
            continue  # the scrape itself visits these
        assert metrics("darkroom_stage_events_total", stage=stage["name"]) == stage["events"]
        assert metrics("darkroom_stage_service_seconds_sum", stage=stage["name"]) == pytest.approx(
            stage["service"]["sum_ms"] / 1000, abs=1e-6)
    for group in stats["scheduler"]["groups"]:
        assert metrics("darkroom_workers", group=group["name"]) == group["threads"]


def test_counters_never_decrease_and_idle_time_grows_during_sleep(start):
    daemon = start()
    daemon.image(SMALL)
    assert eventually(lambda: is_at_rest(daemon))
    then, before = time.monotonic(), scrape(daemon)
    after = before

    def grown(what, group):
        name = {"group": group, "worker": "0"}
        key = f"darkroom_worker_{what}_seconds_total"
        return after(key, **name) - before(key, **name)

    def have_slept():
        nonlocal after
        old, after = after.counters(), scrape(daemon)
        new, now = after.counters(), time.monotonic()
        assert all(new[key] >= old[key] for key in old)
        assert all(grown("idle", group) <= now - then for group in ("main", "disk"))
        # It is counted while the worker sleeps.
        return all(grown("idle", group) >= 0.24 for group in ("main", "disk"))

    assert eventually(have_slept)
    assert grown("busy", "main") == grown("busy", "disk") == 0, "a worker was busy meanwhile"


@attempts(10)
def test_busy_time_equals_the_stages_service_time(start):
    """The difference is the time between two handlers."""
    daemon = start()
    for seed in range(4):
        daemon.image(pictures.photo_jpeg(1000, 750, seed))
    assert eventually(lambda: is_at_rest(daemon))
    metrics = scrape(daemon)
    busy = sum(metrics.families["darkroom_worker_busy_seconds_total"].samples.values())
    service = metrics.families["darkroom_stage_service_seconds"].samples
    total = sum(value for (suffix, _), value in service.items() if suffix == "_sum")
    assert busy > 0.8 * total
    if busy > 1.2 * total:
        # It was preempted between handlers.
        raise TooLate(f"busy for {busy:.3f} s, stages for {total:.3f} s")


def test_visits_are_counted_for_their_policy(start):
    daemon = start()
    daemon.image(SMALL)

    def visits(metrics):
        found = {}
        for (_, labels), value in metrics.families["darkroom_stage_visits_total"].samples.items():
            labels = dict(labels)
            if labels["stage"] == "scale":
                found[labels["policy"], labels["found"]] = value
        return found

    assert eventually(lambda: is_at_rest(daemon))
    before = visits(scrape(daemon))
    assert set(before) == {("drain", "event"), ("drain", "nothing")}
    assert before["drain", "event"] > 0
    assert run("-o", f"server.root={daemon.store}", "ctl", "policy", "cohort").returncode == 0
    daemon.image(SMALL)
    assert eventually(lambda: is_at_rest(daemon))
    after = visits(scrape(daemon))
    assert after["cohort", "event"] > 0 and after["cohort", "nothing"] > 0
    assert after["drain", "event"] == before["drain", "event"]

    def agree():
        """Workers that find nothing make some more visits before they sleep."""
        scraped = sum(visits(scrape(daemon)).values())
        stages = daemon.get("/stats").json()["stages"]
        return scraped == sum(s["visits"] + s["visits_empty"] for s in stages
                              if s["name"] == "scale")
    assert eventually(agree)


def test_process_and_disk_metrics_are_true(start):
    """The sandbox does not let the daemon read /proc."""
    daemon = start()
    daemon.image(SMALL)
    metrics = scrape(daemon)
    assert metrics("process_resident_memory_bytes") == pytest.approx(
        daemon.resident_bytes(), rel=0.1)
    with daemon.client() as c:
        c.request("GET", "/healthz")
        files = len(list(pathlib.Path(f"/proc/{daemon.pid}/fd").iterdir()))
        assert abs(scrape(daemon)("process_open_fds") - files) <= 2
    assert abs(metrics("process_start_time_seconds") - time.time()) < slow(30)
    assert 0 < metrics("process_cpu_seconds_total") <= daemon.cpu_seconds() + 0.1
    assert metrics("process_max_fds") > 1000
    fs = os.statvfs(daemon.store)
    assert metrics("darkroom_store_size_bytes") == fs.f_blocks * fs.f_frsize
    assert metrics("darkroom_store_free_bytes") == pytest.approx(fs.f_bavail * fs.f_frsize,
                                                                 rel=0.05)


def test_metrics_accept_head_and_get_only(daemon):
    with daemon.client() as c:
        assert c.request("HEAD", "/metrics").body == b""
        assert c.request("POST", "/metrics", b"").status == 405


@pytest.mark.skipif(IS_SANITIZED, reason="costs of sanitizers are not the product's")
def test_scrape_costs_less_than_5_ms(daemon):
    """A scrape each second must cost less than 0.5 % of a core. The usual cost is a tenth of
    that."""
    with daemon.client() as c:
        c.request("GET", "/metrics")
        before = daemon.cpu_seconds()
        for _ in range(20):
            assert c.request("GET", "/metrics").status == 200
        assert (daemon.cpu_seconds() - before) / 20 < 0.005
        assert eventually(lambda: scrape(daemon)("darkroom_images_in_flight") == 0)
