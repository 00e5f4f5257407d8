"""Each test can fail: it asserts something that its input decides, and nothing hides the failure."""

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = {path: ast.parse(path.read_text()) for path in sorted(ROOT.glob("tests/**/*.py"))}
C_TESTS = sorted(ROOT.glob("tests/unit/**/*.[ch]"))
SWALLOWING = {"", "AssertionError", "Exception", "BaseException"}
C_MACRO = re.compile(r"^#define (\w+)((?:.*\\\n)*.*)$", re.M)
C_FUNCTION = re.compile(r"^(?:static )?[a-z][\w ]* \**(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", re.M | re.S)


def place(path, node):
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def nodes(kind, trees):
    return [(path, node) for path, tree in trees.items() for node in ast.walk(tree)
            if isinstance(node, kind)]


def hiding_handlers(trees):
    """Returns handlers of failed assertions that neither raise nor keep what they caught."""
    hiding = []
    for path, handler in nodes(ast.ExceptHandler, trees):
        caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        inside = [node for line in handler.body for node in ast.walk(line)]
        if (SWALLOWING & {ast.unparse(kind) if kind else "" for kind in caught}
                and not any(isinstance(node, ast.Raise) for node in inside)
                and not any(isinstance(node, ast.Name) and node.id == handler.name
                            for node in inside)):
            hiding.append(place(path, handler))
    return hiding


def dropped_results(trees):
    """Returns calls in other threads whose failure nobody reads."""
    return [place(path, node) for path, node in nodes(ast.Expr, trees)
            if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute)
            and node.value.func.attr == "submit"]


def is_constant(test):
    """Returns whether a condition is true, or false, whatever the program does."""
    if isinstance(test, ast.BoolOp):
        return any(is_constant(value) for value in test.values)
    if isinstance(test, ast.Compare):
        sides = [ast.unparse(side) for side in (test.left, *test.comparators)]
        is_pure = not any(isinstance(node, ast.Call) for node in ast.walk(test))
        return is_pure and len(set(sides)) < len(sides) or (
            sides[0].startswith("len(") and sides[1:] == ["0"] and
            isinstance(test.ops[0], ast.GtE))
    return isinstance(test, (ast.Constant, ast.Tuple, ast.GeneratorExp, ast.Lambda))


def constant_assertions(trees):
    return [place(path, node) for path, node in nodes(ast.Assert, trees) if is_constant(node.test)]


def reach(asserting, calls):
    """Returns the names that assert, also through those that they call."""
    while more := {name for name, called in calls.items() if called & asserting} - asserting:
        asserting = asserting | more
    return asserting


def silent_tests(trees):
    """Returns tests that assert nothing, not even through a function that they call."""
    asserting, calls = {"raises", "fail"}, {}
    for _, function in nodes(ast.FunctionDef, trees):
        inside = list(ast.walk(function))
        if any(isinstance(node, (ast.Assert, ast.Raise)) for node in inside):
            asserting.add(function.name)
        calls.setdefault(function.name, set()).update(
            node.attr if isinstance(node, ast.Attribute) else node.id for node in inside
            if isinstance(node, (ast.Attribute, ast.Name)))
    asserting = reach(asserting, calls)
    return [f"{place(path, function)} {function.name}"
            for path, function in nodes(ast.FunctionDef, trees)
            if function.name.startswith("test_") and function.name not in asserting]


def silent_unit_tests(texts):
    asserting, calls, tests = set(), {}, []
    for text in texts:
        for name, body in C_FUNCTION.findall(text) + C_MACRO.findall(text):
            words = set(re.findall(r"\w+", body))
            calls.setdefault(name, set()).update(words)
            if any(re.match(r"assert|fail_msg|fail$|CHECK", word) for word in words):
                asserting.add(name)
        tests += re.findall(r"\b(?:cmocka_unit_test\w*|TEST)\((\w+)", C_MACRO.sub("", text))
    return sorted(set(tests) - reach(asserting, calls))


def test_no_handler_hides_a_failure():
    assert not hiding_handlers(PYTHON)
    assert not dropped_results(PYTHON)


def test_no_assertion_is_constant():
    assert not constant_assertions(PYTHON)


def test_every_test_asserts():
    assert not silent_tests(PYTHON)
    assert not silent_unit_tests([path.read_text() for path in C_TESTS])


def test_the_checks_find_what_they_look_for():
    trees = {ROOT / "x.py": ast.parse(
        "def test_a():\n try:\n  assert f()\n except Exception:\n  pass\n"
        "def test_b():\n assert len(f()) >= 0 and (f(), 1)\n assert 1 == 1\n"
        "def test_c():\n f()\n"
        "def test_d():\n try:\n  assert f()\n except AssertionError as e:\n  failed.append(e)\n"
        "def f():\n pool.submit(g)\n a = pool.submit(g)\n")}
    assert hiding_handlers(trees) == ["x.py:4"]
    assert dropped_results(trees) == ["x.py:17"]
    assert constant_assertions(trees) == ["x.py:7", "x.py:8"]
    assert silent_tests(trees) == ["x.py:9 test_c"]
    source = ("static void a(void **state)\n{\n\tf();\n}\nstatic void b(void **state)\n{\n\tg();\n}\n"
              "static int f(void)\n{\n\tassert_true(1);\n}\ncmocka_unit_test(a), cmocka_unit_test(b)")
    assert silent_unit_tests([source]) == ["b"]
