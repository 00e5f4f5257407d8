"""Bearer tokens for uploads and DELETE (RFC 6750): who is refused with what, before the body is read; and the file they are in, which
may change at any time."""

import re
import signal
import time

import pytest

import pictures
from client import chunked
from darkroom import CONFIG, POLICY, eventually, run, slow

pytestmark = pytest.mark.skipif(POLICY not in ("", "drain"), reason="the policy does not matter: once is enough")

SMALL = pictures.photo_jpeg(320, 240, 2)
JPEG = ("Content-Type", "image/jpeg")
REALM = 'Bearer realm="darkroom"'


def make(name, *scopes):
    """(token, line of the file)"""
    done = run("token", name, *scopes)
    assert done.returncode == 0 and "not kept anywhere" in done.stderr
    token, line = done.stdout.splitlines()
    assert re.fullmatch(r"darkroom_[A-Za-z0-9_-]{43}", token) and token not in line
    assert re.fullmatch(rf"{name} [0-9a-f]{{64}}{''.join(' ' + s for s in scopes)}", line)
    return token, line


class File:
    """A file of tokens, and who is in it."""

    def __init__(self, directory):
        directory.mkdir()
        self.path = directory / "tokens"
        made = {"all": make("all"), "up": make("up", "upload"), "down": make("down", "delete"), "spare": make("spare")}
        self.token = {name: token for name, (token, _) in made.items()}
        self.line = {name: line for name, (_, line) in made.items()}
        self.put("all", "up", "down")

    def text(self, *names):
        return "# who may\n" + "".join(self.line[name] + "\n" for name in names)

    def put(self, *names):
        """As an editor does: a new file in the place of the old one."""
        new = self.path.with_suffix(".new")
        new.write_text(self.text(*names))
        new.chmod(0o600)
        new.rename(self.path)

    def bearer(self, name, scheme="Bearer"):
        return "Authorization", f"{scheme} {self.token[name]}"


@pytest.fixture
def file(tmp_path):
    return File(tmp_path / "access")


@pytest.fixture
def guarded(start, file):
    daemon = start(f"access.tokens_file={file.path}")
    assert f"{file.path}: 3 tokens loaded" in daemon.log
    return daemon


def post(daemon, *headers):
    return daemon.upload(SMALL, headers=list(headers))


def remove(daemon, url, *headers):
    with daemon.client() as c:
        return c.request("DELETE", url, headers=list(headers))


def refused(answer, status, challenge):
    assert answer.status == status, answer
    assert answer["www-authenticate"] == challenge
    assert answer.slug == {400: "malformed-request", 401: "unauthorized", 403: "forbidden"}[status]
    return True


# ---- who may what ----

def test_without_a_file_nobody_needs_one(daemon):
    image = daemon.image(SMALL, headers=[("Authorization", "Bearer whatever")])
    assert remove(daemon, image["url"]).status == 204


def test_scopes(guarded, file):
    image = guarded.image(SMALL, headers=[file.bearer("up")])
    assert guarded.get(image["url"]).status == 200, "reading is free"
    assert guarded.get(image["variants"]["thumb"]["url"]).status == 200
    refused(remove(guarded, image["url"]), 401, REALM)
    refused(remove(guarded, image["url"], file.bearer("up")), 403, REALM + ', error="insufficient_scope", scope="delete"')
    assert guarded.get(image["url"]).status == 200
    assert remove(guarded, image["url"], file.bearer("down")).status == 204
    refused(post(guarded, file.bearer("down")), 403, REALM + ', error="insufficient_scope", scope="upload"')
    image = guarded.image(SMALL, headers=[file.bearer("all", "bEARER ")])
    assert remove(guarded, image["url"], file.bearer("all")).status == 204
    assert remove(guarded, image["url"], file.bearer("all")).status == 404
    refused(remove(guarded, image["url"]), 401, REALM)
    metrics = guarded.get("/metrics").body.decode()
    assert 'darkroom_rejections_total{reason="unauthorized"} 2\n' in metrics
    assert 'darkroom_rejections_total{reason="forbidden"} 2\n' in metrics


