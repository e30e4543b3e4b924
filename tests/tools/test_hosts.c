/* SPDX-License-Identifier: Apache-2.0
 * Checks the meaning of host lists from outside, and which of them are refused. */
#include "host_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit_test.h"

/* "a:2 b:1(0,3)" of a list; slots that were chosen in parentheses. */
static const char *shown(const host_list *list)
{
    static char text[4096];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < list->count; i++) {
        const host_entry *h = list->items[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s:%d", i > 0 ? " " : "",
                                 h->name, h->slots);
        for (int k = 0; h->ids != NULL && k < h->slots; k++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", k > 0 ? "," : "(",
                                     h->ids[k]);
        if (h->ids != NULL)
            used += (size_t)snprintf(text + used, sizeof text - used, ")");
    }
    return text;
}

static void list_is(const char *words, const char *expected)
{
    host_list list = {0};
    assert_int_equal(hosts_parse_list(words, &list), RING_OK);
    assert_string_equal(shown(&list), expected);
    hosts_free(&list);
}

static void list_fails(const char *words)
{
    host_list list = {0};
    fail_clear();
    assert_int_equal(hosts_parse_list(words, &list), RING_ERR_CONFIG);
    assert_true(strlen(fail_text()) > 10);
    hosts_free(&list);
}

static void words_with_slots_and_repetitions_add_up(void **state)
{
    list_is("a", "a:1");
    list_is("a,b:2,a:3", "a:4 b:2");
    list_is("a,A.Cluster,me@A:2,a.cluster.", "a:3 A.Cluster:2");
    list_is("user@node-1.cluster:2", "user@node-1.cluster:2");
    list_is("[fe80::1%eth0]:3,[::1]", "fe80::1%eth0:3 ::1:1");
    list_is("fe80::1%eth0,me@::1", "fe80::1%eth0:1 me@::1:1");
}

static void wrong_words_are_refused(void **state)
{
    static const char *const words[] = {
        "",        ",",           "a,",     "a,,b", "a:",
        "a:0",     "a:-1",        "a:x",    "a:1x", "a:99999999999999999999",
        "a:65537", "-a",          "a@-oX",  "a b",  "a;b",
        "a$b",     "[::1",        "[::1]x", "[]",   "a:1:",
        "$(x)",    "a:65536,a:1", "a:b:1",  "[a:b]"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        list_fails(words[i]);
}

static ring_status slurm(const char *nodes, const char *tasks, host_list *list)
{
    *list = (host_list){0};
    fail_clear();
    return hosts_parse_slurm(nodes, tasks, list);
}

static void slurm_is(const char *nodes, const char *tasks, const char *expected)
{
    host_list list;
    assert_int_equal(slurm(nodes, tasks, &list), RING_OK);
    assert_string_equal(shown(&list), expected);
    hosts_free(&list);
}

static void slurm_lists_expand_with_their_width(void **state)
{
    slurm_is("x3", NULL, "x3:1");
    slurm_is("n[01-04,7],x3", "", "n01:1 n02:1 n03:1 n04:1 n7:1 x3:1");
    slurm_is("n[9-11]", NULL, "n9:1 n10:1 n11:1");
    slurm_is("n[099-101]-ib", NULL, "n099-ib:1 n100-ib:1 n101-ib:1");
    slurm_is("r[1-2]n[1,3]", NULL, "r1n1:1 r1n3:1 r2n1:1 r2n3:1");
    slurm_is("a,b", "2(x1),1", "a:2 b:1");
    slurm_is("n[1-4]", "4(x3),2", "n1:4 n2:4 n3:4 n4:2");
    slurm_is("n[1-2]", "8(x2)", "n1:8 n2:8");
}

static void wrong_slurm_lists_are_refused(void **state)
{
    static const char *const lists[] = {"",
                                        ",",
                                        "a,",
                                        "n[",
                                        "n[]",
                                        "n[1",
                                        "n[1-",
                                        "n[1-]",
                                        "n[-1]",
                                        "n[2-1]",
                                        "n[1,]",
                                        "n[a]",
                                        "n[1-2",
                                        "n]",
                                        "n[1]]",
                                        "n[[1]]",
                                        "n[1-99999999]",
                                        "n[99999999999]",
                                        "-n[1-2]",
                                        "n[0-65535][0-65535]",
                                        "a b",
                                        "n[1-2],n[2-3]",
                                        "n[1-2],N2",
                                        "a,b,a",
                                        "a:1"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        host_list list;
        assert_int_equal(slurm(lists[i], NULL, &list), RING_ERR_CONFIG);
        assert_true(strlen(fail_text()) > 10);
        hosts_free(&list);
    }
}

static void wrong_slurm_tasks_are_refused(void **state)
{
    static const char *const tasks[] = {"2",    "2(x2", "2(x0),1", "x",       "0(x3)",  "2(x)",
                                        "1,,1", "1;1",  "2(x4)",   "2(x3),7", "1,1,1,1"};
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
        host_list list;
        assert_int_equal(slurm("n[1-3]", tasks[i], &list), RING_ERR_CONFIG);
        hosts_free(&list);
    }
}

