/* SPDX-License-Identifier: Apache-2.0
 * A rank by hand. */
#include "puppet.h"

#include <string.h>

enum { SECONDS = 10 };

/* Rank 0 may not be listening yet. */
static ring_status connect_to_host(puppet *p, const net_address *at)
{
    const double deadline = clock_now() + SECONDS;
    while (clock_now() < deadline) {
        p->fd = socket(at->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(p->fd, &at->at.any, at->length) == 0)
            return RING_OK;
        fd_close(&p->fd);
        clock_sleep(0.002);
    }
    return fail(RING_ERR_SYSTEM, "connect: %m");
}

ring_status puppet_dial(puppet *p, const ring_unique_id *id, int rank, int size)
{
    credential c;
    const handshake_purpose purpose = {.kind = HANDSHAKE_JOIN};
    RING_TRY(credential_from_id(id, &c));
    *p = (puppet){.fd = -1, .terms = {.rank = rank, .size = size}};
    memcpy(p->terms.key, c.key, sizeof c.key);
    p->hello = handshake_hello_to(&p->terms, 0, &purpose);
    return connect_to_host(p, &c.at[0]);
}

ring_status puppet_prove(puppet *p)
{
    ring_status status;
    handshake_dial(&p->handshake, p->fd, &p->terms, &p->hello, SECONDS);
    while ((status = handshake_step(&p->handshake)) == RING_IN_PROGRESS)
        clock_sleep(0.001);
    if (status != RING_OK)
        fd_close(&p->fd);
    else
        handshake_derive(&p->handshake, &p->keys);
    return status;
}

ring_status puppet_bring_card(puppet *p, const char *hostname, int pid)
{
    control_message m;
    control_message_begin(&m, CONTROL_CARD, p->terms.rank);
    m.body.join.remaining = SECONDS;
    m.body.join.card = (control_card){.rank = p->terms.rank, .pid = pid};
    text_format(m.body.join.card.hostname, sizeof m.body.join.card.hostname, "%s", hostname);
    return puppet_say(p, &m);
}

control_sealed puppet_seal(puppet *p, const control_message *message)
{
    control_sealed sealed = {.message = *message};
    control_message_seal(&sealed, p->keys.out, p->said++);
    return sealed;
}

ring_status puppet_say(puppet *p, const control_message *message)
{
    const control_sealed sealed = puppet_seal(p, message);
    return fd_write_all(p->fd, &sealed, sizeof sealed, clock_now() + SECONDS);
}

ring_status puppet_hear(puppet *p, control_message *message)
{
    control_sealed sealed;
    do {
        RING_TRY(fd_read_all(p->fd, &sealed, sizeof sealed, clock_now() + SECONDS));
        if (!control_message_is_genuine(&sealed, p->keys.in, p->heard++))
            return fail(RING_ERR_PEER, "a message that is not genuine");
    } while (sealed.message.kind == CONTROL_BEAT);
    *message = sealed.message;
    return RING_OK;
}

void puppet_end(puppet *p)
{
    fd_close(&p->fd);
}
