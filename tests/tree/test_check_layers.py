"""scripts/check-layers reports each rule that a small tree breaks, and nothing in a good tree."""

import pathlib
import subprocess
import sys

import pytest

sys.dont_write_bytecode = True

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOOD = {
    "src/main.c": '#include "app.h"\n#include "daemon/options.h"\n#include "sched/core/graph.h"\n',
    "src/daemon/options.h": "#ifndef DARKROOM_DAEMON_OPTIONS_H\n",
    "src/access/tokens.h": "#ifndef DARKROOM_DAEMON_TOKENS_H\n",
    "src/daemon/sandbox/sandbox.h": "#ifndef DARKROOM_DAEMON_SANDBOX_H\n",
    "src/sched/core/graph.h": '#ifndef DARKROOM_SCHED_GRAPH_H\n#include "base/clock.h"\n'
                         '#include "event.h"\n',
    "src/sched/core/event.h": "#ifndef DARKROOM_SCHED_EVENT_H\n",
    "src/base/clock.h": "#ifndef DARKROOM_BASE_CLOCK_H\n",
    "stages/app.h": '#ifndef DARKROOM_APP_H\n#include "conn/conn.h"\n#include "sched/core/graph.h"\n',
    "stages/conn/conn.h": '#ifndef DARKROOM_HTTP_CONN_H\n#include "pixel/picture.h"\n',
    "stages/pixel/picture.h": "#ifndef DARKROOM_PIXEL_PICTURE_H\n#include <stdio.h>\n",
    "loadgen/load/load.c": '#include "base/clock.h"\n',
    "tests/unit/sched/test_graph.c": '#include "sched/core/graph.h"\n#include "app.h"\n',
    "README.md": "A tree that keeps all rules.\n",
}


def check(root, **changes):
    """Writes the good tree with some files changed; the lines that the check prints."""
    for name, text in {**GOOD, **changes}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = subprocess.run([ROOT / "scripts" / "check-layers", root], capture_output=True, text=True)
    assert done.stderr == "" and done.returncode == (1 if done.stdout else 0)
    return done.stdout.splitlines()


def test_tree_that_keeps_all_rules_passes(tmp_path):
    assert check(tmp_path) == []


@pytest.mark.parametrize("name, header", [
    ("src/base/clock.h", "sched/core/event.h"), ("src/sched/core/event.h", "daemon/options.h"),
    ("src/daemon/options.h", "app.h"), ("src/sched/core/event.h", "conn/conn.h"),
    ("stages/pixel/picture.h", "conn/conn.h"), ("stages/conn/conn.h", "app.h"),
    ("stages/app.h", "daemon/sandbox/sandbox.h"), ("loadgen/load/load.c", "sched/core/graph.h"),
    ("loadgen/load/load.c", "app.h")])
def test_include_that_points_up_is_reported(tmp_path, name, header):
    (line,) = check(tmp_path, **{name: f'/* one line */\n#include "{header}"\n'})
    assert line.startswith(f"{name}:2: includes ") and header in line


def test_stages_may_include_what_is_below_the_daemon(tmp_path):
    assert check(tmp_path, **{"stages/app.h": '#include "access/tokens.h"\n'}) == []


def test_ground_headers_serve_the_folders_beside_them(tmp_path):
    ground = {"stages/stage_ids.h": "#ifndef DARKROOM_STAGE_IDS_H\n",
              "stages/pixel/picture.h": '#include "stage_ids.h"\n'}
    assert check(tmp_path, **ground) == []
    (line,) = check(tmp_path, **ground, **{"src/sched/core/event.h": '#include "stage_ids.h"\n'})
    assert line.startswith("src/sched/core/event.h:1: includes stages/stage_ids.h")


def test_the_program_knows_what_the_daemon_calls(tmp_path):
    program = {"src/daemon/program.h": "#ifndef DARKROOM_DAEMON_PROGRAM_H\n",
               "stages/app.c": '#include "daemon/program.h"\n'}
    assert check(tmp_path, **program) == []


def test_include_of_a_file_that_does_not_exist_is_reported(tmp_path):
    assert check(tmp_path, **{"src/main.c": '#include "base/nothing.h"\n'}) == [
        'src/main.c:1: "base/nothing.h" does not exist']


def test_file_name_that_exists_twice_is_reported(tmp_path):
    assert check(tmp_path, **{"stages/store/clock.h": "#ifndef DARKROOM_STORE_CLOCK_H\n"}) == [
        "stages/store/clock.h:1: file name clock.h exists in src/base/clock.h as well"]


def test_include_guard_that_exists_twice_is_reported(tmp_path):
    guard = "DARKROOM_BASE_CLOCK_H"
    assert check(tmp_path, **{"stages/store/spool.h": f"#ifndef {guard}\n"}) == [
        f"stages/store/spool.h:1: include guard {guard} exists in src/base/clock.h as well"]


def test_function_of_more_than_50_lines_is_reported(tmp_path):
    def function(lines):
        return "int f(void)\n{\n" + "\tg();\n" * (lines - 2) + "}\n"
    assert check(tmp_path, **{"src/base/text.c": function(50)}) == []
    assert check(tmp_path, **{"src/base/text.c": function(50) + function(51)}) == [
        "src/base/text.c:103: ends a function of 51 lines, more than 50"]


@pytest.mark.parametrize("call", ["sysconf(_SC_NPROCESSORS_ONLN)", "sysconf(_SC_NPROCESSORS_CONF)",
                                  "get_nprocs()", "CPU_COUNT(&set)"])
def test_cores_are_counted_in_one_place(tmp_path, call):
    name = "stages/conn/threads.c"
    (line,) = check(tmp_path, **{name: f"/* threads */\nlong cores = {call};\n"})
    assert line.startswith(f"{name}:2: ") and line.endswith("instead of cores_usable()")
    assert check(tmp_path, **{name: "", "loadgen/load/load.c": f"long cores = {call};\n"}) == []


def test_folder_of_more_than_45_files_is_reported(tmp_path):
    files = {f"src/log/l{n}.c": "\n" for n in range(45)}
    assert check(tmp_path, **files) == []
    assert check(tmp_path, **files, **{"src/log/more.h": "\n"}) == [
        "src/log:1: has 46 C files, more than 45"]


def test_circle_of_more_than_5_units_is_reported(tmp_path):
    def circle(folder, units):
        return {f"{folder}/u{n}.{'hc'[n % 2]}": f'#include "u{(n + 1) % units}.h"\n'
                for n in range(units)} | {f"{folder}/u{n}.h": "\n" for n in range(1, units, 2)}
    assert check(tmp_path, **circle("src/log", 5)) == []
    (line,) = check(tmp_path, **circle("src/log", 6))
    assert line.startswith("src/log/u0:1: 6 units include each other, more than 5: src/log/u0 ")


def test_the_core_of_the_scheduler_may_be_one_circle(tmp_path):
    assert check(tmp_path, **{f"src/sched/core/u{n}.h": f'#include "u{(n + 1) % 6}.h"\n'
                              for n in range(6)}) == []


@pytest.mark.parametrize("name", ["README.md", "src/base/clock.h", "conf/darkroomd.ini"])
def test_word_that_is_not_plain_english_is_reported(tmp_path, name):
    word = "an" + "ew"
    (line,) = check(tmp_path, **{name: f"Starts {word}.\n"})
    assert line == f'{name}:1: "{word}" is not plain English'
