"""Each row of "When something goes wrong" in darkroomd(8) has a test that looks for its message,
and each message in it exists. Each alert has a test that provokes it."""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANUAL = (ROOT / "src" / "daemon" / "darkroomd.8").read_text()

# By the head of the row: the file and the test that plays it.
PLAYED = {
    "unknown key":
        ("unit/conf/test_conf_errors.c", "messages_name_place_text_and_expectation"),
    "configuration: the file is wrong; it stays unchanged":
        ("http/test_control.py", "test_ctl_reports_errors_of_a_reload"),
    "needs a restart: it stays unchanged":
        ("http/test_switch.py", "test_reload_names_what_needs_a_restart"),
    "running as root: expected server.user":
        ("http/test_failures.py", "test_start_says_what_is_wrong[root]"),
    "server.user = NAME: unknown user":
        ("http/test_failures.py", "test_start_says_what_is_wrong[user]"),
    "the directory above it must exist":
        ("http/test_failures.py", "test_start_says_what_is_wrong[mount]"),
    "Failed at step NAMESPACE":
        ("install/test_systemd.py", "test_a_directory_that_is_missing_is_waited_for"),
    "under systemd the unit needs ReadWritePaths=":
        ("http/test_failures.py", "test_start_says_what_is_wrong[rights]"),
    "another darkroomd uses this store":
        ("http/test_failures.py", "test_start_says_what_is_wrong[second]"),
    "server.listen = ADDRESS: Address already in use":
        ("http/test_failures.py", "test_start_says_what_is_wrong[port]"),
    "a port below 1024 needs darkroomd.socket":
        ("http/test_failures.py", "test_start_says_what_is_wrong[privileged]"),
    "log.access_file = PATH: No such file or directory":
        ("http/test_failures.py", "test_start_says_what_is_wrong[log]"),
    "other machines can connect to ADDRESS, and everybody may upload":
        ("http/test_tokens.py", "test_everybody_may_upload_only_with_a_warning"),
    "access.tokens_file = PATH: Permission denied":
        ("http/test_failures.py", "test_start_says_what_is_wrong[tokens]"),
    "expected a file that neither its group nor other users can write to":
        ("http/test_tokens.py", "test_file_that_others_may_use_is_reported"),
    "cannot reload; the tokens stay unchanged":
        ("http/test_tokens.py", "test_bad_file_keeps_the_old_tokens"),
    "limits.memory_budget = SIZE MiB: expected at most":
        ("http/test_command_line.py", "test_check_warns_of_addresses_and_memory"),
    "limits.connections = COUNT: expected a limit of":
        ("http/test_failures.py", "test_too_few_descriptors_are_reported"),
    "accept: cannot accept connections: Too many open files":
        ("http/test_process.py", "test_a_connection_that_cannot_be_accepted_costs_nothing_while_it_waits"),
    "to be recovered":
        ("http/test_spool.py", "test_recovery_says_once_how_it_ended"),
    "recovery: cannot process acknowledged image ID":
        ("http/test_spool.py", "test_image_that_ended_the_daemon_three_times_is_quarantined"),
    "image ID: NAME is damaged":
        ("http/test_verify.py", "test_damaged_variant_is_refused_moved_away_and_made_again"),
    "server.root = PATH was deleted":
        ("http/test_store_gone.py", "test_store_that_is_deleted_and_made_again_is_used"),
    "store: ADDRESS does not answer as it should":
        ("http/test_s3_spool.py", "test_kill_while_the_store_is_away"),
    "the spool has store.s3_spool_bytes":
        ("http/test_s3_spool.py", "test_spool_that_is_full"),
    "expire: the clock went forward by":
        ("unit/background/test_sweep.c", "nothing_is_removed_by_age_after_the_clock_was_set_far_ahead"),
    "worker GROUP/NUMBER: stuck in one piece of work for":
        ("http/test_service.py", "test_watchdog_is_not_fed_when_a_worker_hangs"),
    "log: dropped COUNT":
        ("http/test_logs.py", "test_stalled_reader_delays_no_request"),
    "log.access_file: cannot write":
        ("http/test_failures.py", "test_full_disk_of_the_access_log_stops_no_request"),
    "The access log does not grow after a rotation":
        ("http/test_logs.py", "test_hangup_reopens_the_log_file"),
    "no daemon listens there":
        ("http/test_control.py", "test_ctl_without_a_daemon_fails"),
    "a trusted proxy sent no header of the PROXY protocol":
        ("http/test_proxy_protocol.py", "test_a_connection_of_a_proxy_without_a_header_is_closed"),
    "Every client in the log is 127.0.0.1":
        ("http/test_proxy.py", "test_clients_behind_the_proxy_are_told_apart"),
    "502 from the proxy":
        ("http/test_proxy.py", "test_proxy_survives_a_restart_of_the_daemon"),
    "421 misdirected":
        ("http/test_sites.py", "test_loopback_has_its_own_hosts_only"),
    "401 unauthorized, 403 forbidden":
        ("http/test_tokens.py", "test_scopes_limit_what_a_token_allows"),
    "503 overloaded":
        ("http/test_overload.py", "test_controller_refuses_what_would_take_too_long"),
    "503 overloaded, the file was not read within server.wait_timeout":
        ("http/test_slow_disk.py", "test_a_file_that_is_not_read_in_time_is_refused"),
    "507 storage-full":
        ("http/test_spool.py", "test_full_disk_gets_507_and_keeps_stored_images"),
    "415 unsupported-media-type":
        ("http/test_bad_files.py", "test_gif_is_refused"),
    "422 damaged-image":
        ("http/test_bad_files.py", "test_truncated_file_is_refused"),
    "store check reports a damaged file":
        ("http/test_store_check.py", "test_every_flipped_bit_is_found_and_nothing_else"),
    "second signal: ending at once":
        ("http/test_process.py", "test_second_signal_ends_the_drain"),
}
# Heads that are not messages of the daemon.
OBSERVED = {"The access log does not grow after a rotation", "Every client in the log is 127.0.0.1",
            "502 from the proxy", "store check reports a damaged file", "Failed at step NAMESPACE"}


