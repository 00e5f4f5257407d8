"""store.kind = s3: Idempotency-Keys that several nodes share."""

import signal
import threading

import pytest

import s3_image
from client import Closed
from darkroom import eventually
from s3_fixtures import all_share, begin, figures, is_away, remove, shared, store, stored  # noqa: F401
from s3_image import sum_of
from s3_stand_in import Fault
from test_idempotency import CUT, OTHER, SMALL, SWEEP, ids, is_repeated, post, post_form
from test_s3_faults import ONCE, name_of

def images(store):
    return sorted(stored(store))


def change(store, edit):
    """Replaces the texts of all records."""
    with store.lock:
        for key, (body, meta, put) in list(store.objects.items()):
            if "/keys/" in key:
                old = sum_of(body)
                body = edit(body)
                meta = {name: value.replace(old, sum_of(body)) for name, value in meta.items()}
                store.objects[key] = (body, meta, put)


def grow_old(store, seconds):
    """Makes the records older, by the store's clock."""
    with store.lock:
        for key, (body, meta, put) in list(store.objects.items()):
            if "/keys/" in key:
                store.objects[key] = (body, meta, put - seconds)


def is_forgotten(store):
    """A record that is forgotten has no id."""
    with store.lock:
        return all(body.count(b"\n") == 1 for key, (body, _, _) in store.objects.items()
                   if "/keys/" in key)


class Held:
    """An upload whose images the store holds until release()."""

    def __init__(self, store, daemon, name, data=SMALL):
        self.store, self.answer = store, None
        before = len(store.requests)
        store.fail_once("PUT", "/image/", delays=60)
        self.thread = threading.Thread(target=self.post, args=(daemon, name, data))
        self.thread.start()
        assert eventually(lambda: any("/image/" in key for _, key in store.requests[before:]))
        store.fault = None

    def post(self, daemon, name, data):
        try:
            self.answer = post(daemon, name, data)
        except (Closed, OSError):
            pass  # the daemon was killed

    def release(self):
        self.store.released.set()
        self.thread.join()
        return self.answer


@pytest.mark.every_policy
@pytest.mark.parametrize("quotes", ["", '"'])
def test_each_node_repeats_the_first_answer(begin, store, quotes):
    one, two = begin(), begin()
    store.tag_quotes = quotes
    first = post(one, "a")
    assert is_repeated(post(two, "a"), first) and is_repeated(post(one, "a"), first)
    assert images(store) == ids(first)
    refused = post(two, "a", OTHER)
    assert (refused.status, refused.slug) == (422, "idempotency-key-reused")
    assert ids(post(two, "b")) != ids(first)
    assert len(store.keys("keys/")) == 2


def test_forms_are_known_to_each_node(begin, store):
    one, two = begin(), begin()
    first = post_form(one, "a", SMALL, OTHER)
    assert ids(post_form(two, "a", SMALL, OTHER)) == ids(first) and len(images(store)) == 2
    part = post_form(one, "b", SMALL, CUT)
    again = post_form(two, "b", SMALL, CUT)
    assert ids(again) == ids(part) and again.json()["errors_omitted"] == 1


def test_a_failed_upload_is_not_remembered(begin, store):
    one, two = begin(), begin()
    assert post(one, "a", CUT).status == 422
    assert is_forgotten(store) and not images(store)
    assert post(two, "a", SMALL).status == 201
    assert not is_forgotten(store)


def test_an_upload_in_progress_is_known_to_the_other_node(begin, store):
    one, two = begin("store.s3_timeout=20s"), begin("store.s3_timeout=20s")
    held = Held(store, one, "a")
    waiting = post(two, "a")
    assert (waiting.status, waiting.slug) == (409, "idempotency-key-in-use") and waiting["retry-after"]
    assert post(two, "a", OTHER).status == 422
    first = held.release()
    assert is_repeated(post(two, "a"), first)
    assert images(store) == ids(first)


