"""Uploads with an Idempotency-Key: a repeated one makes no second image, whatever happened to the
first answer. DARKROOM_KILLS is the number of kills (8)."""

import concurrent.futures
import os
import random
import shutil
import signal
import threading

import pytest

import pictures
from client import Closed, form, form_files
from darkroom import Daemon, eventually, load
from store_files import directory_of
from test_tokens import make

KILLS = int(os.environ.get("DARKROOM_KILLS", load(8, 2)))
SMALL, OTHER = pictures.photo_jpeg(60, 40, 3), pictures.photo_jpeg(64, 40, 4)
LARGE = pictures.photo_jpeg(1600, 1200, 5)
CUT = SMALL[:200]
SWEEP = "store.sweep_interval=100ms"


def key(name):
    return "Idempotency-Key", f'"{name}"'


def post(daemon, name, data=SMALL, headers=()):
    return daemon.upload(data, headers=[key(name), *headers])


def post_form(daemon, name, *datas):
    content_type, body = form_files(*datas)
    return daemon.upload(body, content_type, headers=[key(name)])


def ids(answer):
    assert answer.status in (201, 202), answer
    return [image["id"] for image in answer.json()["images"]]


def records(store):
    return [path for path in store.glob(".keys/*/*")]


def is_repeated(answer, first):
    """Checks that the answer names the images of the first one."""
    assert answer["idempotent-replayed"] == "true" and first["idempotent-replayed"] is None
    assert answer["location"] == first["location"]
    assert answer.json() == first.json()
    return answer.status == first.status == 201


@pytest.mark.also_with("seda", "thread-per-connection")
@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_repeated_upload_has_the_first_answer_also_after_a_kill(start, durability):
    daemon = start(f"server.durability={durability}")
    first = post(daemon, "a")
    assert is_repeated(post(daemon, "a"), first)
    daemon.kill()
    daemon = start(f"server.durability={durability}", store=daemon.store)
    assert is_repeated(post(daemon, "a"), first)
    assert daemon.stored() == ids(first)
    assert post(daemon, "b").json() != first.json()
    assert daemon.get("/stats").json()["http"]["uploads_replayed"] == 1
    with daemon.client() as c:  # on one connection, and after it without a key
        headers = [("Content-Type", "image/jpeg")]
        assert is_repeated(c.request("POST", "/images", SMALL, [*headers, key("a")]), first)
        assert ids(c.request("POST", "/images", SMALL, headers)) != ids(first)


def test_a_key_with_another_content_is_refused(start):
    daemon = start()
    first = post(daemon, "a")
    answer = post(daemon, "a", OTHER)
    assert (answer.status, answer.slug) == (422, "idempotency-key-reused")
    answer = post_form(daemon, "a", SMALL)  # a form has names
    assert (answer.status, answer.slug) == (422, "idempotency-key-reused")
    assert is_repeated(post(daemon, "a"), first)
    assert daemon.stored() == ids(first)


@pytest.mark.every_policy
@pytest.mark.parametrize("count", [2, 20])
def test_uploads_at_once_with_one_key_make_one_image(start, count):
    daemon = start()
    gate = threading.Barrier(count)

    def upload(_):
        with daemon.client() as c:
            gate.wait()
            return c.request("POST", "/images", LARGE,
                             [("Content-Type", "image/jpeg"), key("one")])

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        answers = list(pool.map(upload, range(count)))
    made = [ids(answer)[0] for answer in answers if answer.status == 201]
    for answer in answers:
        assert answer.status == 201 or (answer.status, answer.slug) == (
            409, "idempotency-key-in-use"), answer
        assert answer.status == 201 or answer["retry-after"] == "1"
    assert len(made) >= 1 and daemon.stored() == sorted(set(made)) == made[:1]
    assert ids(post(daemon, "one", LARGE)) == made[:1]


def test_another_content_is_refused_while_the_first_is_in_progress(start):
    daemon = start()
    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        answers = list(pool.map(
            lambda i: post(daemon, "one", LARGE if i % 2 else LARGE + b"\0"), range(9)))
    assert len(daemon.stored()) == 1
    assert {a.status for a in answers} <= {201, 409, 422}
    assert sum(a.status == 422 for a in answers) >= 4