static void deep_brackets_end_in_an_error(void **state)
{
    host_list list;
    const size_t brackets = 20000;
    char *deep = malloc(3 * brackets + 2);
    deep[0] = 'n';
    for (size_t i = 0; i < brackets; i++)
        memcpy(deep + 1 + 3 * i, "[1]", 3);
    deep[3 * brackets + 1] = '\0';
    assert_int_equal(slurm(deep, NULL, &list), RING_ERR_CONFIG);
    hosts_free(&list);
    free(deep);
}

/* Reads @p text as a file. */
static ring_status from_file(const char *text, size_t size,
                             ring_status (*read_it)(const char *path, host_list *list),
                             host_list *list)
{
    char path[] = "/tmp/ring-hosts-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, size), size);
    close(fd);
    *list = (host_list){0};
    fail_clear();
    const ring_status status = read_it(path, list);
    unlink(path);
    return status;
}

static void hostfiles_hold_names_slots_and_comments(void **state)
{
    static const char text[] = "# head\n\n  n1 slots=2\r\nn2\tslots=10 # tail\nn3\nn4 slots=0\n"
                               "n5:2\n[::1]:3\n::2 slots=4\nfe80::1";
    host_list list;
    assert_int_equal(from_file(text, strlen(text), hosts_read_file, &list), RING_OK);
    assert_string_equal(shown(&list), "n1:2 n2:10 n3:1 n4:0 n5:2 ::1:3 ::2:4 fe80::1:1");
    hosts_free(&list);
}

