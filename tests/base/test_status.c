/* SPDX-License-Identifier: Apache-2.0
 * Statuses, the thread's error text, and log lines. */
#include "base.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "unit_test.h"

#undef fail /* cmocka has a macro of this name */

static void every_status_has_a_text_of_its_own(void **state)
{
    static const ring_status all[] = {
#define STATUS_VALUE(name, value, text) name,
        RING_STATUS_LIST(STATUS_VALUE)
#undef STATUS_VALUE
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(ring_status_string(all[i]), ring_status_string(all[j]));
    assert_string_equal(ring_status_string((ring_status)9999), "unknown status");
}

static void fail_returns_the_status_and_keeps_the_text(void **state)
{
    errno = ENOENT;
    assert_int_equal(fail(RING_ERR_SYSTEM, "opening %s: %m", "x"), RING_ERR_SYSTEM);
    assert_string_equal(fail_text(), "opening x: No such file or directory");
    fail_clear();
    assert_string_equal(fail_text(), "");
}

static void fail_may_quote_the_previous_text(void **state)
{
    fail(RING_ERR_PEER, "the cause");
    fail(RING_ERR_PEER, "while sending: %s", fail_text());
    assert_string_equal(fail_text(), "while sending: the cause");
}

static void fail_cuts_a_text_that_is_too_long(void **state)
{
    char text[5000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    fail(RING_ERR_CONFIG, "%s", text);
    assert_in_range(strlen(fail_text()), 500, 4000);
}

/* A file that is quoted must not give orders to the terminal. */
static void fail_shows_what_can_be_shown(void **state)
{
    fail(RING_ERR_CONFIG, "'%s' is no host", "a\x1b[2J\n\xff\xc2\x9b\xc3\xa4");
    assert_string_equal(fail_text(), "'a?[2J????\xc3\xa4' is no host");
}

static void *fail_elsewhere(void *unused)
{
    fail(RING_ERR_PEER, "another thread's");
    return NULL;
}

static void the_text_belongs_to_the_thread(void **state)
{
    pthread_t thread;
    fail(RING_ERR_PEER, "mine");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    assert_string_equal(fail_text(), "mine");
}

static void types_have_sizes_and_unknown_ones_have_none(void **state)
{
    static const size_t sizes[RING_DTYPE_COUNT] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 2, 2};
    for (int i = 0; i < RING_DTYPE_COUNT; i++)
        assert_int_equal(ring_dtype_size((ring_dtype)i), sizes[i]);
    assert_int_equal(ring_dtype_size(RING_DTYPE_COUNT), 0);
    assert_string_equal(ring_dtype_name(RING_UINT16), "uint16");
    assert_string_equal(ring_dtype_name((ring_dtype)77), "?");
    assert_string_equal(ring_op_name(RING_AVG), "avg");
    assert_string_equal(ring_op_name(RING_LXOR), "lxor");
    assert_string_equal(ring_op_name(RING_OP_COUNT), "?");
}

static void bits_are_of_integers_and_factors_of_floats(void **state)
{
    for (int i = 0; i < RING_DTYPE_COUNT; i++) {
        const ring_dtype type = (ring_dtype)i;
        const bool is_float = strstr(ring_dtype_name(type), "float") != NULL;
        for (int op = 0; op < RING_OP_COUNT; op++) {
            const bool bits = op >= RING_BAND && op <= RING_LXOR, factor = op == RING_PREMUL_SUM;
            assert_int_equal(ring_op_serves((ring_op)op, type), is_float ? !bits : !factor);
        }
    }
    assert_int_equal(ring_op_serves(RING_SUM, RING_DTYPE_COUNT), 0);
    assert_int_equal(ring_op_serves(RING_OP_COUNT, RING_FLOAT32), 0);
}

/* Runs with stderr in a pipe. @return bytes that came out. */
static size_t log_captured(char *out, size_t size, log_level level, const char *text)
{
    int ends[2];
    const int saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    log_at(level, "%s", text);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    const ssize_t got = read(ends[0], out, size - 1);
    close(ends[0]);
    assert_true(got >= 0);
    out[got] = '\0';
    return (size_t)got;
}

static void log_lines_carry_rank_and_level(void **state)
{
    char line[256];
    log_set_rank(3, 8);
    log_captured(line, sizeof line, LOG_WARN, "slow");
    assert_string_equal(line, "[ring r3/8] warn: slow\n");
    log_set_rank(0, 0);
    log_captured(line, sizeof line, LOG_ERROR, "lost");
    assert_string_equal(line, "[ring] error: lost\n");
}

static void log_says_nothing_below_its_level(void **state)
{
    char line[256];
    log_level level;
    assert_int_equal(log_captured(line, sizeof line, LOG_INFO, "hidden"), 0);
    assert_true(log_level_parse("info", &level));
    log_set_level(level);
    assert_int_not_equal(log_captured(line, sizeof line, LOG_INFO, "shown"), 0);
    log_set_level(LOG_WARN);
    assert_false(log_level_parse("loud", &level));
}

static void log_cuts_a_line_and_still_ends_it(void **state)
{
    char text[3000], line[4000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    const size_t length = log_captured(line, sizeof line, LOG_ERROR, text);
    assert_in_range(length, 1000, 1300);
    assert_int_equal(line[length - 1], '\n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_text_of_its_own),
        cmocka_unit_test(fail_returns_the_status_and_keeps_the_text),
        cmocka_unit_test(fail_may_quote_the_previous_text),
        cmocka_unit_test(fail_cuts_a_text_that_is_too_long),
        cmocka_unit_test(fail_shows_what_can_be_shown),
        cmocka_unit_test(the_text_belongs_to_the_thread),
        cmocka_unit_test(types_have_sizes_and_unknown_ones_have_none),
        cmocka_unit_test(bits_are_of_integers_and_factors_of_floats),
        cmocka_unit_test(log_lines_carry_rank_and_level),
        cmocka_unit_test(log_says_nothing_below_its_level),
        cmocka_unit_test(log_cuts_a_line_and_still_ends_it),
    };
    return cmocka_run_group_tests_name("base.status", tests, NULL, NULL);
}
