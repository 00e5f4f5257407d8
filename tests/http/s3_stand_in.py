"""An S3 store in memory, with faults. It implements what the daemon uses: PUT, GET, DELETE and
ListObjectsV2 with path-style URLs. It checks each signature by code of its own, and the hash of
what is put.

store.fault is a function (method, key) -> Fault or None, which is asked for each request."""

import copy
import email.utils
import functools
import hashlib
import hmac
import http.server
import socket
import ssl
import struct
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

KEY, SECRET, REGION, BUCKET = "AKIATEST", "secret/of+test", "eu-test-1", "photos"
SAFE = "-._~"


class Fault:
    """status: answers this status with the code, and does nothing. cut: sends this many bytes of the
    answer, and then ends the connection, by a RST if resets. hangs: waits until the store is
    released, and then ends the connection. change: a function that gets and returns the answer's
    headers and body. damages: changes the body of the request. delays: seconds before it does what
    is asked, although the client may have left; late_answer: it waits before the answer only.
    is_lost: does what is asked, and does not answer. again: seconds after which it does the same
    once more, as if a proxy had repeated the request."""

    def __init__(self, status=None, code="", cut=None, resets=False, hangs=False, change=None,
                 delays=0, is_lost=False, damages=False, again=None, late_answer=False):
        self.status, self.code, self.cut, self.resets = status, code, cut, resets
        self.hangs, self.change, self.delays, self.is_lost = hangs, change, delays, is_lost
        self.damages, self.again, self.late_answer = damages, again, late_answer


