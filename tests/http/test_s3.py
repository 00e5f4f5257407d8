"""store.kind = s3: images in an object store."""

import email.utils
import json
import subprocess
import time

import pytest

import pictures
import s3_image
from client import form_files
from darkroom import IS_SANITIZED, eventually, overrides, run, slow
from s3_fixtures import begin, due, figures, is_away, remove, store, stored  # noqa: F401
from s3_stand_in import Store
from test_tokens import make
from uploads import TINY, check_stored, fetch_all, in_parallel

SMALL = pictures.photo_jpeg(320, 240, 2)
PHOTO = pictures.photo_jpeg(1200, 900, 2, quality=100)
LARGE = ("variant.huge.operations=scale 1000x750 inside", "variant.huge.quality=70")


@pytest.mark.every_policy
def test_upload_get_and_delete(begin, store):
    daemon = begin("server.keep_originals=yes")
    image = daemon.image(SMALL)
    check_stored(daemon, image)
    key = "a/b/" + s3_image.key_of(image["id"])
    assert store.keys() == [key]
    with store.lock:
        puts = [key for method, key in store.requests if method == "PUT" and key not in ("a/b/probe", "a/b/pass")]
    assert puts == [key]
    files = s3_image.files_of(stored(store)[image["id"]])
    assert sorted(files) == sorted(["image.json", "original.jpg",
                                    *(f"{name}.jpg" for name in image["variants"])])
    assert files["original.jpg"] == SMALL
    for name, variant in image["variants"].items():
        assert daemon.get(variant["url"]).body == files[f"{name}.jpg"]
    assert daemon.get(image["url"]).json() == image
    assert remove(daemon, image).status == 204
    assert store.keys("image/") == [key] and not stored(store) and not due(store)
    assert remove(daemon, image).status == 404
    assert daemon.get(image["url"]).status == 404
    for variant in image["variants"].values():
        assert daemon.get(variant["url"]).status == 404


@pytest.mark.every_policy
def test_uploads_in_parallel(begin, store):
    daemon = begin()
    kind, body = form_files(SMALL, TINY)

    def work(_):
        answer = daemon.upload(body, kind)
        assert answer.status == 201, answer
        return answer.json()["images"]

    images = sum(in_parallel(8, work), [])
    assert len(stored(store)) == 16
    for image in images:
        check_stored(daemon, image)


def test_any_node_serves_any_image(begin):
    one, two = begin(), begin()
    image = one.image(SMALL)
    check_stored(two, image)
    with one.client() as a, two.client() as b:
        assert fetch_all(a, image) == fetch_all(b, image)
        url = image["variants"]["thumb"]["url"]
        first, second = a.request("GET", url), b.request("GET", url)
        assert first["etag"] == second["etag"]
        assert first["last-modified"] == second["last-modified"]
        assert remove(two, image).status == 204
        assert a.request("GET", url).status == 404


def test_conditions_and_ranges(begin):
    daemon = begin()
    image = daemon.image(SMALL)
    url = image["variants"]["thumb"]["url"]
    whole = daemon.get(url)
    with daemon.client() as c:
        assert c.request("GET", url, headers=[("If-None-Match", whole["etag"])]).status == 304
        part = c.request("GET", url, headers=[("Range", "bytes=10-19"),
                                               ("If-Range", whole["etag"])])
        assert part.status == 206 and part.body == whole.body[10:20]
        assert c.request("GET", url, headers=[("Range", "bytes=999999-")]).status == 416
        other = c.request("GET", url, headers=[("Range", "bytes=10-19"), ("If-Range", '"x"')])
        assert other.status == 200 and other.body == whole.body
        assert c.request("HEAD", url)["content-length"] == str(len(whole.body))
        assert c.request("DELETE", image["url"], headers=[("If-Match", '"x"')]).status == 412
    assert daemon.get(image["url"]).status == 200


def test_variant_that_an_image_lacks(begin):
    daemon = begin()
    image = daemon.image(SMALL)
    answer = daemon.get(f"{image['url']}/huge.jpg")
    assert answer.status == 404
    assert f"it has {', '.join(sorted(image['variants']))}" in answer.json()["detail"]
    other = daemon.get("/images/01ARZ3NDEKTSV4RRFFQ69G5FAV/thumb.jpg")
    assert other.status == 404 and "does not exist" in other.json()["detail"]


