"""What is stored decides what an image has: image.json's record, entity tags of the content, and
stores of earlier versions and other configurations."""

import json
import os
import re

import pictures
from darkroom import eventually
from store_files import directory_of, move_to_old_place
from test_tokens import File

SMALL = pictures.photo_jpeg(320, 240, 5)
OTHER = pictures.photo_jpeg(320, 240, 6)
TAG = "user.darkroom.xxh128"


def document_of(daemon, image):
    return json.loads((directory_of(daemon.store, image["id"]) / "image.json").read_bytes())


def has_attributes(path):
    try:
        return TAG in os.listxattr(path)
    except OSError:
        return False


def test_a_record_says_how_an_image_was_made(start, tmp_path):
    file = File(tmp_path / "access")
    daemon = start(f"access.tokens_file={file.path}", "server.keep_originals=yes",
                   "variant.thumb.chroma=444", "variant.thumb.progressive=yes")
    answer = daemon.upload(SMALL, headers=[file.bearer("up")])
    image = answer.json()["images"][0]
    assert daemon.get(image["url"]).json() == image, "the record is not for clients"
    document = document_of(daemon, image)
    record = document.pop("record")
    assert document == image
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record["uploaded"])
    assert record["upload"] == {"bytes": len(SMALL), "format": "image/jpeg", "token": "up"}
    assert record["original"]["bytes"] == len(SMALL)
    sums = {name: variant.pop("xxh128") for name, variant in record["variants"].items()}
    common = {"enlarge": False, "optimize": True}
    assert record["variants"] == {
        "medium": {"operations": "scale 800x800 inside", "quality": 82, "chroma": "420",
                   "progressive": False, **common},
        "thumb": {"operations": "scale 160x160 inside", "quality": 80, "chroma": "444",
                  "progressive": True, **common},
        "blurred": {"operations": "scale 800x800 inside, blur 8", "quality": 75, "chroma": "420",
                    "progressive": False, **common}}
    if has_attributes(directory_of(daemon.store, image["id"]) / "thumb.jpg"):
        for name, checksum in sums.items():
            assert daemon.get(image["variants"][name]["url"])["etag"] == f'"{checksum}"'


def test_a_recovered_image_keeps_its_token(start, tmp_path):
    file = File(tmp_path / "access")
    settings = (f"access.tokens_file={file.path}", "server.durability=process")
    store = tmp_path / "store"
    first = start(*settings, store=store)
    answer = first.upload(SMALL, headers=[("Prefer", "respond-async"), file.bearer("up")])
    first.kill()
    image = answer.json()["images"][0]
    second = start(*settings, store=store)
    assert eventually(lambda: second.get(image["url"]).status == 200)
    assert document_of(second, image)["record"]["upload"]["token"] == "up"


def test_entity_tags_are_of_the_content(start):
    daemon = start()
    same, again, other = (daemon.image(data) for data in (SMALL, SMALL, OTHER))
    tags = [daemon.get(image["variants"]["medium"]["url"])["etag"]
            for image in (same, again, other)]
    if has_attributes(directory_of(daemon.store, same["id"]) / "medium.jpg"):
        assert tags[0] == tags[1]
    assert tags[0] != tags[2]
    assert daemon.get(same["url"])["etag"] != daemon.get(again["url"])["etag"]


def test_a_variant_of_another_configuration_is_served(start, tmp_path):
    store = tmp_path / "store"
    first = start(store=store)
    image = first.image(SMALL)
    files = {name: first.fetch(image, name) for name in image["variants"]}
    first.stop()
    config = tmp_path / "other.ini"
    config.write_text("[variant.large]\noperations = scale 1000x1000 inside\n")
    second = start(store=store, config=config)
    assert second.get(image["url"]).json() == image
    assert {name: second.fetch(image, name) for name in files} == files
    missing = second.get(image["url"] + "/large.jpg")
    assert (missing.status, missing.slug) == (404, "not-found")
    assert missing.json()["detail"] == (
        f"image {image['id']} has no variant large; it has blurred, medium, thumb")
    new = second.image(SMALL)
    assert second.get(new["url"] + "/large.jpg").status == 200
    assert second.get(new["url"] + "/thumb.jpg").json()["detail"].endswith(
        "no variant thumb; it has large")
    absent = second.get("/images/01K00000000000000000000000/thumb.jpg")
    assert "does not exist" in absent.json()["detail"]


def test_a_store_of_an_earlier_version_is_read(start):
    daemon = start()
    image = daemon.image(SMALL)
    directory = move_to_old_place(daemon.store, image["id"])
    path = directory / "image.json"
    document = json.loads(path.read_bytes())
    del document["record"]
    path.write_text(json.dumps(document, separators=(",", ":")) + "\n")
    for file in directory.iterdir():
        if has_attributes(file):
            os.removexattr(file, TAG)
    assert daemon.get(image["url"]).json() == image
    url = image["variants"]["medium"]["url"]
    answer = daemon.get(url)
    assert answer.status == 200 and answer.body == (directory / "medium.jpg").read_bytes()
    assert daemon.get(url, headers=[("If-None-Match", answer["etag"])]).status == 304
    medium = directory / "medium.jpg"
    medium.rename(directory / "was.jpg")
    medium.write_bytes(answer.body[:-1] + b"x")
    assert daemon.get(url)["etag"] != answer["etag"]
    with daemon.client() as c:
        assert c.request("DELETE", image["url"]).status == 204
    assert not directory.exists() and daemon.get(image["url"]).status == 404
