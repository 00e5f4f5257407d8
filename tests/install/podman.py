"""podman with a storage of its own, and base images that debootstrap makes: Debian's own image is
at a registry, which a test does not need. Needs root. DARKROOM_SYSTEM is a directory that keeps
them."""

import os
import pathlib
import resource
import shutil

import pytest

from nspawn import SYSTEM, succeed, run

PROGRAMS = ("podman", "buildah", "runc", "netavark", "aardvark-dns", "podman-compose",
            "debootstrap", "ip")
PATHS = f"{os.environ['PATH']}:/usr/sbin:/sbin:/usr/lib/podman:/usr/libexec/podman"
MISSING = [name for name in PROGRAMS if not shutil.which(name, path=PATHS)]
DEBIAN = "docker.io/library/debian:bookworm-slim"

needs_podman = pytest.mark.skipif(
    not SYSTEM or bool(MISSING) or os.geteuid() != 0,
    reason="DARKROOM_SYSTEM names no directory" if not SYSTEM else
    f"not installed: {' '.join(MISSING)}" if MISSING else "containers need root here")


def use_own_storage(place):
    """Sets the environment of podman, buildah and podman-compose."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    (place / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{place}/graph"\nrunroot = "{place}/run"\n')
    (place / "containers.conf").write_text(
        f'[containers]\ndefault_ulimits = ["nofile={files}:{files}", "nproc=4096:4096"]\n'
        '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
        f'[network]\nnetwork_backend = "netavark"\nnetwork_config_dir = "{place}/networks"\n'
        'default_subnet = "172.30.79.0/24"\n')  # the machine may have containers of its own
    os.environ.update(CONTAINERS_CONF=f"{place}/containers.conf",
                      CONTAINERS_STORAGE_CONF=f"{place}/storage.conf")


def podman(*words):
    return succeed("podman", *words).strip()


def debian(packages=()):
    """Returns a directory with Debian's smallest system."""
    tree = pathlib.Path(SYSTEM).resolve() / "-".join(("slim", *packages))
    if not (tree / "complete").exists():
        shutil.rmtree(tree, ignore_errors=True)
        tree.parent.mkdir(parents=True, exist_ok=True)
        include = [f"--include={','.join(packages)}"] if packages else []
        succeed("debootstrap", "--variant=minbase", *include, "bookworm", tree)
        (tree / "complete").touch()
    return tree


def add_image(name, tree, *config):
    """Makes an image of a directory."""
    container = succeed("buildah", "from", "scratch").strip()
    succeed("buildah", "copy", "--quiet", container, tree, "/")
    if config:
        succeed("buildah", "config", *config, container)
    succeed("buildah", "commit", "--quiet", "--format", "docker", "--rm", container, name)


def end(place):
    """Removes all containers and networks, and the storage."""
    run("podman", "rm", "--all", "--force", "--time", "5")
    run("podman", "volume", "prune", "--force")
    run("podman", "network", "prune", "--force")
    run("umount", "--recursive", place / "graph/overlay")
    shutil.rmtree(place, ignore_errors=True)
