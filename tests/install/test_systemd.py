"""The Debian package on a small system of its own, with systemd as its first process. The steps
follow darkroomd(8). Only with DARKROOM_SYSTEM: see nspawn.py."""

import json
import re

import pytest
from PIL import Image

from nspawn import (CONFIG, UPLOAD, System, clean_tree, eventually, install_in, needs_system)

TOKENS = "/etc/darkroom/tokens"
OWN_USER = "DynamicUser=no\nUser=darkroom\nStateDirectory=\nReadWritePaths="
RESTARTS = "systemctl show -p NRestarts --value darkroomd"

pytestmark = needs_system


@pytest.fixture(scope="module")
def system(package, tmp_path_factory):
    tree = clean_tree(tmp_path_factory.mktemp("system"))
    install_in(tree, package)
    running = System(tree)
    yield running
    running.stop()


def test_the_installed_service_runs(system):
    assert eventually(system.is_active)
    assert system.upload() == "201"
    assert "ready on" in system.journal()


def test_other_formats_are_read_and_made(system):
    """The unit's filter of system calls and its limits leave darkroom-decode what it needs."""
    config = system.read(CONFIG)
    system.write(CONFIG, f"{config}\n[variant.tiny]\noperations = scale 80x80 inside\n"
                         "formats = jpeg, avif, webp\n")
    system.restart()
    with Image.open(system.tree / "lake.jpg") as image:
        for kind in ("png", "webp"):
            image.save(system.tree / f"lake.{kind}")
    for kind in ("png", "webp"):
        assert system.sh(UPLOAD.replace("lake.jpg", f"lake.{kind}")).stdout == "201", system.journal()
        (made,) = json.loads(system.read("/answer"))["images"]
        assert [source["type"] for source in made["variants"]["tiny"]["sources"]] == [
            "image/avif", "image/webp"]
    system.write(CONFIG, config)
    system.restart()


def test_reload_applies_a_file(system):
    system.configure("policy = cohort")
    system.succeed("systemctl reload darkroomd")
    assert system.succeed("darkroomd -c /etc/darkroom/darkroomd.ini ctl policy") == "cohort"


def test_reload_refuses_a_wrong_file(system):
    system.configure("policy = fastest")
    assert system.sh("systemctl reload darkroomd").returncode != 0
    status = system.succeed("systemctl -l status darkroomd")
    assert 'darkroomd.ini:' in status and 'scheduler.policy = "fastest": expected' in status
    assert system.upload() == "201"
    system.configure()
    system.succeed("systemctl reload darkroomd")


def make_token(system, name):
    """Returns a token, whose line is added to the file."""
    token, line = system.succeed(f"darkroomd token {name}").splitlines()
    system.succeed(f"echo '{line}' >> {TOKENS}")
    return token


def upload_with(system, token):
    return system.sh(f"{UPLOAD} -H 'Authorization: Bearer {token}'").stdout


def test_tokens_by_credential_can_be_reloaded(system):
    system.succeed(f"rm -f {TOKENS}; umask 077; touch {TOKENS}")
    token = make_token(system, "camera")
    system.configure("tokens_file = /run/credentials/darkroomd.service/tokens",
                     f"LoadCredential=tokens:{TOKENS}")
    system.restart()
    assert system.upload() == "401" and upload_with(system, token) == "201"
    system.succeed("systemctl reload darkroomd")
    assert upload_with(system, token) == "201"


def test_tokens_of_a_group_change_at_once(system):
    system.succeed(f"groupadd --system darkroom-tokens; chgrp darkroom-tokens {TOKENS}; "
                   f"chmod 640 {TOKENS}")
    system.configure(f"tokens_file = {TOKENS}", "SupplementaryGroups=darkroom-tokens")
    system.restart()
    token = make_token(system, "phone")
    assert eventually(lambda: upload_with(system, token) == "201")
    assert system.upload() == "401"


