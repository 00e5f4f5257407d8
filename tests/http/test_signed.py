"""Signed permissions to upload, for pages that have no token."""

import hashlib
import hmac
import subprocess
import time

import pytest

import pictures
from client import form_files
from darkroom import ROOT, command, eventually, slow
from test_tokens import make

SMALL = pictures.photo_jpeg(60, 40, 3)
HOUR = 3600


class Application:
    """Signs as darkroom-http(7) tells applications to."""

    def __init__(self, name, token):
        self.name, self.token = name, token

    def sign(self, expires=None, images=5, size=100000, name=None, method="POST"):
        expires = int(time.time()) + HOUR if expires is None else expires
        text = f"{method}\n/images\n{name or self.name}\n{expires}\n{images}\n{size}\n"
        key = hashlib.sha256(self.token.encode()).digest()
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        return (f"/images?token={name or self.name}&expires={expires}&images={images}"
                f"&bytes={size}&signature={signature}")


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    made = {"app": make("app", "upload", "sign"), "plain": make("plain"),
            "small": make("small", "sign", "images=1")}
    path = tmp_path_factory.mktemp("access") / "tokens"
    path.write_text("".join(line + "\n" for _, line in made.values()))
    path.chmod(0o600)
    return path, {name: Application(name, token) for name, (token, _) in made.items()}


@pytest.fixture
def site(start, tokens):
    daemon = start(f"access.tokens_file={tokens[0]}")
    daemon.applications = tokens[1]
    return daemon


def post(daemon, target, count=1, **options):
    content_type, body = form_files(*[SMALL] * count)
    with daemon.client() as c:
        return c.request("POST", target, body, [("Content-Type", content_type)], **options)


@pytest.mark.also_with("seda")
def test_a_page_uploads_with_a_permission(site):
    target = site.applications["app"].sign()
    answer = post(site, target)
    assert answer.status == 201
    assert post(site, "/images").status == 401
    with site.client() as c:
        url = answer.json()["images"][0]["url"]
        assert c.request("DELETE", url + target[len("/images"):]).status == 401
        assert c.request("GET", target).status == 401


def test_each_field_is_signed(site):
    app = site.applications["app"]
    target = app.sign()
    fields = dict(item.split("=") for item in target.partition("?")[2].split("&"))
    others = {"token": "small", "expires": str(int(fields["expires"]) + 1), "images": "6",
              "bytes": "100001", "signature": fields["signature"][:-1] +
              ("0" if fields["signature"][-1] != "0" else "1")}
    for name, value in others.items():
        changed = "&".join(f"{k}={value if k == name else v}" for k, v in fields.items())
        answer = post(site, f"/images?{changed}")
        assert answer.status == 401 and "the signature is not valid" in answer.json()["detail"]
        missing = "&".join(f"{k}={v}" for k, v in fields.items() if k != name)
        assert post(site, f"/images?{missing}").status == 401
        assert post(site, f"{target}&{name}={fields[name]}").status == 401
    assert post(site, f"{target}&more=1").status == 401
    assert post(site, app.sign(method="GET")).status == 401
    assert post(site, target).status == 201


@pytest.mark.parametrize("query", ["signature=", "signature=x&token=app", "&&signature&", "token="
                                   "&expires=1&images=1&bytes=1&signature=" + 64 * "0"])
def test_a_malformed_permission_is_refused(site, query):
    answer = post(site, f"/images?{query}")
    assert answer.status == 401 and "expected token=NAME&expires" in answer.json()["detail"]


def test_a_permission_ends(site):
    app, now = site.applications["app"], int(time.time())
    for expires, detail in ((now - 1, "has ended"), (now + 25 * HOUR, "more than a day")):
        answer = post(site, app.sign(expires))
        assert answer.status == 401 and detail in answer.json()["detail"]


