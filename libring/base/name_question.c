/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolves names with getaddrinfo_a(), which runs in a thread of the C library. getaddrinfo() could
 * not be used, because it blocks for minutes if the name server does not answer.
 */
#include "name_question.h"

#include <stdlib.h>
#include <time.h>

struct name_question {
    struct gaicb request; /* getaddrinfo_a()'s request, which its thread reads and writes */
    struct addrinfo hints;
    char name[256], service[32];
    bool known; /* the name is a numeric address, so no server is asked */
};

name_question *name_ask_begin(const char *name, const char *service, const struct addrinfo *hints)
{
    name_question *q = calloc(1, sizeof *q);
    if (q == NULL)
        return NULL;
    q->hints = *hints;
    q->hints.ai_flags = AI_NUMERICHOST;
    q->known = getaddrinfo(name, service, &q->hints, &q->request.ar_result) == 0;
    if (q->known)
        return q;
    text_format(q->name, sizeof q->name, "%s", name);
    text_format(q->service, sizeof q->service, "%s", service != NULL ? service : "");
    q->hints = *hints;
    q->request = (struct gaicb){.ar_name = q->name,
                                .ar_service = service != NULL ? q->service : NULL,
                                .ar_request = &q->hints};
    struct gaicb *list[] = {&q->request};
    if (getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) == 0)
        return q;
    free(q);
    return NULL;
}

/* A request that cannot be cancelled after the deadline is not freed, because the C library's
 * thread still uses it. */
int name_ask_end(name_question *q, double deadline, struct addrinfo **found)
{
    const struct gaicb *const list[] = {&q->request};
    int error;
    while ((error = q->known ? 0 : gai_error(&q->request)) == EAI_INPROGRESS &&
           clock_now() < deadline) {
        const double left = deadline - clock_now();
        const long part = left > 1 ? 999999999 : left > 0 ? (long)(left * 1e9) : 0; /* ns */
        (void)gai_suspend(list, 1, &(struct timespec){.tv_nsec = part});
    }
    if (error == EAI_INPROGRESS && gai_cancel(&q->request) != EAI_CANCELED)
        return EAI_AGAIN;
    if (error == 0)
        *found = q->request.ar_result;
    free(q);
    return error == EAI_INPROGRESS ? EAI_AGAIN : error;
}

int name_ask(const char *name, const char *service, const struct addrinfo *hints, double deadline,
             struct addrinfo **found)
{
    name_question *q = name_ask_begin(name, service, hints);
    return q != NULL ? name_ask_end(q, deadline, found) : EAI_MEMORY;
}
