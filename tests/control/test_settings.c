/* SPDX-License-Identifier: Apache-2.0
 * The table of variables: defaults, parsing, refusals, rows, lists of transports. */
#include "ranks.h"

#include "comma_locale.h"
#include "settings.h"
#include "transport_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int set_up(void **state)
{
    clearenv();
    return 0;
}

static settings read_well(void)
{
    settings s;
    if (settings_read(&s) != RING_OK)
        stop_test("%s\n", fail_text());
    return s;
}

static void an_empty_environment_gives_the_defaults(void **state)
{
    const settings s = read_well();
    assert_string_equal(s.transport, "");
    assert_string_equal(s.algo, "");
    assert_true(s.timeout > 599 && s.timeout < 601);
    assert_true(s.peer_timeout > 14 && s.peer_timeout < 16);
    assert_true(s.init_timeout > 59 && s.init_timeout < 61);
    assert_false(s.insecure);
    assert_int_equal(s.secret_fd, -1);
    assert_int_equal(s.debug, LOG_WARN);
    assert_int_equal(s.channels, 0);
    assert_int_equal(s.ib.farthest, PCI_PXB);
}

static void every_field_is_read(void **state)
{
    static const char *const all[][2] = {
        {"RING_TRANSPORT", "tcp"},     {"RING_ALGO", "ring"},      {"RING_TIMEOUT", "1.5"},
        {"RING_PEER_TIMEOUT", "2.5"},  {"RING_INIT_TIMEOUT", "3"}, {"RING_INSECURE", "1"},
        {"RING_ADDR", "10.0.0.1"},     {"RING_SECRET_FILE", "/s"}, {"RING_SECRET_FD", "7"},
        {"RING_SOCKET_IFNAME", "eth"}, {"RING_FAULT", "drop=0.1"}, {"RING_DEBUG", "info"},
        {"RING_RENDEZVOUS_DIR", "/r"}, {"RING_CHANNELS", "16"},    {"NCCL_NET_GDR_LEVEL", "phb"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        setenv(all[i][0], all[i][1], 1);
    const settings s = read_well();
    assert_string_equal(s.transport, "tcp");
    assert_string_equal(s.algo, "ring");
    assert_true(s.timeout > 1.4 && s.timeout < 1.6);
    assert_true(s.peer_timeout > 2.4 && s.peer_timeout < 2.6);
    assert_true(s.init_timeout > 2.9 && s.init_timeout < 3.1);
    assert_true(s.insecure);
    assert_string_equal(s.address, "10.0.0.1");
    assert_string_equal(s.secret_file, "/s");
    assert_int_equal(s.secret_fd, 7);
    assert_string_equal(s.interface, "eth");
    assert_string_equal(s.fault, "drop=0.1");
    assert_string_equal(s.rendezvous_dir, "/r");
    assert_int_equal(s.debug, LOG_INFO);
    assert_int_equal(s.channels, 16);
    assert_int_equal(s.ib.farthest, PCI_NODE);
}

static void wrong_values_are_refused_with_name_value_and_choice(void **state)
{
    static const char *const wrong[][3] = {
        {"RING_TIMEOUT", "soon", "seconds from 0.01 to 1e14"},
        {"RING_TIMEOUT", "-1", "seconds from 0.01 to 1e14"},
        {"RING_TIMEOUT", "0", "seconds from 0.01 to 1e14"},
        {"RING_TIMEOUT", "nan", "seconds from 0.01 to 1e14"},
        {"RING_TIMEOUT", "inf", "seconds from 0.01 to 1e14"},
        {"RING_TIMEOUT", "5x", "seconds from 0.01 to 1e14, or none"},
        {"RING_PEER_TIMEOUT", "none", "seconds from 0.01 to 1e14 ("},
        {"RING_PEER_TIMEOUT", "1e99", "seconds from 0.01 to 1e14"},
        {"RING_INIT_TIMEOUT", " ", "seconds from 0.01 to 1e14"},
        {"RING_INSECURE", "yes", "0 or 1"},
        {"RING_SECRET_FD", "-3", "from 0 to 1048576"},
        {"RING_SECRET_FD", "99999999999999999999", "from 0 to 1048576"},
        {"RING_CHANNELS", "-1", "0 to 16"},
        {"RING_CHANNELS", "17", "0 to 16"},
        {"RING_CHANNELS", "2x", "0 to 16"},
        {"RING_NET_GDR_LEVEL", "NODE", "LOC, PIX, PXB, PHB or SYS, or 0 to 5"},
        {"RING_DEBUG", "loud", "error, warn, info or debug"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        settings s;
        setenv(wrong[i][0], wrong[i][1], 1);
        assert_int_equal(settings_read(&s), RING_ERR_CONFIG);
        assert_non_null(strstr(fail_text(), wrong[i][0]));
        assert_non_null(strstr(fail_text(), wrong[i][1]));
        assert_non_null(strstr(fail_text(), wrong[i][2]));
        unsetenv(wrong[i][0]);
    }
}

static void a_decimal_point_is_one_in_every_locale(void **state)
{
    settings s, unused;
    char text[8];
    const bool german = comma_locale_begin();
    setenv("RING_TIMEOUT", "2.5", 1);
    const ring_status point = settings_read(&s);
    setenv("RING_TIMEOUT", "2,5", 1);
    const ring_status comma = settings_read(&unused);
    fail(RING_ERR_CONFIG, "%.2f", 0.25);
    (void)text_format(text, sizeof text, "%g", 1.5);
    const bool is_as_before = comma_locale_is_on();
    comma_locale_end();
    assert_int_equal(point, RING_OK);
    assert_true(s.timeout > 2.49 && s.timeout < 2.51);
    assert_int_equal(comma, RING_ERR_CONFIG);
    assert_string_equal(fail_text(), "0.25");
    assert_string_equal(text, "1.5");
    assert_int_equal(is_as_before, german);
    if (!german)
        skip_because("localedef cannot make a German locale here");
}

static void a_value_that_is_too_long_is_refused(void **state)
{
    char text[1000];
    settings s;
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    setenv("RING_ALGO", text, 1);
    assert_int_equal(settings_read(&s), RING_ERR_CONFIG);
    assert_non_null(strstr(fail_text(), "a text with a length from 0 to 31"));
}

static void an_empty_variable_counts_as_unset(void **state)
{
    setenv("RING_TIMEOUT", "", 1);
    assert_true(read_well().timeout > 599);
}

static void nccl_names_are_a_fallback(void **state)
{
    setenv("NCCL_DEBUG", "TRACE", 1);
    setenv("NCCL_SOCKET_IFNAME", "ib", 1);
    settings s = read_well();
    assert_int_equal(s.debug, LOG_DEBUG);
    assert_string_equal(s.interface, "ib");
    setenv("RING_DEBUG", "error", 1);
    setenv("RING_SOCKET_IFNAME", "eth", 1);
    s = read_well();
    assert_int_equal(s.debug, LOG_ERROR);
    assert_string_equal(s.interface, "eth");
}

static const settings_row *find_row(const settings_row *rows, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    stop_test("no row %s\n", name);
    return NULL;
}

static void rows_tell_value_and_source(void **state)
{
    size_t count;
    setenv("RING_TIMEOUT", "7", 1);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("RING_RANK", "3", 1);
    settings_row *rows = settings_rows(&count);
    assert_non_null(rows);
    assert_string_equal(find_row(rows, count, "RING_TIMEOUT")->value, "7");
    assert_string_equal(find_row(rows, count, "RING_TIMEOUT")->source, "environment");
    assert_string_equal(find_row(rows, count, "RING_TIMEOUT")->fallback, "600");
    assert_string_equal(find_row(rows, count, "RING_DEBUG")->value, "info");
    assert_string_equal(find_row(rows, count, "RING_DEBUG")->source, "NCCL_DEBUG");
    assert_string_equal(find_row(rows, count, "RING_PEER_TIMEOUT")->source, "default");
    assert_string_equal(find_row(rows, count, "RING_RANK")->value, "3");
    for (size_t i = 0; i < count; i++)
        assert_true(rows[i].help[0] != '\0' && rows[i].unit[0] != '\0');
    free(rows);
}

/* Standard error of a child that reads the settings twice. */
static void stderr_of_reading(bool adapters, bool gpus, char *out, size_t size)
{
    int ends[2];
    settings s;
    assert_int_equal(pipe(ends), 0);
    if (fork() == 0) {
        dup2(ends[1], STDERR_FILENO);
        for (int time = 0; time < 2; time++)
            if (settings_read(&s) == RING_OK)
                settings_note_unfit(&s, adapters, gpus);
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t got;
    while ((got = read(ends[0], out + used, size - 1 - used)) > 0)
        used += (size_t)got;
    out[used] = '\0';
    close(ends[0]);
}

static void an_unknown_variable_is_warned_of_once_with_the_nearest_name(void **state)
{
    char text[4096];
    setenv("RING_TIMOUT", "3", 1);
    setenv("RING_TEST_LONG", "1", 1);
    setenv("RINGING", "1", 1);
    setenv("RING_FOO", "1", 1);
    stderr_of_reading(false, false, text, sizeof text);
    const char *first = strstr(text, "RING_TIMOUT is set");
    assert_non_null(first);
    assert_non_null(strstr(text, "did you mean RING_TIMEOUT?"));
    assert_null(strstr(first + 1, "RING_TIMOUT is set"));
    assert_null(strstr(text, "TEST_LONG"));
    assert_null(strstr(text, "RINGING"));
    assert_non_null(strstr(text, "RING_FOO is set, but libring has no such setting\n"));
}

/* ---- Other libraries' variables ------------------------------------------------------ */

static void nccl_numbers_are_read_as_nccl_reads_them(void **state)
{
    setenv("NCCL_IB_TC", "0x60", 1);
    setenv("NCCL_IB_SL", "010", 1);
    setenv("NCCL_IB_DISABLE", "2", 1);
    const settings s = read_well();
    assert_int_equal(s.ib.traffic_class, 0x60);
    assert_int_equal(s.ib.service_level, 8);
    assert_true(s.ib.disabled);
    assert_int_equal(s.unfit, 0);
}

static void nccl_p2p_disable_is_the_opposite_of_ring_p2p(void **state)
{
    setenv("NCCL_P2P_DISABLE", "0", 1);
    assert_true(read_well().p2p);
    setenv("NCCL_P2P_DISABLE", "1", 1);
    assert_false(read_well().p2p);
    setenv("RING_P2P", "1", 1);
    assert_true(read_well().p2p);
}

static void variables_of_nccl_without_effect_give_one_line(void **state)
{
    char text[4096];
    setenv("NCCL_IB_SL", "3", 1);
    setenv("NCCL_VERSION", "2.28.9", 1);
    setenv("NCCL_TESTS_DEVICE", "0", 1);
    stderr_of_reading(true, true, text, sizeof text);
    assert_string_equal(text, "");
    setenv("NCCL_PROTO", "Simple", 1);
    setenv("NCCL_ALGO", "Ring", 1);
    stderr_of_reading(true, true, text, sizeof text);
    assert_non_null(strstr(text, "variables of NCCL that have no effect in libring: "));
    assert_non_null(strstr(text, "NCCL_PROTO"));
    assert_non_null(strstr(text, "NCCL_ALGO (see RING_ALGO)"));
    assert_ptr_equal(strchr(text, '\n'), strrchr(text, '\n'));
}

/* Each with the default that is used instead, and its subject. */
static void values_of_other_libraries_that_do_not_fit_stop_nothing(void **state)
{
    static const struct {
        const char *name, *value, *row, *fallback, *note;
        bool adapters, gpus;
    } cases[] = {
        {"NCCL_IB_RETRY_CNT", "15", "RING_IB_RETRY_CNT", "6", "a number from 0 to 7", true, false},
        {"NCCL_IB_TIMEOUT", "60", "RING_IB_TIMEOUT", "20", "a number from 1 to 31", true, false},
        {"NCCL_NET_GDR_LEVEL", "P2P", "RING_NET_GDR_LEVEL", "PXB", "LOC, PIX", true, false},
        {"NCCL_MAX_CTAS", "128", "RING_DEVICE_BLOCKS", "16", "a number from 1 to 64", false, true},
        {"NCCL_IB_TC", "9999999999999999999", "RING_IB_TC", "0", "a number from 0 to 255", true,
         false},
        {"NCCL_DEBUG", "LOUD", "RING_DEBUG", "warn", "error, warn, info or debug", false, false},
    };
    char text[4096], note[100];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t count;
        setenv(cases[i].name, cases[i].value, 1);
        (void)read_well();
        snprintf(note, sizeof note, "%s=%s is not used: %s wants %s", cases[i].name, cases[i].value,
                 cases[i].row, cases[i].note);
        stderr_of_reading(cases[i].adapters, cases[i].gpus, text, sizeof text);
        if (strstr(text, note) == NULL)
            stop_test("%s: %s\n", note, text);
        assert_null(strstr(strstr(text, note) + 1, cases[i].name));
        stderr_of_reading(!cases[i].adapters, !cases[i].gpus, text, sizeof text);
        assert_int_equal(text[0] == '\0', cases[i].adapters || cases[i].gpus);
        setenv("LOCAL_RANK", "1", 1); /* rank 0 of the host says it */
        stderr_of_reading(true, true, text, sizeof text);
        assert_string_equal(text, "");
        settings_row *rows = settings_rows(&count);
        assert_string_equal(find_row(rows, count, cases[i].row)->value, cases[i].fallback);
        assert_non_null(strstr(find_row(rows, count, cases[i].row)->source, cases[i].name));
        free(rows);
        clearenv();
    }
}

/* ---- Transports -------------------------------------------------------------------- */

static const char *const names[] = {"loop", "shm", "tcp", "slow"};
enum { SLOW = 8 }; /* used only when asked for */

static ring_status choose(const char *list, uint32_t *mask)
{
    settings s = {.algo = ""};
    text_format(s.transport, sizeof s.transport, "%s", list);
    return settings_transports(&s, names, 4, SLOW, mask);
}

static void lists_choose_and_exclude(void **state)
{
    static const struct {
        const char *list;
        uint32_t mask;
    } good[] = {{"", 7},     {"tcp", 4},       {"shm,tcp", 6}, {"tcp, shm", 6},
                {"^shm", 5}, {"^shm,tcp", 1},  {"tcp,tcp", 4}, {"^", 7},
                {"slow", 8}, {"tcp,slow", 12}, {"^slow", 7},   {"^tcp", 3}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint32_t mask = 99;
        assert_int_equal(choose(good[i].list, &mask), RING_OK);
        assert_int_equal(mask, good[i].mask);
    }
}

static void unknown_names_and_empty_choices_are_refused(void **state)
{
    static const char *const bad[] = {"udp", "tcp,udp", "^udp", "^shm,tcp,loop", ",", "tcp,^shm",
                                      "tc",  "tcpp",    "TCP"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint32_t mask;
        assert_int_equal(choose(bad[i], &mask), RING_ERR_CONFIG);
        assert_non_null(strstr(fail_text(), "loop, shm, tcp, slow"));
    }
    uint32_t mask;
    (void)choose("tcp,udp", &mask);
    assert_non_null(strstr(fail_text(), "\"udp\" is unknown"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        /* First: the warnings come once a process, and a child inherits that they came. */
        TEST(an_unknown_variable_is_warned_of_once_with_the_nearest_name),
        TEST(variables_of_nccl_without_effect_give_one_line),
        TEST(an_empty_environment_gives_the_defaults),
        TEST(every_field_is_read),
        TEST(wrong_values_are_refused_with_name_value_and_choice),
        TEST(a_decimal_point_is_one_in_every_locale),
        TEST(a_value_that_is_too_long_is_refused),
        TEST(an_empty_variable_counts_as_unset),
        TEST(nccl_names_are_a_fallback),
        TEST(rows_tell_value_and_source),
        TEST(nccl_numbers_are_read_as_nccl_reads_them),
        TEST(nccl_p2p_disable_is_the_opposite_of_ring_p2p),
        TEST(values_of_other_libraries_that_do_not_fit_stop_nothing),
        TEST(lists_choose_and_exclude),
        TEST(unknown_names_and_empty_choices_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
