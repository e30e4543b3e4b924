/* SPDX-License-Identifier: Apache-2.0
 * Placing ranks: every rank once, hosts in order, wishes met or refused. */
#include "layout.h"

#include <stdio.h>
#include <string.h>

#include "unit_test.h"

static ring_status place(const char *hosts, layout_wish wish, layout *out)
{
    host_list list = {0};
    assert_int_equal(hosts_parse_list(hosts, &list), RING_OK);
    const ring_status status = layout_make(&list, &wish, out);
    hosts_free(&list);
    return status;
}

/* Ranks a host, in order: "a2 b1". */
static void places_are(const char *hosts, layout_wish wish, const char *expected)
{
    layout l;
    char text[256] = "";
    int next = 0;
    assert_int_equal(place(hosts, wish, &l), RING_OK);
    for (size_t i = 0; i < l.count; i++) {
        const share *s = &l.shares[i];
        char one[64];
        snprintf(one, sizeof one, "%s%s%d", i > 0 ? " " : "", s->host, s->ranks);
        strcat(text, one);
        assert_int_equal(s->first_rank, next);
        assert_int_equal(s->node, i);
        next += s->ranks;
        for (int rank = s->first_rank; rank < next; rank++)
            assert_ptr_equal(layout_share_of(&l, rank), s);
    }
    assert_int_equal(l.ranks, next);
    assert_string_equal(text, expected);
    layout_free(&l);
}

static void wishes_are_met(void **state)
{
    places_are("a:2,b:1", (layout_wish){0}, "a2 b1");
    places_are("a:2,b:1", (layout_wish){.ranks = 2}, "a2");
    places_are("a:2,b:1", (layout_wish){.ranks = 3}, "a2 b1");
    places_are("a:2,b:1", (layout_wish){.ranks = 7}, "a5 b2");
    places_are("a,b,c", (layout_wish){.ranks = 4}, "a2 b1 c1");
    places_are("a,b,c", (layout_wish){.nodes = 2}, "a1 b1");
    places_are("a:9,b:9", (layout_wish){.per_node = 2}, "a2 b2");
    places_are("a,b,c", (layout_wish){.per_node = 2, .ranks = 4}, "a2 b2");
    places_are("a,b,c", (layout_wish){.per_node = 3, .nodes = 1}, "a3");
    places_are("a", (layout_wish){.ranks = 65536}, "a65536");
}

static void what_does_not_fit_is_refused(void **state)
{
    static const struct {
        const char *hosts;
        layout_wish wish;
    } cases[] = {
        {"a,b", {.nodes = 3}},
        {"a,b", {.per_node = 2, .ranks = 3}},
        {"a,b", {.per_node = 2, .ranks = 6}},
        {"a,b", {.per_node = 2, .ranks = 2, .nodes = 2}},
        {"a,b", {.per_node = 65536}},
        {"a:65536,b:1", {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        layout l;
        assert_int_equal(place(cases[i].hosts, cases[i].wish, &l), RING_ERR_CONFIG);
        layout_free(&l);
    }
}

static void slots_follow_include(void **state)
{
    host_list list = {0};
    layout l;
    assert_int_equal(hosts_parse_list("a:8", &list), RING_OK);
    assert_int_equal(hosts_include(&list, "a:5,2", false), RING_OK);
    assert_int_equal(layout_make(&list, &(layout_wish){.ranks = 3}, &l), RING_OK);
    assert_int_equal(l.shares[0].slots[0], 5);
    assert_int_equal(l.shares[0].slots[1], 2);
    assert_int_equal(l.shares[0].slots[2], 5);
    layout_free(&l);
    hosts_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wishes_are_met),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(slots_follow_include),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
