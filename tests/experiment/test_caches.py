"""The counts of callgrind's files."""

import caches

DUMP = """events: Ir I1mr ILmr
fl=(1) a.c
fn=(1) main
16 100 1
+2 10
cfn=(2) blur_handle
calls=3 40
20 600 6 2
fn=(2)
40 200 2 1
* 100 1
cfi=(2) memcpy.S
cfn=(3) memcpy
calls=9 1
41 300 3 1
fn=(3)
1 300 3 1
fn=(4) jpeg_encode_handle'2
50 7
totals: 717 7 2
"""


def test_a_stage_has_the_costs_of_what_it_calls():
    counts = caches.by_stage(DUMP)
    assert counts["blur"] == {"Ir": 600, "I1mr": 6, "ILmr": 2}
    assert counts["jpeg_encode"] == {"Ir": 7}
    assert counts["scale"] == counts["jpeg_decode"] == {}
    assert counts["all"] == {"Ir": 717, "I1mr": 7, "ILmr": 2}
