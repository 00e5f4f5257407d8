"""Work that is parked at each check of the cutoff and resumed on any thread gives the same files as
work without interruption."""

import concurrent.futures

import pytest

import pictures
from client import form
from darkroom import IS_SANITIZED, PER_CONNECTION, ROOT, eventually, slow

JPEG = ("Content-Type", "image/jpeg")
# Shorter than any piece of work between two checks of the clock, so that each check parks the work
# on any machine.
CUTOFF = ("scheduler.service=cutoff", "experiment.cutoff=1us")
# Two variants keep the size, so that their pictures are as large as the upload.
WHOLE = (
    "variant.whole.operations=blur 3", "variant.whole.quality=90",
    "variant.same.operations=scale 65000x65000 inside", "variant.same.quality=85")


def inputs():
    """Returns the sample pictures and larger ones of every kind, and some damaged files."""
    found = [p.read_bytes() for p in sorted((ROOT / "data" / "sample").glob("*.jpg"))]
    assert found
    photo = pictures.photo(600, 450, 5) if IS_SANITIZED else pictures.photo(1200, 900, 5)
    found += [pictures.jpeg(photo, 92), pictures.jpeg(photo, 92, progressive=True),
              pictures.jpeg(photo, 92, subsampling=0), pictures.jpeg(photo.convert("L")),
              pictures.jpeg(photo.convert("CMYK")), pictures.jpeg(photo, 90, restart_marker_rows=1),
              pictures.photo_jpeg(40, 30)]
    return found, [found[-7][:-20000], found[-6][:-20000], found[-2][:len(found[-2]) // 2]]


def service(daemon, name):
    """Returns the statistics of a stage: {"events": ..., ...}."""
    (stage,) = [s for s in daemon.get("/stats").json()["stages"] if s["name"] == name]
    return stage


def reserved(daemon):
    memory = daemon.get("/stats").json()["memory"]
    return memory["reserved_image_bytes"] + memory["reserved_body_bytes"]


def results(daemon, good, bad):
    """Uploads all files in parallel, and then in one form. Returns the variants of the good files,
    and the problems of the bad ones."""
    def upload(data):
        with daemon.client(timeout=slow(60)) as c:
            return c.request("POST", "/images", data, [JPEG])

    def files(image):
        with daemon.client(timeout=slow(60)) as c:
            return {name: c.request("GET", v["url"]).body for name, v in image["variants"].items()}

    with concurrent.futures.ThreadPoolExecutor(len(good) + len(bad)) as pool:
        answers = list(pool.map(upload, good + bad))
    made = []
    for answer in answers[:len(good)]:
        assert answer.status == 201, answer
        made.append(files(answer.json()["images"][0]))
    refused = [(a.status, a.slug, a.json()["detail"]) for a in answers[len(good):]]
    kind, body = form([("f", f"{i}.jpg", "image/jpeg", data) for i, data in enumerate(good + bad)])
    answer = daemon.upload(body, kind)
    assert answer.status == 201, answer
    assert [files(image) for image in answer.json()["images"]] == made
    assert [(e["status"], e["detail"]) for e in answer.json()["errors"]] == [
        (s, d) for s, _, d in refused]
    return made, refused


@pytest.fixture(scope="module")
def without_interruption(start_for_all):
    """Returns a daemon, and what it made of the inputs."""
    plain = start_for_all(*WHOLE)
    made, refused = results(plain, *inputs())
    assert all(status == 422 for status, _, _ in refused)
    return plain, (made, refused)


@pytest.mark.parametrize("discipline", [pytest.param("fcfs", marks=pytest.mark.every_policy),
                                        "lcfs", "srpt"])
def test_parked_work_gives_the_same_files(start, without_interruption, discipline):
    plain, expected = without_interruption
    cut = start(*WHOLE, *CUTOFF, f"scheduler.discipline={discipline}")
    assert results(cut, *inputs()) == expected
    if not PER_CONNECTION:
        for stage in ("jpeg_decode", "scale", "blur", "jpeg_encode"):
            pieces, whole = service(cut, stage)["events"], service(plain, stage)["events"]
            assert pieces > 1.5 * whole, f"{stage}: too little work was parked"


@pytest.mark.every_policy
def test_parked_images_release_their_memory(start):
    """Good and damaged images release their memory. Sanitizers check that the daemon frees
    everything."""
    daemon = start(*CUTOFF)
    good, bad = inputs()
    results(daemon, good, bad)

    assert eventually(lambda: reserved(daemon) == 0)


@pytest.mark.every_policy
def test_clients_may_leave_during_parked_work(start):
    """Their images are stored, and everything that they held is free again."""
    daemon = start(*CUTOFF)
    photo = pictures.photo_jpeg(2000, 1500)
    for _ in range(4):
        with daemon.client() as c:
            c.send(c.head("POST", "/images", photo, [JPEG]) + photo)
            assert eventually(lambda client=c: daemon.has_read(client))
    daemon.image(pictures.photo_jpeg(320, 240))
    assert eventually(lambda: len(daemon.stored()) == 5)
    assert eventually(lambda: reserved(daemon) == 0)
    assert eventually(lambda: daemon.get("/stats").json()["http"]["connections"] == 1)