def test_list(begin, store):
    daemon = begin("server.public_list=yes")
    assert daemon.get("/images").json()["images"] == []
    images = [daemon.image(TINY) for _ in range(5)]
    by_id = sorted(images, key=lambda image: image["id"])
    page = daemon.get("/images?limit=3").json()
    assert page["images"] == by_id[:3]
    rest = daemon.get(page["next"]).json()
    assert rest["images"] == by_id[3:] and "next" not in rest
    answer = daemon.get("/images?order=newest")
    assert (answer.status, answer.slug) == (501, "not-implemented")
    store.fail_always("GET", by_id[1]["id"], status=503, code="SlowDown")
    assert is_away(daemon.get("/images")), "a list without one of its images would be wrong"


def test_images_end(begin, store):
    daemon = begin("store.sweep_interval=100ms")
    kept = daemon.image(SMALL)
    answer = daemon.upload(SMALL, headers=[("X-Expires-After", "2")])
    assert answer.status == 201
    assert len(store.keys("expiry/")) == 1
    url = answer.json()["images"][0]["variants"]["thumb"]["url"]
    assert daemon.get(url)["expires"]
    assert eventually(lambda: list(stored(store)) == [kept["id"]], 20)
    assert eventually(lambda: not due(store)), "the note goes after the image"
    assert daemon.get(url).status == 404
    assert daemon.get("/stats").json()["store"]["removed"]["expired"] == 1


@pytest.mark.parametrize("ahead_s", [-90, 90])
def test_clock_that_is_off_is_told_and_ends_no_image(begin, store, ahead_s):
    """The end of an image is by the store's clock, and answers have it by the node's own."""
    store.ahead_s = ahead_s
    daemon = begin("store.sweep_interval=100ms")
    assert daemon.says("s ahead of that of" if ahead_s < 0 else "s behind that of")
    assert abs(figures(daemon)["skew_s"] - 90) <= slow(5)  # an answer is late on a busy machine
    assert "darkroom_s3_clock_skew_seconds" in daemon.get("/metrics").body.decode()
    before = int(time.time())
    stays, ends = (daemon.upload(TINY, headers=[("X-Expires-After", age)]).json()["images"][0]
                   for age in ("60", "3"))
    content = stored(store)[stays["id"]]
    assert abs(int(content.split(b" ")[3]) - before - 60 - ahead_s) <= 4
    answer = daemon.get(stays["url"])
    seconds = email.utils.parsedate_to_datetime(answer["expires"]).timestamp()
    assert abs(seconds - before - 60) <= 4
    assert eventually(lambda: list(stored(store)) == [stays["id"]], 30)
    assert daemon.get(ends["url"]).status == 404 and daemon.get(stays["url"]).status == 200
    store.ahead_s = 0
    assert daemon.says("agrees with that of")


def test_images_that_are_too_old_are_removed(begin, store):
    daemon = begin("store.sweep_interval=100ms")
    daemon.image(TINY)
    assert len(stored(store)) == 1
    daemon.stop()
    begin("store.sweep_interval=100ms", "store.max_age=1s")
    assert eventually(lambda: not stored(store), 20)


@pytest.mark.parametrize("ahead_s", [-7200, 7200])
def test_age_is_by_the_clock_of_the_store(begin, store, ahead_s):
    """Otherwise a node whose clock is two hours ahead would remove the images of others."""
    store.ahead_s = ahead_s
    age = 1 if ahead_s < 0 else 3600
    daemon = begin("store.sweep_interval=100ms", f"store.max_age={age}s")
    assert daemon.says("s ahead of that of" if ahead_s < 0 else "s behind that of")
    image, made = daemon.image(TINY), time.time()
    if ahead_s < 0:
        assert eventually(lambda: time.time() > made + age + 2)
        passes = figures(daemon)["lists"]
        assert eventually(lambda: figures(daemon)["lists"] > passes + 600, 20)
        answer = daemon.get(image["url"])
        assert answer.status == 200 and image["id"] in stored(store)
        ends = email.utils.parsedate_to_datetime(answer["expires"]).timestamp()
        assert abs(ends - made - age + ahead_s) <= 4
        store.ahead_s = 0
    assert eventually(lambda: not stored(store), 20)
    assert daemon.get(image["url"]).status == 404


@pytest.mark.parametrize("setting", [
    "server.respond_after=decode", "store.make_missing=yes", "overload.backfill=yes",
    "store.max_bytes=1G"])
def test_what_needs_files_is_refused(store, tmp_path, setting):
    settings = [*store.settings(tmp_path), "server.keep_originals=yes", setting]
    done = run("--check", *overrides(*settings))
    assert done.returncode == 78
    assert f"store.kind = s3 does not provide {setting.split('=')[0]}" in done.stderr