def test_uploads_at_once_at_two_nodes_make_one_image(begin, store):
    nodes = [begin(), begin()]
    for round_ in range(5):
        answers = []

        def work(node):
            answers.append(post(node, f"key{round_}"))
        threads = [threading.Thread(target=work, args=(nodes[i % 2],)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {answer.status for answer in answers} <= {201, 409}
        assert len({answer["location"] for answer in answers if answer.status == 201}) == 1
        assert len(images(store)) == round_ + 1


def waits(daemon, name, **options):
    """Another node takes the key after UPLOAD_KEY_WAIT_S of its own clock. Returns its answer."""
    answers = []

    def is_taken():
        answers.append(post(daemon, name, **options))
        return answers[-1].status != 409
    assert eventually(is_taken, 60, step=0.5)
    return answers[-1]


def test_a_node_that_died_loses_its_key(begin, store):
    """The other one makes the same image, so one that comes late is no second one."""
    one, two = begin("store.s3_timeout=20s"), begin()
    held = Held(store, one, "a")
    one.signal(signal.SIGKILL)
    one.wait_exit()
    made = waits(two, "a")
    assert made.status == 201 and made["idempotent-replayed"] is None
    assert images(store) == ids(made)
    held.release()
    assert eventually(lambda: sum("/image/" in key for method, key in store.answered
                                  if method == "PUT") == 2)
    assert images(store) == ids(made) and is_repeated(post(two, "a"), made)


def test_a_node_that_died_before_it_answered_has_made_the_image(begin, store):
    one, two = begin("store.s3_timeout=20s"), begin()
    store.fail_once("PUT", "/image/", is_lost=True)
    post_later = threading.Thread(target=lambda: pytest.raises((Closed, OSError), post, one, "a"))
    store.fault = (lambda old: lambda method, key: old(method, key) or (
        Fault(delays=60) if method == "GET" and "/image/" in key else None))(store.fault)
    post_later.start()
    assert eventually(lambda: len(images(store)) == 1)
    one.signal(signal.SIGKILL)
    one.wait_exit()
    post_later.join()
    store.fault = None
    again = post(two, "a")
    assert again.status == 201 and again["idempotent-replayed"] == "true"
    assert images(store) == ids(again)
    store.released.set()


def test_a_node_that_is_too_slow_makes_no_second_image(begin, store):
    one, two = begin("store.s3_timeout=20s"), begin()
    held = Held(store, one, "a")
    made = waits(two, "a")
    assert made.status == 201
    late = held.release()
    assert late.status == 201 and ids(late) == ids(made)
    assert images(store) == ids(made)
    assert is_repeated(post(one, "a"), made)


def test_a_part_that_has_failed_does_not_come_later(begin, store):
    """Its place is taken before the answer. All nodes tell the same."""
    one, two = begin(), begin()
    part = post_form(one, "b", SMALL, CUT)
    assert len(images(store)) == 1
    marks = [body for key, (body, _, _) in store.objects.items() if "/image/" in key
             and len(body) == 10]
    assert marks == [s3_image.FAILED]
    again = post_form(two, "b", SMALL, CUT)
    assert ids(again) == ids(part) and again.json()["errors_omitted"] == 1


def test_an_image_that_was_removed_is_not_made_again(begin, store):
    one, two = begin(), begin()
    first = post(one, "a")
    assert remove(two, first.json()["images"][0]).status == 204
    again = post(two, "a")
    assert again.status == 201 and again["idempotent-replayed"] == "true"
    assert again.json()["images"][0]["status"] == "removed"
    assert not images(store)


@pytest.fixture(scope="module")
def another(all_share, start_for_all, tmp_path_factory):
    """A second node of the shared store."""
    return start_for_all(*all_share[1].settings(tmp_path_factory.mktemp("another")))


@pytest.mark.parametrize("fault", ONCE, ids=name_of)
@pytest.mark.parametrize("part", ["/keys/", "/image/"])
def test_a_fault_makes_no_second_image(shared, another, fault, part):
    """Writing a record and an image meet each fault once."""
    (one, store), two, key = shared, another, f"key {len(shared[1].requests)}"
    store.fail_once("PUT", part, **fault)
    first = post(one, key)
    assert first.status == 201, first
    assert is_repeated(post(two, key), first)
    assert images(store) == ids(first)


def test_nothing_is_made_while_the_store_does_not_answer(begin, store):
    daemon = begin()
    first = post(daemon, "a")
    store.stop()
    assert is_away(post(daemon, "a")) and is_away(post(daemon, "b"))
    store.start()
    assert eventually(lambda: post(daemon, "a").status == 201)
    assert is_repeated(post(daemon, "a"), first)


@pytest.mark.parametrize("damage", [b"", b"s 1", b"\xff" * 500])
def test_a_damaged_record_is_replaced(begin, store, damage):
    daemon = begin()
    post(daemon, "a")
    change(store, lambda body: damage)
    assert post(daemon, "a").status == 201
    assert post(daemon, "a")["idempotent-replayed"] == "true"


def test_a_record_that_the_store_has_damaged_blocks_its_key_alone(begin, store):
    daemon = begin()
    post(daemon, "a")
    key, = store.keys("keys/")
    with store.lock:
        store.objects[key] = (b"other bytes", *store.objects[key][1:])
    assert is_away(post(daemon, "a"))
    assert post(daemon, "b").status == 201


def test_old_records_are_removed(begin, store):
    daemon = begin(SWEEP, "store.idempotency_age=2s")
    post(daemon, "a")
    assert store.keys("keys/")
    assert eventually(lambda: not store.keys("keys/"))
    assert post(daemon, "a")["idempotent-replayed"] is None


def test_records_stay_if_removals_cannot_have_conditions(begin, store):
    """A record that a client has made again could go instead of the old one."""
    store.ignores = ("if-match-delete",)
    daemon = begin(SWEEP, "store.idempotency_age=1s")
    post(daemon, "a")
    grow_old(store, 100)
    rounds = figures(daemon)["lists"]
    assert eventually(lambda: figures(daemon)["lists"] > rounds + 300, 60)
    assert store.keys("keys/")


def test_an_old_record_that_is_left_is_replaced(begin, store):
    daemon = begin("store.idempotency_age=1h")
    first = post(daemon, "a")
    grow_old(store, 3602)
    assert ids(post(daemon, "a")) != ids(first)
    assert len(images(store)) == 2


def test_an_early_answer_is_repeated_while_the_image_is_spooled(begin, store):
    one, two = (begin(s3_spool="file", s3_timeout="30s") for _ in range(2))
    store.fail_always("PUT", "/image/", delays=60)
    early = [("Prefer", "respond-async")]
    first = post(one, "a", headers=early)
    assert first.status == 202
    again = post(one, "a", headers=early)
    assert again.status == 202 and ids(again) == ids(first)
    store.release()
    assert eventually(lambda: post(two, "a").status == 201)
    assert eventually(lambda: images(store) == ids(first))
