"""darkroom-load must never be what limits a run. CPU time is counted, which other work on the machine does not add to: one
core sends at least what one CPU second of it does here."""

import pytest

LEAST_UPLOADS = 30_000
LEAST_BYTES = 3_000_000_000


@pytest.mark.parametrize("size, connections, requests", [(1000, 16, 40_000), (1_000_000, 4, 4_000)])
def test_uploads_per_cpu_second(serve, load, tmp_path, size, connections, requests):
    path = tmp_path / "picture.jpg"
    path.write_bytes(b"x" * size)
    url = serve()
    found = []
    for _ in range(3):
        code, report = load.json("-c", connections, "-n", requests, url, path)
        assert code == 0 and report["responses"] == requests
        found.append(requests / report["generator"]["cpu_s"])
        if found[-1] >= LEAST_UPLOADS or found[-1] * size >= LEAST_BYTES:
            return
    pytest.fail(f"uploads of {size} bytes per CPU second: {found}")
