"""Many uploads at a time: each gives the files of a lone one, memory stays bounded, and small
requests do not wait for images. Slow builds make fewer requests."""

import concurrent.futures
import random
import statistics
import threading
import time

import pytest

import pictures
from client import form
from darkroom import IS_SANITIZED, PER_CONNECTION, eventually, load, slow
from uploads import JPEG, fetch_all, files_of, in_parallel, sources


@pytest.mark.every_policy
def test_200_concurrent_uploads_give_the_files_of_lone_ones(daemon):
    """Every file equals that of a lone upload."""
    inputs = sources()
    alone = files_of(daemon, inputs)
    for data, files in zip(inputs, alone):
        for name, file in files.items():
            assert pictures.size(file) == pictures.fit(*pictures.size(data),
                                                       pictures.VARIANTS[name][0])
    count = load(200, 40)
    barrier = threading.Barrier(count)

    def upload(i):
        barrier.wait(slow(60))
        with daemon.client(timeout=slow(60)) as c:
            answer = c.request("POST", "/images", inputs[i % len(inputs)], [JPEG])
            assert answer.status == 201, answer
            (image,) = answer.json()["images"]
            return image["id"], i % len(inputs), fetch_all(c, image)

    results = in_parallel(count, upload)
    assert len({ident for ident, _, _ in results}) == count
    for _, i, files in results:
        assert files == alone[i]


class Mix:
    """Uploads of every kind, each with its expected response."""

    def __init__(self):
        self.good = sources()
        self.bad = [(self.good[0][:20000], 422), (self.good[4][:9000], 422),
                    (b"GIF89a" + b"\0" * 500, 415), (b"just text", 415), (b"", 400),
                    (self.good[1][:400], 422)]

    def request(self, rng):
        """Returns (content type, body, status, accepted inputs, statuses of errors)."""
        kind = rng.random()
        if kind < 0.55:
            i = rng.randrange(len(self.good))
            return "image/jpeg", self.good[i], 201, [i], []
        if kind < 0.75:
            data, status = rng.choice(self.bad)
            return "image/jpeg", data, status, [], []
        picks = [rng.randrange(len(self.good)) for _ in range(rng.randrange(0, 4))]
        bad = [rng.choice(self.bad[:4]) for _ in range(rng.randrange(0, 3))]
        parts = [("f", f"{i}.jpg", "image/jpeg", self.good[i]) for i in picks]
        parts += [("f", "bad.jpg", "image/jpeg", data) for data, _ in bad] + [
            ("note", None, None, b"text")]
        content_type, body = form(parts)
        status = 201 if picks else max([s for _, s in bad], default=400)
        return content_type, body, status, picks, [s for _, s in bad]


def check_mixed(mix, good_files, client, rng):
    """Makes one upload of the mix, and checks its response and all files."""
    kind, body, status, inputs, errors = mix.request(rng)
    answer = client.request("POST", "/images", body, [("Content-Type", kind)])
    assert answer.status == status, answer
    document = answer.json()
    assert sorted(e["status"] for e in document.get("errors", [])) == sorted(errors)
    for i, image in zip(inputs, document.get("images", [])):
        assert good_files[i] == fetch_all(client, image)
    assert len(document.get("images", [])) == len(inputs)


