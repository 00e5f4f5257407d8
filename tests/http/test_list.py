"""GET /images: pages of the stored images by time, and the clients that may have them."""

import json
import re
import time

import pytest

import pictures
from client import form_files
from darkroom import Daemon, eventually
from s3_fixtures import begin, store  # noqa: F401 (fixtures)
from store_files import directory_of, move_to_old_place
from test_tokens import File, make
from uploads import coming_and_going

SMALL = pictures.photo_jpeg(60, 40, 3)
GONE = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def upload(daemon, count, **options):
    content_type, body = form_files(*[SMALL] * count)
    answer = daemon.upload(body, content_type, **options)
    assert answer.status == 201
    return sorted(image["id"] for image in answer.json()["images"])


def ids(answer):
    assert answer.status == 200 and answer["content-type"] == "application/json"
    return [image["id"] for image in answer.json()["images"]]


def follow(client, url, headers=()):
    """Returns the ids of all pages."""
    found = []
    while url:
        answer = client.request("GET", url, headers=headers)
        found += ids(answer)
        url = answer.json().get("next")
        assert (answer["link"] == f'<{url}>; rel="next"') if url else answer["link"] is None
    return found


@pytest.mark.also_with("seda")
def test_pages_are_in_order_and_have_links(start):
    daemon = start("server.public_list=yes")
    images = upload(daemon, 12)
    for ident in images[3:7]:
        move_to_old_place(daemon.store, ident)
    with daemon.client() as c:
        assert follow(c, "/images") == images
        assert follow(c, "/images?limit=5") == images
        assert follow(c, "/images?limit=4&order=newest") == images[::-1]
        assert follow(c, f"/images?after={images[8]}&limit=100") == images[9:]
        assert follow(c, f"/images?order=newest&after={images[2]}&limit=1") == images[1::-1]
        assert c.request("GET", "/images").json()["images"][5] == c.request(
            "GET", f"/images/{images[5]}").json()
        assert c.request("HEAD", "/images").status == 200


@pytest.mark.parametrize("kind", ["files", "s3"])
def test_a_token_with_own_lists_and_deletes_only_its_images(request, tmp_path, kind):
    """A new token has it, and a line without a scope, as earlier versions made it, has not."""
    (mine, line), (other, other_line), (old, old_line) = map(make, ("mine", "other", "old"))
    path = tmp_path / "tokens"
    path.write_text(f"{line}\n{other_line}\n{' '.join(old_line.split()[:2])}\n")
    path.chmod(0o600)
    settings = [f"access.tokens_file={path}"]
    daemon = request.getfixturevalue("start" if kind == "files" else "begin")(*settings)
    bearer = {token: [("Authorization", f"Bearer {token}")] for token in (mine, other, old)}
    images = []
    for token in (mine, other) * 3:
        images.append((token, upload(daemon, 1, headers=bearer[token])[0]))
        now_ms = time.time_ns() // 10 ** 6  # ids of one millisecond are in no order
        assert eventually(lambda: time.time_ns() // 10 ** 6 > now_ms)  # noqa: B023

    def own(token):
        return [ident for owner, ident in images if token in (owner, old)]
    with daemon.client() as c:
        for token in (mine, other, old):
            assert follow(c, "/images", bearer[token]) == own(token)
            assert follow(c, "/images?limit=1", bearer[token]) == own(token)
            if kind == "files":
                assert follow(c, "/images?limit=1&order=newest", bearer[token]) == own(token)[::-1]
        page = c.request("GET", "/images?limit=2", headers=bearer[mine])
        assert ids(page) == own(mine)[:1]  # one more was read, and none behind it
        after = re.search(r"after=(\w{26})&", page.json()["next"])[1]
        assert after[:16] == images[1][1][:16] and after != images[1][1]  # it hides others' ids
        url = f"/images/{own(mine)[0]}"
        answer = c.request("DELETE", url, headers=bearer[other])
        assert (answer.status, answer.slug) == (403, "forbidden")
        assert c.request("GET", url).status == 200
        assert c.request("DELETE", f"/images/{GONE}", headers=bearer[other]).status == 404
        assert c.request("DELETE", url, headers=bearer[mine]).status == 204
        assert c.request("DELETE", f"/images/{own(other)[0]}", headers=bearer[old]).status == 204


def test_an_empty_store_has_an_empty_list(start):
    daemon = start("server.public_list=yes")
    answer = daemon.get("/images")
    assert answer.json() == {"images": []} and answer["cache-control"] == "no-store"


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=", "limit=1x", "limit=00001",
                                   "order=best", "after=x", "after=", "before=1", "limit"])
def test_a_wrong_query_is_refused(shared_list, query):
    answer = shared_list.get(f"/images?{query}")
    assert answer.status == 400 and "expected a query of after=ID" in answer.json()["detail"]


@pytest.fixture(scope="module")
def shared_list(tmp_path_factory):
    daemon = Daemon(tmp_path_factory.mktemp("list") / "store", "server.public_list=yes")
    yield daemon
    daemon.stop()


def test_a_list_is_for_the_administrator_by_default(start):
    daemon = start("server.admin_listen=127.0.0.1:0")
    images = upload(daemon, 2)
    refused = daemon.get("/images")
    assert (refused.status, refused.slug) == (403, "forbidden")
    with daemon.admin() as c:
        assert ids(c.request("GET", "/images")) == images
        assert c.request("POST", "/images", SMALL).status == 404
    assert daemon.get("/images?limit=x").status == 403


def test_a_list_needs_a_token_that_may(start, tmp_path):
    file = File(tmp_path / "access")
    lister, line = make("lister", "list")
    with open(file.path, "a", encoding="ascii") as f:
        f.write(line + "\n")
    daemon = start(f"access.tokens_file={file.path}")
    images = upload(daemon, 1, headers=[file.bearer("up")])
    assert daemon.get("/images").status == 401
    for name, status in (("up", 403), ("down", 403), ("all", 200)):
        answer = daemon.get("/images", headers=[file.bearer(name)])
        assert answer.status == status
        assert status == 200 or 'scope="list"' in answer["www-authenticate"]
    bearer = [("Authorization", f"Bearer {lister}")]
    assert ids(daemon.get("/images", headers=bearer)) == images
    assert daemon.upload(SMALL, headers=bearer).status == 403


def test_damaged_images_are_left_out(start):
    daemon = start("server.public_list=yes")
    images = upload(daemon, 4)
    for ident, text in zip(images, ("", "{", '{"id":1},')):
        (directory_of(daemon.store, ident) / "image.json").write_text(text)
    assert ids(daemon.get("/images")) == images[3:]


def test_a_list_beside_uploads_misses_nothing(start):
    daemon = start("server.public_list=yes")
    images = upload(daemon, 30)
    with coming_and_going(daemon, SMALL, 2), daemon.client() as c:
        for _ in range(20):
            found = follow(c, "/images?limit=7")
            assert found == sorted(found) and set(images) <= set(found)
    assert eventually(lambda: json.loads(daemon.get("/images?limit=100").body)["images"][-1]["id"]
                      == images[-1])
