"""GET /stats: what the figures count, and that the manual has all of them."""

import re

import pytest

import pictures
from darkroom import ROOT, eventually

SMALL = pictures.photo_jpeg(320, 240, 2)


def test_edges_count_what_the_stages_send(start):
    daemon = start()
    for _ in range(3):
        daemon.image(SMALL)

    def agrees():
        stats = daemon.get("/stats").json()
        edges = {(e["from"], e["to"]): e["events"] for e in stats["edges"]}
        events = {s["name"]: s["events"] for s in stats["stages"]}
        return (edges["form_decode", "jpeg_decode"] == edges["disk_write", "stats"] == 3
                and all(sum(n for (_, to), n in edges.items() if to == name) == events[name]
                        for name in ("jpeg_decode", "scale", "jpeg_encode", "disk_write")))
    assert eventually(agrees)


def test_uploads_and_rejections_are_counted(start):
    daemon = start()
    for _ in range(3):
        daemon.image(SMALL)
    assert daemon.upload(b"no image").status == 415
    http = daemon.get("/stats").json()["http"]
    assert http["uploads"]["count"] == sum(b["count"] for b in http["uploads"]["buckets"]) == 4
    assert 0 < http["uploads"]["p50_ms"] <= http["uploads"]["p99_ms"]
    assert http["rejections"] == {"unsupported-media-type": 1} or \
        http["rejections"] == {"unsupported-image": 1}


# ---- the manual ----

MANUAL = ROOT / "stages" / "http" / "darkroom-http.7"
# Objects whose members have names of other things.
NAMED = {"http.responses": "CLASS", "http.rejections": "NAME", "scheduler.counters.missing": "NAME",
         "scheduler.groups[].workers[].stages": "STAGE", "stages[].counters": "NAME"}


def paths(value, path=""):
    """Returns the paths of all values in a document, as the manual writes them."""
    if isinstance(value, list):
        return {p for inner in value for p in paths(inner, path + "[]")}
    if not isinstance(value, dict):
        return {path}
    prefix = f"{path}." if path else ""
    return {p for name, inner in value.items()
            for p in paths(inner, prefix + NAMED.get(path, name))}


LIMITED = ("overload.degrade", "scheduler.near_limit", "store.s3", "store.images", "store.bytes", "store.is_counted", "store.tokens")


def documented():
    section = MANUAL.read_text().split("\n.Ss Stats\n")[1].split("\n.Ss ")[0]
    names = re.findall(r"^\.It Li (.*)$", section, re.M)
    return {name for line in names for name in line.split(" , ")}


@pytest.mark.shared_layout
def test_manual_has_every_field_of_stats(start):
    found = set()
    for settings in ((), ("layout.mode=replicate", "layout.replicas=2"),
                     ("layout.mode=partition", "layout.parts=2", "layout.online=yes"),
                     ("scheduler.counters=yes", "scheduler.service=n-gated")):
        daemon = start("scheduler.threads=2", *settings)
        daemon.image(SMALL)
        daemon.upload(b"no image")
        found |= paths(daemon.get("/stats").json())
    assert len(found) > 100
    missing = sorted(found - documented())
    assert not missing
    # The others need performance counters, or limits that other modules test.
    others = sorted(path for path in documented() - found
                    if "counters." not in path and not path.startswith(LIMITED))
    assert not others
