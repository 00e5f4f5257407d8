"""A disk thread that hangs in the middle of an operation: the main thread goes on. It answers
signals, the control socket, POST /control and the service manager within a second."""

import contextlib
import signal
import time

import pytest

import pictures
from control import FIRST, OTHER, ctl
from darkroom import IS_SANITIZED, eventually, every_key, slow
from nodes import free_port
from slow_disk import SlowDisk
from test_nodes import ask_agent
from test_service import Manager, watched

pytestmark = [
    pytest.mark.skipif(IS_SANITIZED, reason="the library must come before the runtime"),
    pytest.mark.also_with("seda")]
SMALL = pictures.photo_jpeg(320, 240, 1)
HANG_MS = 60_000
BEHIND = "still at work under the former configuration: "


class Hung:
    """A daemon with a thread that hangs on the disk until free() or the end of the test."""

    def __init__(self, start, tmp_path, stack, **arguments):
        self.disk = SlowDisk(tmp_path / "delay")
        self.manager = Manager(str(tmp_path / "notify"))
        stack.callback(self.manager.socket.close)
        self.config = tmp_path / "site.ini"
        self.config.write_text(every_key())
        self.agent = free_port()
        self.daemon = start("server.admin_listen=127.0.0.1:0", "server.admin_control=yes",
                            f"server.agent_listen=127.0.0.1:{self.agent}",
                            config=self.config, policy=FIRST,
                            environ=watched(self.manager, slow(1)) | self.disk.environ)
        self.manager.wait_for("READY")
        stack.callback(self.free)
        client = stack.enter_context(self.daemon.client())
        image = self.daemon.image(SMALL)
        self.disk.delay_all(int(slow(HANG_MS)))
        self.began = time.monotonic()
        client.send(client.head("GET", image["variants"]["thumb"]["url"]))
        assert eventually(lambda: BEHIND in self.policy(OTHER))

    def policy(self, name):
        result = ctl(self.daemon, "policy", name)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def free(self):
        self.disk.delay_all(0)


@pytest.fixture
def hung(start, tmp_path):
    with contextlib.ExitStack() as stack:
        made = Hung(start, tmp_path, stack)
        yield made
        assert time.monotonic() - made.began < slow(HANG_MS / 1000), "the disk was free again"


def within_a_second(do):
    began = time.monotonic()
    result = do()
    took = time.monotonic() - began
    assert took < slow(1), f"{took:.1f} s"
    return result


def test_commands_are_answered_and_tell_who_is_late(hung):
    for name in (FIRST, OTHER, FIRST):
        said = within_a_second(lambda: hung.policy(name))
        assert f"policy {name}" in said and BEHIND in said, said
    assert BEHIND in within_a_second(lambda: ctl(hung.daemon, "status")).stdout
    hung.free()
    assert eventually(lambda: BEHIND not in ctl(hung.daemon, "status").stdout)
    assert hung.policy(OTHER).count("\n") == 1


def test_a_reload_ends_and_the_manager_hears_of_it(hung):
    manager = hung.manager
    hung.config.write_text(every_key().replace("level = info", "level = notice"))
    manager.forget()
    hung.daemon.signal(signal.SIGHUP)
    within_a_second(lambda: manager.wait_for("RELOADING"))
    message = within_a_second(lambda: manager.wait_for("READY"))
    assert message["STATUS"].startswith("published; " + BEHIND), message


def test_the_watchdog_hears_of_the_main_thread(hung):
    manager = hung.manager
    manager.forget()
    for _ in range(3):
        within_a_second(lambda: manager.wait_for("WATCHDOG"))
        hung.policy(FIRST)


def test_a_termination_begins_at_once(hung):
    manager = hung.manager
    manager.forget()
    hung.daemon.signal(signal.SIGTERM)
    message = within_a_second(lambda: manager.wait_for("STOPPING"))
    assert message["STOPPING"] == "1"


def test_a_client_of_control_hears_who_is_late(hung):
    with hung.daemon.admin() as client:
        answer = within_a_second(
            lambda: client.request("POST", f"/control?scheduler.policy={FIRST}",
                                   headers=[("X-Darkroom-Control", "1")]))
    assert answer.status == 200 and BEHIND in answer.json()["report"], answer.body


def test_the_figures_of_the_daemon_do_not_ask_the_disk(hung):
    with hung.daemon.client() as client:
        assert within_a_second(lambda: client.request("GET", "/stats")).status == 200
    assert within_a_second(lambda: ask_agent(hung.agent)).startswith("up ")
