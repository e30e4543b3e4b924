/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts threads of the library with all signals blocked, so that signals are delivered to the
 * program's own threads.
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