@pytest.mark.parametrize("lacks", ["none", "if-match", "if-none-match"])
def test_store_without_conditional_requests_is_refused(store, tmp_path, start, lacks):
    """One that says so, and one that ignores a condition."""
    store.is_plain, store.ignores = lacks == "none", (lacks,)
    done = run("-c", "/dev/null", *overrides(
        f"server.root={tmp_path / 'root'}", "server.user=root", "server.listen=127.0.0.1:0",
        "variant.a.operations=scale 8x8 inside", *store.settings(tmp_path)))
    assert done.returncode != 0 and "it has no conditional PUTs" in done.stderr


@pytest.mark.parametrize("lacks", ["if-match", "if-none-match", "an answer"])
def test_nothing_is_put_before_the_conditions_of_a_store_are_known(begin, store, lacks):
    """It is away at the start. Later it ignores a condition, or does not tell."""
    first = begin()
    image = first.image(TINY)
    first.stop()
    store.stop()
    before = len(store.requests)
    daemon = begin("store.sweep_interval=100ms", s3_spool="file")
    store.ignores = (lacks,)
    if lacks == "an answer":
        store.fail_always("PUT", "/probe", status=400, code="InvalidArgument")
    store.start()
    says = "does not tell whether it has" if lacks == "an answer" else "it has no conditional PUTs"
    assert daemon.says(says)
    assert is_away(daemon.upload(TINY))
    waiting = daemon.upload(TINY, headers=[("Prefer", "respond-async")])
    assert waiting.status == 202
    assert is_away(remove(daemon, image)) and daemon.get(image["url"]).status == 200
    probes = store.requests.count(("PUT", "a/b/probe"))
    assert eventually(lambda: store.requests.count(("PUT", "a/b/probe")) > probes + 6, 20)
    assert is_away(daemon.upload(TINY))
    assert {key for method, key in store.requests[before:] if method != "GET"} == {"a/b/probe"}
    assert daemon.log.count(says) == 1
    store.ignores, store.fault = (), None
    assert daemon.says("it has conditional PUTs; storing images")
    (ident,) = (image["id"] for image in waiting.json()["images"])
    assert eventually(lambda: ident in stored(store), 20)
    check_stored(daemon, daemon.image(TINY))


def test_what_is_needed(tmp_path):
    done = run("--check", *overrides("store.kind=s3"))
    assert done.returncode == 78
    for key in ("s3_endpoint", "s3_bucket", "s3_credentials"):
        assert f"store.kind = s3 needs store.{key}" in done.stderr


def test_commands_on_files_are_refused(store, tmp_path):
    done = run(*overrides(*store.settings(tmp_path)), "store", "list")
    assert done.returncode == 2 and "store.kind = s3 does not provide it" in done.stderr


def test_a_preference_for_an_early_answer_is_ignored(begin):
    answer = begin().upload(SMALL, headers=[("Prefer", "respond-async")])
    assert answer.status == 201 and answer["preference-applied"] is None


def test_quotas_are_refused(begin, tmp_path):
    """Images are not counted. An upload of a token with a quota is refused, and not let through."""
    path = tmp_path / "tokens"
    token, line = make("app", "upload")
    free_token, free_line = make("free", "upload")
    path.write_text(f"{line} images=3\n{free_line}\n")
    path.chmod(0o600)
    daemon = begin(f"access.tokens_file={path}")
    answer = daemon.upload(SMALL, headers=[("Authorization", f"Bearer {token}")])
    assert (answer.status, answer.slug) == (501, "not-implemented")
    assert daemon.upload(SMALL, headers=[("Authorization", f"Bearer {free_token}")]).status == 201


def test_keys_are_read_again(begin, store, tmp_path):
    daemon = begin()
    image = daemon.image(SMALL)
    store.secret = "another"
    store.settings(tmp_path)
    assert daemon.says("the keys have changed")
    check_stored(daemon, image)
    (tmp_path / "s3-keys").write_text("aws_access_key_id =\n")
    assert daemon.says("the earlier keys stay")
    check_stored(daemon, image)


def test_wrong_keys(begin, store):
    daemon = begin()
    store.secret = "another"
    assert is_away(daemon.upload(SMALL))
    assert not store.keys()


def test_start_without_keys(store, tmp_path, start):
    settings = store.settings(tmp_path)
    (tmp_path / "s3-keys").unlink()
    done = run("-c", "/dev/null", *overrides(
        f"server.root={tmp_path / 'root'}", "server.user=root", "server.listen=127.0.0.1:0",
        "variant.a.operations=scale 8x8 inside", *settings))
    assert done.returncode != 0 and "store.s3_credentials" in done.stderr


