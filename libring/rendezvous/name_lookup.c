/* SPDX-License-Identifier: Apache-2.0
 * Names to addresses. A name server that is silent would hold getaddrinfo() for minutes, so the C
 * library asks in a thread of its own. */
#include "name_lookup.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct question {
    struct gaicb request; /* first */
    char name[256];
} question;

static const struct addrinfo streams = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

/* @return as getaddrinfo(); EAI_AGAIN when the time is up. A question that cannot be cancelled is
 * left to the thread that asks it. */
static int await_answer(question *q, double deadline, struct addrinfo **found)
{
    const struct gaicb *const list[] = {&q->request};
    int error;
    while ((error = gai_error(&q->request)) == EAI_INPROGRESS && clock_now() < deadline) {
        const double left = deadline - clock_now();
        const long part = left > 1 ? 999999999 : left > 0 ? (long)(left * 1e9) : 0; /* ns */
        (void)gai_suspend(list, 1, &(struct timespec){.tv_nsec = part});
    }
    if (error == EAI_INPROGRESS && gai_cancel(&q->request) != EAI_CANCELED)
        return EAI_AGAIN;
    *found = q->request.ar_result;
    free(q);
    return error == EAI_INPROGRESS ? EAI_AGAIN : error;
}

static int ask_until(const char *name, double deadline, struct addrinfo **found)
{
    question *q = calloc(1, sizeof *q);
    if (q == NULL)
        return EAI_MEMORY;
    text_format(q->name, sizeof q->name, "%s", name);
    q->request = (struct gaicb){.ar_name = q->name, .ar_request = &streams};
    struct gaicb *list[] = {&q->request};
    if (getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) == 0)
        return await_answer(q, deadline, found);
    free(q);
    return EAI_MEMORY;
}

/* Numbers need no server. A server that is not ready yet is asked again. */
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

/* ---- Results ----------------------------------------------------------------------- */

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
            return fail(RING_ERR_CONFIG, "%s=%.100s: want one address, never all of them", variable,
                        name);
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
        return fail(RING_ERR_TIMEOUT,
                    "%s=%.100s: no name server answered in time (RING_INIT_TIMEOUT); give the "
                    "address in numbers",
                    variable, name);
    if (error != 0)
        return fail(RING_ERR_CONFIG, "%s=%.100s: %s", variable, name, gai_strerror(error));
    add_all(found, port, out, most, count);
    freeaddrinfo(found);
    if (*count == 0)
        return fail(RING_ERR_CONFIG, "%s=%.100s has no IP address", variable, name);
    return refuse_all_of_them(variable, name, out, *count);
}