def heads():
    """Returns the messages of the section, without the mark for a word that would be a macro."""
    section = MANUAL[MANUAL.index(".Sh WHEN SOMETHING"):].split("\n.Sh ", 1)[0]
    return [head.replace("\\&", "") for head in re.findall(r"^\.It Dq (.*)$", section, re.M)]


def messages():
    """Returns all text in quotes of the sources, with adjacent strings joined."""
    files = [*ROOT.glob("src/**/*.c"), *ROOT.glob("stages/**/*.c")]
    text = "".join(path.read_text() for path in files)
    return re.sub(r'"(?:\s|PRI[a-z]\d+)*"', "", text)


SOURCES = messages()


def test_every_row_has_a_test_and_every_test_a_row():
    assert sorted(heads()) == sorted(PLAYED) and len(PLAYED) >= 30


@pytest.mark.parametrize("head", PLAYED)
def test_the_test_of_a_row_exists(head):
    file, name = PLAYED[head]
    function, _, row = name.partition("[")
    text = (ROOT / "tests" / file).read_text()
    assert re.search(rf"^(?:def |static void ){function}\(", text, re.M), name
    assert not row or f'"{row[:-1]}"' in text, name


def parts(head):
    """Words in capitals, statuses and reasons of the system stand for something else."""
    text = re.sub(r": (Address already in use|No such file or directory|Permission denied"
                  r"|Too many open files)$", "", head)
    return [part.strip(" :=/") for part in re.split(r"\b[A-Z]{2,}\b|(?<!\d)\d{3} |, ", text)]


MESSAGES = sorted(set(PLAYED) - OBSERVED)


@pytest.mark.parametrize("head", MESSAGES)
def test_the_message_of_a_row_is_in_the_program(head):
    for words in parts(head):
        assert words in SOURCES, words


@pytest.mark.parametrize("head", MESSAGES)
def test_the_test_of_a_row_looks_for_its_message(head):
    text = re.sub(r'"\s*f?"', "", (ROOT / "tests" / PLAYED[head][0]).read_text())
    for words in parts(head):
        assert words in text, words


def provoked(tree):
    """Returns the alerts that assertions expect to fire: `fired == {"A", "B"}`, `"A" in fired`."""
    return {constant.value for node in ast.walk(tree) if isinstance(node, ast.Assert)
            for compare in ast.walk(node) if isinstance(compare, ast.Compare)
            and isinstance(compare.ops[0], (ast.Eq, ast.In))
            for side in (compare.left, *compare.comparators) if not isinstance(side, ast.Call)
            for constant in ast.walk(side)
            if isinstance(constant, ast.Constant) and isinstance(constant.value, str)}


def test_every_alert_is_provoked():
    rules = re.findall(r"- alert: Darkroom(\w+)",
                       (ROOT / "conf/monitoring/alerts.yml").read_text())
    tests = ast.parse((ROOT / "tests/http/test_alerts.py").read_text())
    assert len(rules) >= 14 and not set(rules) - provoked(tests)


def test_an_alert_that_may_not_fire_is_not_provoked():
    tree = ast.parse('assert "A" not in f()\nassert x == {"B"}\nassert "C" in f("D")\nf("E")')
    assert provoked(tree) == {"B", "C"}
