/* SPDX-License-Identifier: Apache-2.0
 * Calls that fail because a test wants it. */
#include "fake.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* In the order in which a program meets them. */
static struct {
    const char *function;
    int error;
    int left; /* calls until the one that fails; 0: none does */
} failures[] = {{"get_device_list", ENOSYS, 0},
                {"open_device", EPERM, 0},
                {"query_device", EIO, 0},
                {"query_port", EIO, 0},
                {"query_gid", EIO, 0},
                {"query_pkey", EIO, 0},
                {"alloc_pd", ENOMEM, 0},
                {"reg_mr", ENOMEM, 0},
                {"reg_dmabuf_mr", EINVAL, 0},
                {"dereg_mr", EBUSY, 0},
                {"create_comp_channel", EMFILE, 0},
                {"create_cq", ENOMEM, 0},
                {"create_srq", ENOMEM, 0},
                {"create_qp", ENOMEM, 0},
                {"modify_qp", ETIMEDOUT, 0},
                {"query_qp", EIO, 0},
                {"post_send", ENOMEM, 0},
                {"post_recv", ENOMEM, 0},
                {"post_srq_recv", ENOMEM, 0},
                {"poll_cq", EIO, 0},
                {"req_notify_cq", EIO, 0},
                {"get_cq_event", EAGAIN, 0},
                {"get_async_event", EAGAIN, 0}};
static _Atomic int counting; /* of them have a call to come */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum { FAILURES = sizeof failures / sizeof *failures };

static int find(const char *function)
{
    int i = 0;
    while (i < FAILURES && strcmp(failures[i].function, function) != 0)
        i++;
    return i;
}

int fake_ibverbs_failures_left(void)
{
    return counting;
}

bool fake_ibverbs_fail(const char *function, int nth)
{
    const int i = find(function);
    if (i == FAILURES || nth < 0)
        return false;
    pthread_mutex_lock(&lock);
    counting += (nth > 0) - (failures[i].left > 0);
    failures[i].left = nth;
    pthread_mutex_unlock(&lock);
    return true;
}

int fake_failure(const char *function)
{
    (void)fake_settings_get();
    if (counting == 0)
        return 0;
    const int i = find(function);
    if (i == FAILURES)
        fake_misuse("not in the table of failures", function);
    pthread_mutex_lock(&lock);
    const bool fails = failures[i].left > 0 && --failures[i].left == 0;
    counting -= fails;
    pthread_mutex_unlock(&lock);
    if (fails)
        errno = failures[i].error;
    return fails ? failures[i].error : 0;
}