def test_store_moves_to_another_directory(system):
    """MOVING THE STORE in darkroomd(8)."""
    system.configure()
    system.restart()
    assert system.upload() == "201"
    url = "http://127.0.0.1:8080/images/" + re.search(
        r'"id":"([0-9A-Z]{26})"', (system.tree / "answer").read_text())[1]
    system.succeed("systemctl stop darkroomd")
    system.succeed("useradd --system --home-dir /nonexistent --shell /usr/sbin/nologin darkroom")
    system.succeed("mkdir -p /srv/images; cp -a /var/lib/darkroom/. /srv/images; "
                   "chown -R darkroom: /srv/images")
    system.configure("root = /srv/images",
                     f"{OWN_USER}/srv/images\n")
    system.succeed("systemctl start darkroomd")
    system.succeed(f"curl -sSf {url} -o /dev/null")
    assert system.upload() == "201"


def test_a_missing_right_to_write_is_explained(system):
    system.configure("root = /srv/images")
    assert system.sh("systemctl restart darkroomd").returncode != 0
    assert "ReadWritePaths=" in system.journal()
    system.configure()
    assert eventually(system.is_active), system.journal()


DISK = "/srv/images"  # the store of an earlier test


def check_wait(system, ident, reason, mount):
    """The unit retries for ever, and comes up by itself when the disk is there."""
    assert system.sh("systemctl start darkroomd").returncode != 0
    assert eventually(lambda: int(system.succeed(RESTARTS)) > 6), system.journal()
    assert not system.is_active() and reason in system.journal(), system.journal()
    system.succeed(mount)
    assert eventually(system.is_active), system.journal()
    assert system.status(f"/images/{ident}/thumb.jpg") == "200"
    assert system.upload() == "201"
    system.succeed("systemctl stop darkroomd")


@pytest.fixture
def stored(system):
    """An image on the disk that is mounted late."""
    system.configure(f"root = {DISK}", f"{OWN_USER}{DISK}")
    system.restart()
    ident = system.upload_id()
    system.succeed("systemctl stop darkroomd; mkdir -p /srv/late")
    yield ident
    system.sh("systemctl stop darkroomd; umount -l /srv/late /srv/late/images "
              "/srv/late/disk/images")
    system.configure()
    system.restart()


def test_a_disk_that_is_mounted_late_is_used(system, stored):
    system.configure("root = /srv/late", f"{OWN_USER}/srv/late")
    check_wait(system, stored, "the unit needs ReadWritePaths=", f"mount --bind {DISK} /srv/late")


def test_a_directory_that_is_missing_is_waited_for(system, stored):
    """The store is a directory on the disk."""
    system.configure("root = /srv/late/images", f"{OWN_USER}/srv/late/images")
    check_wait(system, stored, "Failed at step NAMESPACE",
               f"mkdir /srv/late/images; mount --bind {DISK} /srv/late/images")


def test_a_path_above_it_that_is_missing_is_waited_for(system, stored):
    """As before, with a directory in ReadWritePaths= that is there."""
    system.configure("root = /srv/late/disk/images", f"{OWN_USER}/srv/late")
    check_wait(system, stored, "the directory above it must exist",
               "mkdir -p /srv/late/disk/images; "
               f"mount --bind {DISK} /srv/late/disk/images")


def test_the_disk_at_the_place_of_the_service_is_waited_for(system):
    """RequiresMountsFor=, as MOVING THE STORE in darkroomd(8) says."""
    place = "/var/lib/private/darkroom"
    ident = system.upload_id()
    system.succeed("systemctl stop darkroomd; rm -rf /disk; mkdir /disk; "
                   f"cp -a {place}/. /disk; rm -rf {place}/*")
    system.write("/etc/systemd/system/disk.service", "[Service]\nType=oneshot\n"
                 "ExecStart=sh -c 'until [ -e /disk.ready ]; do sleep 0.1; done'\n")
    system.write("/etc/systemd/system/var-lib-private-darkroom.mount",
                 "[Unit]\nRequires=disk.service\nAfter=disk.service\n[Mount]\nWhat=/disk\n"
                 f"Where={place}\nType=none\nOptions=bind\n")
    system.configure("", f"[Unit]\nRequiresMountsFor={place}\n")
    system.succeed("systemctl start --no-block darkroomd")
    assert eventually(lambda: "disk.service" in system.succeed("systemctl list-jobs"))
    assert "darkroomd.service" in system.succeed("systemctl list-jobs") and not system.is_active()
    system.write("/disk.ready", "")
    assert eventually(system.is_active), system.journal()
    assert system.status(f"/images/{ident}/thumb.jpg") == "200"
    system.succeed("systemctl stop darkroomd; systemctl stop var-lib-private-darkroom.mount; "
                   f"rm /etc/systemd/system/*.mount; cp -a /disk/. {place}")
    system.configure()
    system.restart()


