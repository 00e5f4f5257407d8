"""The life of an installation on a clean system, with each command as it stands in darkroomd(8).
`editor` does what stands behind it in brackets. Only with DARKROOM_SYSTEM: see nspawn.py."""

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import termios

import pytest

from nspawn import CONFIG, ROOT, System, clean_tree, eventually, needs_system, succeed

pytestmark = needs_system

PAGE = (ROOT / "src/daemon/darkroomd.8").read_text().replace("@SYSCONFDIR@", "/etc")
TLS = "/etc/ssl/private/images.example.org.pem"
LOG = "/var/log/darkroom/access.log"
# What an operator answers, by what is on the screen.
INTERRUPT = "\x03"
ANSWERS = {r"Do you want to continue\? \[Y/n\]": "y\n", r"\[default=N\] \?": "N\n",
           r"jpeg_decode": INTERRUPT}
# systemd reads what stands above its last comment.
EDITOR = r"""#!/bin/sh
for file; do :; done
awk 'NR == FNR { text = text $0 "\n"; next }
     /^### .* discarded/ { printf "%s", text } { print }' /below "$file" >/edited
cat /edited >"$file"
"""


def blocks(title):
    """Returns the literal blocks of a section of the manual."""
    section = re.split(r"^\.S[sh] ", PAGE.split(f"\n.Ss {title}\n")[1], flags=re.M)[0]
    return re.findall(r"^\.Bd.*\n((?:.*\n)*?)\.Ed", section.replace("\\e", "\\"), re.M)


def commands(block):
    """Returns [(command, lines below it)]."""
    parts = re.split(r"^[#$] ", block.replace("\\\n", " "), flags=re.M)[1:]
    return [part.split("\n", 1) for part in parts]


class Operator(System):
    """Types commands at a terminal."""

    def type(self, command):
        line = f"cd /root; export SYSTEMD_EDITOR=/editor SYSTEMD_PAGER= TERM=linux; {command}"
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvp(self.enter[0], [*self.enter, line])
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        screen, seen = "", 0
        while select.select([terminal], [], [], 300)[0]:
            try:
                screen += os.read(terminal, 4096).decode(errors="replace")
            except OSError:  # its last writer has gone
                break
            for prompt, answer in ANSWERS.items():
                if re.search(prompt, screen[seen:]) and (answer != INTERRUPT or "ctl top" in command):
                    os.write(terminal, answer.encode())
                    seen = len(screen)
        os.close(terminal)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        by_interrupt = (-2, 130) if "ctl top" in command else ()
        assert status in (0, *by_interrupt), f"{command}: {screen}{self.journal()}"
        return screen.replace("\r\n", "\n")

    def follow(self, block, *edits):
        """Runs all commands of a block of the manual. Returns what they print."""
        printed = ""
        for old, new in edits:
            assert old in block
            block = block.replace(old, new)
        for command, below in commands(block):
            editor = re.match(r"editor (\S+)\s+\((.*)\)$", command)
            if not editor:
                self.write("/below", below)
                printed += self.type(command)
            elif editor[1] == CONFIG:
                self.set_keys(editor[2])
            else:
                assert TLS in self.read(editor[1])  # nothing to change: the file has this name
        return printed

    def is_served(self, ident):
        return self.status(f"/images/{ident}/thumb.jpg") == "200"


def with_version(package, version, place):
    """Returns the package with another version and another configuration."""
    parts, changed = place / "parts", place / f"darkroom_{version}_amd64.deb"
    succeed("dpkg-deb", "-R", package, parts)
    control = parts / "DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", f"Version: {version}", control.read_text(),
                              flags=re.M))
    with open(parts / CONFIG.lstrip("/"), "a") as config:
        config.write("; as it was shipped once\n")
    succeed("dpkg-deb", "--root-owner-group", "-b", parts, changed)
    return changed


@pytest.fixture(scope="module")
def packages(package, tmp_path_factory):
    return {"old": with_version(package, "0.0.9", tmp_path_factory.mktemp("old")), "new": package}


@pytest.fixture(scope="module")
def operator(packages, tmp_path_factory):
    """A system without the package. It has no network: what is to be installed is downloaded."""
    tree = clean_tree(tmp_path_factory.mktemp("manual"))
    shutil.copy(packages["new"], tree / "new.deb")
    succeed("chroot", tree, "apt-get", "-q", "-y", "--no-install-recommends", "-d", "install",
            "/new.deb", "haproxy")
    pem = tree / TLS.lstrip("/")
    pem.parent.mkdir(parents=True, exist_ok=True)
    succeed("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost", "-keyout", pem, "-out", tree / "tls.crt")
    pem.write_text(pem.read_text() + (tree / "tls.crt").read_text())
    running = Operator(tree)
    running.write("/editor", EDITOR)
    running.succeed("chmod +x /editor")
    running.kept = []
    yield running
    running.stop()


