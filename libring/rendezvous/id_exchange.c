/* SPDX-License-Identifier: Apache-2.0
 * Choosing the way, and ids as text. */
#include "id_exchange.h"

#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ID_HEX = 2 * RING_UNIQUE_ID_BYTES + 1 };

/* All ranks make their communicators from the environment in the same order. */
static unsigned next_number(void)
{
    static atomic_uint number;
    return atomic_fetch_add(&number, 1);
}

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
    id_exchange *x = calloc(1, sizeof *x);
    *out = NULL;
    if (x == NULL)
        return fail(RING_ERR_MEMORY, "looking for rank 0");
    x->settings = s;
    x->deadline = deadline;
    x->one_host = launch_on_one_host(launch);
    text_format(x->key, sizeof x->key, "ring.id.%u", next_number());
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

ring_status id_exchange_look(id_exchange *x, ring_unique_id *id)
{
    char hex[ID_HEX];
    size_t bytes = 0;
    RING_TRY(x->way->look(x, hex, sizeof hex));
    const int wrong = sodium_hex2bin(id->bytes, sizeof id->bytes, hex, strlen(hex), NULL, &bytes,
                                     NULL);
    sodium_memzero(hex, sizeof hex);
    if (wrong != 0 || bytes != sizeof id->bytes)
        return fail(RING_IN_PROGRESS, "what %s holds is not an id", x->way->name);
    return RING_OK;
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