@pytest.mark.also_with("seda", "thread-per-connection")
def test_memory_stays_bounded_over_rounds_of_200_mixed_uploads(start):
    """The uploads use 16 connections. Free buffers are bounded, so that at some time 200 more
    uploads need no more memory. After the last response no memory is in use."""
    daemon = start()
    mix = Mix()
    good_files = files_of(daemon, mix.good)
    clients = [daemon.client(timeout=slow(60)) for _ in range(16)]
    resident = []
    for turn in range(8):
        def work(i):
            rng = random.Random(turn * 100 + i)
            for _ in range(load(200, 64) // 16 + (i < load(200, 64) % 16)):
                check_mixed(mix, good_files, clients[i], rng)
        in_parallel(16, work)
        resident.append(daemon.resident_bytes())
        if turn and (IS_SANITIZED or resident[turn] < resident[turn - 1] * 1.05):
            break
    else:
        pytest.fail(f"resident memory grows: {resident}")

    def is_given_back():
        memory = clients[0].request("GET", "/stats").json()["memory"]
        return memory["reserved_image_bytes"] == 0 and memory["pool_used_bytes"] <= 16 * (64 << 10)
    assert eventually(is_given_back), clients[0].request("GET", "/stats").json()["memory"]
    assert all(c.is_open() for c in clients)
    for c in clients:
        c.close()
    assert eventually(lambda: not daemon.leftovers())


@pytest.mark.skipif(IS_SANITIZED, reason="sanitizers take memory of their own")
def test_resident_memory_stays_within_the_budget(start):
    """The memory stays below the sum that conf/darkroomd.ini gives for memory_budget."""
    budget, threads, connections = 96 << 20, 2, 12
    daemon = start(f"limits.memory_budget={budget}", "limits.body_bytes=16M",
                   f"scheduler.threads={threads}")
    files = [pictures.photo_jpeg(4000, 3000, progressive=True), pictures.photo_jpeg(5000, 4000),
             *sources()[:2]]

    def work(i):
        with daemon.client(timeout=slow(60)) as c:
            for k in range(2):
                assert c.request("POST", "/images", files[(i + k) % len(files)],
                                 [JPEG]).status == 201
    in_parallel(connections, work)
    peak = daemon.resident_bytes("VmHWM")
    assert peak <= budget + (32 << 20) + threads * (4 << 20) + connections * (32 << 10), (
        peak / 2 ** 20)
    assert peak >= budget / 2, "the uploads needed too little memory"


@pytest.mark.every_policy
def test_requests_on_one_connection_do_not_affect_each_other(daemon):
    """Uploads, reads and removals take turns on one connection."""
    inputs, rng = sources(), random.Random(9)
    with daemon.client() as c:
        for _ in range(load(60, 10)):
            data = rng.choice(inputs)
            image = c.request("POST", "/images", data, [JPEG]).json()["images"][0]
            assert (image["width"], image["height"]) == pictures.size(data)
            assert c.request("DELETE", image["url"]).status == 204


@pytest.mark.also_with("cohort", "seda")
@pytest.mark.skipif(PER_CONNECTION, reason="small requests share the threads of the uploads there")
def test_small_requests_do_not_wait_for_uploads(start):
    """Probes and a stored file are requested while uploads of 12 megapixels use all cores. Behind
    the uploads in a queue they would take as long as those."""
    daemon = start()
    image = daemon.image(pictures.photo_jpeg(640, 480, 2))
    thumb = daemon.fetch(image, "thumb")
    photos = [pictures.photo_jpeg(4000, 3000, seed) for seed in (1, 2)]
    over, uploads = threading.Event(), []

    def upload(i):
        with daemon.client(timeout=slow(60)) as c:
            while not over.is_set():
                started = time.monotonic()
                assert c.request("POST", "/images", photos[i % 2], [JPEG]).status == 201
                uploads.append(time.monotonic() - started)

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        running = [pool.submit(upload, i) for i in range(6)]
        try:
            times = {"/healthz": [], image["variants"]["thumb"]["url"]: [], "/stats": []}
            assert eventually(lambda: len(uploads) >= 6, 60)
            with daemon.client() as c:
                for _ in range(100):
                    for path, taken in times.items():
                        started = time.monotonic()
                        answer = c.request("GET", path)
                        taken.append(time.monotonic() - started)
                        assert answer.status == 200
                        assert (answer.body == thumb or "thumb" not in path)
                    time.sleep(0.004)
        finally:
            over.set()
        for future in running:
            future.result()
    upload_s = statistics.median(uploads)
    for path, taken in times.items():
        taken.sort()
        assert taken[50] < upload_s / 20
        assert taken[90] < upload_s / 4, f"{path}: {taken}, uploads {uploads}"


@pytest.mark.every_policy
def test_images_wait_for_memory(start):
    """Each image needs nearly half of the budget, and more with its body. While one is processed,
    others wait. This works with any number of threads."""
    daemon = start("limits.memory_budget=40M", "limits.body_bytes=16M",
                   *([] if PER_CONNECTION else ["scheduler.threads=4"]))
    source = pictures.photo_jpeg(2600, 2000, 1, progressive=True)

    def upload(_):
        with daemon.client(timeout=slow(60)) as c:
            return c.request("POST", "/images", source, [JPEG]).status
    for _ in range(load(2, 1)):
        assert in_parallel(8, upload) == [201] * 8

    def memory():
        return daemon.get("/stats").json()["memory"]
    assert memory()["waited"] > 0
    assert eventually(lambda: memory()["reserved_image_bytes"] == memory()["reserved_body_bytes"]
                      == 0), memory()


def test_finished_images_of_a_form_hold_no_memory(start, disk):
    """ICC profiles may have 4 MiB. While the last images of a form are stored, those of the finished
    images are already freed, since their memory is no longer reserved."""
    count, size = 17, 4_000_000
    profile = bytearray(size)
    profile[:4], profile[16:20], profile[36:40] = size.to_bytes(4, "big"), b"RGB ", b"acsp"
    small = pictures.jpeg(pictures.photo(64, 48, 1), icc_profile=bytes(profile))
    kind, body = form([("f", f"{i}.jpg", "image/jpeg", small) for i in range(count)])
    daemon = start("server.durability=none", "server.keep_originals=no", "stage.disk_write.threads=1",
                   # one image is stored after the other
                   "experiment.disk_write.service=n-gated", "experiment.service_events=1",
                   "variant.only.operations=blur 2", config=None, environ=disk.environ)
    disk.delay_writes(20)
    used = used_by_the_last(daemon, kind, body)
    assert used, "no more than three images were never alone"
    assert max(used) < (count - 1) * size, used  # each of the last needs at most 21 MB


def used_by_the_last(daemon, kind, body):
    """Uploads a form. Returns the bytes of buffers in use at moments when one to three images were in
    flight, and the body was freed."""
    used = []
    with concurrent.futures.ThreadPoolExecutor(1) as pool, daemon.client() as c:
        uploading = pool.submit(daemon.upload, body, kind)
        while not uploading.done():
            stats = c.request("GET", "/stats").json()
            images, memory = stats["images"], stats["memory"]
            if images["stored"] and 1 <= images["in_flight"] <= 3 and \
                    not memory["reserved_body_bytes"]:
                used.append(memory["pool_used_bytes"])
            time.sleep(0.02)
        assert uploading.result().status == 201
    return used