def test_a_token_must_have_the_scope_to_sign(site):
    assert post(site, site.applications["plain"].sign()).status == 401
    other = Application("app", site.applications["plain"].token)
    assert post(site, other.sign()).status == 401


def test_a_replayed_permission_stays_within_its_bounds(site):
    app = site.applications["app"]
    target = app.sign(images=3)
    assert post(site, target, 2).status == 201
    answer = post(site, target, 2)
    assert answer.status == 403
    assert "for 3 images and 100000 bytes in all, of which 2 and" in answer.json()["detail"]
    assert post(site, target).status == 201
    assert post(site, target).status == 403
    assert post(site, app.sign(images=4)).status == 201
    target = app.sign(size=2 * len(SMALL) - 1)
    assert post(site, target, 2).status == 403
    assert post(site, target).status == 201
    assert post(site, target).status == 403


def test_a_body_beyond_the_permission_is_refused_before_it_is_read(site):
    target = site.applications["app"].sign(size=1000)
    with site.client() as c:
        c.send(f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n"
               "Content-Length: 2000000\r\nExpect: 100-continue\r\n\r\n".encode())
        assert c.answer("POST").status == 403


def test_a_chunked_body_beyond_the_permission_is_refused_while_it_comes(site):
    target = site.applications["app"].sign(size=1000)
    with site.client(timeout=slow(20)) as c:
        c.send(f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n"
               "Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(12):  # the form may have 1 MB, and another one is thrown away; it does not end
            c.send_some(b"40000\r\n" + bytes(1 << 18) + b"\r\n")
        answer = c.answer("POST")
    assert answer.status == 403 and "is for 1000 bytes in all" in answer.json()["detail"]


def test_the_access_log_has_no_permission(start, tokens):
    daemon = start(f"access.tokens_file={tokens[0]}", "log.access=text")
    target = tokens[1]["app"].sign()
    assert post(daemon, target).status == 201
    with daemon.client() as c:
        for headers in ([("Sec-Fetch-Site", "cross-site")], [("Authorization", "Bearer x")]):
            assert c.request("POST", target, SMALL, headers).status in (401, 403)
        assert c.request("PUT", target, b"").status == 405
        assert c.request("GET", "/images?limit=1").status == 401
    assert daemon.says('path="/images?limit=1" status=401'), daemon.log
    assert daemon.log.count("path=/images status=") == 4 and "signature" not in daemon.log


def test_a_permission_uses_the_quota_of_its_token(site):
    target = site.applications["small"].sign()
    assert eventually(lambda: "store: counted 0 images" in site.log)  # it is exact from now on
    assert post(site, target).status == 201
    assert post(site, target).status == 507


def test_the_command_signs_as_applications_do(site):
    app = site.applications["app"]
    done = subprocess.run(command("token", "sign", "app", "60", "2", "1M"), text=True,
                          input=app.token + "\n", capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    target = done.stdout.strip()
    expires = int(target.split("expires=")[1].split("&")[0])
    assert target == app.sign(expires, 2, 1 << 20)
    assert post(site, target).status == 201


def test_the_example_of_the_manual_signs_a_permission(site):
    manual = (ROOT / "stages/http/darkroom-http.7").read_text()
    code = manual.split("In Python:\n.Bd -literal -offset indent\n")[1].split("\n.Ed")[0]
    space = {}
    exec(code.replace("\\e", "\\"), space)
    target = space["permission"]("app", site.applications["app"].token, 60, 2, 100000)
    assert post(site, target).status == 201


@pytest.mark.parametrize("words", [[], ["app"], ["app", "60", "2"], ["app", "0", "2", "3"],
                                   ["app", "86401", "2", "3"], ["app", "60", "x", "3"]])
def test_the_command_reports_wrong_usage(words):
    done = subprocess.run(command("token", "sign", *words), text=True, input="x\n",
                          capture_output=True, timeout=60)
    assert done.returncode == 2 and "expected NAME SECONDS IMAGES BYTES" in done.stderr
