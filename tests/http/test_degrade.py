"""Under load, images are made in the cheaper ways of overload.degrade before uploads are refused.
Answers, stored images and figures say so. Images stay in flight for as long as a test needs, because
their files are written to a disk that is slow."""

import json
import pathlib
import tempfile

import pytest

import pictures
from control import command
from darkroom import PER_CONNECTION, TooLate, attempts, eventually
from uploads import JPEG, check_image, check_stored, in_parallel

LARGE = pictures.photo_jpeg(1600, 1200, 3)
SMALL = pictures.photo_jpeg(320, 240, 2)
STEPS = ["quality 30", "no-optimize", "skip blurred"]
DEGRADE = f"overload.degrade={', '.join(STEPS)}"
TARGET = "overload.target_p90=10ms"


def overload(daemon):
    return daemon.get("/stats").json()["overload"]


def level(daemon):
    (figures,) = overload(daemon)["classes"]
    return figures["level"]


def learn(daemon):
    """Lets the daemon measure its capacity."""
    for _ in range(10):
        assert "degraded" not in daemon.image(SMALL)
    assert overload(daemon)["classes"][0]["backlog_limit_s"] > 0


def send(daemon, headers=()):
    c = daemon.client()
    c.send(c.head("POST", "/images", SMALL, [JPEG, *headers]) + SMALL)
    return c


def add(daemon, disk, clients):
    """Uploads, and adds the client if its image is in flight. Returns False if it was refused."""
    def in_flight():
        return daemon.get("/stats").json()["images"]["in_flight"] == len(clients) + 1

    assert len(clients) < 20
    c = send(daemon)
    if not eventually(lambda: in_flight() or not c.is_silent(), 2):
        disk.delay_all(0)
        raise TooLate("an image has ended")
    if c.is_silent():
        clients.append(c)
        return True
    answer = c.answer()
    c.close()
    if answer.status != 503:
        raise TooLate("the disk has stored the images too soon")
    return False


def overloaded(daemon, disk):
    """Returns clients whose uploads are in flight, when all steps are in."""
    clients = []
    disk.delay_all(2000)
    while level(daemon) < len(STEPS):
        if not add(daemon, disk, clients) and level(daemon) < len(STEPS):
            raise AssertionError(f"refused with {level(daemon)} steps")
    return clients


def finish(daemon, disk, clients):
    """Returns the images. The last one has all steps: if the last step came by itself and not by an
    upload, one more upload has it, because steps go later than the load."""
    disk.delay_all(0)
    images = []
    for c in clients:
        answer = c.answer()
        assert answer.status == 201, answer
        images += answer.json()["images"]
        c.close()
    if images[-1].get("degraded") != STEPS:
        images.append(daemon.image(SMALL))
    if images[-1].get("degraded") != STEPS:
        raise TooLate("the steps have gone with the load")
    return images


def check_degraded(daemon, image, steps):
    """Checks an image that was made with the steps, and everything that tells of them."""
    assert image["degraded"] == steps
    made = {"medium", "thumb"} if STEPS[2] in steps else {"medium", "thumb", "blurred"}
    assert set(image["variants"]) == made
    check_stored(daemon, image)
    assert daemon.get(image["url"]).json() == image
    (path,) = daemon.store.rglob(f"{image['id']}/image.json")
    record = json.loads(path.read_text())["record"]["variants"]
    assert {name: (v["quality"], v["optimize"]) for name, v in record.items()} == {
        name: (30, STEPS[1] not in steps) for name in made}
    answer = daemon.get(f"{image['url']}/blurred.jpg")
    if "blurred" in made:
        assert answer.status == 200
        return
    assert (answer.status, answer.slug) == (404, "variant-skipped")
    assert answer.json()["detail"] == f"variant blurred of image {image['id']} was skipped under load"
    assert daemon.get(f"{image['url']}/other.jpg").slug == "not-found"


