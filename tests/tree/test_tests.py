"""Each test can fail: it asserts something that its input decides, and nothing hides the failure."""

import ast
import functools
import pathlib
import re
import runpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = {path: ast.parse(path.read_text()) for path in sorted(ROOT.glob("tests/**/*.py"))}
C_TESTS = sorted(ROOT.glob("tests/unit/**/*.[ch]"))
SWALLOWING = {"", "AssertionError", "Exception", "BaseException"}
C_MACRO = re.compile(r"^#define (\w+)((?:.*\\\n)*.*)$", re.M)
C_FUNCTION = re.compile(r"^(?:static )?[a-z][\w ]* \**(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", re.M | re.S)


def place(path, node):
    return f"{path.relative_to(ROOT)}:{node.lineno}"


@functools.cache
def walk(tree):
    return list(ast.walk(tree))


def nodes(kind, trees):
    return [(path, node) for path, tree in trees.items() for node in walk(tree)
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


def name_of(call):
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def is_question(name):
    """Returns whether a function of this name answers yes or no, and fails in neither case."""
    return (name in ("eventually", "says", "all", "any")
            or name.startswith(("is_", "has_", "refuses_")))


def unheard_answers(trees):
    """Returns questions whose answer is dropped, comparisons that nobody asserts, and questions
    that are asserted without being asked: `assert daemon.is_alive`. A dropped answer is meant if it
    is assigned to `_`."""
    unheard = [place(path, node) for path, node in nodes(ast.Expr, trees)
               if isinstance(node.value, (ast.Compare, ast.BoolOp, ast.UnaryOp))
               or isinstance(node.value, ast.Call) and is_question(name_of(node.value))]
    classes = [f for _, kind in nodes(ast.ClassDef, trees) for f in kind.body
               if isinstance(f, ast.FunctionDef)]
    methods = {f.name for f in classes if not any("property" in ast.unparse(d)
                                                  for d in f.decorator_list)}
    for path, node in nodes(ast.Assert, trees):
        for part in node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]:
            part = part.operand if isinstance(part, ast.UnaryOp) else part
            if (isinstance(part, ast.Attribute) and part.attr in methods
                    and is_question(part.attr)):
                unheard.append(place(path, node))
    return unheard


def unclear_alternatives(sources, trees):
    """Returns assertions of `a and b or c` without parentheses, which c alone satisfies."""
    unclear = []
    for path, node in nodes(ast.Assert, trees):
        for part in node.test.values if isinstance(node.test, ast.BoolOp) else []:
            if isinstance(part, ast.BoolOp):
                lines = sources[path].splitlines()[:part.lineno]
                before = "".join(lines[:-1]).encode() + lines[-1].encode()[:part.col_offset]
                if not before.rstrip().endswith(b"("):
                    unclear.append(place(path, node))
    return unclear


def only_in_handlers(trees):
    """Returns handlers that assert, where nothing is asserted if there is no exception."""
    found = []
    for path, node in nodes(ast.Try, trees):
        body = [part for line in (*node.body, *node.orelse) for part in ast.walk(line)]
        if not any(isinstance(part, (ast.Assert, ast.Raise)) for part in body):
            found += [place(path, handler) for handler in node.handlers
                      if any(isinstance(part, ast.Assert) for part in ast.walk(handler))]
    return found


def broad_expectations(trees):
    """Returns expectations of any exception, and blocks that suppress a failed assertion."""
    return [place(path, node) for path, node in nodes(ast.Call, trees)
            if name_of(node) in ("raises", "suppress")
            and {ast.unparse(kind) for kind in node.args} & (SWALLOWING - {"", "AssertionError"})
            or name_of(node) == "suppress"
            and "AssertionError" in {ast.unparse(kind) for kind in node.args}]


def conditional_tests(trees):
    """Returns tests that may assert nothing: each of their assertions is below an `if`."""
    found = []
    for path, function in nodes(ast.FunctionDef, trees):
        if not function.name.startswith("test_"):
            continue
        below = {id(part) for node in ast.walk(function) if isinstance(node, ast.If)
                 and not node.orelse for line in node.body for part in ast.walk(line)}
        asserting = [node for node in ast.walk(function)
                     if isinstance(node, (ast.Assert, ast.Raise))
                     or isinstance(node, ast.Call) and name_of(node) in ("raises", "fail")]
        if asserting and all(id(node) in below for node in asserting):
            found.append(f"{place(path, function)} {function.name}")
    return found


