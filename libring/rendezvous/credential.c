/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes credentials from the launch variables or a unique id. Without a secret any process can
 * compute the key; rank 0 then listens on 127.0.0.1 only, and the user of each peer is checked.
 */
#include "credential.h"
#include "name_lookup.h"
#include "own_address.h"
#include "secret.h"

#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PORT_PATIENCE 2.0 /* s: to retry a port that is in use, which an ending job may release */

/* ---- Addresses and keys ------------------------------------------------------------- */

/* Adds the address @p at with MASTER_PORT. If torchrun's agent listens on that port, adds it with
 * each of the CREDENTIAL_AGENT_PORTS ports above instead. */
static void add_ports(const launch_info *l, net_address at, credential *out)
{
    const int first = l->agent_holds_port ? 1 : 0;
    const int ports = l->agent_holds_port ? CREDENTIAL_AGENT_PORTS : 1;
    for (int i = 0; i < ports && out->places < CREDENTIAL_PLACES; i++) {
        if (l->port + first + i > 65535)
            break;
        address_set_port(&at, l->port + first + i);
        out->at[out->places++] = at;
    }
}

/* @return true if one of the addresses belongs to this host. */
static bool any_here(const net_address *found, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (address_is_here(&found[i]))
            return true;
    return false;
}

/* Sets the only addresses that are safe without a secret: those of 127.0.0.1. */
static ring_status local_only(const launch_info *l, const net_address *found, size_t count,
                              credential *out)
{
    out->check_uid = true;
    add_ports(l, address_loopback(0), out);
    return any_here(found, count)
               ? RING_OK
               : fail(RING_ERR_CONFIG,
                      "MASTER_ADDR=%s is an address of another host, and there is no secret: set "
                      "RING_SECRET_FILE to a file (mode 0600) that all hosts have, or use ringrun",
                      l->address);
}

/* Replaces a loopback MASTER_ADDR, which the ranks on other hosts cannot reach, by the address that
 * RING_ADDR or RING_SOCKET_IFNAME chooses. */
static ring_status instead_of_loopback(const launch_info *l, const settings *s, credential *out)
{
    net_address chosen;
    RING_TRY(address_chosen(s, &chosen));
    if (chosen.length == 0)
        return fail(
            RING_ERR_CONFIG,
            "MASTER_ADDR=%s is a loopback address on this host, but %d of %d ranks run on other "
            "hosts: on this host, set RING_ADDR to the address that they have for MASTER_ADDR",
            l->address, l->size - l->local_size, l->size);
    add_ports(l, chosen, out);
    return RING_OK;
}

/* Sets the addresses of @p out from those of MASTER_ADDR.
 * @param found  [count] addresses that other hosts may reach come first, loopback addresses last.
 */
static ring_status find_places(const launch_info *l, const settings *s, const net_address *found,
                               size_t count, credential *out)
{
    /* MASTER_ADDR may be a loopback address although some ranks run on other hosts, for example by
     * a line "127.0.1.1 node0" in Debian's /etc/hosts, or as "localhost" in the first of several
     * pods. */
    if (address_is_loopback(&found[0]) && l->local_size > 0 && l->local_size < l->size)
        return instead_of_loopback(l, s, out);
    for (size_t i = 0; i < count; i++)
        add_ports(l, found[i], out);
    return RING_OK;
}

ring_status credential_from_launch(const launch_info *l, const settings *s, double deadline,
                                   credential *out)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    unsigned char secret[CREDENTIAL_KEY] = "libring: a key that is public";
    char job[1024];
    net_address found[CREDENTIAL_PLACES / CREDENTIAL_AGENT_PORTS];
    size_t count;
    bool has_secret;
    memset(out, 0, sizeof *out);
    const ring_status known = secret_read(s, secret, &has_secret);
    /* The key depends on the job, so that jobs that share a secret, or have none, do not connect to
     * each other. Under torchrun the ranks try several ports and may meet another job, so rank 0's
     * address and the number of ranks are included, too. */
    if (l->agent_holds_port)
        text_format(job, sizeof job, "torchrun %s %d %d %s", l->address, l->port, l->size, l->job);
    else
        text_format(job, sizeof job, "port %d %s", l->port, l->job);
    if (known == RING_OK)
        crypto_auth_hmacsha256(out->key, (const unsigned char *)job, strlen(job), secret);
    out->is_public = !has_secret;
    sodium_memzero(secret, sizeof secret);
    RING_TRY(known);
    RING_TRY(name_lookup("MASTER_ADDR", l->address, 0, deadline, found,
                         sizeof found / sizeof found[0], &count));
    if (!has_secret && s->insecure && l->rank == 0 && !atomic_flag_test_and_set(&warned))
        log_warn("RING_INSECURE=1 and no secret: any process that can reach this host's ports may "
                 "join this job; set RING_SECRET_FILE instead");
    RING_TRY(has_secret || s->insecure ? find_places(l, s, found, count, out)
                                       : local_only(l, found, count, out));
    if (out->places > 0)
        return RING_OK;
    return fail(
        RING_ERR_CONFIG,
        "MASTER_PORT=%d is used by torchrun's agent, and rank 0 needs a port above it; choose "
        "a lower MASTER_PORT",
        l->port);
}

