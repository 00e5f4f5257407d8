#!/usr/bin/python3
"""Stands in for darkroomd in tests of the experiment: takes uploads, answers 202, stores an image
50 ms later, and counts it in /stats. The variable STAND_IN names a fault:

clock    the last image counts as stored at its answer
lost     every hundredth acknowledged image is not stored, and not counted
dropped  every hundredth is counted, and not stored
cut      every hundredth has a variant that is shorter than image.json says
foreign  images of another program are in the store
old      /stats has no time
"""

import http.server
import json
import os
import pathlib
import signal
import sys
import threading
import time

FAULT, EVERY, DELAY_S = os.environ.get("STAND_IN", ""), 100, 0.05
root = pathlib.Path(next(word for word in sys.argv if word.startswith("server.root=")).partition("=")[2])
lock = threading.Lock()
images = {"in_flight": 0, "stored": 0, "last_stored_ns": 0}
received = 0


def write(name, size):
    path = root / "01AA" / name[-2:] / name
    path.mkdir(parents=True)
    (path / "thumb.jpg").write_bytes(b"x" * size)
    (path / "image.json").write_text('{"variants": {"thumb": {"bytes": 100}}}')


def store(number):
    time.sleep(DELAY_S)
    with lock:
        is_bad = number % EVERY == 0
        if not (is_bad and FAULT in ("lost", "dropped")):
            write(f"{number:026}", 50 if is_bad and FAULT == "cut" else 100)
        images["in_flight"] -= 1
        images["stored"] += not (is_bad and FAULT == "lost")
        if FAULT != "clock":
            images["last_stored_ns"] = time.monotonic_ns()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", -1  # one packet for each answer

    def answer(self, status, body, **fields):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **fields}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        known = {name: value for name, value in images.items() if name != "last_stored_ns"}
        self.answer(200, json.dumps({"images": known if FAULT == "old" else images,
                                     "store": {}}).encode())

    def do_POST(self):
        global received
        self.rfile.read(int(self.headers["Content-Length"]))
        with lock:
            received += 1
            number = received
            images["in_flight"] += 1
            if FAULT == "clock":
                images["last_stored_ns"] = time.monotonic_ns()
        threading.Thread(target=store, args=(number,)).start()
        self.answer(202, b"{}", Location=f"/images/{number:026}")

    def log_message(self, *_):
        pass


if FAULT == "foreign":
    write("another-program", 100)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
print(f"ready on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