def hmac_of(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(secret, date, region, request):
    scope = f"{date[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (date[:8], region, "s3", "aws4_request", text):
        key = hmac_of(key, part)
    return key.hex()


@functools.lru_cache(16)
def entity_tag(body):
    return f'"{hashlib.md5(body).hexdigest()}"'


def error(status, code):
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code></Error>'
    return status, {"Content-Type": "application/xml"}, body.encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.server.store.connections.add(self.connection)

    def finish(self):
        self.server.store.connections.discard(self.connection)
        super().finish()

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass

    def do_PUT(self):
        self.serve()

    do_GET = do_DELETE = do_PUT

    def is_signed(self, path, query):
        """Checks the signature of the headers."""
        store = self.server.store
        items = [item.partition("=")[::2] for item in query.split("&")] if query else []
        words = self.headers.get("authorization", "")
        if not words.startswith("AWS4-HMAC-SHA256 "):
            return False
        parts = dict(part.split("=", 1) for part in words.split(" ", 1)[1].split(","))
        names, wanted = parts["SignedHeaders"].split(";"), parts["Signature"]
        date, payload = self.headers["x-amz-date"], self.headers["x-amz-content-sha256"]
        is_ours = parts["Credential"].startswith(store.key + "/")
        sent = {name.lower() for name in self.headers if name.lower().startswith("x-amz-")}
        if not sent <= set(names) or names != sorted(names):
            return False
        canonical = "\n".join(
            [self.command,
             urllib.parse.quote(urllib.parse.unquote(path), safe="/" + SAFE),
             "&".join(f"{urllib.parse.quote(urllib.parse.unquote(name), safe=SAFE)}="
                      f"{urllib.parse.quote(urllib.parse.unquote(value), safe=SAFE)}"
                      for name, value in sorted(items)),
             "".join(f"{name}:{self.headers[name].strip()}\n" for name in names),
             ";".join(names), payload])
        return is_ours and signature(store.secret, date, REGION, canonical) == wanted

    def answer(self, body):
        store, (path, _, query) = self.server.store, self.path.partition("?")
        if not self.is_signed(path, query):
            return error(403, "SignatureDoesNotMatch")
        bucket, _, key = urllib.parse.unquote(path)[1:].partition("/")
        if bucket != BUCKET:
            return error(404, "NoSuchBucket")
        if self.command == "PUT":
            return self.put(store, key, body)
        with store.lock:
            if self.command == "DELETE":
                refusal = "if-match-delete" not in store.ignores and self.refusal(store, key)
                if not refusal:
                    store.objects.pop(key, None)
                return refusal or (204, {}, b"")
            if key:
                return self.part(*store.get(key))
            return store.list(dict(urllib.parse.parse_qsl(query, keep_blank_values=True)))

    def part(self, status, headers, content):
        """Returns the bytes that the request asks for (RFC 9110, 14.2)."""
        name, _, asked = self.headers.get("range", "").partition("=")
        if status != 200 or name != "bytes":
            return status, headers, content
        first, last = (int(end) for end in asked.split("-"))
        if first >= len(content):
            return error(416, "InvalidRange")
        last = min(last, len(content) - 1)
        return 206, {**headers, "Content-Range": f"bytes {first}-{last}/{len(content)}"}, \
            content[first:last + 1]

    def put(self, store, key, body):
        if hashlib.sha256(body).hexdigest() != self.headers["x-amz-content-sha256"]:
            return error(400, "XAmzContentSHA256Mismatch")
        meta = {name.lower(): value for name, value in self.headers.items()
                if name.lower().startswith("x-amz-meta-") or name.lower() == "content-type"}
        with store.lock:
            refusal = self.refusal(store, key)
            if refusal:
                return refusal
            store.objects[key] = (body, meta, store.now())
        return 200, {"ETag": entity_tag(body)}, b""

    def header(self, name):
        return None if name in self.server.store.ignores else self.headers.get(name)

    def refusal(self, store, key):
        """Returns the answer to a request whose condition does not hold, or None."""
        wanted = self.header("if-match")
        if store.is_plain and (wanted or self.header("if-none-match")):
            return error(501, "NotImplemented")
        if wanted and key not in store.objects:
            return error(404, "NoSuchKey")
        if wanted and store.get(key)[1]["ETag"].strip(store.tag_quotes) != wanted or \
                self.header("if-none-match") == "*" and key in store.objects:
            return error(412, "PreconditionFailed")
        return None

    def serve(self):
        store = self.server.store
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(length)
        if len(body) < length:
            self.close_connection = True
            return
        key = urllib.parse.unquote(self.path.partition("?")[0])[len(BUCKET) + 2:]
        with store.lock:
            store.requests.append((self.command, key))
            fault = store.fault(self.command, key) if store.fault else None
        fault = fault or Fault()
        if fault.delays and not fault.late_answer:
            store.released.wait(fault.delays)
        if fault.hangs:
            store.released.wait()
            self.close_connection = True
            return
        if fault.status:
            status, headers, content = error(fault.status, fault.code)
        else:
            status, headers, content = self.answer(body[:-1] + b"!" if fault.damages else body)
            store.answered.append((self.command, key))
        if fault.late_answer:
            store.released.wait(fault.delays)
        if fault.again is not None:
            threading.Thread(target=copy.copy(self).repeat, args=(key, body, fault.again),
                             daemon=True).start()
        if fault.change:
            headers, content = fault.change(dict(headers), content)
        self.send(fault, status, headers, content)

    def repeat(self, key, body, seconds):
        store = self.server.store
        store.released.wait(seconds)
        self.answer(body)
        store.answered.append((self.command, key))

    def send(self, fault, status, headers, content):
        data = f"HTTP/1.1 {status} x\r\n".encode()
        headers = {"Date": email.utils.formatdate(self.server.store.now(), usegmt=True), **headers}
        if status != 204:
            headers = {"Content-Length": str(len(content)), **headers}
        for name, value in headers.items():
            if name == "ETag" and self.server.store.is_weak:
                value = "W/" + value
            data += f"{name}: {value}\r\n".encode()
        data += b"\r\n" + content
        self.server.store.longest = max(self.server.store.longest, len(data))
        if fault.is_lost:
            data, fault.cut = b"", 0
        if fault.cut is not None:
            self.close_connection = True
            if fault.resets:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                           struct.pack("ii", 1, 0))
        self.wfile.write(data[:fault.cut])
        if fault.cut is not None and fault.resets:
            self.connection.close()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass


class Store:
    def __init__(self, certificate=None):
        """certificate: the file of a certificate with its key, for https."""
        self.certificate = certificate
        self.objects, self.requests, self.answered, self.connections = {}, [], [], set()
        self.fault = None
        self.lock = threading.RLock()
        self.released = threading.Event()
        self.key, self.secret = KEY, SECRET
        self.longest = 0
        self.is_plain = False  # without conditional PUT
        self.ignores = ()      # headers of PUT, in lower case; "if-match-delete": of DELETE
        self.is_weak = False   # entity tags in answers, as behind a proxy that compresses
        self.tag_quotes = ""   # '"': If-Match has none of them, as at Ceph's gateway
        self.ahead_s = 0       # of its clock
        self.address, self.port = "127.0.0.1", 0
        self.start()

    def now(self):
        return time.time() + self.ahead_s

    def start(self):
        """Listens at the address, on the same port as before."""
        self.released.clear()
        self.server = Server((self.address, self.port), Handler)
        self.server.store = self
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def stop(self):
        """Ends all connections, and refuses others. The objects stay."""
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        for connection in list(self.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.thread.join()

    def go_away(self):
        self.stop()

    def come_back(self):
        """Returns when an object can be stored."""
        self.start()

    def release(self):
        """Ends requests that hang."""
        self.released.set()
        self.fault = None

    def settings(self, directory, **others):
        """Returns the settings of a daemon, and writes the file of keys."""
        keys = directory / "s3-keys"
        keys.write_text(f"aws_access_key_id = {self.key}\naws_secret_access_key = {self.secret}\n")
        values = {"kind": "s3", "s3_endpoint": f"http{'s' if self.certificate else ''}://127.0.0.1:{self.port}",
                  "s3_bucket": BUCKET, "s3_region": REGION, "s3_prefix": "a/b/",
                  "s3_credentials": keys, "s3_timeout": "1s", **others}
        return [f"store.{name}={value}" for name, value in values.items()]

    def get(self, key):
        if key not in self.objects:
            return error(404, "NoSuchKey")
        body, meta, modified = self.objects[key]
        return 200, {**meta, "ETag": entity_tag(body),
                     "Last-Modified": email.utils.formatdate(modified, usegmt=True)}, body

    def listed(self, key):
        body, _, modified = self.objects[key]
        tag = escape(entity_tag(body), {'"': "&quot;"})
        changed = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(modified))
        return (f"<Contents><Key>{escape(key)}</Key><ETag>{tag}</ETag><LastModified>{changed}"
                f"</LastModified><Size>{len(body)}</Size></Contents>")

    def list(self, query):
        prefix, after = query["prefix"], query.get("start-after", "")
        keys = sorted(key for key in self.objects if key.startswith(prefix) and key > after)
        count = min(1000, int(query["max-keys"]))
        text = "".join(map(self.listed, keys[:count]))
        is_cut = str(len(keys) > count).lower()
        return 200, {"Content-Type": "application/xml"}, (
            '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult>'
            f"<Name>{BUCKET}</Name><IsTruncated>{is_cut}</IsTruncated>{text}"
            "</ListBucketResult>").encode()

    def keys(self, kind=""):
        """Returns the keys but those of the start's probe and of the passes."""
        with self.lock:
            return sorted(key for key in self.objects
                          if key.startswith("a/b/" + kind) and key not in ("a/b/probe", "a/b/pass"))

    def fail_once(self, method, part, number=1, **fault):
        """The next such request of a key with this part has a fault, or the one with this number."""
        left = [number]

        def decide(asked, key):
            if asked == method and part in key:
                left[0] -= 1
                if left[0] == 0:
                    return Fault(**fault)
            return None
        self.fault = decide

    def fail_always(self, method, part, **fault):
        self.fault = lambda asked, key: Fault(**fault) if asked == method and part in key else None
