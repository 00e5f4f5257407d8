"""What clients of several nodes did and saw, each with its time, and whether that can be right.

The times are of one clock, this process's. An operation took effect at some moment between its begin
and its end, or, if it had no answer, at any later moment. Each claim names only pairs of operations
whose order is certain."""

import collections
import dataclasses
import threading

NO_ANSWER = 0  # the status of a request that had none
FAILED = {NO_ANSWER, 408, 409, 429, 500, 502, 503, 504, 507}  # these say nothing about an image


@dataclasses.dataclass
class Operation:
    """kind: upload, get, delete or list. name: that of the uploaded file, which tells apart what was
    uploaded. found: the ids of a list's images. body: the bytes of a variant, and variant its name."""
    kind: str
    begin: float
    end: float
    status: int
    node: int = 0
    ident: str = ""
    name: str = ""
    key: str = ""
    variant: str = ""
    body: bytes = b""
    found: tuple = ()


class History:
    def __init__(self):
        self.operations, self.lock = [], threading.Lock()

    def add(self, operation):
        with self.lock:
            self.operations.append(operation)

    def of(self, kind):
        return [operation for operation in self.operations if operation.kind == kind]

    def violations(self):
        """Returns sentences. No other operation may be in progress."""
        return [*self._keys(), *self._images(), *self._bytes()]

    def early(self):
        """Returns the ids of the answers that came before their images."""
        return {o.ident for o in self.of("upload") if o.status == 202}

    def _acknowledged(self):
        """Returns {id: when its first answer was there}. An answer of 202 promises an image later, so
        there it is the first answer that had the image."""
        early = self.early()
        since = {}
        for o in self.operations:
            if (o.kind == "upload" and o.status == 201) or \
                    (o.kind == "get" and o.status == 200 and o.ident in early):
                since[o.ident] = min(o.end, since.get(o.ident, o.end))
        return since

    def _images(self):
        since = self._acknowledged()
        by_id = collections.defaultdict(list)
        for o in self.operations:
            if o.ident:
                by_id[o.ident].append(o)
        for o in self.of("list"):
            for ident in o.found:
                by_id[ident].append(o)
        early = self.early()
        for ident, operations in by_id.items():
            if ident in early and ident not in since and \
                    not any(o.kind == "delete" for o in operations):
                yield f"{ident}: answered with 202, and never stored"
            yield from self._image(ident, operations, since.get(ident))

    @staticmethod
    def _image(ident, operations, since):
        removals = [o for o in operations if o.kind == "delete"]
        gets = [o for o in operations if o.kind == "get" and o.status not in FAILED]
        asked = min((o.begin for o in removals), default=float("inf"))
        is_told = [o.end for o in removals if o.status == 204]
        if since is not None:  # before, an image that is not there may still come
            is_told += [o.end for o in removals + gets if o.status in (404, 410) and o.begin > since]
            for o in gets:
                if o.status in (404, 410) and o.begin > since and asked > o.end:
                    yield f"{ident}: acknowledged, and lost at node {o.node}"
        gone = min(is_told, default=float("inf"))
        for o in gets:
            if o.status in (200, 304) and o.begin > gone:
                yield f"{ident}: removed, and served by node {o.node} {o.begin - gone:.1f} s later"
        for o in operations:
            if o.kind == "list" and o.begin > gone:
                yield f"{ident}: removed, and listed by node {o.node} {o.begin - gone:.1f} s later"

    def _keys(self):
        of_key, of_id = collections.defaultdict(set), collections.defaultdict(set)
        for o in self.of("upload"):
            if o.status not in (201, 202):
                continue
            of_id[o.ident].add(o.name)
            if o.key:
                of_key[o.key].add(o.ident)
        for key, idents in of_key.items():
            if len(idents) > 1:
                yield f"key {key}: {len(idents)} images were acknowledged"
        for ident, names in of_id.items():
            if len(names) > 1:
                yield f"{ident}: the answer to {len(names)} uploads"

    def _bytes(self):
        first = {}
        for o in self.of("get"):
            if o.status == 200 and o.variant:
                if first.setdefault((o.ident, o.variant), o.body) != o.body:
                    yield f"{o.ident}/{o.variant}: other bytes at node {o.node}"


def extra_images(history, stored):
    """Returns sentences about the images that are stored at the end, [(id, name)]: a key made one
    image, whether it was acknowledged or not."""
    keys = {o.name: o.key for o in history.of("upload") if o.key}
    made = collections.defaultdict(set)
    for o in history.of("upload"):
        if o.key and o.status in (201, 202):
            made[o.name].add(o.ident)
    for ident, name in stored:
        if name in keys:
            made[name].add(ident)
    return [f"key {keys[name]}: {len(idents)} images are stored" for name, idents in made.items()
            if len(idents) > 1]
