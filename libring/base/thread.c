/* SPDX-License-Identifier: Apache-2.0
 * Threads of the library's own. */
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
