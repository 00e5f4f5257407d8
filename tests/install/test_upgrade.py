"""Upgrade and downgrade of the Debian package while clients upload, as darkroomd(8) describes them.
The older version is 0.1, whose store has another layout. Only with DARKROOM_SYSTEM: see
nspawn.py."""

import shutil

import pytest

from nspawn import CONFIG, URL, System, clean_tree, eventually, install_in, needs_system, succeed

pytestmark = needs_system

STORE = "/var/lib/private/darkroom"
KEEP = "-o Dpkg::Options::=--force-confold"
# Uploads until /uploading is gone. Every second one is answered 202, before its image is stored.
# /acknowledged.N gets the ids of answers that came as a whole.
UPLOADER = f"""
i=0
while [ -e /uploading ]; do
	i=$((i + 1)) prefer=wait=60
	[ $((i % 2)) = 0 ] || prefer=respond-async
	if code=$(curl -s -o /part.$1 -w '%{{http_code}}' -H "Prefer: $prefer" \\
		-F file=@/lake.jpg {URL}/images); then
		echo "$code" >>/codes
		case $code in 201 | 202) grep -o '"id":"[^"]*"' /part.$1 >>/acknowledged.$1 ;; esac
	else
		sleep 0.1
	fi
done
"""


class Site(System):
    """A system with uploads. `kept` has the ids of images that must be there."""

    def __init__(self, tree):
        super().__init__(tree)
        self.kept = []
        self.write("/uploader", UPLOADER)

    def acknowledged(self):
        return [line.split('"')[3] for file in self.tree.glob("acknowledged.*")
                for line in file.read_text().splitlines()]

    def upload_during(self, action):
        """Runs an action while three clients upload, before and after it. Returns the ids."""
        for file in self.tree.glob("acknowledged.*"):
            file.unlink()
        self.write("/uploading", "")
        clients = [self.begin(f"sh /uploader {n}") for n in range(3)]
        assert eventually(lambda: len(self.acknowledged()) > 10), self.journal()
        action()
        count = len(self.acknowledged())
        assert eventually(lambda: len(self.acknowledged()) > count + 10), self.journal()
        (self.tree / "uploading").unlink()
        for client in clients:
            assert client.wait(120) == 0, client.stdout.read()
        return self.acknowledged()

    def statuses(self, ids):
        self.write("/urls", "".join(
            f'url = "{URL}/images/{ident}/thumb.jpg"\noutput = "/dev/null"\n' for ident in ids))
        return self.succeed("curl -sS -K /urls -w '%{http_code}\\n'").split()

    def lost(self, ids):
        return [pair for pair in zip(ids, self.statuses(ids)) if pair[1] != "200"]

    def version(self):
        return self.succeed("dpkg-query -W -f '${Version}' darkroom")

    def spooled(self):
        return self.sh(f"ls {STORE}/.spool").stdout.split()


@pytest.fixture(scope="module")
def site(old_package, package, tmp_path_factory):
    tree = clean_tree(tmp_path_factory.mktemp("upgrade"))
    shutil.copy(package, tree / "new.deb")  # what it depends on is downloaded before
    succeed("chroot", tree, "apt-get", "-q", "-y", "--no-install-recommends", "-d", "install",
            "/new.deb")
    install_in(tree, old_package)
    running = Site(tree)
    yield running
    running.stop()


def test_upgrade_during_uploads_loses_nothing_and_keeps_the_configuration(site, package):
    assert eventually(site.is_active) and site.version() == "0.0.9"
    # Version 0.1 had another default of this key, which has moved: conf/CHANGES.md.
    mine = "; of the operator\n" + site.read(CONFIG).replace("\nage = 1s\n", "\n")
    site.write(CONFIG, mine)
    site.set_keys("drain_timeout = 20s")
    mine = site.read(CONFIG)
    site.kept.append(site.upload_id())
    acknowledged = site.upload_during(lambda: site.install(package, KEEP))
    assert site.version() == "0.2.0" and site.is_active()
    assert site.read(CONFIG) == mine
    assert eventually(lambda: not site.lost(acknowledged)), site.lost(acknowledged)
    site.kept += acknowledged
    assert not site.lost(site.kept)
    journal = site.sh("journalctl -o cat -u darkroomd").stdout
    assert "Failed with result" not in journal, journal
    assert "drain_timeout = 20s" in site.succeed(f"darkroomd -c {CONFIG} ctl dump")


def test_downgrade_serves_what_it_knows_and_leaves_the_rest(site, old_package):
    old = [ident for ident in site.kept if site.sh(f"ls {STORE}/*/{ident}").returncode == 0]
    new = sorted(set(site.kept) - set(old))
    assert old and new
    mine = site.read(CONFIG)
    site.write(CONFIG, mine + "[store]\nmax_age = 30d\n")
    site.succeed("systemctl reload darkroomd; systemctl stop darkroomd")
    assert site.spooled() == []
    checksum = f"cd {STORE} && find . -name '*.jpg' | sort | xargs sha256sum"
    before = site.succeed(checksum)
    site.install(old_package, f"--allow-downgrades {KEEP}")
    assert site.version() == "0.0.9"
    assert site.sh("systemctl is-failed darkroomd").stdout.strip() == "failed"
    assert "unknown" in site.journal()
    site.write(CONFIG, mine)
    site.succeed("systemctl restart darkroomd")
    assert not site.lost(old)
    assert set(site.statuses(new)) == {"404"}
    site.kept.append(site.upload_id())
    assert set(before.splitlines()) <= set(site.succeed(checksum).splitlines())


def test_acknowledged_images_of_a_killed_older_version_are_stored(site, package):
    site.kept += site.upload_during(lambda: None)
    site.write("/uploading", "")
    clients = [site.begin(f"sh /uploader {n}") for n in range(3)]
    assert eventually(site.spooled), site.journal()
    site.succeed("systemctl kill -s KILL --kill-whom=main darkroomd; systemctl stop darkroomd")
    (site.tree / "uploading").unlink()
    for client in clients:
        client.wait(120)
    site.kept += site.acknowledged()
    print(f"{len(site.spooled())} images are in .spool, {len(site.kept)} are acknowledged")
    site.install(package, KEEP)
    assert site.version() == "0.2.0"
    site.succeed("systemctl start darkroomd")
    assert eventually(lambda: not site.spooled()), site.journal()
    assert eventually(lambda: not site.lost(site.kept)), site.lost(site.kept)
    done = site.sh(f"darkroomd -c {CONFIG} store check")
    assert done.returncode == 0, done.stdout + done.stderr
