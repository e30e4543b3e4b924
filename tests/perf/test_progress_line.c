/* SPDX-License-Identifier: Apache-2.0
 * The line of a long measurement: on a terminal only, gone before anything else is printed, and
 * each rank's its own, for ranks may be threads of one process. */
#define _XOPEN_SOURCE 600
#include "progress.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit_test.h"

static int terminal = -1, real_stderr = -1;
static char said[512];

/* Standard error becomes a terminal whose other end is ours. */
static int open_terminal(void **state)
{
    terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0)
        return -1;
    const int end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    real_stderr = dup(STDERR_FILENO);
    if (end < 0 || dup2(end, STDERR_FILENO) < 0)
        return -1;
    return close(end);
}

static int close_terminal(void **state)
{
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    return close(terminal);
}

/* @return what came to the terminal since the last look. The terminal hands it out when it likes,
 * and in pieces; a bell is the last. */
static const char *look(void)
{
    size_t length = 0;
    assert_int_equal(write(STDERR_FILENO, "\a", 1), 1);
    while (length == 0 || said[length - 1] != '\a') {
        const ssize_t more = read(terminal, said + length, sizeof said - length);
        assert_true(more > 0);
        length += (size_t)more;
    }
    said[length - 1] = '\0';
    return said;
}

static const perf_case *example(void)
{
    static perf_case c;
    c = (perf_case){.collective = perf_collective_find("all_reduce"),
                    .dtype = RING_FLOAT32,
                    .ranks = 2,
                    .count = 256};
    return &c;
}

static void a_short_measurement_shows_nothing(void **state)
{
    progress p = {0};
    progress_show(&p, example(), 1, 9);
    progress_show(&p, example(), 2, 9);
    progress_clear(&p);
    assert_string_equal(look(), "");
}

static void a_long_one_shows_a_line_and_takes_it_away(void **state)
{
    progress p = {.shown_at = 1}; /* a microsecond after the machine was started */
    progress_show(&p, example(), 7, 9);
    assert_non_null(strstr(look(), "all_reduce, 1024 bytes, out of place: 7 of 9 calls"));
    progress_show(&p, example(), 8, 9); /* within the second */
    assert_string_equal(look(), "");
    progress_clear(&p);
    assert_string_equal(look(), "\r\033[K");
    progress_clear(&p);
    assert_string_equal(look(), "");
}

static void a_rank_leaves_the_line_of_another_alone(void **state)
{
    progress first = {.shown_at = 1}, second = {0};
    progress_show(&first, example(), 7, 9);
    look();
    progress_clear(&second);
    assert_string_equal(look(), "");
    progress_clear(&first);
    assert_string_equal(look(), "\r\033[K");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_short_measurement_shows_nothing, open_terminal,
                                        close_terminal),
        cmocka_unit_test_setup_teardown(a_long_one_shows_a_line_and_takes_it_away, open_terminal,
                                        close_terminal),
        cmocka_unit_test_setup_teardown(a_rank_leaves_the_line_of_another_alone, open_terminal,
                                        close_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
