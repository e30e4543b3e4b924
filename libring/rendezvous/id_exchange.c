/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the first exchange that is available, and converts ids to and from text for it. Rank 0
 * can publish a refusal in place of an id: the reason why it failed, so that the other ranks do not
 * wait until their deadline.
 */
#include "id_exchange.h"

#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ID_HEX = 2 * RING_UNIQUE_ID_BYTES + 1 };
enum { REFUSAL_SECONDS = 2 }; /* a refusal that is older is ignored */
/* s: the time for which rank 0 leaves a refusal published. The other ranks look every 10 ms, but
 * may start a little later than rank 0. */
#define REFUSAL_STAYS 1.0

static ring_status open_first_way(id_exchange *x)
{
    static const exchange_way *const ways[] = {&exchange_by_pmix, &exchange_by_pmi,
                                               &exchange_by_file};
    ring_status status = RING_ERR_UNSUPPORTED;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && status == RING_ERR_UNSUPPORTED; i++) {
        x->way = ways[i];
        status = x->way->open(x);
        log_debug("id exchange by %s: %s", x->way->name, status == RING_OK ? "used" : fail_text());
    }
    return status;
}

ring_status id_exchange_open(const launch_info *launch, const settings *s, double deadline,
                             id_exchange **out)
{
    static atomic_uint number;
    id_exchange *x = calloc(1, sizeof *x);
    *out = NULL;
    if (x == NULL)
        return fail(RING_ERR_MEMORY, "no memory to find rank 0");
    x->settings = s;
    x->deadline = deadline;
    x->one_host = launch_on_one_host(launch);
    /* All ranks create their communicators from the environment in the same order, so the n-th one
     * has the same key on all of them. */
    text_format(x->key, sizeof x->key, "ring.id.%u", atomic_fetch_add(&number, 1));
    const ring_status status = open_first_way(x);
    if (status == RING_OK)
        *out = x;
    else
        free(x);
    return status;
}

ring_status id_exchange_publish(id_exchange *x, const ring_unique_id *id)
{
    char hex[ID_HEX];
    sodium_bin2hex(hex, sizeof hex, id->bytes, sizeof id->bytes);
    const ring_status status = x->way->publish(x, hex);
    sodium_memzero(hex, sizeof hex);
    return status;
}

/* Rank 0's failure, published in place of an id. It has the size of an id, so that each exchange
 * can pass it on. */
typedef struct refusal {
    char magic[8];
    int64_t when; /* s since 1970; the refusal of a rank 0 that was killed is not removed */
    uint32_t status;
    char text[RING_UNIQUE_ID_BYTES - 20];
} refusal;

_Static_assert(sizeof(refusal) == RING_UNIQUE_ID_BYTES, "a refusal has the size of an id");
static const char refusal_magic[8] = "ring no";

/* Fails with rank 0's reason if @p id is a recent refusal. If the refusal is older, or by a host
 * whose clock differs, it counts as a missing id. */
static ring_status check_refusal(const ring_unique_id *id)
{
    refusal r;
    memcpy(&r, id->bytes, sizeof r);
    if (memcmp(r.magic, refusal_magic, sizeof r.magic) != 0)
        return RING_OK;
    const int64_t now = time(NULL);
    if (r.when < now - REFUSAL_SECONDS || r.when > now + REFUSAL_SECONDS)
        return fail(RING_IN_PROGRESS, "rank 0 of an earlier job failed");
    text_make_printable(r.text, sizeof r.text);
    const bool known = r.status >= RING_ERR_ARGUMENT && r.status <= RING_STATUS_LAST;
    return fail(known ? (ring_status)r.status : RING_ERR_PEER, "rank 0: %s", r.text);
}

ring_status id_exchange_refuse(id_exchange *x, ring_status status)
{
    ring_unique_id id;
    char text[512];
    refusal r = {.when = time(NULL), .status = (uint32_t)status};
    text_format(text, sizeof text, "%s", fail_text());
    memcpy(r.magic, refusal_magic, sizeof r.magic);
    (void)text_format(r.text, sizeof r.text, "%s", text);
    memcpy(id.bytes, &r, sizeof r);
    if (id_exchange_publish(x, &id) == RING_OK)
        clock_sleep(REFUSAL_STAYS);
    return fail(status, "%s", text);
}

ring_status id_exchange_look(id_exchange *x, ring_unique_id *id)
{
    char hex[ID_HEX];
    size_t bytes = 0;
    RING_TRY(x->way->look(x, hex, sizeof hex));
    const int wrong = sodium_hex2bin(id->bytes, sizeof id->bytes, hex, strlen(hex), NULL, &bytes,
                                     NULL);
    sodium_memzero(hex, sizeof hex);
    if (wrong != 0 || bytes != sizeof id->bytes)
        return fail(RING_IN_PROGRESS, "the data from %s is not a unique id", x->way->name);
    return check_refusal(id);
}

ring_status id_exchange_wait(id_exchange *x, double deadline, ring_unique_id *id)
{
    ring_status status;
    while ((status = id_exchange_look(x, id)) == RING_IN_PROGRESS && clock_now() < deadline)
        clock_sleep(0.01);
    return status == RING_IN_PROGRESS ? RING_ERR_TIMEOUT : status;
}

void id_exchange_close(id_exchange *x)
{
    x->way->close(x);
    sodium_memzero(x, sizeof *x);
    free(x);
}
