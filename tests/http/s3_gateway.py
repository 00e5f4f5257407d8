"""A real S3 store for tests: Ceph's object gateway with one monitor and one OSD in memory, on
loopback and in one directory, from Debian's packages. No configuration of the system is used."""

import contextlib
import hashlib
import http.client
import json
import pathlib
import shutil
import signal
import subprocess
import time
import uuid

from nodes import free_port
from s3_stand_in import signature

HOST, KEY, SECRET, REGION, BUCKET = "127.0.0.1", "darkroom", "darkroom-secret", "default", "photos"
PROGRAMS = ("radosgw", "radosgw-admin", "ceph-mon", "ceph-osd", "ceph", "monmaptool")
CONF = """\
[global]
fsid = %(fsid)s
mon host = v2:%(host)s:%(mon)d
mon initial members = a
public addr = %(host)s
cluster addr = %(host)s
auth cluster required = none
auth service required = none
auth client required = none
ms mon client mode = crc
ms mon cluster mode = crc
ms mon service mode = crc
ms cluster mode = crc
ms service mode = crc
ms client mode = crc
ms bind ipv6 = false
run dir = %(d)s/run
crash dir = %(d)s/run
admin socket =
pid file =
log file = %(d)s/log/$name.log
mon cluster log file = %(d)s/log/cluster.log
paxos propose interval = 0.05
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon data avail crit = 1
mon data avail warn = 2
mon max pg per osd = 1000
osd objectstore = %(store)s
memstore device bytes = 4294967296
bluestore block size = 10737418240
bluestore block db size = 0
bluestore block wal size = 0
bluestore cache autotune = false
bluestore cache size = 67108864
osd memory target = 939524096
osd class load list = *
osd class default list = *
osd op num shards = 1
osd mon shutdown timeout = 1
osd op num threads per shard = 2
rados osd op timeout = %(timeout)d
rados mon op timeout = %(timeout)d
[mon.a]
mon data = %(d)s/mon
[osd.0]
osd data = %(d)s/osd
[client.rgw]
rgw data = %(d)s/rgw
rgw frontends = beast endpoint=%(host)s:%(rgw)d tcp_nodelay=1
rgw thread pool size = 16
rgw enable apis = s3
rgw override bucket index max shards = 1
rgw enable usage log = false
rgw enable quota threads = false
rgw enable lc threads = false
rgw run sync thread = false
rgw max put size = 5368709120
"""


def missing():
    """Returns the programs that are not installed."""
    return [name for name in PROGRAMS if not shutil.which(name)]


class Gateway:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.parts, self.has_ended = {}, False
        self.mon, self.port = free_port(), free_port()
        self.fsid = str(uuid.uuid4())
        for name in ("mon", "osd", "rgw", "run", "log"):
            (self.directory / name).mkdir()
        self.conf = self.directory / "ceph.conf"
        self.conf.write_text(CONF % {"d": self.directory, "host": HOST, "mon": self.mon,
                                     "rgw": self.port, "fsid": self.fsid, "timeout": 5,
                                     "store": "memstore"})
        try:
            self._start_all()
        except BaseException:
            self.stop()
            raise

    def _tool(self, *words):
        with open(self.directory / "log" / "tools.log", "a") as log:
            done = subprocess.run([words[0], "-c", self.conf, *words[1:]], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=log, timeout=60, check=True)
        return done.stdout.decode()

    def start(self, part):
        words = {"mon": ["ceph-mon", "-i", "a"], "osd": ["ceph-osd", "-i", "0"],
                 "rgw": ["radosgw", "-n", "client.rgw"]}[part]
        with open(self.directory / "log" / part, "a") as log:
            self.parts[part] = subprocess.Popen([*words, "-f", "-c", str(self.conf)],
                                                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self, part):
        process = self.parts.pop(part)
        process.kill()
        process.wait()

    def _wait(self, what, is_there, part):
        end = time.monotonic() + 120
        while not is_there():
            assert time.monotonic() < end, f"{what}: see {self.directory}/log"
            assert not self.has_ended
            if self.parts[part].poll() is not None:
                self.start(part)  # the gateway ends if the OSD is slow
            time.sleep(0.1)

    def _has_osd(self):
        osds = json.loads(self._tool("ceph", "osd", "dump", "-f", "json"))["osds"]
        return bool(osds) and osds[0]["up"]

    def serves(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection(HOST, self.port, timeout=5)
            connection.request("GET", "/")
            return connection.getresponse().status == 200
        return False

    def _start_all(self):
        monmap = self.directory / "monmap"
        subprocess.run(["monmaptool", "--create", "--clobber", "--fsid", self.fsid, "--addv", "a",
                        f"[v2:{HOST}:{self.mon}]", monmap], check=True, stdout=subprocess.DEVNULL)
        self._tool("ceph-mon", "--mkfs", "-i", "a", "--monmap", str(monmap))
        self.start("mon")
        name = str(uuid.uuid4())
        self._tool("ceph", "osd", "new", name)
        self._tool("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", name)
        self.start("osd")
        self._wait("the OSD does not start", self._has_osd, "osd")
        self.start("rgw")
        self._wait("the gateway does not start", self.serves, "rgw")
        self._tool("radosgw-admin", "user", "create", "--uid=main", "--display-name=main",
                   f"--access-key={KEY}", f"--secret-key={SECRET}")
        assert self.put(f"/{BUCKET}") == 200

    def put(self, path, body=b"", timeout=60):
        """Puts an object, or makes a bucket. Its signature is that of an empty one. Returns the
        answer's status."""
        host, empty = f"{HOST}:{self.port}", hashlib.sha256(b"").hexdigest()
        date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        names = "host;x-amz-content-sha256;x-amz-date"
        request = (f"PUT\n{path}\n\nhost:{host}\nx-amz-content-sha256:{empty}\n"
                   f"x-amz-date:{date}\n\n{names}\n{empty}")
        scope = f"{date[:8]}/{REGION}/s3/aws4_request"
        connection = http.client.HTTPConnection(HOST, self.port, timeout=timeout)
        with contextlib.closing(connection):
            connection.request("PUT", path, body, headers={
                "x-amz-date": date, "x-amz-content-sha256": empty,
                "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/{scope},SignedHeaders={names},"
                                 f"Signature={signature(SECRET, date, REGION, request)}"})
            return connection.getresponse().status

    def stores(self):
        """Returns whether an object can be stored, beside those of daemons."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.put(f"/{BUCKET}/probe", timeout=5) == 200
        return False

    def go_away(self):
        self.kill("rgw")

    def come_back(self):
        """Returns when an object can be stored."""
        self.start("rgw")
        self._wait("the gateway does not start again", self.stores, "rgw")

    def settings(self, directory, **others):
        keys = directory / "s3-keys"
        keys.write_text(f"aws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
        values = {"kind": "s3", "s3_endpoint": f"http://{HOST}:{self.port}", "s3_bucket": BUCKET,
                  "s3_region": REGION, "s3_prefix": "of/this/", "s3_credentials": keys,
                  "s3_timeout": "2s", **others}
        return [f"store.{name}={value}" for name, value in values.items()]

    def stop(self):
        self.has_ended = True
        for part in ("rgw", "osd", "mon"):
            process = self.parts.pop(part, None)
            if process and process.poll() is None:
                process.send_signal(signal.SIGTERM if part != "osd" else signal.SIGKILL)
                process.wait(60)