def test_busy_port_is_retried_for_ever(system):
    """systemd gives up after five failures in ten seconds by default."""
    system.succeed("systemctl stop darkroomd")
    holder = ("import socket, time; s = socket.create_server(('127.0.0.1', 8080)); "
              "time.sleep(1000)")
    system.succeed(f'systemd-run --unit=holder python3 -c "{holder}"')
    system.sh("systemctl start darkroomd")
    assert eventually(lambda: int(system.succeed(RESTARTS)) > 6), system.journal()
    assert not system.is_active()
    system.succeed("systemctl stop holder")
    assert eventually(system.is_active), system.journal()


def test_killed_daemon_is_restarted(system):
    before = system.succeed("systemctl show -p MainPID --value darkroomd")
    assert before != "0"
    system.succeed(f"kill -9 {before}")
    assert eventually(lambda: system.is_active() and before != system.succeed(
        "systemctl show -p MainPID --value darkroomd"))
    assert system.upload() == "201"


def test_a_store_that_is_deleted_is_made_again(system):
    """The service sees a mount of the deleted directory until systemd restarts it."""
    system.restart()
    lost = system.upload_id()
    system.succeed("rm -r /var/lib/private/darkroom")
    restarts = int(system.succeed(RESTARTS))
    assert system.upload() == "503", system.journal()
    assert eventually(lambda: int(system.succeed(RESTARTS)) == restarts + 1), system.journal()
    assert eventually(lambda: system.upload() == "201"), system.journal()
    assert system.status(f"/images/{lost}") == "404" and "restart: draining" in system.journal()


def test_wrong_configuration_is_not_retried(system):
    system.configure("policy = fastest")
    assert system.sh("systemctl restart darkroomd").returncode != 0
    assert system.succeed("systemctl show -p NRestarts --value darkroomd") == "0"
    assert system.sh("systemctl is-failed darkroomd").stdout.strip() == "failed"
    system.configure()
    system.restart()


def test_log_rotation_loses_no_line(system):
    log = "/var/log/darkroom/access.log"
    system.configure(f"access = text\naccess_file = {log}")
    system.restart()
    for _ in range(3):
        assert system.upload() == "201"
        system.succeed("logrotate --force /etc/logrotate.d/darkroom")
        assert eventually(lambda: system.sh(f"test -e {log}").returncode == 0)
    assert system.upload() == "201"
    assert eventually(lambda: system.succeed(
        f"zcat -f {log} {log}.* | grep -c 'method=POST path=/images status=201'") == "4")


def test_socket_is_enabled_as_the_manual_says(system):
    system.configure()
    system.succeed("systemctl stop darkroomd; systemctl enable --now darkroomd.socket; "
                   "systemctl start darkroomd")
    assert system.upload() == "201"
    system.restart()
    assert system.upload() == "201"


def test_removal_leaves_only_the_store(system):
    for step, configured in (("remove", True), ("purge", False)):
        system.succeed(f"DEBIAN_FRONTEND=noninteractive apt-get -q -y {step} darkroom")
        units = system.succeed("systemctl list-units --all --plain --no-legend 'darkroomd*'")
        assert "listening" not in units and "running" not in units, units
        assert system.sh("curl -sS http://127.0.0.1:8080/healthz").returncode == 7
        assert system.sh(f"test -e {CONFIG}").returncode == (0 if configured else 1)
        assert system.sh("ls /var/lib/private/darkroom/*/??/*/image.json").returncode == 0
