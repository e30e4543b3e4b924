/* SPDX-License-Identifier: Apache-2.0
 * Whole reads and writes on sockets. */
#include "base.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit_test.h"

enum { LARGE = 3 << 20 }; /* more than a socket holds */

static int ends[2];

static int make_ends(void **state)
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
}

static int drop_ends(void **state)
{
    fd_close(&ends[0]);
    fd_close(&ends[1]);
    return 0;
}

static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * 31 + i / 997);
}

static void *write_large(void *status)
{
    unsigned char *data = malloc(LARGE);
    for (size_t i = 0; i < LARGE; i++)
        data[i] = byte_at(i);
    *(ring_status *)status = fd_write_all(ends[1], data, LARGE, clock_now() + 30);
    free(data);
    return NULL;
}

static void move_large(void)
{
    pthread_t writer;
    ring_status wrote = RING_ERR_INTERNAL;
    unsigned char *data = calloc(1, LARGE);
    assert_int_equal(pthread_create(&writer, NULL, write_large, &wrote), 0);
    const ring_status read = fd_read_all(ends[0], data, LARGE, clock_now() + 30);
    pthread_join(writer, NULL);
    assert_int_equal(wrote, RING_OK);
    assert_int_equal(read, RING_OK);
    for (size_t i = 0; i < LARGE; i++)
        assert_int_equal(data[i], byte_at(i));
    free(data);
}

static void more_than_the_socket_holds_passes_whole(void **state)
{
    move_large();
}

static void non_blocking_sockets_pass_it_too(void **state)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(fcntl(ends[i], F_SETFL, O_NONBLOCK), 0);
    move_large();
}

static void reading_ends_at_the_deadline(void **state)
{
    char byte;
    const double start = clock_now();
    assert_int_equal(fd_read_all(ends[0], &byte, 1, start + 0.05), RING_ERR_TIMEOUT);
    assert_true(clock_now() - start >= 0.05);
    assert_true(clock_now() - start < 5);
}

static void writing_ends_at_the_deadline(void **state)
{
    char *data = calloc(1, LARGE);
    assert_int_equal(fd_write_all(ends[0], data, LARGE, clock_now() + 0.05), RING_ERR_TIMEOUT);
    free(data);
}

static void what_is_there_is_read_even_after_the_deadline(void **state)
{
    char byte = 0;
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(fd_read_all(ends[0], &byte, 1, clock_now() - 1), RING_OK);
    assert_int_equal(byte, 'x');
}

static void a_peer_that_closed_is_lost(void **state)
{
    char two[2];
    assert_int_equal(write(ends[1], "x", 1), 1);
    fd_close(&ends[1]);
    assert_int_equal(fd_read_all(ends[0], two, 2, clock_now() + 5), RING_ERR_PEER);
    assert_int_equal(fd_write_all(ends[0], two, 2, clock_now() + 5), RING_ERR_PEER);
}

static void nothing_to_move_is_done_at_once(void **state)
{
    assert_int_equal(fd_read_all(ends[0], NULL, 0, clock_now() - 1), RING_OK);
    assert_int_equal(fd_write_all(ends[0], NULL, 0, clock_now() - 1), RING_OK);
}

static void awaiting_tells_readiness_from_lateness(void **state)
{
    assert_int_equal(fd_await(ends[0], POLLIN, clock_now() + 0.01), RING_ERR_TIMEOUT);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(fd_await(ends[0], POLLIN, clock_now() - 1), RING_OK);
}

static void closing_forgets_the_descriptor(void **state)
{
    const int old = ends[0];
    fd_close(&ends[0]);
    assert_int_equal(ends[0], -1);
    assert_int_equal(fcntl(old, F_GETFD), -1);
    fd_close(&ends[0]);
}

int main(void)
{
#define WITH_ENDS(test) cmocka_unit_test_setup_teardown(test, make_ends, drop_ends)
    const struct CMUnitTest tests[] = {
        WITH_ENDS(more_than_the_socket_holds_passes_whole),
        WITH_ENDS(non_blocking_sockets_pass_it_too),
        WITH_ENDS(reading_ends_at_the_deadline),
        WITH_ENDS(writing_ends_at_the_deadline),
        WITH_ENDS(what_is_there_is_read_even_after_the_deadline),
        WITH_ENDS(a_peer_that_closed_is_lost),
        WITH_ENDS(nothing_to_move_is_done_at_once),
        WITH_ENDS(awaiting_tells_readiness_from_lateness),
        WITH_ENDS(closing_forgets_the_descriptor),
    };
    return cmocka_run_group_tests_name("base.fd", tests, NULL, NULL);
}
