/* SPDX-License-Identifier: Apache-2.0
 * Choosing the way, and ids as text. */
#include "meet.h"

#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ID_HEX = 2 * RING_UNIQUE_ID_BYTES + 1 };

static bool equals(const char *name, int value)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' && strtol(text, NULL, 10) == value;
}

bool meet_one_host(const boot_launch *launch)
{
    return launch->local_size == launch->size || equals("SLURM_STEP_NUM_NODES", 1) ||
           equals("SLURM_NNODES", 1);
}

/* All ranks make their communicators from the environment in the same order. */
static unsigned next_number(void)
{
    static atomic_uint number;
    return atomic_fetch_add(&number, 1);
}

static ring_status open_first_way(meeting *m)
{
    static const meet_way *const ways[] = {&meet_by_pmix, &meet_by_pmi, &meet_by_file};
    ring_status status = RING_ERR_UNSUPPORTED;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && status == RING_ERR_UNSUPPORTED; i++) {
        m->way = ways[i];
        status = m->way->open(m);
        log_debug("meeting rank 0 by %s: %s", m->way->name,
                  status == RING_OK ? "used" : fail_text());
    }
    return status;
}

ring_status meet_open(const boot_launch *launch, const settings *s, double deadline,
                      meeting **out)
{
    meeting *m = calloc(1, sizeof *m);
    *out = NULL;
    if (m == NULL)
        return fail(RING_ERR_MEMORY, "looking for rank 0");
    m->settings = s;
    m->deadline = deadline;
    m->one_host = meet_one_host(launch);
    text_format(m->key, sizeof m->key, "ring.id.%u", next_number());
    const ring_status status = open_first_way(m);
    if (status == RING_OK)
        *out = m;
    else
        free(m);
    return status;
}

ring_status meet_publish(meeting *m, const ring_unique_id *id)
{
    char hex[ID_HEX];
    sodium_bin2hex(hex, sizeof hex, id->bytes, sizeof id->bytes);
    const ring_status status = m->way->publish(m, hex);
    sodium_memzero(hex, sizeof hex);
    return status;
}

ring_status meet_look(meeting *m, ring_unique_id *id)
{
    char hex[ID_HEX];
    size_t bytes = 0;
    RING_TRY(m->way->look(m, hex, sizeof hex));
    if (sodium_hex2bin(id->bytes, sizeof id->bytes, hex, strlen(hex), NULL, &bytes, NULL) != 0 ||
        bytes != sizeof id->bytes)
        return fail(RING_IN_PROGRESS, "what %s holds is not an id", m->way->name);
    return RING_OK;
}

void meet_close(meeting *m)
{
    m->way->close(m);
    sodium_memzero(m, sizeof *m);
    free(m);
}
