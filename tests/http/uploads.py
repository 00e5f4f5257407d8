"""Uploads for several modules: pictures of many kinds, parallel requests, and checks of a stored
image."""

import concurrent.futures
import contextlib
import re
import threading

import pictures

JPEG = ("Content-Type", "image/jpeg")
ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}\Z")
TINY = pictures.photo_jpeg(16, 16, 2, quality=50)


def is_served(daemon):
    return daemon.get("/healthz").status == 200 and daemon.upload(TINY).status == 201


@contextlib.contextmanager
def coming_and_going(daemon, jpeg, count):
    """Uploads and deletes pictures by several threads until the block ends. Each must succeed."""
    is_over = threading.Event()

    def work():
        with daemon.client() as c:
            while not is_over.is_set():
                assert c.request("DELETE", daemon.image(jpeg)["url"]).status == 204

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        work_done = [pool.submit(work) for _ in range(count)]
        try:
            yield
        finally:
            is_over.set()
        for done in work_done:
            done.result()


def check_image(image, width, height, file_name=None):
    """Checks the JSON object of a stored image."""
    assert ULID.match(image["id"]), image
    assert image["url"] == f"/images/{image['id']}"
    assert (image["width"], image["height"]) == (width, height)
    assert image.get("filename") == file_name
    assert "status" not in image and "damaged" not in image
    assert set(image["variants"]) == set(pictures.VARIANTS)
    for name, (box, _, _) in pictures.VARIANTS.items():
        variant = image["variants"][name]
        assert set(variant) == {"url", "width", "height", "bytes"}
        path, version = variant["url"].split("?v=")
        assert path == f"{image['url']}/{name}.jpg" and len(version) == 8
        assert (variant["width"], variant["height"]) == pictures.fit(width, height, box)


def check_stored(daemon, image):
    """Checks that each variant can be fetched, and has the reported length and size."""
    for name, variant in image["variants"].items():
        data = daemon.fetch(image, name)
        assert len(data) == variant["bytes"]
        assert pictures.size(data) == (variant["width"], variant["height"])


def fetch_all(client, image):
    """Fetches all variants over one connection. Returns {variant: file}."""
    files = {}
    for name, variant in image["variants"].items():
        answer = client.request("GET", variant["url"])
        assert answer.status == 200 and len(answer.body) == variant["bytes"]
        files[name] = answer.body
    return files


def upload_and_fetch(client, data):
    """Uploads a picture, and returns its files as fetch_all() does."""
    answer = client.request("POST", "/images", data, [JPEG])
    assert answer.status == 201, answer
    return fetch_all(client, answer.json()["images"][0])


def files_of(daemon, inputs):
    """Uploads one picture after the other. Returns the files of each."""
    with daemon.client() as c:
        return [upload_and_fetch(c, data) for data in inputs]


def check_files(daemon, inputs, expected, count):
    """Uploads all pictures by that many clients in parallel. Every file must be as expected."""
    def work(_):
        with daemon.client() as c:
            for data, files in zip(inputs, expected):
                assert upload_and_fetch(c, data) == files

    in_parallel(count, work)


def in_parallel(count, work):
    """Runs work(0)...work(count - 1), each in its own thread. Raises the first failure."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return [f.result() for f in [pool.submit(work, i) for i in range(count)]]


def sources():
    """Returns files of many kinds, small enough to upload many of them."""
    plain = [pictures.photo_jpeg(w, h, seed)
             for w, h, seed in ((1000, 750, 1), (640, 480, 2), (333, 777, 3), (120, 90, 4))]
    return plain + [pictures.photo_jpeg(900, 600, 5, progressive=True),
                    pictures.jpeg(pictures.photo(700, 700, 6).convert("L")),
                    pictures.jpeg(pictures.photo(500, 400, 7).convert("CMYK")),
                    pictures.jpeg(pictures.photo(801, 601, 8), subsampling=0)]
