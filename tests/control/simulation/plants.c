/* SPDX-License-Identifier: Apache-2.0
 * Faults in control, put between its files. Without one, each call goes through. */
#include "simulated_ranks.h"

#include "bulletin.h"
#include "departure.h"
#include "losses.h"

#include <string.h>

static enum { NONE, LOST_VERDICT, WRONG_BLAME, UNBOUNDED_WAIT, WIDE_LOSS, LOST_GOODBYE } planted;

bool sim_plant(const char *name)
{
    static const char *const names[] = {"none",           "lost_verdict", "wrong_blame",
                                        "unbounded_wait", "wide_loss",    "lost_goodbye"};
    for (int i = 0; i <= LOST_GOODBYE; i++) {
        if (strcmp(names[i], name) != 0)
            continue;
        planted = i;
        return true;
    }
    return false;
}

/* Rank 1 hears no end of a communicator from its neighbours. */
void __real_bulletin_receive(membership *m, connection *c, const control_message *note);
void __wrap_bulletin_receive(membership *m, connection *c, const control_message *note);
void __wrap_bulletin_receive(membership *m, connection *c, const control_message *note)
{
    const bool ends = note->kind == CONTROL_VERDICT || note->kind == CONTROL_LOST;
    if (planted != LOST_VERDICT || m->world.rank != 1 || !ends)
        __real_bulletin_receive(m, c, note);
}

/* The one after it is blamed. */
void __real_losses_report(membership *m, int rank, enum loss how, const char *why);
void __wrap_losses_report(membership *m, int rank, enum loss how, const char *why);
void __wrap_losses_report(membership *m, int rank, enum loss how, const char *why)
{
    __real_losses_report(m, planted == WRONG_BLAME ? (rank + 1) % m->world.size : rank, how, why);
}

/* Waits of callers never run out of time. */
bool __real_control_wait(pthread_cond_t *changed, double deadline);
bool __wrap_control_wait(pthread_cond_t *changed, double deadline);
bool __wrap_control_wait(pthread_cond_t *changed, double deadline)
{
    return __real_control_wait(changed, planted == UNBOUNDED_WAIT ? 1e300 : deadline);
}

/* A loss ends all communicators. */
int __real_group_rank(const group *g, int member_rank);
int __wrap_group_rank(const group *g, int member_rank);
int __wrap_group_rank(const group *g, int member_rank)
{
    const int rank = __real_group_rank(g, member_rank);
    return planted == WIDE_LOSS && rank < 0 ? 0 : rank;
}

/* Rank 1 hears of no rank that leaves. */
void __real_departure_receive(membership *m, connection *c, const control_message *message);
void __wrap_departure_receive(membership *m, connection *c, const control_message *message);
void __wrap_departure_receive(membership *m, connection *c, const control_message *message)
{
    if (planted != LOST_GOODBYE || m->world.rank != 1)
        __real_departure_receive(m, c, message);
}
