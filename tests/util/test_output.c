/* SPDX-License-Identifier: Apache-2.0
 * Files of results: new ones, private, in place when complete; links are not followed. */
#include "output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit_test.h"

static int set_up(void **state)
{
    static char folder[64];
    strcpy(folder, "/tmp/ring-output-XXXXXX");
    *state = mkdtemp(folder);
    umask(0); /* the mode of private files must not depend on the umask */
    return *state == NULL || chdir(folder) != 0;
}

static int count_files(void)
{
    DIR *folder = opendir(".");
    int count = -2; /* . and .. */
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static int tear_down(void **state)
{
    unlink("link");
    unlink("result");
    unlink("other");
    unlink("fifo");
    unlink("a");
    unlink("b");
    const bool left = count_files() != 0;
    return chdir("/") != 0 || rmdir(*state) != 0 || left;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

static void expect_text(const char *path, const char *text)
{
    char found[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    found[fread(found, 1, sizeof found - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(found, text);
}

static void expect_private_file(const char *path)
{
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISREG(info.st_mode));
    assert_int_equal(info.st_mode & 07777, 0600);
}

static void a_file_is_in_place_when_it_is_complete(void **state)
{
    output_file file;
    write_text("result", "old");
    assert_true(output_begin(&file, "result"));
    fputs("new", file.stream);
    fflush(file.stream);
    expect_text("result", "old");
    expect_private_file(file.partial);
    assert_true(output_finish(&file));
    output_discard(&file); /* leaves alone what is in place */
    expect_text("result", "new");
    expect_private_file("result");
    assert_int_equal(count_files(), 1);
}

static void one_that_is_read_meanwhile_is_in_place_at_once(void **state)
{
    write_text("result", "old");
    FILE *file = output_open("result");
    assert_non_null(file);
    expect_text("result", "");
    fputs("new", file);
    assert_int_equal(fclose(file), 0);
    expect_text("result", "new");
    expect_private_file("result");
    assert_int_equal(count_files(), 1);
}

static void a_link_is_replaced_and_not_followed(void **state)
{
    output_file file;
    write_text("other", "untouched");
    for (int at_once = 0; at_once < 2; at_once++) {
        unlink("link");
        assert_int_equal(symlink("other", "link"), 0);
        if (at_once) {
            close(output_create("link"));
        } else {
            assert_true(output_begin(&file, "link"));
            assert_true(output_finish(&file));
        }
        expect_private_file("link");
        expect_text("other", "untouched");
    }
    unlink("link");
    assert_int_equal(symlink("nowhere", "link"), 0);
    close(output_create("link"));
    assert_int_equal(access("nowhere", F_OK), -1);
    unlink("link");
    assert_int_equal(symlink("/dev/null", "link"), 0);
    close(output_create("link"));
    expect_private_file("link");
}

static void what_cannot_be_written_leaves_nothing(void **state)
{
    const struct rlimit small = {100, RLIM_INFINITY}, large = {RLIM_INFINITY, RLIM_INFINITY};
    output_file file;
    write_text("result", "old");
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_true(output_begin(&file, "result"));
    for (int i = 0; i < 200; i++)
        fputc('x', file.stream);
    const bool finished = output_finish(&file);
    const int cause = errno;
    setrlimit(RLIMIT_FSIZE, &large);
    assert_false(finished);
    assert_int_equal(cause, EFBIG);
    expect_text("result", "old");
    assert_int_equal(count_files(), 1);
    assert_true(output_begin(&file, "result"));
    output_discard(&file);
    assert_int_equal(count_files(), 1);
}

static void what_is_there_is_kept(void **state)
{
    write_text("result", "old\n");
    assert_null(output_open_new("result", false));
    assert_int_equal(errno, EEXIST);
    expect_text("result", "old\n");
    FILE *file = output_open_new("result", true);
    fputs("new\n", file);
    fclose(file);
    expect_text("result", "old\nnew\n");
    write_text("result", "");
    fclose(output_open_new("result", false)); /* nothing is lost */
    assert_int_equal(symlink("result", "link"), 0);
    for (int add = 0; add <= 1; add++) {
        assert_null(output_open_new("link", add));
        assert_int_equal(errno, EEXIST);
        assert_null(output_open_new(".", add));
        assert_int_equal(errno, EISDIR);
        fclose(output_open_new("/dev/null", add));
        fclose(output_open_new(add ? "b" : "a", add));
        expect_private_file(add ? "b" : "a");
    }
}

static void where_nothing_can_be_made_is_known_at_once(void **state)
{
    char endless[OUTPUT_PATH_MAX + 1];
    output_file file;
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    const struct {
        const char *path;
        int cause;
    } cases[] = {{"nowhere/result", ENOENT}, {".", EISDIR}, {endless, ENAMETOOLONG}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_false(output_begin(&file, cases[i].path));
        assert_int_equal(errno, cases[i].cause);
        output_discard(&file);
        assert_null(output_open(cases[i].path));
        assert_int_equal(errno, cases[i].cause);
    }
    assert_int_equal(chmod(".", 0500), 0);
    const bool made = output_begin(&file, "result");
    chmod(".", 0700);
    if (made)
        output_discard(&file); /* root may write anywhere */
    assert_int_equal(count_files(), 0);
}

static void devices_and_fifos_are_written_to_as_they_are(void **state)
{
    struct stat info;
    output_file file;
    assert_true(output_begin(&file, "/dev/full"));
    fputs("lost", file.stream);
    assert_false(output_finish(&file));
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    const int reader = open("fifo", O_RDONLY | O_NONBLOCK);
    FILE *stream = output_open("fifo");
    fputs("text", stream);
    fclose(stream);
    char text[5] = "";
    assert_int_equal(read(reader, text, 4), 4);
    close(reader);
    assert_int_equal(lstat("fifo", &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    close(output_create("/dev/stdout"));
    assert_int_equal(stat("/dev/full", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_in_place_when_it_is_complete),
        TEST(one_that_is_read_meanwhile_is_in_place_at_once),
        TEST(a_link_is_replaced_and_not_followed),
        TEST(what_cannot_be_written_leaves_nothing),
        TEST(what_is_there_is_kept),
        TEST(where_nothing_can_be_made_is_known_at_once),
        TEST(devices_and_fifos_are_written_to_as_they_are),
    };
    return cmocka_run_group_tests_name("util.output", tests, NULL, NULL);
}
