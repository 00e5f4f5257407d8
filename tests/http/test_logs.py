"""Access lines, request ids, and a log whose reader is slow, stalled or absent."""

import json
import os
import re
import shlex
import signal
import subprocess
import threading
import time

import pytest

import pictures
from darkroom import Daemon, command, eventually, overrides, run, slow

SMALL = pictures.photo_jpeg(320, 240, 2)
ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}\Z")
LINE = re.compile(
    r"(?:<6>)?(time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z client=127\.0\.0\.1 [ -~]*)\n\Z")


def parse(line):
    """Returns the keys and values of a line of text."""
    found = LINE.match(line)
    assert found, line
    pairs = [word.partition("=") for word in shlex.split(found[1])]
    assert all(equals for _, equals, _ in pairs), line
    assert len({name for name, _, _ in pairs}) == len(pairs), line
    return {name: value for name, _, value in pairs}


def lines_of(daemon, *idents):
    """Returns the lines of the requests with these ids, in the order of the log."""
    wanted = tuple(f" id={ident} " for ident in idents)

    def found():
        return [line for line in list(daemon.lines) if any(text in line for text in wanted)]
    assert eventually(lambda: len(found()) >= len(idents)), daemon.log
    return [parse(line) for line in found()]


def line_of(daemon, ident):
    """Returns the only line of the request with this id."""
    line, = lines_of(daemon, ident)
    assert line["id"] == ident
    return line


def get(path, *headers, close=False):
    head = [f"GET {path} HTTP/1.1", "Host: x", *headers, *(["Connection: close"] if close else [])]
    return ("\r\n".join(head) + "\r\n\r\n").encode("latin-1")


