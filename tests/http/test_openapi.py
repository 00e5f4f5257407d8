"""The description of the HTTP interface, /openapi.json: served, valid, and complete beside the
manual. openapi.py compares it with the answers of all other tests."""

import json
import re

import jsonschema
import pytest

import openapi
from client import Answer
from darkroom import ROOT
from test_stream import documented

MANUAL = (ROOT / "stages/http/darkroom-http.7").read_text()
PROBLEMS = ROOT / "stages/http/problem.c"
DOCUMENT = openapi.DOCUMENT
SCHEMAS = DOCUMENT["components"]["schemas"]


def references(node):
    if isinstance(node, dict):
        return {node["$ref"]} if "$ref" in node else set().union(*map(references, node.values()))
    return set().union(*map(references, node)) if isinstance(node, list) else set()


def test_it_is_served_at_every_address_and_can_be_cached(start):
    daemon = start("server.admin_listen=127.0.0.1:0", "server.admin_on_public=no")
    answer = daemon.get("/openapi.json")
    assert answer.status == 200 and answer["content-type"] == "application/json"
    assert answer.json() == DOCUMENT
    assert answer["cache-control"] == "no-cache"
    with daemon.admin() as c:
        other = c.request("GET", "/openapi.json")
    assert (other.body, other["etag"]) == (answer.body, answer["etag"])
    again = daemon.get("/openapi.json", headers=[("If-None-Match", answer["etag"])])
    assert again.status == 304 and not again.body


def test_files_of_the_pages_have_conditions(start):
    daemon = start("server.page=yes")
    for path, item in DOCUMENT["paths"].items():
        if "412" not in item.get("get", {"responses": ()})["responses"] or "{" in path:
            continue
        tag = daemon.get(path)["etag"]
        assert daemon.get(path, headers=[("If-None-Match", tag)]).status == 304
        assert daemon.get(path, headers=[("If-Match", '"other"')]).status == 412


def test_references_lead_to_parts_and_all_parts_are_used():
    used = references(DOCUMENT)
    for reference in used:
        openapi.resolve({"$ref": reference})
    parts = {f"#/components/{kind}/{name}" for kind, named in DOCUMENT["components"].items()
             for name in named if kind != "securitySchemes"}
    assert parts == used
    operations = [item[m] for item in DOCUMENT["paths"].values() for m in item if m != "parameters"]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    assert {tag for operation in operations for tag in operation["tags"]} == tags


def test_schemas_are_valid_and_name_the_members_that_they_require():
    for name, schema in SCHEMAS.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        missing = set(schema.get("required", ())) - set(schema.get("properties", {}))
        assert not missing, (name, missing)


# Required and optional members of the objects of OpenAPI 3.1.0, as far as this document has them.
OPERATION = "responses", "tags operationId summary description parameters security requestBody"
RESPONSE = "description", "headers content x-statuses"
PARAMETER = "name in schema", "description required"
HEADER = "schema", "description required"
MEDIA = "", "schema"


def check_members(node, names, where):
    required, optional = (set(text.split()) for text in names)
    if set(node) != {"$ref"}:
        assert required <= set(node) <= required | optional, (where, node)


def check_response(response, where):
    check_members(response, RESPONSE, where)
    for name, header in response.get("headers", {}).items():
        check_members(header, HEADER, (where, name))
    for kind, media in response.get("content", {}).items():
        check_members(media, MEDIA, (where, kind))


def test_objects_have_the_members_of_openapi():
    parts = DOCUMENT["components"]
    check_members(DOCUMENT, ("openapi info security", "servers tags paths components"), "document")
    check_members(DOCUMENT["info"], ("title version", "summary description license"), "info")
    check_members(parts, ("", "securitySchemes parameters headers responses schemas"), "components")
    for name, parameter in parts["parameters"].items():
        check_members(parameter, PARAMETER, name)
    for name, header in parts["headers"].items():
        check_members(header, HEADER, name)
    for name, response in parts["responses"].items():
        check_response(response, name)
    for path, item in DOCUMENT["paths"].items():
        check_members(item, ("", "parameters get post delete"), path)
        parameters = [openapi.resolve(p) for p in item.get("parameters", ())]
        assert ([p["name"] for p in parameters if p["in"] == "path" and p["required"]]
                == re.findall(r"\{(\w+)\}", path))
        for method in set(item) - {"parameters"}:
            check_members(item[method], OPERATION, path)
            for status, response in item[method]["responses"].items():
                assert re.fullmatch(r"[2-5]\d\d|default", status)
                check_response(response, (path, status))