def test_forms_are_remembered_with_their_images_and_not_their_boundary(start):
    daemon = start()
    content_type, body = form_files(SMALL, OTHER, CUT)
    first = daemon.upload(body, content_type, headers=[key("form")])
    assert first.status == 201 and len(first.json()["errors"]) == 1
    boundary = content_type.partition("boundary=")[2]
    second = daemon.upload(body.replace(boundary.encode(), b"another"),
                           "multipart/form-data; boundary=another", headers=[key("form")])
    assert second.status == 201 and second.json()["images"] == first.json()["images"]
    assert second.json()["errors"] == [] and second.json()["errors_omitted"] == 1
    assert sorted(ids(first)) == daemon.stored()
    content_type, body = form_files(OTHER, SMALL, CUT)
    assert daemon.upload(body, content_type, headers=[key("form")]).status == 422


def test_texts_of_a_form_are_a_part_of_its_content(start):
    daemon = start("store.metadata=caption")

    def upload(caption):
        content_type, body = form([("file", "a.jpg", "image/jpeg", SMALL),
                                   ("caption", None, None, caption)])
        return daemon.upload(body, content_type, headers=[key("text")])

    first = upload(b"one")
    assert upload(b"two").status == 422
    assert is_repeated(upload(b"one"), first)


def test_refused_uploads_are_not_remembered(start):
    daemon = start("limits.pixels=10000")
    assert post(daemon, "a", CUT).status == 422
    assert post(daemon, "a", LARGE).status == 413
    assert post(daemon, "a", b"no picture").status == 415
    assert records(daemon.store) == []
    assert ids(post(daemon, "a")) == daemon.stored()
    assert len(records(daemon.store)) == 1


def test_an_upload_over_a_limit_may_be_repeated_with_its_key(start):
    daemon = start("limits.images_in_flight=1")
    answer = post_form(daemon, "a", SMALL, OTHER)
    assert (answer.status, answer.slug) == (503, "overloaded")
    assert records(daemon.store) == []
    assert ids(post(daemon, "a")) == daemon.stored()


def test_a_removed_image_is_not_made_again(start):
    daemon = start()
    first, form_of_two = post(daemon, "a"), post_form(daemon, "b", SMALL, OTHER)
    with daemon.client() as c:
        for ident in (ids(first)[0], ids(form_of_two)[0]):
            assert c.request("DELETE", f"/images/{ident}").status == 204
    daemon.kill()
    daemon = start(store=daemon.store)
    answer = post(daemon, "a")
    (image,) = answer.json()["images"]
    assert answer.status == 201 and image == {"id": ids(first)[0], "status": "removed",
                                              "url": f"/images/{ids(first)[0]}"}
    answer = post_form(daemon, "b", SMALL, OTHER)
    assert answer.json()["images"][0]["status"] == "removed"
    assert answer.json()["images"][1] == form_of_two.json()["images"][1]
    assert daemon.stored() == ids(form_of_two)[1:]


@pytest.mark.parametrize("durability", ["none", "process", "power"])
def test_an_early_answer_is_repeated_before_and_after_the_image_is_stored(start, durability):
    daemon = start(f"server.durability={durability}")
    headers = [("Prefer", "respond-async")]
    first = post(daemon, "a", LARGE, headers)
    assert first.status == 202
    answer = post(daemon, "a", LARGE, headers)
    assert ids(answer) == ids(first)
    if answer.status == 202:
        assert answer.json()["images"][0]["status"] == "processing"
    assert eventually(lambda: post(daemon, "a", LARGE, headers).status == 201)
    answer = post(daemon, "a", LARGE, headers)
    assert "variants" in answer.json()["images"][0] and ids(answer) == ids(first)
    assert daemon.stored() == ids(first)


def test_a_spooled_upload_is_known_after_a_kill(start):
    daemon = start()
    uploads = [post(daemon, f"k{i}", LARGE, [("Prefer", "respond-async")]) for i in range(6)]
    daemon.kill()
    daemon = start(store=daemon.store)
    again = [post(daemon, f"k{i}", LARGE) for i in range(6)]
    assert [ids(answer) for answer in again] == [ids(answer) for answer in uploads]
    assert eventually(lambda: len(daemon.stored()) == 6)
    assert eventually(lambda: daemon.get("/stats").json()["store"]["recovering"] == 0)


