"""Bearer tokens for uploads and DELETE (RFC 6750): refused requests, and live changes of the file
with the tokens."""

import hashlib
import re
import signal

import pytest

import pictures
from client import chunked
from darkroom import CONFIG, eventually, every_key, overrides, run, slow

SMALL = pictures.photo_jpeg(320, 240, 2)
JPEG = ("Content-Type", "image/jpeg")
REALM = 'Bearer realm="darkroom"'


def make(name, *scopes):
    """Makes a token. Returns (token, line of the file)."""
    done = run("token", name, *scopes)
    assert done.returncode == 0 and "not kept anywhere" in done.stderr
    token, line = done.stdout.splitlines()
    assert re.fullmatch(r"darkroom_[A-Za-z0-9_-]{43}", token) and token not in line
    said = scopes or ("upload", "delete", "list", "own")
    assert re.fullmatch(rf"{name} [0-9a-f]{{64}}{''.join(' ' + s for s in said)}", line)
    return token, line


class File:
    """A file of tokens, with the tokens themselves."""

    def __init__(self, directory):
        directory.mkdir()
        self.path = directory / "tokens"
        made = {"all": make("all"), "up": make("up", "upload"), "down": make("down", "delete"),
                "spare": make("spare")}
        self.token = {name: token for name, (token, _) in made.items()}
        self.line = {name: line for name, (_, line) in made.items()}
        self.put("all", "up", "down")

    def text(self, *names):
        return "# who may\n" + "".join(self.line[name] + "\n" for name in names)

    def put(self, *names):
        """Replaces the file by a new one, as an editor does."""
        new = self.path.with_suffix(".new")
        new.write_text(self.text(*names))
        new.chmod(0o600)
        new.rename(self.path)

    def bearer(self, name, scheme="Bearer"):
        return "Authorization", f"{scheme} {self.token[name]}"


@pytest.fixture
def file(tmp_path):
    return File(tmp_path / "access")


@pytest.fixture(scope="module")
def shared_file(tmp_path_factory):
    return File(tmp_path_factory.mktemp("access") / "file")


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


# ---- scopes ----

def test_uploads_need_no_token_without_a_file(daemon):
    image = daemon.image(SMALL, headers=[("Authorization", "Bearer whatever")])
    assert remove(daemon, image["url"]).status == 204


def test_everybody_may_upload_only_with_a_warning(start, file, tmp_path):
    everybody = "other machines can connect to {}, and everybody may upload"
    place, tokens = ["server.listen=0.0.0.0:0"], [f"access.tokens_file={file.path}"]
    for settings, warns in ((place, True), (place + tokens, False), ([], False)):
        done = run("-t", *overrides(f"server.root={tmp_path}", "server.user=", *settings))
        assert (everybody.format("0.0.0.0:0") in done.stderr) == warns, done.stderr
        daemon = start("server.admin_listen=no", *settings, wait=False)
        assert daemon.says("ready on")
        where = re.search("ready on ([^ ]+) ", daemon.log)[1]
        assert (everybody.format(where) in daemon.log) == warns, daemon.log


def test_without_tokens_only_this_machine_removes_images(start):
    daemon = start("server.trusted_proxies=127.0.0.1")
    url = daemon.image(SMALL)["url"]
    answer = remove(daemon, url, ("X-Forwarded-For", "198.51.100.7"))
    assert (answer.status, answer.slug) == (403, "forbidden")
    assert answer["www-authenticate"] is None
    assert remove(daemon, url).status == 204


def test_other_machines_need_a_token_for_the_list_of_the_administrative_address(start, file):
    daemon = start(f"access.tokens_file={file.path}", "server.admin_listen=0.0.0.0:0")
    with daemon.admin() as c:
        assert c.request("GET", "/images").status == 401
        assert c.request("GET", "/images", headers=[file.bearer("all")]).status == 200
        assert c.request("GET", "/metrics").status == 200


def test_scopes_limit_what_a_token_allows(guarded, file):
    image = guarded.image(SMALL, headers=[file.bearer("up")])
    assert guarded.get(image["url"]).status == 200, "reading needs no token"
    assert guarded.get(image["variants"]["thumb"]["url"]).status == 200
    refused(remove(guarded, image["url"]), 401, REALM)
    refused(remove(guarded, image["url"], file.bearer("up")), 403,
            REALM + ', error="insufficient_scope", scope="delete"')
    assert guarded.get(image["url"]).status == 200
    assert remove(guarded, image["url"], file.bearer("down")).status == 204
    refused(post(guarded, file.bearer("down")), 403,
            REALM + ', error="insufficient_scope", scope="upload"')
    image = guarded.image(SMALL, headers=[file.bearer("all", "bEARER ")])
    assert remove(guarded, image["url"], file.bearer("all")).status == 204
    assert remove(guarded, image["url"], file.bearer("all")).status == 404
    refused(remove(guarded, image["url"]), 401, REALM)
    metrics = guarded.get("/metrics").body.decode()
    assert 'darkroom_rejections_total{reason="unauthorized"} 2\n' in metrics
    assert 'darkroom_rejections_total{reason="forbidden"} 2\n' in metrics