static void wrong_hostfiles_are_refused_with_their_line(void **state)
{
    static const struct {
        const char *text, *message;
    } files[] = {
        {"n1 slots=2\nn1 slots=1\n", ":2: hostfile contains multiple entries for n1"},
        {"n1 slot=2\n", ":1: 'slot=2'"},
        {"n1 slots=\n", ":1: 'slots='"},
        {"n1:2\nN1. slots=1\n", ":2: hostfile contains multiple entries for N1."},
        {"n1:2\nn1 slots=1\n", ":2: hostfile contains multiple entries for n1"},
        {"n1:2 slots=2\n", ":1: 'slots=2' after 'n1:2'"},
        {"n1:0\n", ":1: 'n1:0' is not NAME"},
        {"n1 slots=2 more\n", ":1: 'slots=2 more'"},
        {"n1 slots=99999999999999\n", ":1: "},
        {"\n\n;rm slots=1\n", ":3: ';rm' is not a host name"},
        {"", "names no host"},
        {"# only\n", "names no host"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        host_list list;
        assert_int_equal(from_file(files[i].text, strlen(files[i].text), hosts_read_file, &list),
                         RING_ERR_CONFIG);
        if (strstr(fail_text(), files[i].message) == NULL)
            fail_msg("no '%s' in '%s'", files[i].message, fail_text());
        hosts_free(&list);
    }
}

static void endless_lines_are_refused(void **state)
{
    host_list list;
    char *text = malloc(5000);
    memset(text, 'x', 5000);
    assert_int_equal(from_file(text, 5000, hosts_read_file, &list), RING_ERR_CONFIG);
    assert_non_null(strstr(fail_text(), ":1: the line is longer"));
    hosts_free(&list);
    free(text);
}

static void zero_bytes_are_refused(void **state)
{
    host_list list;
    assert_int_equal(from_file("a\nb\0c slots=2\n", 14, hosts_read_file, &list), RING_ERR_CONFIG);
    assert_non_null(strstr(fail_text(), ":2: the line has a zero byte"));
    hosts_free(&list);
}

static void only_regular_files_are_read(void **state)
{
    char fifo[] = "/tmp/ring-hosts-fifo-XXXXXX";
    host_list list = {0};
    close(mkstemp(fifo));
    unlink(fifo);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const char *const paths[] = {"/dev/zero", fifo, "/tmp"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        assert_int_equal(hosts_read_file(paths[i], &list), RING_ERR_CONFIG);
        assert_non_null(strstr(fail_text(), ": not a regular file"));
    }
    unlink(fifo);
}

/* 65,536 names took 33 s when each was compared with all before it, and when their ends made no
 * difference to where they were looked for. */
static void many_hosts_are_read_at_once(void **state)
{
    enum { LINE = sizeof "cluster-n00000 slots=2\n" - 1 };
    host_list list;
    char *text = malloc((size_t)HOSTS_MAX * LINE + 1);
    for (int i = 0; i < HOSTS_MAX; i++) {
        char line[64];
        snprintf(line, sizeof line, "cluster-n%05d slots=2\n", i);
        memcpy(text + (size_t)i * LINE, line, LINE);
    }
    const double start = clock_now();
    assert_int_equal(from_file(text, (size_t)HOSTS_MAX * LINE, hosts_read_file, &list), RING_OK);
    assert_true(clock_now() - start < 5);
    assert_int_equal(list.count, HOSTS_MAX);
    assert_ptr_equal(hosts_find(&list, "cluster-n65535", 14), list.items[65535]);
    assert_null(hosts_find(&list, "cluster-n65536", 14));
    assert_int_equal(hosts_exclude(&list, "cluster-n00000@cluster-n00002:1"), RING_OK);
    assert_ptr_equal(hosts_find(&list, "cluster-n65535", 14), list.items[65534]);
    hosts_free(&list);
    memcpy(text + (size_t)(HOSTS_MAX - 1) * LINE, "cluster-n00017", 14);
    assert_int_equal(from_file(text, (size_t)HOSTS_MAX * LINE, hosts_read_file, &list),
                     RING_ERR_CONFIG);
    assert_non_null(
        strstr(fail_text(), ":65536: hostfile contains multiple entries for cluster-n00017"));
    hosts_free(&list);
    free(text);
}

/* Random files give a list or one error line, never more. */
static void noise_is_survived(void **state)
{
    static const char letters[] = "ab1 #=\n,:[]-@\t\0slots=";
    unsigned seed = 1;
    for (int turn = 0; turn < 2000; turn++) {
        char text[64];
        host_list list;
        const size_t size = (size_t)(turn % 63);
        for (size_t i = 0; i < size; i++) {
            seed = seed * 1103515245u + 12345u;
            text[i] = letters[(seed >> 16) % (sizeof letters - 1)];
        }
        text[size] = '\0';
        from_file(text, size, turn % 2 ? hosts_read_file : hosts_read_pbs, &list);
        hosts_free(&list);
        slurm(text, text, &list);
        hosts_free(&list);
        if (hosts_parse_list(text, &list) == RING_OK)
            hosts_include(&list, text, turn % 3 == 0);
        hosts_free(&list);
    }
}

static void pbs_names_add_up(void **state)
{
    host_list list;
    assert_int_equal(from_file("a\nb\na\n", 6, hosts_read_pbs, &list), RING_OK);
    assert_string_equal(shown(&list), "a:2 b:1");
    hosts_free(&list);
    assert_int_equal(from_file("a slots=2\n", 10, hosts_read_pbs, &list), RING_ERR_CONFIG);
    hosts_free(&list);
    assert_int_equal(from_file("a:2\n", 4, hosts_read_pbs, &list), RING_ERR_CONFIG);
    hosts_free(&list);
}

static void lsf_names_add_up(void **state)
{
    host_list list = {0};
    assert_int_equal(hosts_parse_words(" a b  a\n", &list), RING_OK);
    assert_string_equal(shown(&list), "a:2 b:1");
    hosts_free(&list);
    assert_int_equal(hosts_parse_words(" ", &list), RING_ERR_CONFIG);
    assert_int_equal(hosts_parse_words("a;b", &list), RING_ERR_CONFIG);
    hosts_free(&list);
}

static void filter_is(const char *words, bool include, const char *expected)
{
    host_list list = {0};
    assert_int_equal(hosts_parse_list("n1:4,n2:2,n3:1", &list), RING_OK);
    const ring_status status = include ? hosts_include(&list, words, false)
                                       : hosts_exclude(&list, words);
    if (expected == NULL)
        assert_int_equal(status, RING_ERR_CONFIG);
    else
        assert_string_equal(shown(&list), expected);
    hosts_free(&list);
}

static void include_keeps_what_is_named(void **state)
{
    filter_is("n2", true, "n2:2");
    filter_is("n3@n1:3,0", true, "n1:2(3,0) n3:1");
    static const char *const wrong[] = {"",       "@",  "n1@",     "n1:",   "n1:4", "n1:0,0",
                                        "n1:0;1", "n9", "n1@n1:0", "n1:0,", "n1:a"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        filter_is(wrong[i], true, NULL);
}

static void exclude_drops_what_is_named(void **state)
{
    filter_is("n2", false, "n1:4 n3:1");
    filter_is("n1:1,2@n3:0", false, "n1:2(0,3) n2:2");
    filter_is("n1@n2@n3", false, NULL);
    filter_is("n1:9", false, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_with_slots_and_repetitions_add_up),
        cmocka_unit_test(wrong_words_are_refused),
        cmocka_unit_test(slurm_lists_expand_with_their_width),
        cmocka_unit_test(wrong_slurm_lists_are_refused),
        cmocka_unit_test(wrong_slurm_tasks_are_refused),
        cmocka_unit_test(deep_brackets_end_in_an_error),
        cmocka_unit_test(hostfiles_hold_names_slots_and_comments),
        cmocka_unit_test(wrong_hostfiles_are_refused_with_their_line),
        cmocka_unit_test(endless_lines_are_refused),
        cmocka_unit_test(zero_bytes_are_refused),
        cmocka_unit_test(only_regular_files_are_read),
        cmocka_unit_test(many_hosts_are_read_at_once),
        cmocka_unit_test(noise_is_survived),
        cmocka_unit_test(pbs_names_add_up),
        cmocka_unit_test(lsf_names_add_up),
        cmocka_unit_test(include_keeps_what_is_named),
        cmocka_unit_test(exclude_drops_what_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