# ---- the manual ----

def test_manual_has_the_same_resources():
    section = MANUAL.split("\n.Sh REQUESTS\n")[1].split("\n.Sh ")[0]
    listed = set()
    for line in re.findall(r"^\.It Li (.*)$", section, re.M):
        for entry in re.sub(r" (?:Ns|Ar|Li)\b", " ", line).split(" , "):
            method, path = entry.split(" ", 1)
            path = path.replace(" ", "").replace(r"\&", "").split("?")[0]
            for name in ("id", "variant", "format"):
                path = path.replace(name.upper(), f"{{{name}}}")
            listed.add((method, path))
    described = {(method.upper(), path) for path, item in DOCUMENT["paths"].items()
                 for method in item if method != "parameters"}
    files = {entry for entry in described if re.search(r"/(page|operator)\.\w+$", entry[1])}
    assert described - files == listed


def test_manual_and_program_have_the_same_problems():
    types = SCHEMAS["Problem"]["x-types"]
    assert ({name for names in types.values() for name in names}
            == set(re.findall(r'^\t\{ "([a-z-]+)", "', PROBLEMS.read_text(), re.M)))
    section = MANUAL.split("\n.Sh ERROR ANSWERS\n")[1].split("\n.Ss ")[0]
    known = {name for names in types.values() for name in names}
    entries = re.split(r"^\.It (?=\d)", section, flags=re.M)[1:]
    seen = {}
    for entry in entries:
        statuses, text = entry.split("\n", 1)
        words = {word for line in re.findall(r"^\.Li (.*)$", text, re.M)
                 for word in re.split(r"[ ,:]+", line)}
        seen[tuple(statuses.split(", "))] = words & known
    assert {status for statuses in seen for status in statuses} == set(types)
    for statuses, names in seen.items():
        assert names == {name for status in statuses for name in types[status]}, statuses


def members(schema, path=""):
    """Returns the paths of all values of a schema, as the manual writes them."""
    if schema["type"] == "array":
        return members(schema["items"], path + "[]")
    if schema["type"] != "object":
        return {path}
    prefix = f"{path}." if path else ""
    found = set().union(*(members(inner, prefix + name)
                          for name, inner in schema.get("properties", {}).items()))
    if isinstance(inner := schema.get("additionalProperties"), dict):
        found |= members(inner, prefix + "*")
    return found


def test_manual_has_the_same_members_of_stats():
    assert members(SCHEMAS["Stats"]) == {re.sub(r"\b[A-Z]+\b", "*", name) for name in documented()}


# ---- the comparison itself ----

def answer_of(status, body, **fields):
    headers = {"x-request-id": ["1"], "content-type": ["application/json"],
               **{name.replace("_", "-"): [value] for name, value in fields.items()}}
    return Answer(status, headers, json.dumps(body).encode())


IMAGE = {"id": "0" * 26, "url": "/images/" + "0" * 26}


@pytest.mark.parametrize("method, path, answer", [
    ("GET", "/other", answer_of(200, {})),
    ("GET", "/images", answer_of(204, {})),
    ("GET", "/images", answer_of(200, {"images": [], "more": 1})),
    ("GET", "/images", answer_of(200, {"images": [{**IMAGE, "size": 1}]})),
    ("GET", "/images", answer_of(200, {"images": [{"id": "x", "url": "/"}]})),
    ("GET", "/images", answer_of(200, {"images": []}, x_new="1")),
    ("GET", "/images", answer_of(200, {"images": []}, content_type="text/plain")),
    ("GET", IMAGE["url"], answer_of(202, IMAGE)),
    ("GET", "/healthz", answer_of(503, {"type": "urn:darkroom:problem:not-found", "title": "x",
                                        "status": 503, "detail": "x"})),
])
def test_an_answer_that_is_not_described_is_found(method, path, answer):
    with pytest.raises(AssertionError):
        openapi.check(method, path, answer)


def test_a_described_answer_is_accepted():
    openapi.check("GET", "/images?limit=1", answer_of(200, {"images": [IMAGE]}))
