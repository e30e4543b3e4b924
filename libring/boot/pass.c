/* SPDX-License-Identifier: Apache-2.0
 *
 * From launch variables or a unique id to a key and places. Without a secret the key is no
 * secret, so only 127.0.0.1 is used and the other side's user is looked up.
 */
#include "pass.h"

#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PORT_PATIENCE 2.0 /* s: the job before this one may be just ending */

/* ---- The key ---------------------------------------------------------------------- */

/* Jobs that share a secret, or have none, still must not mix. */
static ring_status job_text(const boot_launch *l, char *out, size_t size)
{
    const char *run = getenv("TORCHELASTIC_RUN_ID");
    const bool fits = l->agent_holds_port
                          ? text_format(out, size, "torchrun %s %d %d %s", l->address, l->port,
                                        l->size, run != NULL ? run : "")
                          : text_format(out, size, "port %d", l->port);
    return fits ? RING_OK : fail(RING_ERR_CONFIG, "TORCHELASTIC_RUN_ID is too long");
}

static ring_status derive_key(const boot_launch *l, const unsigned char secret[HAND_KEY],
                              unsigned char key[HAND_KEY])
{
    char job[1024];
    RING_TRY(job_text(l, job, sizeof job));
    crypto_auth_hmacsha256(key, (const unsigned char *)job, strlen(job), secret);
    return RING_OK;
}

static void warn_insecure_once(const boot_launch *l)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (l->rank == 0 && !atomic_flag_test_and_set(&warned))
        log_warn("RING_INSECURE=1 and no secret: whoever can reach this host's ports may join "
                 "this job; set RING_SECRET_FILE instead");
}

/* ---- The places ---------------------------------------------------------------------- */

static void add_ports(const boot_launch *l, boot_address at, pass *out)
{
    const int first = l->agent_holds_port ? 1 : 0;
    const int ports = l->agent_holds_port ? PASS_AGENT_PORTS : 1;
    for (int i = 0; i < ports && out->places < PASS_PLACES; i++) {
        if (l->port + first + i > 65535)
            break;
        address_set_port(&at, l->port + first + i);
        out->at[out->places++] = at;
    }
}

void pass_move(pass *p, const boot_launch *l, const boot_address *to)
{
    p->places = 0;
    add_ports(l, *to, p);
}

static bool any_here(const boot_address *found, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (address_is_here(&found[i]))
            return true;
    return false;
}

static ring_status local_only(const boot_launch *l, const boot_address *found, size_t count,
                              pass *out)
{
    out->check_uid = true;
    add_ports(l, address_loopback(0), out);
    return any_here(found, count)
               ? RING_OK
               : fail(RING_ERR_CONFIG, "MASTER_ADDR=%s is another host, and there is no secret: "
                      "set RING_SECRET_FILE to a file (mode 0600) that all hosts have, or use "
                      "ringrun", l->address);
}

ring_status pass_from_launch(const boot_launch *l, const settings *s, double deadline, pass *out)
{
    unsigned char secret[HAND_KEY] = "libring: a key that is public";
    boot_address found[PASS_PLACES / PASS_AGENT_PORTS];
    size_t count;
    bool has_secret;
    memset(out, 0, sizeof *out);
    RING_TRY(secret_read(s, secret, &has_secret));
    RING_TRY(derive_key(l, secret, out->key));
    sodium_memzero(secret, sizeof secret);
    RING_TRY(address_resolve(l->address, 0, deadline, found, sizeof found / sizeof found[0],
                             &count));
    if (!has_secret && !s->insecure)
        return local_only(l, found, count, out);
    if (!has_secret)
        warn_insecure_once(l);
    for (size_t i = 0; i < count; i++)
        add_ports(l, found[i], out);
    return RING_OK;
}

/* ---- Rank 0 listens ------------------------------------------------------------------ */

/* @return RING_IN_PROGRESS if all places of this host are taken. */
static ring_status listen_somewhere(pass *p, int *fd)
{
    ring_status status = RING_OK;
    size_t here = 0;
    for (size_t i = 0; i < p->places; i++) {
        if (!address_is_here(&p->at[i]))
            continue;
        here++;
        status = address_listen(&p->at[i], fd);
        if (status != RING_IN_PROGRESS) {
            p->at[0] = p->at[i];
            return status;
        }
    }
    return here > 0 ? RING_IN_PROGRESS
                    : fail(RING_ERR_CONFIG, "this is rank 0, but MASTER_ADDR is not an address of "
                           "this host; start rank 0 there, or set RING_ADDR");
}

ring_status pass_listen(pass *p, const boot_launch *l, double deadline, int *fd)
{
    const double patience = clock_now() + PORT_PATIENCE;
    ring_status status;
    while ((status = listen_somewhere(p, fd)) == RING_IN_PROGRESS && clock_now() < patience &&
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
    unsigned char key[HAND_KEY];
    unsigned char address[ADDRESS_PACKED];
} id_layout;

_Static_assert(sizeof(id_layout) <= RING_UNIQUE_ID_BYTES, "an id holds an address and a key");
static const char id_magic[8] = "ring id";

void pass_make_id(const boot_address *at, ring_unique_id *id)
{
    id_layout layout;
    memcpy(layout.magic, id_magic, sizeof id_magic);
    randombytes_buf(layout.key, sizeof layout.key);
    address_pack(at, layout.address);
    memset(id, 0, sizeof *id);
    memcpy(id->bytes, &layout, sizeof layout);
}

ring_status pass_from_id(const ring_unique_id *id, pass *out)
{
    id_layout layout;
    memset(out, 0, sizeof *out);
    memcpy(&layout, id->bytes, sizeof layout);
    if (memcmp(layout.magic, id_magic, sizeof id_magic) != 0 ||
        !address_unpack(layout.address, &out->at[0]))
        return fail(RING_ERR_ARGUMENT, "the unique id is not one of ring_get_unique_id(); was it "
                    "passed on whole?");
    memcpy(out->key, layout.key, sizeof layout.key);
    out->places = 1;
    return RING_OK;
}
