/* SPDX-License-Identifier: Apache-2.0
 * A name server that is silent would hold getaddrinfo() for minutes, so the C library asks in a
 * thread of its own. */
#include "name_question.h"

#include <stdlib.h>
#include <time.h>

typedef struct question {
    struct gaicb request; /* first */
    struct addrinfo hints;
    char name[256], service[32];
} question;

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

static int ask_server(const char *name, const char *service, const struct addrinfo *hints,
                      double deadline, struct addrinfo **found)
{
    question *q = calloc(1, sizeof *q);
    if (q == NULL)
        return EAI_MEMORY;
    text_format(q->name, sizeof q->name, "%s", name);
    text_format(q->service, sizeof q->service, "%s", service != NULL ? service : "");
    q->hints = *hints;
    q->request = (struct gaicb){.ar_name = q->name,
                                .ar_service = service != NULL ? q->service : NULL,
                                .ar_request = &q->hints};
    struct gaicb *list[] = {&q->request};
    if (getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) == 0)
        return await_answer(q, deadline, found);
    free(q);
    return EAI_MEMORY;
}

int name_ask(const char *name, const char *service, const struct addrinfo *hints, double deadline,
             struct addrinfo **found)
{
    struct addrinfo numbers = *hints;
    numbers.ai_flags = AI_NUMERICHOST;
    if (getaddrinfo(name, service, &numbers, found) == 0)
        return 0;
    return ask_server(name, service, hints, deadline, found);
}