def lost_tests(trees):
    """Returns tests that pytest does not find: another function has their name, or they are in
    one."""
    lost = []
    for path, tree in trees.items():
        for scope in ast.walk(tree):
            if not isinstance(scope, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                continue
            names = [f.name for f in scope.body if isinstance(f, ast.FunctionDef)]
            lost += [f"{place(path, f)} {f.name}" for i, f in enumerate(
                f for f in scope.body if isinstance(f, ast.FunctionDef))
                if f.name.startswith("test_")
                and (f.name in names[i + 1:] or not isinstance(scope, ast.Module))]
    return lost


def lost_marks(trees):
    """Returns functions with a mark that are no tests. It was meant for the test below."""
    return [place(path, f) for path, f in nodes(ast.FunctionDef, trees)
            if not f.name.startswith("test_")
            and any("pytest.mark." in ast.unparse(mark) for mark in f.decorator_list)]


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


def test_no_answer_is_unheard():
    assert not unheard_answers(PYTHON)
    assert not unclear_alternatives({path: path.read_text() for path in PYTHON}, PYTHON)


def test_no_expectation_is_satisfied_by_anything():
    assert not only_in_handlers(PYTHON)
    assert not broad_expectations(PYTHON)


def test_every_test_asserts():
    assert not conditional_tests(PYTHON)
    assert not lost_tests(PYTHON)
    assert not lost_marks(PYTHON)
    assert not silent_tests(PYTHON)
    assert not silent_unit_tests([path.read_text() for path in C_TESTS])


def test_the_faults_of_virtual_time_can_be_planted():
    """A changed line of the scheduler or the store leaves its fault without a place."""
    faults = runpy.run_path(str(ROOT / "tests/world/check"))["FAULTS"]
    assert {"queue", "full disk"} <= faults.keys()
    for name, fault in faults.items():
        assert (ROOT / fault.file).read_text().count(fault.old) == 1, f"{name}: {fault.file} has changed"


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


# Each line with a mark is to be found, and no other.
PLANTED = """
def unheard_answers_(daemon):
    eventually(daemon.is_up)                              # found
    daemon.says("x")                                      # found
    daemon.count() == 3                                   # found
    assert daemon.is_up and 1 < f()                       # found
    assert not daemon.is_up                               # found
    assert daemon.is_up() and daemon.is_sound and eventually(daemon.is_up)
    _ = eventually(daemon.is_up)
    daemon.stop()
class Daemon:
    def is_up(self): ...
    @property
    def is_sound(self): ...
def unclear_alternatives_():
    assert a and b or c                                   # found
    assert (a and b) or c
    assert (a and b) or (
        d and e)
    assert a and (b or c) or d                            # found
    assert (a or b) and c or ((d))                        # found
    assert a or b or c
def only_in_handlers_():
    try:
        f()
    except ValueError as e:                               # found
        assert "x" in str(e)
    try:
        f()
    except ValueError:
        assert x
    else:
        assert y
    try:
        f()
        raise AssertionError("it was accepted")
    except ValueError as e:
        assert "x" in str(e)
def broad_expectations_():
    with pytest.raises(Exception): f()                    # found
    with suppress(AssertionError): f()                    # found
    with suppress(OSError): f()
    with pytest.raises(AssertionError): f()
def test_a():                                             # found
    for x in f():
        if x:
            assert x == 1
def test_b():
    if f():
        assert x
    else:
        assert y
def test_c():                                             # found twice
    assert a
def test_c():
    def test_in_it():                                     # found twice
        assert a
    if x:
        assert a
    assert b
@pytest.mark.skipif(f(), reason="")
def helper():                                             # found
    pass
@pytest.fixture
def fixture():
    pass
"""


def test_the_checks_find_what_is_planted_and_nothing_else():
    tree = {ROOT / "x.py": ast.parse(PLANTED)}
    found = [*unheard_answers(tree), *unclear_alternatives({ROOT / "x.py": PLANTED}, tree),
             *only_in_handlers(tree), *broad_expectations(tree), *conditional_tests(tree),
             *lost_tests(tree), *lost_marks(tree)]
    marked = [i for i, line in enumerate(PLANTED.splitlines(), 1) if "# found" in line]
    assert sorted({int(re.match(r"x\.py:(\d+)", where)[1]) for where in found}) == marked
