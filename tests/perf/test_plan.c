/* SPDX-License-Identifier: Apache-2.0
 * `ringperf plan`: the pictures of the slides, the proof, the trace. */
#include "shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

#define PLAN PROGRAMS "/ringperf plan "

/* Puts the cells of a rank's row after a transfer one after the other: "G00 G01 …". */
static void row_after(int transfer, int rank, char *cells, size_t size)
{
    char title[32], name[32];
    snprintf(title, sizeof title, "after transfer %d", transfer);
    snprintf(name, sizeof name, "rank %d", rank);
    const char *at = strstr(shell_said, title);
    at = at ? strstr(at, name) : NULL;
    assert_non_null(at);
    at += strlen(name);
    size_t used = 0;
    bool gap = false;
    for (; *at != '\n' && used + 2 < size; at++) {
        if (*at != ' ' && gap && used > 0)
            cells[used++] = ' ';
        gap = *at == ' ';
        if (!gap)
            cells[used++] = *at;
    }
    cells[used] = '\0';
}

static void five_ranks_pass_their_gradients_round_the_ring(void **state)
{
    char cells[256];
    assert_int_equal(shell(PLAN "all_reduce --ranks 5"), 0);
    row_after(1, 2, cells, sizeof cells);
    assert_string_equal(cells, "G10+G20 G21 G22 G23 G24");
    row_after(4, 3, cells, sizeof cells);
    assert_string_equal(cells, "G10+G20+G30 G21+G31 G32 G*3 G04+G14+G24+G34");
    for (int rank = 0; rank < 5; rank++) {
        row_after(8, rank, cells, sizeof cells);
        assert_string_equal(cells, "G*0 G*1 G*2 G*3 G*4");
    }
    assert_int_equal(shell_count("after transfer"), 8);
    assert_int_equal(shell_count("proven: "), 1);
}

static void the_traffic_of_the_ring_is_the_least(void **state)
{
    assert_int_equal(shell(PLAN "all_reduce --ranks 5 --bytes 1000000"), 0);
    assert_int_equal(shell_count("at most 8 messages and 1600000 bytes, 1.6 of a vector"), 1);
}

static void every_algorithm_and_collective_is_proven(void **state)
{
    static const char *const algorithms[] = {"oneshot", "direct", "ring",        "halving",
                                             "tree",    "chain",  "hierarchical"};
    static const char *const collectives[] = {"all_reduce", "reduce_scatter", "all_gather",
                                              "broadcast",  "reduce",         "gather",
                                              "scatter",    "all_to_all",     "scan",
                                              "exscan"};
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        for (size_t k = 0; k < sizeof collectives / sizeof *collectives; k++) {
            const int status = shell(PLAN "%s --algo %s --ranks 5 --per-host 2", collectives[k],
                                     algorithms[i]);
            const bool cannot = status == 2 && shell_count(" has no ") == 1;
            assert_true(cannot || (status == 0 && shell_count("proven: ") == 1));
        }
}

static void what_the_ring_cannot_do_is_drawn_by_direct(void **state)
{
    assert_int_equal(shell(PLAN "all_to_all --ranks 3"), 0);
    assert_int_equal(shell_count("all_to_all by direct, 3 ranks, 9 chunks"), 1);
    assert_int_equal(shell(PLAN "gather --ranks 3 --root 2"), 0);
    assert_int_equal(shell_count("gather by direct, 3 ranks, root 2, 3 chunks"), 1);
    assert_int_equal(shell(PLAN "gather --ranks 3 --algo ring"), 2);
    assert_int_equal(shell_count("ring has no gather"), 1);
}

static void collectives_have_the_names_that_ringperf_knows(void **state)
{
    assert_int_equal(shell(PLAN "ncclAllReduce --ranks 2"), 0);
    assert_int_equal(shell_count("all_reduce by ring, 2 ranks"), 1);
    assert_int_equal(shell(PLAN "alltoall_perf --ranks 2"), 0);
    assert_int_equal(shell_count("all_to_all by direct, 2 ranks"), 1);
    assert_int_equal(shell(PLAN "allreduceX --ranks 2"), 2);
    assert_int_equal(shell_count("unknown collective \"allreduceX\"; did you mean all_reduce?"), 1);
    assert_int_equal(shell(PLAN "sendrecv --ranks 2"), 2);
    assert_int_equal(shell_count("\"sendrecv\" has no plan of its own"), 1);
}