def put(operator, package):
    """Puts one package into the operator's directory."""
    for file in (operator.tree / "root").glob("*.deb"):
        file.unlink()
    shutil.copy(package, operator.tree / "root")


def test_installation_and_configuration(operator, packages):
    put(operator, packages["old"])
    printed = operator.follow(blocks("Package")[0])
    assert "the configuration is valid" in printed, printed
    assert operator.is_active()
    operator.kept.append(operator.upload_id())
    assert eventually(lambda: "method=POST path=/images status=201" in operator.journal())


def test_store_moves_to_a_disk_at_its_place(operator):
    operator.succeed("mkdir /disk")
    operator.follow(blocks("Moving the store")[0], ("mount /dev/sdb1", "mount --bind /disk"))
    assert operator.is_served(operator.kept[0])
    operator.kept.append(operator.upload_id())
    assert operator.sh(f"ls /disk/*/*/{operator.kept[1]}").returncode == 0


def test_store_moves_to_another_directory(operator):
    operator.follow(blocks("Moving the store")[1])
    assert all(map(operator.is_served, operator.kept))
    operator.kept.append(operator.upload_id())
    assert operator.sh(f"ls /srv/images/*/*/{operator.kept[2]}").returncode == 0
    operator.succeed("systemctl start darkroom-check")


def test_token(operator):
    operator.token = re.search(r"^darkroom_\S+", operator.follow(blocks("Tokens")[0]), re.M)[0]
    operator.follow(blocks("Tokens")[-1])
    assert operator.upload() == "401"


def upload_by_tls(operator, source):
    return operator.sh(
        f"curl -sS -o /answer -w '%{{http_code}}' --cacert {TLS} --interface {source} "
        f"-H 'Authorization: Bearer {operator.token}' -F file=@/lake.jpg "
        "https://localhost/images").stdout


def test_proxy(operator):
    operator.follow(blocks("Proxy")[0])
    assert eventually(lambda: upload_by_tls(operator, "127.0.0.2") == "201"), (
        operator.read("/answer"), operator.journal())
    assert eventually(lambda: re.search(
        "client=127.0.0.2 .*token=camera .*status=201", operator.journal())), operator.journal()


def test_watching(operator):
    printed = operator.follow(blocks("Package")[1])
    for what in ("active (running)", "ready on http://", "active: policy", "jpeg_decode",
                 "darkroom_ready 1"):
        assert what in printed, (what, printed)


def test_rotation_of_the_access_log(operator):
    operator.set_keys(f"access_file = {LOG}")
    operator.restart()
    operator.write("/rotate", blocks("Log")[0])
    for _ in range(2):
        assert eventually(lambda: upload_by_tls(operator, "127.0.0.2") == "201")
        operator.succeed("logrotate --force /rotate")
        assert eventually(lambda: operator.sh(f"test -e {LOG}").returncode == 0)
    assert upload_by_tls(operator, "127.0.0.2") == "201"
    assert eventually(lambda: operator.succeed(
        f"zcat -f {LOG} {LOG}.* | grep -c 'client=127.0.0.2 .*status=201'") == "3")


def change_version(operator, package, block):
    """Returns what it printed."""
    mine = operator.read(CONFIG)
    put(operator, package)
    printed = operator.follow(block)
    assert "[default=N] ?" in printed and operator.read(CONFIG) == mine
    operator.succeed("systemctl start darkroomd")
    assert all(map(operator.is_served, operator.kept))
    assert upload_by_tls(operator, "127.0.0.2") == "201"
    return operator.succeed("dpkg-query -W -f '${Version}' darkroom")


def test_upgrade(operator, packages):
    assert change_version(operator, packages["new"], blocks("Package")[2]) == "0.2.0"


def test_downgrade(operator, packages):
    assert change_version(operator, packages["old"], blocks("Package")[3]) == "0.0.9"


def test_removal(operator):
    operator.follow(blocks("Package")[4])
    assert operator.sh("curl -sS http://127.0.0.1:8080/healthz").returncode == 7
    assert operator.sh(f"test -e {CONFIG}").returncode == 0
    operator.type("apt purge darkroom")
    assert operator.sh(f"test -e {CONFIG}").returncode == 1
    for ident in operator.kept:
        assert operator.sh(f"test -e /srv/images/*/*/{ident}/thumb.jpg").returncode == 0
