"""Memory is scarce: stages that release it come first. What stages take is learned."""

import os
import pathlib

import pytest

import pictures
from darkroom import PER_CONNECTION, POLICY, eventually
from uploads import JPEG, in_parallel

SMALL_BUDGET = ("limits.memory_budget=48M", "limits.body_bytes=24M")
HUGE = pictures.photo_jpeg(2400, 1600, 2, progressive=True)  # needs a third of that budget
IMAGES = 6
# A thread for each connection, where threads serve connections.
THREADS = "scheduler.threads=12" if PER_CONNECTION else "scheduler.threads=2"
NEAR = "memory: near the limit"


def stats(daemon):
    return daemon.get("/stats").json()


def main_group(figures):
    return next(group for group in figures["scheduler"]["groups"] if group["name"] == "main")


def stage(figures, name):
    return next(stage for stage in figures["stages"] if stage["name"] == name)


def upload_from(daemon, number):
    """Uploads from an address of its own: the images of one client take turns."""
    with daemon.client(source=f"127.0.0.{number + 2}") as c:
        return c.request("POST", "/images", HUGE, [JPEG])


def upload_all(daemon):
    answers = in_parallel(IMAGES, lambda number: upload_from(daemon, number))
    assert {answer.status for answer in answers} == {201}
    return stats(daemon)


@pytest.mark.every_policy
def test_images_that_wait_for_memory_are_all_made(start, disk):
    daemon = start(THREADS, *SMALL_BUDGET, environ=disk.environ)
    disk.delay_all(100)
    figures = upload_all(daemon)
    assert figures["memory"]["waited"] > 0
    assert figures["scheduler"]["shortages"]["memory"] > 0
    assert figures["scheduler"]["near_limit"] == []
    assert daemon.says(NEAR)
    if POLICY != "seda" and not PER_CONNECTION:
        assert main_group(figures)["by_resource"] > 0
    lines = daemon.get("/metrics").body.decode().splitlines()
    assert 'darkroom_resource_near_limit{resource="memory"} 0' in lines
    assert any(line.startswith('darkroom_resource_shortages_total{resource="memory"} ')
               for line in lines)


@pytest.mark.also_with("cohort")
def test_order_can_be_turned_off(start, disk):
    daemon = start("scheduler.threads=2", "experiment.resource_aware=no", *SMALL_BUDGET,
                   environ=disk.environ)
    disk.delay_all(20)
    figures = upload_all(daemon)
    assert figures["scheduler"]["shortages"]["memory"] > 0
    assert main_group(figures)["by_resource"] == 0


def test_nothing_is_scarce_while_there_is_enough(start):
    daemon = start()
    figures = upload_all(daemon)
    assert figures["scheduler"]["shortages"] == {"memory": 0, "descriptors": 0}
    assert main_group(figures)["by_resource"] == 0


def test_stages_show_what_they_take_and_release(start):
    daemon = start()
    before = stage(stats(daemon), "jpeg_decode")["per_event"]
    assert set(before.values()) == {0}
    figures = upload_all(daemon)
    net = {name: stage(figures, name)["per_event"]["memory_taken_bytes"] -
           stage(figures, name)["per_event"]["memory_released_bytes"]
           for name in ("jpeg_decode", "jpeg_encode")}
    assert net["jpeg_decode"] > 100_000, "the decoded planes"
    assert net["jpeg_encode"] < 0, "a picture becomes a file"
    assert stage(figures, "jpeg_decode")["per_event"]["service_ms"] > 0
    io = stage(figures, "accept_read")["per_event"]
    assert io["descriptors_taken"] > 0 and io["descriptors_released"] > 0
    for other in figures["stages"]:
        if other["name"] != "accept_read":
            assert other["per_event"]["descriptors_taken"] == 0, other["name"]


def descriptors(daemon):
    return len(os.listdir(pathlib.Path(f"/proc/{daemon.pid}/fd")))


def test_stages_keep_no_descriptor_after_their_event(start):
    """Connections do; images in flight, which wait for memory here, do not."""
    daemon = start("scheduler.threads=2", "stage.disk_write.threads=2", *SMALL_BUDGET)
    upload_all(daemon)  # everything is open that stays open
    assert eventually(lambda: stats(daemon)["http"]["connections"] == 1)
    before, clients = descriptors(daemon), []
    for _ in range(IMAGES):
        c = daemon.client()
        c.send(c.head("POST", "/images", HUGE, [JPEG]) + HUGE)
        clients.append(c)
    assert eventually(lambda: stats(daemon)["images"]["in_flight"] >= IMAGES // 2)
    # each disk thread may have a directory and a file open
    assert descriptors(daemon) <= before + IMAGES + 2 * 2 + 1
    for c in clients:
        assert c.answer().status == 201
        c.close()
    assert eventually(lambda: descriptors(daemon) <= before)


def test_descriptors_become_scarce_with_connections(start):
    daemon = start("limits.connections=20", "limits.connections_per_client=0")
    clients = [daemon.client() for _ in range(18)]
    for c in clients:
        assert c.request("GET", "/healthz").status == 200
    assert clients[0].request("GET", "/stats").json()["scheduler"]["near_limit"] == ["descriptors"]
    for c in clients[1:5]:
        c.close()
    assert eventually(lambda: clients[0].request("GET", "/stats").json()["scheduler"]["near_limit"]
                      == [])
    assert daemon.says("descriptors: near the limit")
    for c in clients[:1] + clients[5:]:
        c.close()
