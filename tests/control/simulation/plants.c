/* SPDX-License-Identifier: Apache-2.0
 * Faults in control, put between its files. Without one, each call goes through. */
#include "simulation.h"

#include "bulletin.h"
#include "losses.h"

#include <string.h>

static enum { NONE, LOST_VERDICT, WRONG_BLAME, UNBOUNDED_WAIT } planted;

bool sim_plant(const char *name)
{
    static const char *const names[] = {"none", "lost_verdict", "wrong_blame", "unbounded_wait"};
    for (int i = 0; i <= UNBOUNDED_WAIT; i++) {
        if (strcmp(names[i], name) != 0)
            continue;
        planted = i;
        return true;
    }
    return false;
}

/* Rank 1 hears no end of a communicator from its neighbours. */
void __real_bulletin_hear(membership *m, connection *c, const control_message *note);
void __wrap_bulletin_hear(membership *m, connection *c, const control_message *note);
void __wrap_bulletin_hear(membership *m, connection *c, const control_message *note)
{
    const bool ends = note->kind == CONTROL_VERDICT || note->kind == CONTROL_LOST;
    if (planted != LOST_VERDICT || m->world.rank != 1 || !ends)
        __real_bulletin_hear(m, c, note);
}

/* The one after it is blamed. */
void __real_losses_see(membership *m, int rank, enum loss how, const char *why);
void __wrap_losses_see(membership *m, int rank, enum loss how, const char *why);
void __wrap_losses_see(membership *m, int rank, enum loss how, const char *why)
{
    __real_losses_see(m, planted == WRONG_BLAME ? (rank + 1) % m->world.size : rank, how, why);
}

/* Waits of callers never run out of time. */
bool __real_control_wait(pthread_cond_t *changed, double deadline);
bool __wrap_control_wait(pthread_cond_t *changed, double deadline);
bool __wrap_control_wait(pthread_cond_t *changed, double deadline)
{
    return __real_control_wait(changed, planted == UNBOUNDED_WAIT ? 1e300 : deadline);
}
