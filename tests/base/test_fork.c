/* SPDX-License-Identifier: Apache-2.0
 * State that forked children keep of this process. */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit_test.h"

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) != -1;
}

/* Runs @p body(fd) in a forked child. @return what it returned. */
static int in_child(int (*body)(int fd), int fd)
{
    int status;
    const pid_t child = fork();
    if (child == 0)
        _exit(body(fd));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int has(int fd)
{
    return is_open(fd);
}

static int new_file(void)
{
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void children_lack_guarded_descriptors_and_keep_others(void **state)
{
    int guarded = fd_guard(new_file()), other = new_file();
    assert_false(in_child(has, guarded));
    assert_true(in_child(has, other));
    assert_true(is_open(guarded));
    fd_close(&guarded);
    fd_close(&other);
}

static void a_closed_descriptors_number_is_guarded_no_more(void **state)
{
    int fd = fd_guard(new_file());
    const int number = fd;
    fd_close(&fd);
    fd = new_file();
    assert_int_equal(fd, number);
    assert_true(in_child(has, fd));
    fd_close(&fd);
}

static int reuse(int fd)
{
    const int again = new_file();
    return again == fd && in_child(has, fd); /* its number is free for anybody */
}

static void a_child_does_not_guard_what_its_parent_did(void **state)
{
    int fd = fd_guard(new_file());
    assert_true(in_child(reuse, fd));
    fd_close(&fd);
}

static void many_and_high_descriptors_are_guarded(void **state)
{
    int low = new_file(), high = fd_guard(fcntl(low, F_DUPFD_CLOEXEC, 900));
    assert_in_range(high, 900, 1023);
    int near = fd_guard(fcntl(low, F_DUPFD_CLOEXEC, high + 1));
    assert_false(in_child(has, high));
    assert_false(in_child(has, near));
    fd_close(&low);
    fd_close(&high);
    fd_close(&near);
}

static void what_is_no_descriptor_passes(void **state)
{
    int none = -1;
    errno = EMFILE;
    assert_int_equal(fd_guard(none), -1);
    assert_int_equal(errno, EMFILE);
    fd_close(&none);
    assert_int_equal(fd_guard(1 << 28), 1 << 28);
}

static int generation(int unused)
{
    return (int)fork_generation();
}

static int grandchilds_generation(int unused)
{
    return in_child(generation, unused);
}

static void each_fork_is_a_generation(void **state)
{
    const int mine = generation(0);
    assert_int_equal(in_child(generation, 0), mine + 1);
    assert_int_equal(in_child(grandchilds_generation, 0), mine + 2);
    assert_int_equal(generation(0), mine);
}

/* The point of it all. */
static void a_peer_sees_the_end_though_a_child_lives(void **state)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    fd_guard(ends[1]);
    const pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    fd_close(&ends[1]);
    struct pollfd entry = {.fd = ends[0], .events = POLLIN};
    char byte;
    assert_int_equal(poll(&entry, 1, 5000), 1);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    fd_close(&ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_lack_guarded_descriptors_and_keep_others),
        cmocka_unit_test(a_closed_descriptors_number_is_guarded_no_more),
        cmocka_unit_test(a_child_does_not_guard_what_its_parent_did),
        cmocka_unit_test(many_and_high_descriptors_are_guarded),
        cmocka_unit_test(what_is_no_descriptor_passes),
        cmocka_unit_test(each_fork_is_a_generation),
        cmocka_unit_test(a_peer_sees_the_end_though_a_child_lives),
    };
    return cmocka_run_group_tests_name("base.fork", tests, NULL, NULL);
}
