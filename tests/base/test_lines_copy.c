/* SPDX-License-Identifier: Apache-2.0
 * Copies to lines: what they bring, and when they go past the caches. */
#include "lines_copy.h"

#include "base.h"

#include <string.h>

#include "unit_test.h"

enum { MOST = 3 * LINES_STREAM_LEAST, SLOW = 3, TRY_AFTER = 64 };

static const double never = 1e18, long_ago = -1e18;

/* Of copies of so many bytes. */
static double at_rate(size_t bytes, double bytes_per_s)
{
    return (double)bytes / bytes_per_s;
}

static void note(lines_copier *c, double bytes_per_s)
{
    const size_t bytes = 65536;
    lines_copier_note(c, bytes, at_rate(bytes, bytes_per_s), 0);
}

static void a_few_slow_copies_in_a_row_and_it_streams(void **state)
{
    lines_copier c = {0};
    for (int i = 1; i < SLOW; i++)
        note(&c, 2.5e9);
    assert_false(c.streams);
    note(&c, 2.5e9);
    assert_true(c.streams);
}

static void slow_ones_among_others_change_nothing(void **state)
{
    lines_copier c = {0};
    for (int i = 0; i < 100; i++) {
        note(&c, i % SLOW == 0 ? 7e9 : 0.1e9);
        assert_false(c.streams);
    }
}

static void a_fast_copy_ends_it_and_a_slow_one_does_not(void **state)
{
    lines_copier c = {.streams = true, .slow = SLOW};
    for (int i = 0; i < 10; i++)
        note(&c, 2.5e9);
    assert_true(c.streams);
    note(&c, 7e9);
    assert_false(c.streams);
    note(&c, 2.5e9);
    assert_false(c.streams);
}

/* Stores that a core holds back tell nothing of the lines: 4 KiB between far cores
 * seem to go at 4.5e9, between near ones at 12e9. */
static void short_copies_count_for_less(void **state)
{
    lines_copier c = {0};
    for (int i = 0; i < 10; i++)
        lines_copier_note(&c, 4096, at_rate(4096, 12e9), 0);
    assert_false(c.streams);
    for (int i = 0; i < SLOW; i++)
        lines_copier_note(&c, 4096, at_rate(4096, 4.6e9), 0);
    assert_true(c.streams);
}

/* ---- Copies --------------------------------------------------------------------------- */

typedef struct copies {
    _Alignas(RING_CACHE_LINE) unsigned char to[MOST + 2 * RING_CACHE_LINE];
    unsigned char from[MOST + RING_CACHE_LINE];
} copies;

static void copy_and_compare(copies *m, lines_copier *c, size_t skip, size_t bytes)
{
    memset(m->to, 0xa5, sizeof m->to);
    for (size_t i = 0; i < bytes; i++)
        m->from[skip + i] = (unsigned char)(i * 7 + bytes);
    lines_copy(c, m->to + RING_CACHE_LINE, m->from + skip, bytes);
    assert_memory_equal(m->to + RING_CACHE_LINE, m->from + skip, bytes);
    for (size_t i = 0; i < RING_CACHE_LINE; i++) {
        assert_int_equal(m->to[i], 0xa5);
        assert_int_equal(m->to[RING_CACHE_LINE + bytes + i], 0xa5);
    }
}

static void all_bytes_come_and_no_others_change(void **state)
{
    static copies m;
    for (int streams = 0; streams < 2; streams++) {
        for (size_t bytes = LINES_STREAM_LEAST - 70; bytes < MOST; bytes += 37) {
            lines_copier c = {.streams = streams != 0, .tried = never};
            copy_and_compare(&m, &c, bytes % RING_CACHE_LINE, bytes);
            copy_and_compare(&m, &c, 0, bytes);
        }
    }
}

static void some_copies_are_timed(void **state)
{
    static copies m;
    lines_copier c = {0};
    int timed = 0;
    for (int i = 0; i < 40 && !c.streams; i++) {
        const uint32_t before = c.count;
        lines_copy(&c, m.to, m.from, MOST);
        timed += c.count <= before;
    }
    assert_true(c.streams || (timed >= 10 && timed <= 40));
}

static void short_copies_are_not_looked_at(void **state)
{
    static copies m;
    lines_copier c = {0};
    for (int i = 0; i < 100; i++)
        lines_copy(&c, m.to, m.from, LINES_STREAM_LEAST - 1);
    assert_int_equal(c.count, 0);
    assert_false(c.streams);
}

/* Neither before so many have gone past the caches, nor before a time has passed. */
static void a_plain_copy_is_tried_from_time_to_time(void **state)
{
    static copies m;
    lines_copier c = {.streams = true, .slow = SLOW, .tried = never};
    for (int i = 0; i < 10 * TRY_AFTER; i++)
        lines_copy(&c, m.to, m.from, MOST);
    assert_true(c.streams);
    assert_true(c.tried == never);
    c.count = 0;
    c.tried = long_ago;
    for (int i = 1; i < TRY_AFTER; i++)
        lines_copy(&c, m.to, m.from, MOST);
    assert_true(c.tried == long_ago);
    lines_copy(&c, m.to, m.from, MOST);
    assert_true(c.tried > long_ago);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_few_slow_copies_in_a_row_and_it_streams),
        cmocka_unit_test(slow_ones_among_others_change_nothing),
        cmocka_unit_test(a_fast_copy_ends_it_and_a_slow_one_does_not),
        cmocka_unit_test(short_copies_count_for_less),
        cmocka_unit_test(all_bytes_come_and_no_others_change),
        cmocka_unit_test(some_copies_are_timed),
        cmocka_unit_test(short_copies_are_not_looked_at),
        cmocka_unit_test(a_plain_copy_is_tried_from_time_to_time),
    };
    return cmocka_run_group_tests_name("base.lines_copy", tests, NULL, NULL);
}
