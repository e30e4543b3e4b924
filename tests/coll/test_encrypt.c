/* SPDX-License-Identifier: Apache-2.0
 * RING_ENCRYPT: who decides, who refuses, and that what leaves over tcp tells nothing. Two ranks in
 * one thread; what the library sends passes through here. */
#include <ring/ring.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unit_test.h"

enum { COUNT = 100000, RUN = 16, PATTERN = 0x5a5a5a5a };

/* ---- The wire ---------------------------------------------------------------------- */

static atomic_size_t sent, readable; /* bytes of links; of them, runs of the pattern */

static void look_at(const struct iovec *part)
{
    static const unsigned char pattern[RUN] = {0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a,
                                               0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a};
    const unsigned char *bytes = part->iov_base;
    for (size_t i = 0; i + RUN <= part->iov_len; i += RUN)
        if (memcmp(bytes + i, pattern, RUN) == 0)
            atomic_fetch_add(&readable, 1);
    atomic_fetch_add(&sent, part->iov_len);
}

/* tcp links send by sendmsg(), all others by other calls. */
__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *message,
                                                       int flags)
{
    for (size_t i = 0; i < message->msg_iovlen; i++)
        look_at(&message->msg_iov[i]);
    return syscall(SYS_sendmsg, fd, message, flags);
}

/* ---- Two ranks --------------------------------------------------------------------- */

static void begin(ring_comm *comms[2], const char *zero, const char *one)
{
    const char *const of_rank[2][2] = {{zero, NULL}, {one, NULL}};
    ring_unique_id id;
    assert_int_equal(ring_get_unique_id(&id), RING_OK);
    for (int r = 0; r < 2; r++) {
        ring_config config = RING_CONFIG_INIT;
        config.nonblocking = 1;
        config.settings = of_rank[r];
        assert_int_equal(ring_comm_init_config(&comms[r], 2, &id, r, &config), RING_OK);
    }
}

static void end(ring_comm *comms[2])
{
    ring_comm_destroy(comms[0]);
    ring_comm_destroy(comms[1]);
}

/* The pattern's sum with nothing is the pattern. */
static void check_reduced(ring_comm *comms[2])
{
    static int32_t x[2][COUNT];
    ring_work *works[2];
    for (int i = 0; i < COUNT; i++) {
        x[0][i] = PATTERN;
        x[1][i] = 0;
    }
    for (int r = 0; r < 2; r++) {
        ring_call call = RING_CALL_INIT;
        call.work = &works[r];
        assert_int_equal(ring_all_reduce(x[r], x[r], COUNT, RING_INT32, RING_SUM, comms[r], &call),
                         RING_OK);
    }
    assert_int_equal(ring_wait_all(works, 2), RING_OK);
    for (int i = 0; i < COUNT; i++)
        assert_true(x[0][i] == PATTERN && x[1][i] == PATTERN);
}

/* @return whether the wire showed what was sent. */
static bool shows(const char *zero, const char *one)
{
    ring_comm *comms[2];
    begin(comms, zero, one);
    atomic_store(&sent, 0);
    atomic_store(&readable, 0);
    check_reduced(comms);
    end(comms);
    assert_true(atomic_load(&sent) >= (size_t)COUNT * sizeof(int32_t));
    return atomic_load(&readable) > 0;
}

static void only_encryption_hides_what_is_sent(void **state)
{
    assert_true(shows("RING_ENCRYPT=0", "RING_ENCRYPT=0"));
    assert_false(shows("RING_ENCRYPT=1", "RING_ENCRYPT=1"));
    assert_false(shows("RING_ENCRYPT=chacha20", "RING_ENCRYPT=chacha20"));
}

static void rank_0_decides_for_all(void **state)
{
    assert_false(shows("RING_ENCRYPT=1", "RING_ENCRYPT=0"));
    assert_false(shows("RING_ENCRYPT=chacha20", "RING_ENCRYPT=1"));
}

static void a_rank_that_wants_it_in_vain_ends_the_start(void **state)
{
    ring_comm *comms[2];
    begin(comms, "RING_ENCRYPT=0", "RING_ENCRYPT=1");
    for (int r = 0; r < 2; r++) {
        assert_int_equal(ring_barrier(comms[r], NULL), RING_ERR_CONFIG);
        assert_non_null(strstr(ring_last_error(comms[r]), "RING_ENCRYPT is set here, but not on "
                                                          "rank 0"));
    }
    end(comms);
}

static void without_a_secret_it_is_refused(void **state)
{
    static const char *const variables[][2] = {{"RING_RANK", "0"},
                                               {"RING_SIZE", "2"},
                                               {"MASTER_ADDR", "127.0.0.1"},
                                               {"MASTER_PORT", "29517"},
                                               {"RING_ENCRYPT", "1"}};
    ring_comm *comm = NULL;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        setenv(variables[i][0], variables[i][1], 1);
    assert_int_equal(ring_comm_init_env(&comm), RING_ERR_CONFIG);
    assert_non_null(strstr(ring_last_error(NULL), "RING_SECRET_FILE"));
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i][0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_encryption_hides_what_is_sent),
        cmocka_unit_test(rank_0_decides_for_all),
        cmocka_unit_test(a_rank_that_wants_it_in_vain_ends_the_start),
        cmocka_unit_test(without_a_secret_it_is_refused),
    };
    setenv("RING_TRANSPORT", "tcp", 1);
    setenv("RING_TIMEOUT", "20", 1);
    return cmocka_run_group_tests_name("coll.encrypt", tests, NULL, NULL);
}
