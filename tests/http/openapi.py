"""Compares answers with stages/http/openapi.json: path, method, status, header fields, and JSON.
client.py calls check() for each request that it makes. With DARKROOM_SEEN, a directory, each
process writes the statuses that it has seen.

usage: openapi.py DIRECTORY    tells which statuses of the description no test has seen"""

import atexit
import functools
import json
import os
import pathlib
import re
import sys

import jsonschema

FILE = pathlib.Path(__file__).resolve().parents[2] / "stages" / "http" / "openapi.json"
DOCUMENT = json.loads(FILE.read_text())
METHODS = ("get", "post", "delete")
# Fields that every answer may have: the description's text names them.
COMMON_FIELDS = {"server", "date", "content-type", "content-length", "connection", "cache-control",
                 "vary", "x-request-id", "x-content-type-options", "referrer-policy",
                 "cross-origin-opener-policy", "cross-origin-resource-policy",
                 "access-control-allow-origin", "access-control-expose-headers"}
# Statuses of answers that tests read without request(), and 503 of machines without memory.
UNSEEN = {("/images", "get", 503), ("/images", "post", 408), ("/images", "post", 411),
          ("/images/{id}", "delete", 503),
          ("/images/{id}", "get", 503), ("/images/{id}/original.jpg", "get", 412),
          ("/images/{id}/original.jpg", "get", 416), ("/images/{id}/original.jpg", "get", 503),
          ("/stats/stream", "get", 200)}

seen = set()  # of (path, method, status)


def resolve(node):
    """Returns the part of the document that a reference means."""
    while isinstance(node, dict) and "$ref" in node:
        target = DOCUMENT
        for name in node["$ref"].removeprefix("#/").split("/"):
            target = target[name.replace("~1", "/")]
        node = target
    return node


def closed(node):
    """Returns the schemas without members that the description does not name."""
    if isinstance(node, list):
        return [closed(inner) for inner in node]
    if not isinstance(node, dict):
        return node
    node = {name: closed(inner) for name, inner in node.items()}
    if node.get("type") == "object" and isinstance(node.get("properties"), dict):
        node.setdefault("additionalProperties", False)
    return node


STRICT = {"components": {"schemas": closed(DOCUMENT["components"]["schemas"])}}


@functools.lru_cache(maxsize=None)
def validator(reference):
    """Returns a validator of the schema that a reference names."""
    return jsonschema.Draft202012Validator({"$ref": reference, **STRICT})


def parameter_pattern(name):
    schema = resolve(resolve({"$ref": f"#/components/parameters/{name.title()}"})["schema"])
    return schema["pattern"].removeprefix("^").removesuffix("$")


def pattern(path):
    """Returns what matches a path of the description."""
    parts = re.split(r"\{(\w+)\}", path)
    return re.compile("".join(parameter_pattern(part) if i % 2 else re.escape(part)
                              for i, part in enumerate(parts)) + r"\Z")


# A path with fewer parameters comes first (OpenAPI 3.1, "Path Templating Matching").
PATHS = [(pattern(path), path) for path in sorted(DOCUMENT["paths"], key=lambda p: p.count("{"))]


@functools.lru_cache(maxsize=10000)
def find_path(target):
    """Returns the path of the description for the target of a request, or None."""
    target = re.sub(r"\Ahttps?://[^/?]*", "", target).split("?")[0]
    return next((path for match, path in PATHS if match.match(target)), None)


COMMON = DOCUMENT["components"]["responses"]["Common"]


def is_common(status):
    """Returns whether every request may be answered with this status."""
    return status in COMMON["x-statuses"]


def check_fields(answer, described):
    fields = {name.lower(): resolve(field) for name, field in described.get("headers", {}).items()}
    for name, values in answer.headers.items():
        assert name in COMMON_FIELDS or name in fields, f"{name} is not described: {answer}"
        schema = fields.get(name, {}).get("schema", {})
        for value in values:
            assert re.search(schema.get("pattern", ""), value), (name, answer)
            assert value == schema.get("const", value), (name, answer)
    missing = {name for name in fields if fields[name].get("required")} - set(answer.headers)
    assert not missing, f"{missing}: {answer}"


# In JSON of the same form, only ids, checksums and numbers differ, and how often an object repeats.
VALUES = re.compile(rb"\b([0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{8}|\d+(\.\d+)?)\b")
REPEATED = re.compile(rb"(\{[^{}]*\},)\1+")
known_forms = set()


def check_body(answer, described):
    content = described.get("content", {})
    kind = answer["content-type"]
    assert kind in content if content else kind is None, answer
    reference = content.get(kind, {}).get("schema", {}).get("$ref")
    form = reference, REPEATED.sub(rb"\1", VALUES.sub(b"0", answer.body)) if reference else b""
    if form[1] and form not in known_forms:
        check_json(json.loads(answer.body), reference)
        known_forms.add(form)


def check_json(value, reference):
    error = jsonschema.exceptions.best_match(validator(reference).iter_errors(value))
    assert not error, f"{reference}: {'/'.join(map(str, error.absolute_path))}: {error.message}"


def check_problem_types(problem):
    """Checks that the types of a problem and of its parts belong to their statuses."""
    types = DOCUMENT["components"]["schemas"]["Problem"]["x-types"]
    for part in [problem, *problem.get("errors", ())]:
        name = part["type"].removeprefix("urn:darkroom:problem:")
        assert name in types[str(part["status"])], part


def check(method, target, answer):
    """Checks the answer to a request of this method and target."""
    path = find_path(target)
    described = DOCUMENT["paths"].get(path, {})
    if answer.status >= 400 and method != "HEAD":
        check_problem_types(answer.json())
    if method == "OPTIONS" and answer.status == 204:
        return
    operation = described.get("get" if method == "HEAD" else method.lower())
    if operation is None or str(answer.status) not in operation["responses"]:
        assert is_common(answer.status), f"{method} {target} is not described: {answer}"
        check_fields(answer, COMMON)
        if method != "HEAD":
            check_body(answer, COMMON)
        return
    seen.add((path, method.lower().replace("head", "get"), answer.status))
    response = resolve(operation["responses"][str(answer.status)])
    check_fields(answer, response)
    if method != "HEAD":
        check_body(answer, response)


def described_statuses():
    return {(path, method, int(status)) for path, item in DOCUMENT["paths"].items()
            for method in METHODS if method in item
            for status in item[method]["responses"] if status != "default"}


def write_seen(directory):
    file = pathlib.Path(directory) / f"{os.getpid()}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(sorted(seen)))


if os.environ.get("DARKROOM_SEEN"):
    atexit.register(write_seen, os.environ["DARKROOM_SEEN"])


def main(directory):
    found = {tuple(entry) for file in pathlib.Path(directory).glob("*.json")
             for entry in json.loads(file.read_text())}
    missing = sorted(described_statuses() - found - UNSEEN)
    for path, method, status in missing:
        print(f"{method.upper()} {path}: no test has seen {status}")
    return 1 if missing or not found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
