"""Fields of the form that are kept with an image: store.metadata."""

import json
import shutil

import pytest

import pictures
from client import form
from darkroom import eventually, run
from store_files import directory_of

SMALL = pictures.photo_jpeg(60, 40, 3)
SETTING = "store.metadata=caption, user"


def field(name, value):
    value = value.encode() if isinstance(value, str) else value
    return name, None, None, value


def file(name="a.jpg"):
    return "file", name, "image/jpeg", SMALL


def post(daemon, *parts, headers=()):
    content_type, body = form(parts)
    return daemon.upload(body, content_type, headers=list(headers))


@pytest.mark.also_with("seda")
def test_named_fields_are_returned_with_each_image(start):
    daemon = start(SETTING)
    text = 'Zürich, "am See"\n\\ 湖'
    answer = post(daemon, field("caption", text), field("other", "x"), file(), file("b.jpg"),
                  field("user", ""))
    assert answer.status == 201
    for image in answer.json()["images"]:
        assert image["metadata"] == {"caption": text, "user": ""}
        assert daemon.get(image["url"]).json() == image
        stored = json.loads((directory_of(daemon.store, image["id"]) / "image.json").read_bytes())
        assert stored["metadata"] == image["metadata"]
    assert "metadata" not in post(daemon, file()).json()["images"][0]
    assert "metadata" not in daemon.image(SMALL)


def test_fields_are_ignored_unless_the_configuration_names_them(daemon):
    answer = post(daemon, field("caption", "x"), field("caption", b"\xff"), file())
    assert answer.status == 201 and "metadata" not in answer.json()["images"][0]


@pytest.mark.parametrize("parts, fault", [
    ([("caption", "x"), ("caption", "y")], "the field caption occurs twice"),
    ([("user", 1025 * "x")], "the field user has more than 1024 bytes"),
    ([("user", b"caf\xe9")], "the field user is not text in UTF-8"),
    ([("user", "a\0b")], "the field user is not text in UTF-8"),
    ([("user", "\x1b[31m")], "the field user is not text in UTF-8"),
    ([("caption", 1024 * "x"), ("user", 1024 * "y")], "more than 2048 bytes")],
    ids=["twice", "long", "latin", "zero", "escape", "together"])
def test_a_wrong_field_is_refused(start, parts, fault):
    daemon = start(SETTING)
    answer = post(daemon, *[field(*part) for part in parts], file())
    assert (answer.status, answer.slug) == (400, "malformed-form")
    assert fault in answer.json()["detail"]


def test_the_longest_texts_fit_into_the_answer_and_the_store(start):
    daemon = start(SETTING)
    expected = {"caption": 1020 * '"', "user": 1000 * "\\"}
    answer = post(daemon, *[field(*item) for item in expected.items()], *[file(120 * "x")] * 3)
    assert answer.status == 201
    for image in answer.json()["images"]:
        assert image["metadata"] == expected
        assert daemon.get(image["url"]).json()["metadata"] == expected


def test_fields_survive_a_crash_before_the_image_is_stored(start):
    daemon = start(SETTING)
    answer = post(daemon, field("caption", "Lake"), field("user", "7"), file(),
                  headers=[("Prefer", "respond-async")])
    ident = answer.json()["images"][0]["id"]
    assert eventually(lambda: directory_of(daemon.store, ident).exists())
    daemon.kill()
    shutil.rmtree(directory_of(daemon.store, ident))
    spooled = daemon.store / ".spool" / ident
    spooled.mkdir(exist_ok=True)
    (spooled / "original.jpg").write_bytes(SMALL)
    (spooled / "note").write_bytes(b"0\na.jpg\0\0" b"0\0caption\0Lake\0user\0" b"7\0")
    daemon = start(SETTING, store=daemon.store)
    assert eventually(lambda: daemon.get(f"/images/{ident}").status == 200)
    assert daemon.get(f"/images/{ident}").json()["metadata"] == {"caption": "Lake", "user": "7"}


@pytest.mark.parametrize("names", ["caption;user", "x" * 33, " ".join("abcdefghi"), "é"])
def test_wrong_names_are_reported(names):
    done = run("-t", "-o", f"store.metadata={names}")
    assert done.returncode == 78 and "store.metadata" in done.stderr
    assert "expected at most 8 names" in done.stderr


def test_eight_names_are_accepted():
    assert run("-t", "-o", "store.metadata=" + ",".join(8 * ["a"]), "-o",
               "server.root=/tmp/darkroom").returncode == 0
