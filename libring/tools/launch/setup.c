/* SPDX-License-Identifier: Apache-2.0
 * Makes a job from the options: places its ranks, and chooses its variables, address, port and
 * secret. */
#include "setup.h"

#include "binding.h"
#include "command_lookup.h"
#include "env_file.h"
#include "host_address.h"
#include "numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PORT_DEFAULT = 29500, PATIENCE_DEFAULT = 60 };

void setup_free(setup *s)
{
    layout_free(&s->places);
    job_free(&s->j);
}

static ring_status place_ranks(const options *o, setup *out)
{
    const layout_wish wish = {o->ranks, o->per_node, o->nodes};
    host_list hosts = {0};
    const char *from;
    ring_status status = options_hosts(o, &hosts, &from);
    if (status == RING_OK && from == NULL && o->include == NULL && o->ranks == 0 &&
        o->per_node == 0)
        status = fail(RING_ERR_CONFIG, "the number of ranks is missing; give -n N");
    if (status == RING_OK)
        status = layout_make(&hosts, &wish, &out->places);
    hosts_free(&hosts);
    return status;
}

/* @return true if all ranks run on this host. */
static bool all_here(const setup *s)
{
    return s->places.count == 1 && s->places.shares[0].local;
}

/* @return the address of rank 0, or NULL if only its host can find it. It is an address rather than
 * a name, since hosts may map the same name to different addresses. */
static const char *known_address(const options *o, const setup *s, char room[HOST_ADDRESS_MAX])
{
    const share *first = &s->places.shares[0];
    if (o->master_addr != NULL)
        return o->master_addr;
    if (all_here(s))
        return "127.0.0.1";
    if (first->local)
        return host_address_towards(s->places.shares[1].address, room) ? room : "127.0.0.1";
    return first->address;
}

/* A ringrun that starts all ranks draws their secret. If nodes are started one by one
 * (--node-rank), the user must provide it. */
static ring_status choose_secret(const options *o, setup *s)
{
    const char *insecure = getenv("RING_INSECURE");
    if (o->node_rank < 0 || o->nodes == 1)
        return job_draw_secret(&s->j);
    if (getenv("RING_SECRET_FILE") == NULL && (insecure == NULL || strcmp(insecure, "1") != 0))
        return fail(RING_ERR_CONFIG,
                    "nodes that are started one by one need the same secret: set RING_SECRET_FILE "
                    "to a file of mode 0600 with the same 16 or more random bytes on every node");
    return RING_OK;
}

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* @return true for variables that ranks on other hosts need, too. */
static bool is_forwarded(const char *entry)
{
    for (size_t i = 0; i < BINDING_VARIABLES; i++) {
        const char *name = binding_variables[i];
        if (begins_with(entry, name) && entry[strlen(name)] == '=')
            return true;
    }
    return begins_with(entry, "NCCL_") ||
           (begins_with(entry, "RING_") && !begins_with(entry, "RING_SECRET_"));
}

/* RING_INIT_TIMEOUT, the time in which ranks must join, is also the time for hosts to answer. */
static ring_status choose_patience(setup *s)
{
    const char *text = texts_get(&s->j.exports, "RING_INIT_TIMEOUT");
    s->patience = PATIENCE_DEFAULT;
    if (text == NULL || *text == '\0' || number_limit(text, &s->patience))
        return RING_OK;
    return fail(RING_ERR_CONFIG, "RING_INIT_TIMEOUT=%.100s: want " NUMBER_LIMIT_TEXT, text);
}

/* Adds libring's libnccl.so.2 to LD_PRELOAD. It is installed with the libraries, and is beside the
 * programs' folder in a build. */
static ring_status preload_nccl(setup *s)
{
    static const char *const folders[] = {LAUNCH_LIBRARIES, ".."};
    char own[4096], entry[8192];
    const char *given = texts_get(&s->j.exports, "LD_PRELOAD");
    given = given != NULL ? given : getenv("LD_PRELOAD");
    const bool more = given != NULL && *given != '\0';
    if (!command_own_path(own, sizeof own))
        return fail(RING_ERR_SYSTEM, "cannot find the path of ringrun (/proc/self/exe): %m");
    const int folder = (int)(strrchr(own, '/') - own);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const size_t name = strlen("LD_PRELOAD=");
        text_format(entry, sizeof entry, "LD_PRELOAD=%.*s/%s/ring-nccl/libnccl.so.2", folder, own,
                    folders[i]);
        if (access(entry + name, R_OK) != 0)
            continue;
        if (more && !text_append(entry, sizeof entry, ":%s", given))
            return fail(RING_ERR_CONFIG, "--nccl: LD_PRELOAD is too long");
        texts_put(&s->j.exports, entry);
        return RING_OK;
    }
    return fail(RING_ERR_CONFIG,
                "--nccl: there is no %s/ring-nccl/libnccl.so.2 as seen from %.*s; is libring "
                "installed completely?",
                LAUNCH_LIBRARIES, folder, own);
}

/* Fills in the job, when the ranks are placed. */
static ring_status fill_job(const options *o, setup *s)
{
    s->j.ranks = s->places.ranks;
    s->j.nodes = (int)s->places.count;
    s->j.binding = o->binding;
    s->j.directory = getcwd(NULL, 0);
    if (s->j.directory == NULL)
        return fail(RING_ERR_SYSTEM, "cannot find the current folder: %m");
    for (char **at = o->program; *at != NULL; at++)
        texts_add(&s->j.argv, "%s", *at);
    if (!all_here(s) && o->node_rank < 0) {
        for (char **at = environ; *at != NULL; at++)
            if (is_forwarded(*at))
                texts_add(&s->j.exports, "%s", *at);
        RING_TRY(env_file_take(&s->j.exports));
    }
    for (size_t i = 0; i < o->exports.count; i++)
        texts_put(&s->j.exports, o->exports.items[i]);
    if (o->nccl)
        RING_TRY(preload_nccl(s));
    char room[HOST_ADDRESS_MAX];
    const char *known = known_address(o, s, room);
    const char *address = known != NULL ? known : s->places.shares[0].host;
    s->ask_address = known == NULL;
    s->j.address = memory_text(address, strlen(address));
    RING_TRY(choose_patience(s));
    s->j.port = o->master_port > 0 ? o->master_port : PORT_DEFAULT;
    if (o->master_port == 0 && all_here(s))
        RING_TRY(host_address_free_port(&s->j.port));
    return choose_secret(o, s);
}

ring_status setup_make(const options *o, setup *out)
{
    *out = (setup){0};
    RING_TRY(place_ranks(o, out));
    out->alone = o->node_rank >= 0;
    for (size_t i = 0; i < out->places.count; i++) {
        share *s = &out->places.shares[i];
        s->local = out->alone ? (int)i == o->node_rank : s->local; /* true: no ssh is needed */
        out->here = s->local ? s : out->here;
    }
    out->ringrun = o->remote_ringrun != NULL ? o->remote_ringrun : out->own_path;
    if (o->remote_ringrun == NULL && !command_own_path(out->own_path, sizeof out->own_path))
        return fail(RING_ERR_SYSTEM, "cannot find the path of ringrun (/proc/self/exe): %m");
    return fill_job(o, out);
}