def test_probes_can_be_left_out(start):
    daemon = start("log.skip_probes=yes", "log.level=info")
    for path in ("/healthz", "/readyz", "/stats", "/metrics"):
        assert daemon.get(path).status == 200
    assert daemon.get("/healthz/x").status == 404
    with daemon.client() as c:
        assert c.request("POST", "/healthz", b"").status == 405
    daemon.get("/images/01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert daemon.says("01ARZ3NDEKTSV4RRFFQ69G5FAV ")
    paths = re.findall(r" path=(\S+) ", daemon.log)
    assert sorted(p for p in paths if "01ARZ3" in p or "health" in p) == [
        "/healthz", "/healthz/x", "/images/01ARZ3NDEKTSV4RRFFQ69G5FAV"]
    assert not {"/readyz", "/stats", "/metrics"} & set(paths)


# ---- contents of lines ----

def test_upload_line_has_the_images_and_stage_times(daemon):
    with daemon.client() as c:
        answer = c.request("POST", "/images", SMALL,
                           [("Content-Type", "image/jpeg"), ("X-Request-Id", "upload-1")])
    assert answer.status == 201 and answer["x-request-id"] == "upload-1"
    image, = answer.json()["images"]
    line = line_of(daemon, "upload-1")
    assert (line["method"], line["path"], line["status"]) == ("POST", "/images", "201")
    assert (line["files"], line["failed"], line["images"]) == ("1", "0", f"{image['id']}:320x240")
    assert len(SMALL) < int(line["bytes_in"]) < len(SMALL) + 500
    assert len(answer.body) < int(line["bytes_out"]) < len(answer.body) + 1000
    for stage in "jpeg_decode scale blur jpeg_encode disk_write".split():
        assert 0 < float(line[f"{stage}_ms"]) < slow(10000)
    assert float(line["total_ms"]) >= float(line["read_ms"]) >= 0
    assert float(line["total_ms"]) >= float(line["jpeg_decode_ms"])


def test_bytes_are_counted_on_the_wire(daemon):
    request = get("/healthz", "X-Request-Id: wire", close=True)
    with daemon.client() as c:
        c.send(request)
        received = b""
        while data := c.socket.recv(4096):
            received += data
    line = line_of(daemon, "wire")
    assert (int(line["bytes_in"]), int(line["bytes_out"])) == (len(request), len(received))


def test_form_line_counts_failed_files(daemon):
    parts = b"".join(
        b'--b\r\nContent-Disposition: form-data; name="f"; filename="%d.jpg"\r\n\r\n%s\r\n'
        % (i, data)
        for i, data in enumerate([SMALL, b"text", pictures.photo_jpeg(40, 30), SMALL[:700]]))
    answer = daemon.upload(parts + b"--b--\r\n", "multipart/form-data; boundary=b",
                           [("X-Request-Id", "form/4")])
    assert answer.status == 201
    line = line_of(daemon, "form/4")
    assert (line["files"], line["failed"]) == ("4", "2")
    assert [image.split(":")[1] for image in line["images"].split(",")][:2] == ["320x240", "40x30"]


def test_pipelined_requests_have_a_line_each(daemon):
    idents = [f"pipe-{i}" for i in range(20)]
    with daemon.client() as c:
        c.send(b"".join(get("/healthz" if i % 2 else f"/nothing/{i}", f"x-request-id: {ident}")
                        for i, ident in enumerate(idents)))
        answers = [c.answer() for _ in idents]
    assert [answer["x-request-id"] for answer in answers] == idents
    mine = lines_of(daemon, *idents)
    assert [(line["id"], line["status"]) for line in mine] == [(ident, str(a.status))
                                                               for ident, a in zip(idents, answers)]


def test_errors_name_the_request(daemon):
    answer = daemon.get("/nothing", headers=[("X-Request-Id", "no.such")])
    assert answer.json()["request_id"] == answer["x-request-id"] == "no.such"
    answer = daemon.upload(b"text")
    assert answer.json()["request_id"] == answer["x-request-id"]
    assert line_of(daemon, answer["x-request-id"])["status"] == "415"


def test_malformed_request_has_a_line(daemon):
    with daemon.client() as c:
        c.send(b"GARBAGE\x00\x1b[31m\r\n\r\n")
        answer = c.answer()
    assert answer.status == 400 and ULID.match(answer["x-request-id"])
    line = line_of(daemon, answer["x-request-id"])
    assert (line["method"], line["path"], line["status"], line["bytes_in"]) == (
        "-", "-", "400", "17")


def test_incomplete_request_has_a_line(daemon):
    with daemon.client() as c:
        sent = (b"POST /images HTTP/1.1\r\nHost: x\r\nContent-Type: image/jpeg\r\n"
                b"Content-Length: 1000\r\nX-Request-Id: gone\r\n\r\n" + SMALL[:100])
        c.send(sent)
    line = line_of(daemon, "gone")
    assert (line["status"], line["complete"], line["bytes_out"]) == ("-", "no", "0")
    assert int(line["bytes_in"]) == len(sent)


def test_slow_request_has_a_line(start):
    daemon = start("limits.header_timeout=50ms")
    with daemon.client() as c:
        c.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n")
        answer = c.answer()
    assert line_of(daemon, answer["x-request-id"])["status"] == "408"


# ---- hostile values ----

@pytest.mark.parametrize("value", ['a"b', "a b", "a\tb", "x" * 65, "", "\xe4", "a;b", "<script>",
                                   "a\\b", "a%0d"])
def test_malformed_ids_are_replaced(daemon, value):
    with daemon.client() as c:
        c.send(get("/healthz", f"X-Request-Id: {value}"))
        answer = c.answer()
    assert answer.status == 200 and ULID.match(answer["x-request-id"])
    line_of(daemon, answer["x-request-id"])


def test_two_ids_are_replaced(daemon):
    with daemon.client() as c:
        c.send(get("/healthz", "X-Request-Id: one", "X-Request-Id: two"))
        assert ULID.match(c.answer()["x-request-id"])


@pytest.mark.parametrize("value", ["x" * 64, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "1=2/3+4",
                                   "a@b:c~d.e_f"])
def test_well_formed_ids_are_kept(daemon, value):
    assert daemon.get("/healthz", headers=[("X-Request-Id", value)])["x-request-id"] == value


def test_control_characters_do_not_reach_the_log(daemon):
    """The requests are refused. All lines of the log have printable characters only."""
    for byte in b"\x00\x01\x07\x0b\x1b\x7f":
        with daemon.client() as c:
            c.send(b"GET /a" + bytes([byte]) + b"status=200 HTTP/1.1\r\nHost: x\r\n\r\n")
            bad_path = c.answer()
        with daemon.client() as c:
            c.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: a" + bytes([byte])
                   + b"b\r\n\r\n")
            bad_value = c.answer()
        assert bad_path.status == 400 and bad_value.status in (200, 400)
        for answer in (bad_path, bad_value):
            assert ULID.match(answer["x-request-id"])
            line_of(daemon, answer["x-request-id"])
    assert all(re.fullmatch(r"<[3-7]>[ -~]*\n", line) for line in daemon.lines)


