"""An HTTP/1 client that hides nothing. It sends bytes as they are given. It checks each answer
against the rules that all answers of the daemon share: framing, Server, Date, problem documents.
It checks answers of request() against stages/http/openapi.json, too.
Knows nothing of the daemon's process."""

import collections
import email.utils
import json
import re
import select
import socket
import struct

import openapi

STATUS_LINE = re.compile(rb"HTTP/1\.1 (\d{3}) [ -~]+\Z")
FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\x20-\x7e\x80-\xff]*)\Z")
PROBLEM = re.compile(r"urn:darkroom:problem:([a-z0-9-]+)\Z")


class Closed(Exception):
    """The connection ended before a whole answer had arrived."""


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __repr__(self):
        return f"<{self.status} {dict(self.headers)} {self.body[:600]!r}>"

    def __getitem__(self, name):
        """Returns the single value of a header, or None."""
        values = self.headers.get(name.lower(), [])
        assert len(values) <= 1, f"{name} appears {len(values)} times"
        return values[0] if values else None

    def json(self):
        assert self["content-type"] in ("application/json", "application/problem+json"), self
        return json.loads(self.body.decode("utf-8"))

    @property
    def slug(self):
        return PROBLEM.match(self.json()["type"])[1]

    @property
    def closes(self):
        return (self["connection"] or "").lower() == "close"

    def check(self, method):
        """Checks what holds for every answer."""
        assert self["server"] == "darkroom", self
        assert email.utils.parsedate_to_datetime(self["date"]), self
        if self.status in (204, 304):
            assert not self.body
        else:
            assert self["content-length"] is not None, self
        if self.status >= 400 and method != "HEAD":
            check_problem(self)


def check_problem(answer):
    assert answer["content-type"] == "application/problem+json", answer
    document = answer.json()
    assert PROBLEM.match(document["type"]), document
    assert isinstance(document["title"], str) and document["title"], document
    assert document["status"] == answer.status, answer
    assert isinstance(document["detail"], str) and document["detail"], document
    assert ("limit" in document) == ("configured" in document) == ("actual" in document), document
    if "limit" in document:
        assert document["limit"].startswith(("limits.", "quota.")), document
        assert isinstance(document["configured"], int)
        assert isinstance(document["actual"], int), document


class Client:
    def __init__(self, host, port, timeout, receive_buffer=0, source=None):
        is_path = host.startswith("/")
        self.socket = socket.socket(socket.AF_UNIX if is_path else socket.AF_INET)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect(host if is_path else (host, port))
        if not is_path:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.host = "localhost" if is_path else f"{host}:{port}"
        self.buffer = bytearray()
        self.interim = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def reset(self):
        """Closes the connection with a RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def send_some(self, data):
        """Sends as much as the peer reads. Returns False if the peer closed the connection."""
        try:
            self.socket.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def finish_sending(self):
        self.socket.shutdown(socket.SHUT_WR)

    def _more(self):
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(f"after {bytes(self.buffer[:200])!r}")
        self.buffer += data

    def _head(self):
        while (end := self.buffer.find(b"\r\n\r\n")) < 0:
            self._more()
        first, *lines = bytes(self.buffer[:end]).split(b"\r\n")
        del self.buffer[:end + 4]
        assert STATUS_LINE.match(first), first
        headers = collections.defaultdict(list)
        for line in lines:
            field = FIELD.match(line)
            assert field, line
            headers[field[1].decode().lower()].append(field[2].decode("latin-1").strip())
        return int(first[9:12]), headers

    def answer(self, method="GET"):
        """Returns the next final answer. The statuses of interim ones go into .interim."""
        while True:
            status, headers = self._head()
            if status >= 200:
                break
            assert "content-length" not in headers
            self.interim.append(status)
        assert "transfer-encoding" not in headers
        length = int(headers["content-length"][0]) if "content-length" in headers else 0
        if method == "HEAD" or status in (204, 304):
            length = 0
        while len(self.buffer) < length:
            self._more()
        answer = Answer(status, headers, bytes(self.buffer[:length]))
        del self.buffer[:length]
        answer.check(method)
        return answer

    def wait_interim(self):
        """Returns the status of the next head, which must be an interim one."""
        status, _ = self._head()
        assert status < 200, status
        return status

    def request(self, method, path, body=None, headers=(), version="HTTP/1.1"):
        self.send(self.head(method, path, body, headers, version) + (body or b""))
        answer = self.answer(method)
        openapi.check(method, path, answer)
        return answer

    def head(self, method, path, body=None, headers=(), version="HTTP/1.1"):
        """Returns the bytes of a request's head."""
        lines = [f"{method} {path} {version}", f"Host: {self.host}"]
        names = {name.lower() for name, _ in headers}
        if body is not None and not names & {"content-length", "transfer-encoding"}:
            lines.append(f"Content-Length: {len(body)}")
        lines += [f"{name}: {value}" for name, value in headers]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def is_silent(self):
        """Returns whether there is nothing left to read."""
        return not self.buffer and not select.select([self.socket], [], [], 0)[0]

    def is_closed(self, timeout=None):
        """Returns whether the peer closes the connection without sending more."""
        if timeout is not None:
            self.socket.settimeout(timeout)
        if self.buffer:
            return False
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except socket.timeout:
            return False

    def is_open(self):
        """Returns whether the connection still serves requests."""
        try:
            return self.request("GET", "/healthz").status == 200
        except (Closed, BrokenPipeError, ConnectionResetError):
            return False


def chunked(data, size=1000):
    """Returns the body in chunks of this size, with the last chunk."""
    pieces = [data[i:i + size] for i in range(0, len(data), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


def form(parts, boundary="a-boundary"):
    """Returns (content type, body) of a form.

    parts: (name, file name or None, content type or None, data)
    """
    body = bytearray()  # adding to bytes copies them
    for name, file_name, content_type, data in parts:
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'.encode()
        if file_name is not None:
            body += f'; filename="{file_name}"'.encode()
        body += b"\r\n"
        if content_type is not None:
            body += f"Content-Type: {content_type}\r\n".encode()
        body += b"\r\n"
        body += data
        body += b"\r\n"
    body += f"--{boundary}--\r\n".encode()
    return f"multipart/form-data; boundary={boundary}", bytes(body)


def form_files(*datas):
    """Returns a form of JPEG files as a browser sends it."""
    return form([("file", f"picture{i}.jpg", "image/jpeg", d) for i, d in enumerate(datas)])
