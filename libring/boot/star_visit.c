/* SPDX-License-Identifier: Apache-2.0
 * The other ranks of the rendezvous: find rank 0, prove, ask, wait for the verdict. */
#include "star.h"

#include <string.h>

typedef struct visit {
    boot_world *world;
    pass *pass;
    star_source source;
    void *context;
    bool known; /* pass says where to go */
    double look_again;
    bool warned;
    star_request request;
    knock knocks[PASS_PLACES];
    waits waits;
} visit;

static ring_status open_doors(visit *v)
{
    if (v->world->doors != NULL)
        return RING_OK;
    RING_TRY(doors_open(v->world, v->pass));
    v->request.card = v->world->cards[v->world->rank];
    return RING_OK;
}

static void aim_knocks(visit *v)
{
    for (size_t i = 0; i < v->pass->places; i++)
        v->knocks[i] = (knock){.to = v->pass->at[i], .peer = 0, .purpose = HAND_JOIN,
                               .extra = &v->request, .extra_bytes = sizeof v->request,
                               .most_pause = v->pass->places > 1 ? 0.2 : 0.05};
}

/* A place that was noted down may be out of date: looks again between tries. */
static ring_status look_up(visit *v)
{
    pass fresh;
    if (v->source == NULL || clock_now() < v->look_again || (v->known && v->knocks[0].busy))
        return RING_OK;
    v->look_again = clock_now() + 0.01;
    const ring_status status = v->source(v->context, &fresh);
    if (status == RING_IN_PROGRESS)
        return RING_OK;
    RING_TRY(status);
    if (v->known && address_equal(&fresh.at[0], &v->pass->at[0]) &&
        memcmp(fresh.key, v->pass->key, sizeof fresh.key) == 0)
        return RING_OK;
    *v->pass = fresh;
    v->known = true;
    if (v->world->doors != NULL)
        memcpy(v->world->doors->terms.key, fresh.key, sizeof fresh.key);
    aim_knocks(v);
    return RING_OK;
}

static void warn_stranger(visit *v, const knock *k)
{
    char text[ADDRESS_TEXT_MAX];
    if (v->warned || k->why != RING_ERR_AUTH || v->pass->places > 1)
        return;
    v->warned = true;
    log_warn("at %s, where rank 0 should be: %s; trying on", address_text(&k->to, text), k->text);
}

static ring_status knock_everywhere(visit *v, int *fd)
{
    const boot_doors *doors = v->world->doors;
    v->request.remaining = v->world->deadline - clock_now();
    for (size_t i = 0; i < v->pass->places; i++) {
        knock *k = &v->knocks[i];
        const ring_status status = knock_step(k, &doors->terms);
        if (status == RING_OK)
            *fd = k->hand.fd;
        if (status != RING_IN_PROGRESS && status != RING_ERR_SYSTEM)
            return status;
        warn_stranger(v, k);
    }
    return RING_IN_PROGRESS;
}

static ring_status give_up(const visit *v)
{
    char text[ADDRESS_TEXT_MAX];
    const boot_world *w = v->world;
    const knock *k = &v->knocks[0];
    if (!v->known)
        return fail(RING_ERR_TIMEOUT, "rank %d did not learn within %g s (RING_INIT_TIMEOUT) where "
                    "rank 0 is: %s", w->rank, w->settings.init_timeout, fail_text());
    return fail(v->pass->places == 1 && k->why == RING_ERR_AUTH ? RING_ERR_AUTH : RING_ERR_TIMEOUT,
                "rank %d did not reach rank 0 at %s%s within %g s (RING_INIT_TIMEOUT): %s; is rank "
                "0 running, and is the address right?", w->rank, address_text(&k->to, text),
                v->pass->places > 1 ? " and up" : "", w->settings.init_timeout,
                k->why != RING_OK ? k->text : "no answer");
}

static ring_status wait_a_little(visit *v)
{
    waits_start(&v->waits, v->world->deadline);
    if (v->source != NULL && !(v->known && v->knocks[0].busy))
        waits_due(&v->waits, v->look_again);
    for (size_t i = 0; v->known && i < v->pass->places; i++)
        RING_TRY(knock_wait(&v->knocks[i], &v->waits));
    return waits_poll(&v->waits);
}

static ring_status reach(visit *v, int *fd)
{
    for (;;) {
        RING_TRY(look_up(v));
        if (v->known) {
            RING_TRY(open_doors(v));
            const ring_status status = knock_everywhere(v, fd);
            if (status != RING_IN_PROGRESS)
                return status;
        }
        if (clock_now() >= v->world->deadline)
            return give_up(v);
        RING_TRY(wait_a_little(v));
    }
}

/* ---- The verdict ------------------------------------------------------------------- */

static void warn_overruled(const char *name, double mine, double theirs)
{
    if (mine > theirs || mine < theirs)
        log_warn("%s=%g here, but rank 0's %g holds for all ranks", name, mine, theirs);
}

static void adopt(boot_world *w, const star_verdict *v)
{
    settings *s = &w->settings;
    w->deadline = clock_now() + v->remaining;
    warn_overruled("RING_TIMEOUT", s->timeout, v->timeout);
    warn_overruled("RING_PEER_TIMEOUT", s->peer_timeout, v->peer_timeout);
    if (strncmp(s->algo, v->algo, sizeof s->algo) != 0)
        log_warn("RING_ALGO=%s here, but rank 0's \"%.31s\" holds for all ranks", s->algo, v->algo);
    s->timeout = v->timeout;
    s->peer_timeout = v->peer_timeout;
    text_format(s->algo, sizeof s->algo, "%.31s", v->algo);
}

static bool cards_are_sound(boot_world *w)
{
    for (int r = 0; r < w->size; r++) {
        boot_card *card = &w->cards[r];
        card->hostname[sizeof card->hostname - 1] = '\0';
        card->unix_name[sizeof card->unix_name - 1] = '\0';
        if (card->rank != r)
            return false;
    }
    return true;
}

static ring_status hear_verdict(boot_world *w)
{
    star_verdict v;
    const double limit = w->deadline + VERDICT_PATIENCE;
    const ring_status status = fd_read_all(w->control[0], &v, sizeof v, limit);
    if (status == RING_ERR_TIMEOUT)
        return fail(status, "rank 0 did not say within %g s (RING_INIT_TIMEOUT) that all ranks "
                    "have joined; is it stopped?", w->settings.init_timeout);
    if (status != RING_OK)
        return fail(status, "rank 0 was lost while ranks were joining: %s", fail_text());
    v.text[sizeof v.text - 1] = '\0';
    if (v.status != RING_OK)
        return fail((ring_status)v.status, "%s", v.text);
    if (v.cards != w->size)
        return fail(RING_ERR_INTERNAL, "rank 0 has %d cards for %d ranks", v.cards, w->size);
    RING_TRY(fd_read_all(w->control[0], w->cards, (size_t)w->size * sizeof w->cards[0], limit));
    if (!cards_are_sound(w))
        return fail(RING_ERR_INTERNAL, "rank 0 sent mixed-up cards");
    adopt(w, &v);
    return RING_OK;
}

ring_status star_visit(boot_world *world, pass *p, star_source source, void *context)
{
    visit v = {.world = world, .pass = p, .source = source, .context = context,
               .known = source == NULL};
    if (v.known)
        aim_knocks(&v);
    ring_status status = reach(&v, &world->control[0]);
    for (size_t i = 0; v.known && i < p->places; i++)
        knock_drop(&v.knocks[i]);
    waits_free(&v.waits);
    if (status == RING_OK)
        status = hear_verdict(world);
    return status;
}