/* ---- Rank 0's listener --------------------------------------------------------------- */

/* Replaces the addresses of @p c if none of them belongs to this host. */
static ring_status move_here(credential *c, const launch_info *l, const settings *s)
{
    net_address chosen;
    if (any_here(c->at, c->places))
        return RING_OK;
    RING_TRY(address_chosen(s, &chosen));
    if (chosen.length == 0)
        return fail(RING_ERR_CONFIG,
                    "this is rank 0, but MASTER_ADDR=%s is not an address of this host; start rank "
                    "0 there, or set RING_ADDR",
                    l->address);
    c->places = 0;
    add_ports(l, chosen, c);
    return RING_OK;
}

/* Listens on the first address of @p c that is free. Skips addresses of other hosts.
 * @return RING_IN_PROGRESS if all are in use. */
static ring_status listen_somewhere(credential *c, int *fd)
{
    for (size_t i = 0; i < c->places; i++) {
        if (!address_is_here(&c->at[i]))
            continue;
        const ring_status status = address_listen(&c->at[i], fd);
        if (status != RING_IN_PROGRESS) {
            c->at[0] = c->at[i];
            return status;
        }
    }
    return RING_IN_PROGRESS;
}

ring_status credential_listen(credential *c, const launch_info *l, const settings *s,
                              double deadline, int *fd)
{
    const double patience = clock_now() + PORT_PATIENCE;
    ring_status status;
    RING_TRY(move_here(c, l, s));
    while ((status = listen_somewhere(c, fd)) == RING_IN_PROGRESS && clock_now() < patience &&
           clock_now() < deadline)
        clock_sleep(0.02);
    if (status != RING_IN_PROGRESS)
        return status;
    return fail(RING_ERR_SYSTEM, "another program listens on port %d%s; choose another MASTER_PORT",
                l->port, l->agent_holds_port ? " + 1 … + 16" : "");
}

/* ---- Unique ids ---------------------------------------------------------------------- */

typedef struct id_layout {
    char magic[8];
    unsigned char key[CREDENTIAL_KEY];
    unsigned char address[ADDRESS_PACKED];
} id_layout;

_Static_assert(sizeof(id_layout) <= RING_UNIQUE_ID_BYTES, "an id holds an address and a key");
/* [served] A served id has the address of its maker. Earlier versions of libring refuse it. */
static const char id_magic[2][8] = {"ring id", "ring ids"};

void credential_make_id(const net_address *at, bool served, ring_unique_id *id)
{
    id_layout layout;
    memcpy(layout.magic, id_magic[served], sizeof layout.magic);
    randombytes_buf(layout.key, sizeof layout.key);
    address_pack(at, layout.address);
    memset(id, 0, sizeof *id);
    memcpy(id->bytes, &layout, sizeof layout);
    sodium_memzero(&layout, sizeof layout);
}

ring_status credential_from_id(const ring_unique_id *id, credential *out)
{
    id_layout layout;
    memset(out, 0, sizeof *out);
    memcpy(&layout, id->bytes, sizeof layout);
    const bool served = memcmp(layout.magic, id_magic[true], sizeof layout.magic) == 0;
    const bool sound = (served ||
                        memcmp(layout.magic, id_magic[false], sizeof layout.magic) == 0) &&
                       address_unpack(layout.address, &out->at[0]);
    memcpy(out->key, layout.key, sizeof layout.key);
    if (served)
        out->maker = out->at[0];
    sodium_memzero(&layout, sizeof layout);
    out->places = 1;
    return sound ? RING_OK
                 : fail(RING_ERR_ARGUMENT, "the unique id was not made by ring_get_unique_id(), or "
                                           "not all of its bytes were passed on");
}