def test_paths_are_quoted_and_cut(daemon):
    for path, expected in [('/"q"', '/"q"'), ("/a=b?c=d", "/a=b?c=d"), ("/'", "/'"),
                           ("/a\\b", "/a\\b"), ("/" + "x" * 600, "/" + "x" * 511 + "...")]:
        with daemon.client() as c:
            c.send(get(path))
            answer = c.answer()
        line, = [line for line in eventually(
            lambda: [x for x in daemon.lines if f"id={answer['x-request-id']} " in x])]
        value = re.search(r' path=("(?:[^"\\]|\\.)*"|[^" ]*) status=404 ', line)[1]
        if value.startswith('"'):
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        assert value == expected


# ---- JSON and live changes ----

def control(daemon, words):
    done = run("-o", f"server.root={daemon.store}", "ctl", *words.split())
    assert done.returncode == 0, done


def test_json_lines_have_the_same_values(start):
    daemon = start("log.access=json")
    with daemon.client() as c:
        c.send(get('/a"b\\c?\'', "X-Request-Id: j-1") + b"NONSENSE\r\n\r\n")
        assert [c.answer().status, c.answer().status] == [404, 400]
    image = daemon.image(SMALL, headers=[("X-Request-Id", "j-2")])

    def found():
        return [json.loads(line) for line in list(daemon.lines) if line.startswith("{")]
    assert eventually(lambda: len(found()) >= 3), daemon.log
    # Lines of two connections have no order.
    path, nonsense, upload = sorted(found(), key=lambda line: line["id"] == "j-2")
    assert (path["id"], path["path"], path["status"], path["method"]) == (
        "j-1", '/a"b\\c?\'', 404, "GET")
    assert nonsense["status"] == 400 and "path" not in nonsense and nonsense["complete"] is True
    assert upload["images"] == [{"id": image["id"], "width": 320, "height": 240}]
    assert upload["stages_ms"]["jpeg_decode"] > 0 and upload["client"] == "127.0.0.1"


def test_access_log_can_be_switched_while_it_runs(start):
    daemon = start("log.access=no")

    def ask(ident):
        with daemon.client() as c:
            c.request("GET", "/healthz", headers=[("X-Request-Id", ident)])
            c.request("GET", "/healthz")  # the first request is complete then

    ask("r-1")
    control(daemon, "set log.access text")
    ask("r-2")
    control(daemon, "set log.level warning")
    ask("r-3")
    control(daemon, "set log.level debug")
    ask("r-4")
    assert daemon.says("r-4")
    assert re.findall(r"\br-\d\b", daemon.log) == ["r-2", "r-4"]


# ---- a file ----

def test_hangup_reopens_the_log_file(start, tmp_path):
    directory = tmp_path / "log"
    directory.mkdir()
    path, old = directory / "access.log", directory / "access.log.1"
    daemon = start(f"log.access_file={path}", "log.level=notice")
    daemon.get("/healthz", headers=[("X-Request-Id", "f-1")])
    assert eventually(lambda: re.search("f-1.*\n", path.read_text()))
    path.rename(old)
    daemon.signal(signal.SIGHUP)
    assert eventually(path.exists), daemon.log
    assert daemon.says("active: policy")
    daemon.get("/healthz", headers=[("X-Request-Id", "f-2")])
    assert eventually(lambda: re.search("f-2.*\n", path.read_text()))
    assert [parse(line)["id"] for line in old.read_text().splitlines(True)] == ["f-1"]
    assert [parse(line)["id"] for line in path.read_text().splitlines(True)] == ["f-2"]
    assert "f-1" not in daemon.log and path.stat().st_mode & 0o027 == 0


