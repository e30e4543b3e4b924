/* SPDX-License-Identifier: Apache-2.0
 * Greetings: made from one's own view, checked against the mirrored one. */
#include "greeting.h"

#include "lines.h"
#include "membarrier.h"

#include <string.h>

lines_greeting lines_greeting_make(const transport *t, const transport_peer *peer,
                                   uint64_t offer)
{
    lines_greeting greeting = {.byte_order = 0x01020304, .lines = LINES, .from = peer->rank,
                               .to = peer->peer, .lane = (uint32_t)peer->lane,
                               .barriers = membarrier_join(), .offer = offer};
    memcpy(greeting.transport, t->name, min_size(strlen(t->name), sizeof greeting.transport));
    return greeting;
}

ring_status lines_greeting_check(const lines_greeting *theirs, const transport *t,
                                 const transport_peer *peer)
{
    const transport_peer mirror = {.rank = peer->peer, .peer = peer->rank, .lane = peer->lane};
    lines_greeting expected = lines_greeting_make(t, &mirror, theirs->offer);
    expected.barriers = theirs->barriers;
    if (memcmp(theirs, &expected, sizeof expected) == 0)
        return RING_OK;
    return fail(RING_ERR_PEER, "its greeting is not that of the same libring for this pair and "
                "lane; run one version everywhere");
}

ring_status lines_open_failed(ring_status status, const transport *t, const transport_peer *peer)
{
    return fail(status, "opening the %s link to rank %d: %s", t->name, peer->peer, fail_text());
}
