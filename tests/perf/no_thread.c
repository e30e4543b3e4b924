/* SPDX-License-Identifier: Apache-2.0
 *
 * no_thread: preloaded, it lets the first $THREADS threads of a process start and no more, as
 * a limit on processes does.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef int create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static create *real_one(void)
{
    union {
        void *object;
        create *function;
    } found = {dlsym(RTLD_NEXT, "pthread_create")};
    return found.function;
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread,
                                                          const pthread_attr_t *attributes,
                                                          void *(*body)(void *), void *arg)
{
    static atomic_int started;
    const char *allowed = getenv("THREADS");
    if (allowed && atomic_fetch_add(&started, 1) >= atoi(allowed))
        return EAGAIN;
    return real_one()(thread, attributes, body, arg);
}