@pytest.mark.parametrize("value", [
    "", "Bearer", "Bearer ", "Bearer x", "Bearer {token}x", "Bearer {short}", "Bearer x{token}", "Bearer {token} {token}",
    "Bearer {token},", 'Bearer "{token}"', "Bearer =", "Bearer {hash}", "{token}", "Basic {token}", "Bearer{token}", "Bearer {lower}",
    "Bearer\t{token}", "Bearer " + 8000 * "x", "Bearer \xff", "Bearer, Bearer {token}"])
def test_what_is_no_token(guarded, file, value):
    token = file.token["all"]
    value = value.format(token=token, short=token[:-1], lower=token.swapcase(), hash=file.line["all"].split()[1])
    is_bearer = value.strip() == "Bearer" or value.startswith("Bearer ")
    refused(post(guarded, ("Authorization", value)), 401, REALM + (', error="invalid_token"' if is_bearer else ""))
    assert token not in guarded.log_until_now()


def test_several_are_one_too_many(guarded, file):
    refused(post(guarded, file.bearer("all"), file.bearer("all")), 400, REALM + ', error="invalid_request"')


def test_web_pages_may_send_one(start, file):
    daemon = start(f"access.tokens_file={file.path}", "server.allow_origin=https://example.org")
    with daemon.client() as c:
        answer = c.request("OPTIONS", "/images", headers=[("Origin", "https://example.org"), ("Access-Control-Request-Method", "POST")])
    assert answer.status == 204 and "authorization" in answer["access-control-allow-headers"]


# ---- before the body is read ----

def test_refused_before_the_body(guarded, file):
    with guarded.client() as c:
        c.send(c.head("POST", "/images", headers=[JPEG, ("Content-Length", "200000000"), ("Expect", "100-continue")]))
        answer = c.answer()
        assert refused(answer, 401, REALM) and answer.closes and not c.interim, "nobody is asked to go on"
        assert c.is_closed()
    with guarded.client() as c:
        c.send(c.head("POST", "/images", headers=[JPEG, ("Content-Length", "200000000")]) + SMALL)
        answer = c.answer()
        assert refused(answer, 401, REALM) and answer.closes, "too much to be read for nothing"
    with guarded.client() as c:
        c.send(c.head("POST", "/images", headers=[JPEG, ("Transfer-Encoding", "chunked")]))
        assert refused(c.answer(), 401, REALM)
        assert not c.send_some(chunked(2000000 * b"x") * 4) or c.is_closed(slow(60)), "a body without an end is not read to it"
    with guarded.client() as c:  # little is read, and the connection stays
        c.send(c.head("POST", "/images", SMALL, [JPEG]) + SMALL)
        assert refused(c.answer(), 401, REALM)
        c.send(c.head("POST", "/images", headers=[JPEG, ("Transfer-Encoding", "chunked")]) + chunked(SMALL))
        assert refused(c.answer(), 401, REALM)
        c.send(c.head("POST", "/images", headers=[JPEG, ("Content-Length", str(len(SMALL))), ("Expect", "100-continue"),
                                                  file.bearer("up")]))
        assert c.wait_interim() == 100
        c.send(SMALL)
        assert c.answer().status == 201
        assert refused(c.request("POST", "/images", SMALL, [JPEG]), 401, REALM), "it was good for one request"
    assert guarded.get("/stats").json()["images"]["stored"] == 1
    assert eventually(lambda: guarded.get("/stats").json()["memory"]["reserved_body_bytes"] == 0)


# ---- the file changes ----

def test_changes_take_effect_at_once(guarded, file):
    assert post(guarded, file.bearer("spare")).status == 401
    file.put("spare")
    assert eventually(lambda: post(guarded, file.bearer("spare")).status == 201), guarded.log
    assert post(guarded, file.bearer("all")).status == 401
    with open(file.path, "a") as f:  # in place
        f.write(file.line["up"] + "\n")
    assert eventually(lambda: post(guarded, file.bearer("up")).status == 201), guarded.log
    file.put()
    assert eventually(lambda: post(guarded, file.bearer("spare")).status == 401), guarded.log
    assert guarded.says("contains no tokens; all uploads and DELETE requests are refused")
    readings = guarded.log_until_now().count(" tokens loaded")
    (file.path.parent / "other").write_text("x")
    time.sleep(0.1)
    assert guarded.log_until_now().count(" tokens loaded") == readings >= 4, "another file is of no interest"