def test_clients_do_not_share_keys(start, tmp_path):
    made = [make(name, "upload", "sign") for name in ("one", "two")]
    tokens = tmp_path / "tokens"
    tokens.write_text("".join(line + "\n" for _, line in made))
    tokens.chmod(0o600)
    daemon = start(f"access.tokens_file={tokens}")
    bearers = [[("Authorization", f"Bearer {token}")] for token, _ in made]
    first, second = (post(daemon, "same", headers=bearer) for bearer in bearers)
    assert ids(first) != ids(second)
    assert post(daemon, "same", OTHER, bearers[1]).status == 422
    assert is_repeated(post(daemon, "same", headers=bearers[0]), first)
    assert is_repeated(post(daemon, "same", headers=bearers[1]), second)
    assert len(daemon.stored()) == 2


def test_addresses_do_not_share_keys(start):
    daemon = start("server.trusted_proxies=127.0.0.1")
    forwarded = [[("X-Forwarded-For", f"198.51.100.{i}")] for i in (1, 2)]
    first, second = (post(daemon, "same", headers=headers) for headers in forwarded)
    assert ids(first) != ids(second)
    assert is_repeated(post(daemon, "same", headers=forwarded[0]), first)


def test_a_flood_of_keys_ends_with_429_for_its_client_alone(start):
    daemon = start("server.trusted_proxies=127.0.0.1", "limits.idempotency_keys=3")
    one, two = ([("X-Forwarded-For", f"198.51.100.{i}")] for i in (1, 2))
    answers = [post(daemon, f"k{i}", headers=one) for i in range(5)]
    assert [answer.status for answer in answers] == [201, 201, 201, 429, 429]
    problem = answers[4].json()
    assert (problem["limit"], problem["configured"]) == ("limits.idempotency_keys", 3)
    assert 1 < int(answers[4]["retry-after"]) <= 86400
    assert len(records(daemon.store)) == 3
    assert is_repeated(post(daemon, "k0", headers=one), answers[0])
    assert post(daemon, "k4", headers=two).status == 201
    assert daemon.upload(SMALL, headers=one).status == 201  # without a key
    content_type, body = form_files(SMALL, SMALL, SMALL)
    assert daemon.upload(body, content_type, headers=[key("form"), *two]).status == 201
    assert post(daemon, "next", headers=two).status == 429  # each image counts


def test_keys_end_and_their_files_go(start):
    daemon = start("store.idempotency_age=1h", SWEEP)
    first = post(daemon, "a")
    assert is_repeated(post(daemon, "a"), first)
    (record,) = records(daemon.store)
    os.utime(record, (1, 1))  # as if it were old
    assert eventually(lambda: not records(daemon.store))
    assert ids(post(daemon, "a")) != ids(first)
    assert len(daemon.stored()) == 2


def test_a_key_ends_although_its_file_is_there(start):
    daemon = start("store.idempotency_age=1s", "store.sweep_interval=1h")
    first = post(daemon, "a")
    assert eventually(lambda: ids(post(daemon, "a")) != ids(first))
    assert len(records(daemon.store)) == 1 and len(daemon.stored()) == 2


def test_without_an_age_the_field_is_ignored(start):
    daemon = start("store.idempotency_age=0")
    assert ids(post(daemon, "a")) != ids(post(daemon, "a"))
    assert daemon.upload(SMALL, headers=[("Idempotency-Key", "unquoted")]).status == 201
    assert not (daemon.store / ".keys").exists()


@pytest.mark.parametrize("value", ["", "unquoted", '"', '""', '"open', '"a" "b"', '"a";p=1',
                                   '"\\x"', '"a\\"', '"\u00e9"', f'"{"x" * 256}"'])
def test_a_malformed_key_is_refused(daemon, value):
    answer = daemon.upload(SMALL, headers=[("Idempotency-Key", value)])
    assert (answer.status, answer.slug) == (400, "malformed-request"), answer
    assert "Idempotency-Key: expected one string" in answer.json()["detail"]


def test_two_keys_are_refused(daemon):
    answer = daemon.upload(SMALL, headers=[key("a"), key("b")])
    assert (answer.status, answer.slug) == (400, "malformed-request")


def test_the_longest_key_and_escapes_are_read(daemon):
    for text in ("x" * 255, r"a\"b\\c"):
        assert ids(post(daemon, text)) == ids(post(daemon, text))


def test_a_store_without_room_for_the_record_refuses_the_upload(start):
    daemon = start()
    (daemon.store / ".keys").write_bytes(b"")  # not a directory
    answer = post(daemon, "a")
    assert (answer.status, answer.slug) == (500, "storage-failed")
    assert daemon.stored() == [] and daemon.says("cannot write the record")
    (daemon.store / ".keys").unlink()
    assert post(daemon, "a").status == 201


