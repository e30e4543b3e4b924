/* SPDX-License-Identifier: Apache-2.0
 *
 * Names to addresses. A name server that is silent would hold getaddrinfo() for minutes, so a
 * thread asks; whoever is done with the question last, asker or thread, frees it.
 */
#include "name_lookup.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct question {
    char name[256];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool answered, given_up;
    int error, number; /* of getaddrinfo(), and errno */
    struct addrinfo *found;
} question;

static void question_free(question *q)
{
    if (q->found != NULL)
        freeaddrinfo(q->found);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

static const struct addrinfo streams = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

static void *ask(void *context)
{
    question *q = context;
    struct addrinfo *found = NULL;
    const int error = getaddrinfo(q->name, NULL, &streams, &found);
    const int number = errno;
    pthread_mutex_lock(&q->lock);
    q->found = error == 0 ? found : NULL;
    q->error = error;
    q->number = number;
    q->answered = true;
    const bool last = q->given_up;
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
    if (last)
        question_free(q);
    return NULL;
}

static question *question_new(const char *name)
{
    pthread_condattr_t monotonic;
    question *q = calloc(1, sizeof *q);
    if (q == NULL)
        return NULL;
    text_format(q->name, sizeof q->name, "%s", name);
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&q->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return q;
}

static bool start_asking(question *q)
{
    pthread_t thread;
    const bool started = thread_start(&thread, ask, q) == 0;
    if (started)
        pthread_detach(thread);
    return started;
}

/* @return as getaddrinfo(), with errno; EAI_AGAIN when the time is up. */
static int await_answer(question *q, double deadline, struct addrinfo **found)
{
    const struct timespec until = {.tv_sec = (time_t)deadline,
                                   .tv_nsec = (long)((deadline - (double)(time_t)deadline) * 1e9)};
    int late = 0;
    pthread_mutex_lock(&q->lock);
    while (!q->answered && late != ETIMEDOUT)
        late = pthread_cond_timedwait(&q->changed, &q->lock, &until);
    const bool answered = q->answered;
    const int error = answered ? q->error : EAI_AGAIN, number = q->number;
    *found = q->found;
    q->found = NULL;
    q->given_up = true;
    pthread_mutex_unlock(&q->lock);
    if (answered)
        question_free(q);
    errno = number;
    return error;
}

static int ask_until(const char *name, double deadline, struct addrinfo **found)
{
    question *q = question_new(name);
    if (q == NULL)
        return EAI_MEMORY;
    if (start_asking(q))
        return await_answer(q, deadline, found);
    question_free(q);
    return EAI_MEMORY;
}

/* Numbers need no server. One that is not ready yet is asked again. */
static int look_up(const char *name, double deadline, struct addrinfo **found)
{
    struct addrinfo numbers = streams;
    numbers.ai_flags = AI_NUMERICHOST;
    int error = getaddrinfo(name, NULL, &numbers, found);
    if (error == 0)
        return 0;
    while ((error = ask_until(name, deadline, found)) == EAI_AGAIN && clock_now() < deadline)
        clock_sleep(0.2);
    return error;
}

/* ---- What was found ---------------------------------------------------------------- */

static void add_found(const struct addrinfo *found, int family, bool loopback, int port,
                      net_address *out, size_t most, size_t *count)
{
    for (; found != NULL && *count < most; found = found->ai_next) {
        net_address a = {.length = found->ai_addrlen};
        if (found->ai_family != family || found->ai_addrlen > sizeof a.at)
            continue;
        memcpy(&a.at, found->ai_addr, found->ai_addrlen);
        if (address_is_loopback(&a) != loopback)
            continue;
        address_set_port(&a, port);
        out[(*count)++] = a;
    }
}

static void add_all(const struct addrinfo *found, int port, net_address *out, size_t most,
                    size_t *count)
{
    *count = 0;
    for (int loopback = 0; loopback < 2; loopback++) {
        add_found(found, AF_INET, loopback, port, out, most, count);
        add_found(found, AF_INET6, loopback, port, out, most, count);
    }
}

static ring_status refuse_all_of_them(const char *variable, const char *name,
                                      const net_address *found, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (address_is_unspecified(&found[i]))
            return fail(RING_ERR_CONFIG, "%s=%.100s: want one address, never all of them",
                        variable, name);
    return RING_OK;
}

ring_status name_lookup(const char *variable, const char *name, int port, double deadline,
                            net_address *out, size_t most, size_t *count)
{
    struct addrinfo *found = NULL;
    *count = 1;
    out[0] = address_loopback(port);
    if (strcmp(name, "localhost") == 0)
        return RING_OK;
    const int error = look_up(name, deadline, &found);
    if (error == EAI_AGAIN)
        return fail(RING_ERR_TIMEOUT, "%s=%.100s: no name server answered in time "
                    "(RING_INIT_TIMEOUT); give the address in numbers", variable, name);
    if (error != 0)
        return fail(RING_ERR_CONFIG, "%s=%.100s: %s", variable, name,
                    error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
    add_all(found, port, out, most, count);
    freeaddrinfo(found);
    if (*count == 0)
        return fail(RING_ERR_CONFIG, "%s=%.100s has no IP address", variable, name);
    return refuse_all_of_them(variable, name, out, *count);
}