def test_encrypted_connections(start, tmp_path):
    """The endpoint's certificate is checked by store.s3_ca_file, in the sandbox."""
    certificate = tmp_path / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=store", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", certificate, "-out", tmp_path / "ca.pem"],
                   check=True, capture_output=True)
    with open(certificate, "ab") as file:
        file.write((tmp_path / "ca.pem").read_bytes())
    store = Store(certificate)
    try:
        daemon = start(*store.settings(tmp_path, s3_ca_file=tmp_path / "ca.pem"))
        image = daemon.image(SMALL)
        check_stored(daemon, image)
        store.stop()
        store.start()
        check_stored(daemon, image)
        other = start(*store.settings(tmp_path))
        assert is_away(other.upload(SMALL))
        assert len(stored(store)) == 1
    finally:
        store.stop()


def wait_for_sweeps(store, nodes):
    """Returns when each node has looked who makes the passes, and one does."""
    assert eventually(lambda: store.answered.count(("GET", "a/b/pass")) >= nodes
                      and ("PUT", "a/b/pass") in store.answered)


def test_figures(begin, store):
    daemon = begin()
    wait_for_sweeps(store, 1)
    of_start = figures(daemon)
    image = daemon.image(SMALL)
    check_stored(daemon, image)
    of_store = figures(daemon)
    assert of_store["puts"] - of_start["puts"] == 1
    assert of_store["gets"] - of_start["gets"] == len(image["variants"])
    assert of_store["failed"] == 0 and not of_store["is_away"]
    assert eventually(lambda: figures(daemon)["in_flight"] == 0)  # the sweep asks for lists
    metrics = daemon.get("/metrics").body.decode()
    assert f'darkroom_s3_operations_total{{operation="put"}} {of_store["puts"]}' in metrics


def test_sandbox_allows_the_store(begin, store):
    daemon = begin()
    check_stored(daemon, daemon.image(SMALL))
    assert IS_SANITIZED or daemon.says(f"only to port {store.port}") \
        or daemon.says("no Landlock") or daemon.says("Landlock, version")


def test_json(begin, store):
    """What is stored is the same text as below server.root."""
    daemon = begin()
    image = daemon.image(SMALL)
    document = json.loads(s3_image.files_of(stored(store)[image["id"]])["image.json"])
    assert {name: document[name] for name in image} == image
    assert len(document["record"]["xxh128"]) == 32


def test_requests_of_a_get(begin, store):
    """The head of an image is read once. Each GET of a variant asks the store, one time."""
    one, two = begin(*LARGE), begin(*LARGE)
    wait_for_sweeps(store, 2)
    image = one.image(PHOTO)
    small, large = (image["variants"][name]["url"] for name in ("thumb", "huge"))
    assert 64 << 10 < image["variants"]["huge"]["bytes"] < 256 << 10

    def gets(daemon, url):
        with store.lock:
            store.requests.clear()
        assert daemon.get(url).status == 200
        with store.lock:
            return len([key for _, key in store.requests if key.startswith("a/b/image/")])

    assert gets(two, large) == 2, "the head, and the file behind it"
    assert gets(two, large) == gets(two, small) == 1
    assert gets(one, small) == 1, "it comes with the head"
    assert gets(one, large) == 1
    assert gets(one, image["url"]) == 1
    assert remove(one, image).status == 204
    assert two.get(small).status == two.get(large).status == two.get(image["url"]).status == 404


def test_order_of_a_list(begin, store):
    """Keys are spread, and lists are by time. Several pages of each shard are merged."""
    daemon = begin("server.public_list=yes")
    right = store.list
    store.list = lambda query: right({**query, "max-keys": "1"})
    image = daemon.image(TINY)
    content = stored(store)[image["id"]]
    made = [f"01K{i:05d}00000000000000{i:04d}" for i in range(60)]
    for ident in made:
        with store.lock:
            store.objects["a/b/" + s3_image.key_of(ident)] = (
                s3_image.renamed(content, image["id"], ident), {}, time.time())
    assert len({key.split("/")[3] for key in store.keys("image/")}) > 40
    ids, url = [], "/images?limit=7"
    while url:
        asked = len(store.requests)
        page = daemon.get(url).json()
        with store.lock:
            ids += sorted(key.rpartition("/")[2] for _, key in store.requests[asked:]
                          if "/image/" in key)
        url = page.get("next")
    assert ids == sorted(made) + [image["id"]]