def test_log_file_that_cannot_be_opened_prevents_the_start(tmp_path):
    done = run("-o", f"server.root={tmp_path}/store", "-o", "server.listen=127.0.0.1:0", "-o",
               "server.user=root", "-o", f"log.access_file={tmp_path}/nowhere/access.log")
    assert done.returncode == 1 and "log.access_file" in done.stderr
    assert "No such file" in done.stderr
    assert run("-t", "-o", "log.access_file=access.log").returncode == 78


# ---- slow and absent readers ----

class Stalled(Daemon):
    """Reads standard error up to the ready line only, until `resumed` is set."""

    def __init__(self, *arguments, **options):
        self.resumed = threading.Event()
        super().__init__(*arguments, **options)

    def _drain(self):
        for line in self.process.stderr:
            self.lines.append(line.decode())
            if found := re.search(r"ready on (http://(127\.0\.0\.1):(\d+))", self.lines[-1]):
                self.url, self.host, self.port = found[1], found[2], int(found[3])
                break
        self.ready.set()
        self.resumed.wait()
        super()._drain()


def test_stalled_reader_delays_no_request(tmp_path):
    daemon = Stalled(tmp_path / "store")
    try:
        with daemon.client() as c:
            for _ in range(80):
                c.send(get("/healthz") * 50)
                assert all(c.answer().status == 200 for _ in range(50))
        started = time.monotonic()
        for _ in range(5):
            daemon.image(SMALL)
        assert time.monotonic() - started < slow(30)
        log = daemon.get("/stats").json()["log"]
        assert log["access"] > 1000 and log["dropped"]["access"] > 500
        assert log["dropped"]["messages"] == 0
    finally:
        daemon.resumed.set()
        daemon.stop()
    assert re.search(r"^<4>log: dropped \d+ lines: the reader is too slow$", daemon.log, re.M)
    assert "ended, 5 images stored" in daemon.log


def test_stalled_reader_does_not_delay_the_end(tmp_path):
    daemon = Stalled(tmp_path / "store")
    with daemon.client() as c:
        for _ in range(40):
            c.send(get("/healthz") * 50)
            assert all(c.answer().status == 200 for _ in range(50))
    daemon.signal(signal.SIGTERM)
    try:
        assert daemon.process.wait(slow(60)) == 0
    finally:
        daemon.resumed.set()
        daemon.kill()


def test_lines_before_a_crash_are_written(start):
    daemon = start()
    with daemon.client() as c:
        c.request("GET", "/healthz", headers=[("X-Request-Id", "last-words")])
        c.request("GET", "/healthz")  # the first request is complete then
    daemon.signal(signal.SIGABRT)
    assert daemon.wait_exit() == -signal.SIGABRT
    assert "id=last-words " in daemon.log


def test_closed_standard_error_receives_no_messages(tmp_path):
    """They also do not go to the file that got the free descriptor, such as the access log."""
    store, requests = tmp_path / "store", tmp_path / "log" / "requests"
    store.mkdir()
    requests.parent.mkdir()
    words = command(*overrides("server.listen=127.0.0.1:0", f"server.root={store}",
                               "log.access=text", f"log.access_file={requests}",
                               *(["server.user=root"] if os.geteuid() == 0 else [])))
    daemon = subprocess.Popen(["sh", "-c", 'exec "$@" 2>&-', "sh", *words])
    try:
        assert eventually((store / "control.sock").exists)
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(slow(20)) == 0
    finally:
        daemon.kill()
        daemon.wait()
    assert requests.read_bytes() == b""