static void one_rank_and_one_chunk_are_in_the_singular(void **state)
{
    assert_int_equal(shell(PLAN "all_reduce --ranks 1 --bytes 1"), 0);
    assert_int_equal(shell_count("all_reduce by ring, 1 rank, 1 chunk"), 1);
    assert_int_equal(shell_count("1 chunks"), 0);
    assert_int_equal(shell_count("0 messages and 0 bytes, 0 of a vector of 1 byte"), 1);
    assert_int_equal(shell(PLAN "all_reduce --ranks 2 --algo oneshot --steps"), 0);
    assert_int_equal(shell_count("1 chunk, 2 steps"), 2);
}

static void steps_are_listed_for_each_rank(void **state)
{
    assert_int_equal(shell(PLAN "broadcast --ranks 3 --root 2 --steps"), 0);
    assert_int_equal(shell_count("rank 0 of 3"), 1);
    assert_int_equal(shell_count("rank 2 of 3"), 1);
    assert_int_equal(shell_count("after transfer"), 0);
}

static void hosts_scratch_and_ranges_are_shown(void **state)
{
    assert_int_equal(shell(PLAN "all_reduce --algo tree --ranks 6 --per-host 3 --steps"), 0);
    assert_int_equal(shell_count("6 ranks on 2 hosts"), 1);
    assert_int_equal(shell(PLAN "all_reduce --algo halving --ranks 8 --steps"), 0);
    assert_true(shell_count("-> scratch[0..3]") > 0);
    assert_int_equal(shell_count("proven: "), 1);
}

static void the_trace_is_json_with_a_row_a_rank(void **state)
{
    static char text[1 << 16];
    const char *file = shell_file();
    assert_int_equal(shell(PLAN "all_reduce --ranks 3 --trace %s", file), 0);
    FILE *in = fopen(file, "re");
    assert_non_null(in);
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    fclose(in);
    cJSON *trace = cJSON_Parse(text);
    const cJSON *event, *events = cJSON_GetObjectItem(trace, "traceEvents");
    int last = -1;
    cJSON_ArrayForEach(event, events)
    {
        const int rank = cJSON_GetObjectItem(event, "tid")->valueint;
        last = rank > last ? rank : last;
    }
    assert_int_equal(last, 2);
    cJSON_Delete(trace);
    shell_forget();
}

static void wrong_requests_are_one_line_and_status_2(void **state)
{
    static const char *const wrong[] = {"",
                                        "shuffle --ranks 4",
                                        "all_reduce",
                                        "all_reduce --ranks 0",
                                        "all_reduce --ranks 65",
                                        "all_reduce --ranks x",
                                        "all_reduce --ranks 4 --per-host 0",
                                        "all_reduce --ranks 4 --algo bush",
                                        "all_reduce --ranks 4 --root 1",
                                        "broadcast --ranks 4 --root 4",
                                        "all_reduce --ranks 4 --chunks 6",
                                        "all_reduce --ranks 4 --bogus",
                                        "all_reduce --ranks",
                                        "all_reduce --ranks 4 more",
                                        "all_reduce --ranks 4 --bytes much",
                                        "all_reduce --ranks 4 --bytes 0x10",
                                        "all_reduce --ranks 4 --bytes 8.9",
                                        "all_reduce --ranks +4",
                                        "all_reduce --ranks ' 4'"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(shell(PLAN "%s", wrong[i]), 2);
        assert_int_equal(shell_count("\n"), 1);
    }
    assert_int_equal(shell(PLAN "all_reduce --ranks 2 --trace /nowhere/trace.json"), 3);
    assert_int_equal(shell(PLAN "all_reduce --ranks 2 --trace /dev/full >/dev/null"), 3);
    assert_int_equal(shell_count("ringperf plan: --trace /dev/full: No space left on device"), 1);
    assert_int_equal(shell(PLAN "--help"), 0);
}

static void a_link_at_the_place_of_results_is_not_followed(void **state)
{
    assert_true(shell_replaces_link(PLAN "all_reduce --ranks 2 --trace"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_ranks_pass_their_gradients_round_the_ring),
        cmocka_unit_test(the_traffic_of_the_ring_is_the_least),
        cmocka_unit_test(every_algorithm_and_collective_is_proven),
        cmocka_unit_test(what_the_ring_cannot_do_is_drawn_by_direct),
        cmocka_unit_test(collectives_have_the_names_that_ringperf_knows),
        cmocka_unit_test(one_rank_and_one_chunk_are_in_the_singular),
        cmocka_unit_test(steps_are_listed_for_each_rank),
        cmocka_unit_test(hosts_scratch_and_ranges_are_shown),
        cmocka_unit_test(the_trace_is_json_with_a_row_a_rank),
        cmocka_unit_test(a_link_at_the_place_of_results_is_not_followed),
        cmocka_unit_test(wrong_requests_are_one_line_and_status_2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