def test_a_form_that_was_stored_in_part_is_made_again_as_a_whole(start):
    """As after a crash between its images."""
    daemon = start()
    first = ids(post_form(daemon, "a", SMALL, OTHER))
    (record,) = records(daemon.store)
    daemon.kill()
    text = record.read_bytes()
    assert text[:1] == b"s"
    record.write_bytes(b"o" + text[1:])  # not settled
    shutil.rmtree(directory_of(daemon.store, first[1]))
    daemon = start(store=daemon.store)
    second = ids(post_form(daemon, "a", SMALL, OTHER))
    assert not set(second) & set(first)
    assert daemon.stored() == sorted(second)


def test_an_upload_that_was_stored_and_not_answered_is_known(start):
    daemon = start()
    first = post_form(daemon, "a", SMALL, OTHER)
    (record,) = records(daemon.store)
    daemon.kill()
    record.write_bytes(b"o" + record.read_bytes()[1:])
    daemon = start(store=daemon.store)
    assert post_form(daemon, "a", OTHER, SMALL).status == 422
    assert is_repeated(post_form(daemon, "a", SMALL, OTHER), first)
    assert record.read_bytes()[:1] == b"s"


@pytest.mark.parametrize("damage", [lambda text: b"", lambda text: text[:-1],
                                    lambda text: b"x" + text[1:], lambda text: text * 2,
                                    lambda text: text.replace(b"\n01", b"\n 1")])
def test_a_damaged_record_is_none(start, damage):
    daemon = start()
    first = ids(post(daemon, "a"))
    (record,) = records(daemon.store)
    record.write_bytes(damage(record.read_bytes()))
    second = post(daemon, "a")
    assert ids(second) != first and is_repeated(post(daemon, "a"), second)


# ---- kill -9 under load ----

class Uploader(threading.Thread):
    """Uploads until the daemon has ended, each with its own key. The last one may be unanswered."""

    def __init__(self, daemon, number, rng):
        super().__init__(daemon=True)
        self.target, self.number, self.rng = daemon, number, rng
        self.sent, self.answered = {}, {}  # by key
        self.start()

    def body(self):
        count = self.rng.choice((1, 1, 3))
        datas = [self.rng.choice((SMALL, OTHER)) for _ in range(count)]
        return ("image/jpeg", datas[0]) if count == 1 else form_files(*datas)

    def run(self):
        try:
            with self.target.client() as c:
                while True:
                    name = f"{self.number}-{len(self.sent)}"
                    self.sent[name] = content_type, body = self.body()
                    headers = [("Content-Type", content_type), key(name)]
                    if self.rng.random() < 0.3:
                        headers.append(("Prefer", "respond-async"))
                    self.answered[name] = ids(c.request("POST", "/images", body, headers))
        except (Closed, OSError):
            pass


def images_of(content_type, body):
    return body.count(b"\xff\xd8\xff")


@pytest.mark.also_with("seda")
def test_after_kills_each_key_has_its_images_once(tmp_path):
    """The clients repeat all of their uploads after the kill."""
    seed = random.randrange(2**32)
    print("seed", seed)
    rng, store, expected, answered = random.Random(seed), tmp_path / "store", 0, 0
    for round_ in range(KILLS):
        daemon = Daemon(store)
        uploaders = [Uploader(daemon, f"{round_}-{i}", random.Random(rng.random()))
                     for i in range(6)]
        goal = rng.randrange(5, 40)
        assert eventually(lambda: sum(len(u.sent) for u in uploaders) >= goal)
        daemon.signal(signal.SIGKILL)
        for uploader in uploaders:
            uploader.join()
        daemon.kill()
        daemon = Daemon(store)
        for uploader in uploaders:
            for name, (content_type, body) in uploader.sent.items():
                made = ids(daemon.upload(body, content_type, headers=[key(name)]))
                assert made == uploader.answered.get(name, made), name
                assert len(made) == len(set(made)) == images_of(content_type, body)
                expected += len(made)
                answered += name in uploader.answered
        stats = lambda: daemon.get("/stats").json()["store"]  # noqa: E731
        assert eventually(lambda: stats()["recovering"] == 0 and
                          not list((store / ".spool").iterdir()))
        assert eventually(lambda: len(daemon.stored()) == expected), (len(daemon.stored()),
                                                                      expected)
        daemon.stop()
    assert answered > 0  # and their answers after the kill are the same
