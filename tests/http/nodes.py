"""Daemons on loopback addresses of their own, 127.0.0.2 and following, with HAProxy in front of them as
conf/proxy/haproxy-nodes.cfg says, without TLS. For tests and for scripts/cluster."""

import contextlib
import http.client
import pathlib
import random
import re
import shutil
import socket
import subprocess

from darkroom import ROOT, eventually

HOST = "images.example.org"
FIELDS = re.compile(r"\[(?P<time>[^]]+)\] images (?P<backend>[^/ ]+)/(?P<server>\S+) "
                    r"\S+/(?P<active>[-+\d]+) (?P<status>-?\d+) \S+ \S+ \S+ (?P<end>\S{4}) .*"
                    r'"(?P<method>\S+)')


def is_free(address, port):
    with socket.socket() as s, contextlib.suppress(OSError):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((address, port))
        return True
    return False


def free_port(*addresses):
    """Returns a random port below the kernel's ephemeral ports, so that it probably stays free."""
    while True:
        port = random.SystemRandom().randrange(12000, 32000)
        if all(is_free(address, port) for address in addresses or ("127.0.0.1",)):
            return port


def edited(name, *edits):
    """Returns a file of conf/proxy with each text replaced. Each text must exist."""
    text = (ROOT / "conf" / "proxy" / name).read_text()
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


def launch_proxy(words, directory, log):
    """Starts nginx or HAProxy."""
    with open(log, "ab") as output:
        return subprocess.Popen([shutil.which(words[0]) or f"/usr/sbin/{words[0]}",
                                 *map(str, words[1:])], stdin=subprocess.DEVNULL, stdout=output,
                                stderr=output, cwd=directory)


def haproxy_column(control, column):
    """Returns a column of HAProxy's figures, by backend/server. control: its socket."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(control))
        s.sendall(b"show stat\n")
        text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
    names, *lines = [line.split(",") for line in text.lstrip("# ").splitlines() if line]
    rows = [dict(zip(names, line)) for line in lines]
    return {f"{row['pxname']}/{row['svname']}": row[column] for row in rows}


class Nodes:
    """start: a function that starts a daemon, such as the fixture. settings: those of every node.
    places: servers that HAProxy knows, of which some may have no node yet."""

    def __init__(self, start, directory, settings, places, check="300ms", delay="1500ms"):
        self.start_daemon, self.directory = start, pathlib.Path(directory)
        self.settings, self.check, self.delay = settings, check, delay
        self.addresses = [f"127.0.0.{2 + i}" for i in range(places)]
        self.daemons = [None] * places
        self.port, self.agent = (free_port(*self.addresses) for _ in range(2))
        self.front, self.control = free_port(), self.directory / "haproxy.sock"
        self.log, self.process = self.directory / "haproxy.log", None

    @staticmethod
    def name(number):
        return f"node{number + 1}"

    def start(self, number):
        address = self.addresses[number]
        self.daemons[number] = self.start_daemon(
            f"server.agent_listen={address}:{self.agent}", f"server.hosts={HOST}",
            "server.trusted_proxies=127.0.0.1", f"server.drain_delay={self.delay}", *self.settings,
            listen=f"{address}:{self.port}", store=self.directory / self.name(number))

    def configuration(self):
        text = edited("haproxy-nodes.cfg", ("inter 1s", f"inter {self.check}"),
                      ("agent-port 8082", f"agent-port {self.agent}"),
                      ("log /dev/log local0", "log stdout format raw local0\n"
                       f"\tstats socket {self.control} mode 600"),
                      ("bind :443 ssl crt /etc/ssl/private/images.example.org.pem alpn http/1.1 "
                       "ssl-min-ver TLSv1.2", f"bind 127.0.0.1:{self.front}"))

        def lines(found):
            return "".join(f"\tserver {self.name(i)} {address}:{self.port}"
                           f"{found[1].replace('one', self.name(i))}\n"
                           for i, address in enumerate(self.addresses))

        text, count = re.subn(r"\tserver one \S+(.*)\n(?:\tserver .*\n)+", lines, text)
        assert count == 2, text
        return text

    def run(self):
        """Starts HAProxy, and waits until it has noticed every node."""
        config = self.directory / "haproxy.cfg"
        config.write_text(self.configuration())
        self.process = launch_proxy(["haproxy", "-f", config], self.directory, self.log)
        running = [i for i, daemon in enumerate(self.daemons) if daemon]
        assert eventually(lambda: self.control.exists() and self.are_up(*running), 30), \
            self.log.read_text()

    def stop_proxy(self):
        if self.process:
            self.process.terminate()
            self.process.wait(60)

    def figures(self, column):
        """Returns a column of HAProxy's figures for all nodes."""
        found = haproxy_column(self.control, column)
        return [found[f"darkrooms/{self.name(i)}"] for i in range(len(self.addresses))]

    def are_up(self, *numbers):
        with contextlib.suppress(OSError):
            states = self.figures("status")
            return all(states[i].startswith("UP") for i in numbers)
        return False

    def is_down(self, number):
        return self.figures("status")[number].startswith("DOWN")

    def has_requests(self, number):
        """Returns whether requests are in flight on a node."""
        found = haproxy_column(self.control, "scur")
        return any(int(found[f"{backend}/{self.name(number)}"]) for backend in ("darkrooms", "keyed"))

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.front, timeout=60)

    def answers(self):
        """Returns HAProxy's lines about requests, as dictionaries of FIELDS."""
        return [found.groupdict() for found in map(FIELDS.search,
                                                    self.log.read_text().splitlines()) if found]