@attempts(5)
def test_steps_are_added_before_an_upload_is_refused(start, disk, tmp_path):
    store = pathlib.Path(tempfile.mkdtemp(dir=tmp_path)) / "store"
    daemon = start(TARGET, DEGRADE, "scheduler.threads=1", store=store, environ=disk.environ)
    learn(daemon)
    clients = overloaded(daemon, disk)
    while add(daemon, disk, clients):
        pass
    images = finish(daemon, disk, clients)

    used = [image.get("degraded", []) for image in images]
    assert used == sorted(used, key=len) and used[-1] == STEPS
    for image, steps in zip(images, used, strict=True):
        assert steps == STEPS[:len(steps)]
        if steps:
            check_degraded(daemon, image, steps)
        else:
            check_image(image, 320, 240)

    assert daemon.says("overload: class other: more load; making images with quality 30, "
                       "no-optimize, skip blurred\n")
    assert eventually(lambda: level(daemon) == 0)
    assert daemon.says("overload: class other: less load; making images as configured\n")
    check_image(daemon.image(SMALL), 320, 240)
    assert overload(daemon)["degrade"] == [
        {"step": step, "images": sum(step in steps for steps in used)} for step in STEPS]
    metrics = daemon.get("/metrics").body.decode()
    assert 'darkroom_overload_level{class="other"} 0\n' in metrics
    for step in STEPS:
        count = sum(step in steps for steps in used)
        assert f'darkroom_overload_degraded_total{{step="{step}"}} {count}\n' in metrics
    daemon.stop()
    check_degraded(start(TARGET, DEGRADE, store=store), images[-1], STEPS)


@attempts(5)
def test_answer_before_the_image_is_stored_names_the_steps(start, disk):
    daemon = start(TARGET, DEGRADE, "scheduler.threads=1", "server.durability=none",
                   environ=disk.environ)
    learn(daemon)
    disk.delay_all(2000)
    named = []
    while len(named) < 20:
        with send(daemon, [("Prefer", "respond-async")]) as c:
            answer = c.answer()
        if answer.status == 503:
            break
        (image,) = answer.json()["images"]
        assert answer.status == 202 and image["status"] == "processing"
        named.append(image.get("degraded", []))
    disk.delay_all(0)
    assert all(steps == STEPS[:len(steps)] for steps in named)
    if STEPS not in named:
        raise TooLate(f"refused after {named}")


@attempts(5)
def test_reload_changes_and_removes_steps(start, disk):
    daemon = start(TARGET, DEGRADE, "scheduler.threads=1", environ=disk.environ)
    learn(daemon)
    clients = overloaded(daemon, disk)
    disk.delay_writes(2000)  # a change reads files
    assert command(daemon, "set overload.degrade skip thumb")[0] == 0
    assert level(daemon) == 1
    images = finish(daemon, disk, clients)
    check_degraded(daemon, images[-1], STEPS)  # it keeps what it began with
    assert overload(daemon)["degrade"] == [{"step": "skip thumb", "images": 0}]
    assert command(daemon, "set overload.degrade no-optimize")[0] == 0
    assert command(daemon, "set overload.degrade ")[0] == 0
    assert level(daemon) == 0
    check_image(daemon.image(SMALL), 320, 240)


@pytest.mark.every_policy
def test_degradation_ends_with_the_load(start):
    threads = ["scheduler.threads=16"] if PER_CONNECTION else []  # each serves one connection
    daemon = start(TARGET, DEGRADE, *threads)
    answers = []

    def is_degraded():
        answers.extend(in_parallel(12 if PER_CONNECTION else 6, lambda _: daemon.upload(LARGE)))
        return any(a.status == 201 and a.json()["images"][0].get("degraded") == STEPS
                   for a in answers)
    assert eventually(is_degraded, 60)
    assert {a.status for a in answers} <= {201, 503}
    assert eventually(lambda: "degraded" not in daemon.image(SMALL), 60, 0.5)
    for answer in answers:
        for image in answer.json().get("images", []):
            if "degraded" in image:
                check_degraded(daemon, image, image["degraded"])
