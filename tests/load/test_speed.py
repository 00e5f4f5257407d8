"""darkroom-load must never limit a run.

Its CPU time, to which other processes add nothing, is compared with that of a server which only
reads requests and answers them. No real server needs less on the same machine."""

import os
import pathlib

import pytest

MOST = 4  # times the server's CPU time; about 1 is usual
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


@pytest.mark.parametrize("size, connections, requests", [(1000, 16, 40_000), (1_000_000, 4, 4_000)])
def test_uploads_per_cpu_second(serve, load, tmp_path, size, connections, requests):
    path = tmp_path / "picture.jpg"
    path.write_bytes(b"x" * size)
    url = serve()
    found = []
    for _ in range(3):
        before = cpu_seconds(serve.pid)
        code, report = load.json("-c", connections, "-n", requests, url, path)
        assert code == 0 and report["responses"] == requests
        found.append((report["generator"]["cpu_s"], cpu_seconds(serve.pid) - before))
        if found[-1][0] <= MOST * (found[-1][1] + TICK_S):
            return
    pytest.fail("seconds of the generator and of the server "
                f"for {requests} uploads of {size} bytes: {found}")
