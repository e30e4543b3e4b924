/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts threads of the library with all signals blocked, so that signals are delivered to the
 * program's own threads. Takes locks with a deadline.
 */
#include "base.h"

#include <signal.h>

int thread_start(pthread_t *thread, void *(*body)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(thread, NULL, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

bool thread_lock_by(pthread_mutex_t *lock, double deadline)
{
    while (pthread_mutex_trylock(lock) != 0) {
        if (clock_now() >= deadline)
            return false;
        clock_sleep(1e-4);
    }
    return true;
}
