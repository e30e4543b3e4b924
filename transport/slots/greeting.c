/* SPDX-License-Identifier: Apache-2.0
 * Greetings: made from one's own view, checked against the mirrored one. */
#include "greeting.h"

#include "slots.h"

#include <string.h>

slots_greeting slots_greeting_make(const transport *t, const transport_peer *peer,
                                   uint64_t offer)
{
    slots_greeting greeting = {.byte_order = 0x01020304, .slots = SLOTS,
                               .slot_bytes = sizeof(slot), .from = peer->rank,
                               .to = peer->peer, .lane = (uint32_t)peer->lane,
                               .offer = offer};
    memcpy(greeting.transport, t->name, min_size(strlen(t->name), sizeof greeting.transport));
    return greeting;
}

ring_status slots_greeting_check(const slots_greeting *theirs, const transport *t,
                                 const transport_peer *peer)
{
    const transport_peer mirror = {.rank = peer->peer, .peer = peer->rank, .lane = peer->lane};
    const slots_greeting expected = slots_greeting_make(t, &mirror, theirs->offer);
    if (memcmp(theirs, &expected, sizeof expected) == 0)
        return RING_OK;
    return fail(RING_ERR_PEER, "its greeting is not that of the same libring for this pair and "
                "lane; run one version everywhere");
}

ring_status slots_open_failed(ring_status status, const transport *t, const transport_peer *peer)
{
    return fail(status, "opening the %s link to rank %d: %s", t->name, peer->peer, fail_text());
}