def test_what_is_wrong_changes_nothing(guarded, file):
    good = file.path.read_text()
    for content, said in (("up\n", ":1: expected a SHA-256 hash"), (good + good, "expected a name and a hash that no earlier line has"),
                          ("up " + file.token["up"] + "\n", "expected a SHA-256 hash")):
        before = len(guarded.log)
        file.path.write_text(content)
        assert guarded.says(lambda log: re.search(f"(?s){re.escape(said)}.*<3>\\S+: cannot reload; the tokens stay unchanged", log[before:])), guarded.log
        assert post(guarded, file.bearer("up")).status == 201
        assert b"darkroom_tokens_outdated 1\n" in guarded.get("/metrics").body
    assert file.token["up"] not in guarded.log_until_now()
    file.path.unlink()
    assert guarded.says("No such file or directory"), guarded.log
    assert post(guarded, file.bearer("up")).status == 201
    file.put("spare")
    assert eventually(lambda: post(guarded, file.bearer("spare")).status == 201)
    assert eventually(lambda: b"darkroom_tokens_outdated 0\n" in guarded.get("/metrics").body)


def test_reload_fails_with_the_file(start, file, tmp_path):
    config = tmp_path / "site.ini"
    config.write_text(CONFIG.read_text())
    daemon = start(f"access.tokens_file={file.path}", config=config)
    file.path.write_text("nonsense\n")
    assert daemon.says("cannot reload; the tokens stay unchanged")
    config.write_text(CONFIG.read_text().replace("cutoff = 5ms", "cutoff = 7ms"))
    daemon.signal(signal.SIGHUP)
    assert daemon.says("configuration: the file is wrong; it stays unchanged")
    assert "cutoff = 7ms" not in daemon.log_until_now()
    assert post(daemon, file.bearer("up")).status == 201
    file.put("spare")
    daemon.signal(signal.SIGHUP)
    assert daemon.says("scheduler.cutoff = 7ms")
    assert eventually(lambda: post(daemon, file.bearer("spare")).status == 201)


# ---- what is said of the file ----

def test_check_says_what_is_wrong(file, tmp_path):
    setting = "-o", f"access.tokens_file={file.path}"
    assert run("-t", "-q", "-c", CONFIG, *setting).returncode == 0
    file.path.write_text("x\n")
    done = run("-t", "-c", CONFIG, *setting)
    assert done.returncode == 78 and f"{file.path}:1: expected a SHA-256 hash" in done.stderr
    done = run("-c", CONFIG, *setting, "-o", f"server.root={tmp_path}/store", "-o", "server.listen=127.0.0.1:0")
    assert done.returncode == 78 and ":1: " in done.stderr
    file.path.unlink()
    assert "No such file" in run("-t", "-c", CONFIG, *setting).stderr
    assert "expected an absolute path" in run("-t", "-c", CONFIG, "-o", "access.tokens_file=tokens").stderr


def test_who_else_may_use_the_file(start, file):
    file.path.chmod(0o644)
    daemon = start(f"access.tokens_file={file.path}")
    assert "<4>" in daemon.log and "all users can read it" in daemon.log
    file.path.chmod(0o666)
    assert daemon.says("expected a file that other users cannot write to"), daemon.log
    assert post(daemon, file.bearer("up")).status == 201


def test_command():
    assert make("a.b_c@d-1", "upload", "delete")[0] != make("a.b_c@d-1", "upload", "delete")[0]
    for words in ([], ["a b"], [""], [64 * "x"], ["a", "all"], ["a", "upload", "x"]):
        done = run("token", *words)
        assert done.returncode == 2 and not done.stdout, words