def test_the_log_names_the_token(guarded, file):
    url = guarded.image(SMALL, headers=[file.bearer("up")])["url"]
    remove(guarded, url, file.bearer("up"))
    remove(guarded, url, file.bearer("down"))
    post(guarded)
    guarded.get(url)
    lines = re.findall(r"client=\S+( token=\S+)? id=\S+ method=(\S+) path=/images\S* status=(\d+)",
                       guarded.log_until_now())
    assert lines == [(" token=up", "POST", "201"), (" token=up", "DELETE", "403"),
                     (" token=down", "DELETE", "204"), ("", "POST", "401"), ("", "GET", "404")]


@pytest.mark.parametrize("value", [
    "", "Bearer", "Bearer ", "Bearer x", "Bearer {token}x", "Bearer {short}", "Bearer x{token}",
    "Bearer {token} {token}", "Bearer {token},", 'Bearer "{token}"', "Bearer =", "Bearer {hash}",
    "{token}", "Basic {token}", "Bearer{token}", "Bearer {lower}", "Bearer\t{token}",
    "Bearer " + 8000 * "x", "Bearer \xff", "Bearer, Bearer {token}"])
def test_malformed_tokens_are_refused(share, shared_file, value):
    guarded = share(f"access.tokens_file={shared_file.path}")
    token = shared_file.token["all"]
    value = value.format(token=token, short=token[:-1], lower=token.swapcase(),
                         hash=shared_file.line["all"].split()[1])
    is_bearer = value.strip() == "Bearer" or value.startswith("Bearer ")
    refused(post(guarded, ("Authorization", value)), 401,
            REALM + (', error="invalid_token"' if is_bearer else ""))
    assert token not in guarded.log_until_now()


def test_the_hash_of_nothing_is_nobodys(start, tmp_path):
    """As from a script that hashes a variable that is not set."""
    path = tmp_path / "tokens"
    path.write_text(f"bob {hashlib.sha256(b'').hexdigest()} upload\n")
    path.chmod(0o600)
    daemon = start(f"access.tokens_file={path}")
    refused(post(daemon, ("Authorization", "Bearer")), 401, REALM + ', error="invalid_token"')


def test_two_tokens_are_refused(guarded, file):
    refused(post(guarded, file.bearer("all"), file.bearer("all")), 400,
            REALM + ', error="invalid_request"')


def test_web_pages_may_send_a_token(start, file):
    daemon = start(f"access.tokens_file={file.path}", "server.allow_origin=https://example.org")
    with daemon.client() as c:
        answer = c.request("OPTIONS", "/images", headers=[
            ("Origin", "https://example.org"), ("Access-Control-Request-Method", "POST")])
    assert answer.status == 204 and "authorization" in answer["access-control-allow-headers"]


# ---- before the body is read ----

def test_token_is_checked_before_the_body_is_read(guarded, file):
    with guarded.client() as c:
        c.send(c.head("POST", "/images",
                      headers=[JPEG, ("Content-Length", "200000000"), ("Expect", "100-continue")]))
        answer = c.answer()
        assert refused(answer, 401, REALM) and answer.closes
        assert not c.interim, "the client is asked for the body"
        assert c.is_closed()
    with guarded.client() as c:
        c.send(c.head("POST", "/images", headers=[JPEG, ("Content-Length", "200000000")]) + SMALL)
        answer = c.answer()
        assert refused(answer, 401, REALM) and answer.closes, "a long body is not discarded"
    with guarded.client() as c:
        c.send(c.head("POST", "/images", headers=[JPEG, ("Transfer-Encoding", "chunked")]))
        assert refused(c.answer(), 401, REALM)
        # The daemon does not read an endless body.
        assert not c.send_some(chunked(2000000 * b"x") * 4) or c.is_closed(slow(60))
    with guarded.client() as c:  # a short body is discarded, and the connection stays open
        c.send(c.head("POST", "/images", SMALL, [JPEG]) + SMALL)
        assert refused(c.answer(), 401, REALM)
        c.send(c.head("POST", "/images",
                      headers=[JPEG, ("Transfer-Encoding", "chunked")]) + chunked(SMALL))
        assert refused(c.answer(), 401, REALM)
        c.send(c.head("POST", "/images", headers=[JPEG, ("Content-Length", str(len(SMALL))),
                                                  ("Expect", "100-continue"), file.bearer("up")]))
        assert c.wait_interim() == 100
        c.send(SMALL)
        assert c.answer().status == 201
        # A token is valid for one request.
        assert refused(c.request("POST", "/images", SMALL, [JPEG]), 401, REALM)
    assert guarded.get("/stats").json()["images"]["stored"] == 1
    assert eventually(lambda: guarded.get("/stats").json()["memory"]["reserved_body_bytes"] == 0)


# ---- the file changes ----

def test_changes_of_the_file_apply(guarded, file):
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
    readings = guarded.log_until_now().count(" loaded\n")
    (file.path.parent / "other").write_text("x")
    file.put("spare")
    assert eventually(lambda: post(guarded, file.bearer("spare")).status == 201), guarded.log
    assert guarded.log_until_now().count(" loaded\n") == readings + 1 >= 5, (
        "another file was read")


def test_a_change_behind_a_link_applies(start, file, tmp_path):
    """No directory of the path changes. So it is in a container into which the file is mounted."""
    link = tmp_path / "link" / "tokens"
    link.parent.mkdir()
    link.symlink_to(file.path)
    daemon = start(f"access.tokens_file={link}")
    assert post(daemon, file.bearer("up")).status == 201
    file.path.write_text(file.text("spare"))
    assert eventually(lambda: post(daemon, file.bearer("spare")).status == 201), daemon.log
    assert post(daemon, file.bearer("up")).status == 401


def test_bad_file_keeps_the_old_tokens(guarded, file):
    good = file.path.read_text()
    for content, said in (
            ("up\n", ":1: expected a SHA-256 hash"),
            (good + good, "expected a name and a hash that no earlier line has"),
            ("up " + file.token["up"] + "\n", "expected a SHA-256 hash")):
        before = len(guarded.log)
        file.path.write_text(content)
        assert guarded.says(lambda log: re.search(
            f"(?s){re.escape(said)}.*<3>\\S+: cannot reload; the tokens stay unchanged",
            log[before:])), guarded.log
        assert post(guarded, file.bearer("up")).status == 201
        assert b"darkroom_tokens_outdated 1\n" in guarded.get("/metrics").body
    assert file.token["up"] not in guarded.log_until_now()
    file.path.unlink()
    assert guarded.says("No such file or directory"), guarded.log
    assert post(guarded, file.bearer("up")).status == 201
    file.put("spare")
    assert eventually(lambda: post(guarded, file.bearer("spare")).status == 201)
    assert eventually(lambda: b"darkroom_tokens_outdated 0\n" in guarded.get("/metrics").body)


def test_bad_file_fails_the_reload(start, file, tmp_path):
    config = tmp_path / "site.ini"
    config.write_text(every_key())
    daemon = start(f"access.tokens_file={file.path}", config=config)
    file.path.write_text("nonsense\n")
    assert daemon.says("cannot reload; the tokens stay unchanged")
    config.write_text(every_key().replace("wait_timeout = 10s", "wait_timeout = 7s"))
    daemon.signal(signal.SIGHUP)
    assert daemon.says("configuration: the file is wrong; it stays unchanged")
    assert "wait_timeout = 7s" not in daemon.log_until_now()
    assert post(daemon, file.bearer("up")).status == 201
    file.put("spare")
    daemon.signal(signal.SIGHUP)
    assert daemon.says("server.wait_timeout = 7s")
    assert eventually(lambda: post(daemon, file.bearer("spare")).status == 201)


# ---- reports about the file ----

def test_check_reports_a_bad_file(file, tmp_path):
    setting = "-o", f"access.tokens_file={file.path}"
    assert run("-t", "-q", "-c", CONFIG, *setting).returncode == 0
    file.path.write_text("x\n")
    done = run("-t", "-c", CONFIG, *setting)
    assert done.returncode == 78 and f"{file.path}:1: expected a SHA-256 hash" in done.stderr
    done = run("-c", CONFIG, *setting, "-o", f"server.root={tmp_path}/store", "-o",
               "server.listen=127.0.0.1:0")
    assert done.returncode == 78 and ":1: " in done.stderr
    file.path.unlink()
    assert "No such file" in run("-t", "-c", CONFIG, *setting).stderr
    done = run("-t", "-c", CONFIG, "-o", "access.tokens_file=tokens")
    assert "expected an absolute path" in done.stderr


def test_file_that_others_may_use_is_reported(start, file):
    file.path.chmod(0o644)
    daemon = start(f"access.tokens_file={file.path}")
    assert "<4>" in daemon.log and "all users can read it" in daemon.log
    file.path.chmod(0o666)
    assert daemon.says("expected a file that neither its group nor other users can write to")
    assert post(daemon, file.bearer("up")).status == 201


def test_token_command_makes_new_tokens():
    assert make("a.b_c@d-1", "upload", "delete")[0] != make("a.b_c@d-1", "upload", "delete")[0]
    for words in ([], ["a b"], [""], [64 * "x"], ["a", "all"], ["a", "upload", "x"]):
        done = run("token", *words)
        assert done.returncode == 2 and not done.stdout, words


def test_each_token_has_its_own_share(start, file):
    """The clients have one address, but one token cannot use up the share of another."""
    daemon = start(f"access.tokens_file={file.path}", "limits.images_per_client=1")
    large = pictures.photo_jpeg(4000, 3000, 1, progressive=True)
    with daemon.client() as busy:
        busy.send(busy.head("POST", "/images", large, [JPEG, file.bearer("up")]) + large)
        assert eventually(lambda: re.search(r"(?m)^darkroom_images_in_flight 1$",
                                            daemon.get("/metrics").body.decode()), step=0.005)
        second = post(daemon, file.bearer("up"))
        other = post(daemon, file.bearer("all"))
        first = busy.answer()
    assert (second.status, second.slug) == (429, "too-many-requests"), second
    assert other.status == first.status == 201
