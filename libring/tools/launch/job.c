/* SPDX-License-Identifier: Apache-2.0
 * Creates the secret that ranks share, computes the environment of each rank, and converts the job
 * to bytes and back. */
#include "job.h"

#include "binding.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void job_free(job *j)
{
    texts_free(&j->argv);
    texts_free(&j->exports);
    free(j->directory);
    free(j->address);
    explicit_bzero(j, sizeof *j);
}

ring_status job_draw_secret(job *j)
{
    j->has_secret = getentropy(j->secret, sizeof j->secret) == 0;
    return j->has_secret ? RING_OK
                         : fail(RING_ERR_SYSTEM, "cannot draw the secret (getentropy): %m");
}

int job_secret_file(const job *j)
{
    const int fd = memfd_create("ring-secret", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        fail(RING_ERR_SYSTEM, "cannot create a file for the secret (memfd_create): %m");
        return -1;
    }
    if (write(fd, j->secret, sizeof j->secret) != (ssize_t)sizeof j->secret ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        fail(RING_ERR_SYSTEM, "cannot write the secret: %m");
        close(fd);
        return -1;
    }
    return fd;
}

/* Adds the variables of one rank. */
static void set_rank(const job *j, const share *s, int local, int secret_fd, texts *out)
{
    static const char *const ranks[] = {"RING_RANK", "RANK"};
    static const char *const sizes[] = {"RING_SIZE", "WORLD_SIZE"};
    static const char *const local_ranks[] = {"RING_LOCAL_RANK", "LOCAL_RANK"};
    static const char *const local_sizes[] = {"RING_LOCAL_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_SIZE"};
    for (size_t i = 0; i < 2; i++) {
        texts_add(out, "%s=%d", ranks[i], s->first_rank + local);
        texts_add(out, "%s=%d", sizes[i], j->ranks);
        texts_add(out, "%s=%d", local_ranks[i], local);
    }
    for (size_t i = 0; i < 3; i++)
        texts_add(out, "%s=%d", local_sizes[i], s->ranks);
    texts_add(out, "CROSS_RANK=%d", s->node);
    texts_add(out, "CROSS_SIZE=%d", j->nodes);
    texts_add(out, "MASTER_ADDR=%s", j->address);
    texts_add(out, "MASTER_PORT=%d", j->port);
    texts_add(out, "RING_LAUNCHER=ringrun");
    if (secret_fd >= 0)
        texts_add(out, "RING_SECRET_FD=%d", secret_fd);
}

bool job_is_variable(const char *name)
{
    bool good = *name != '\0' && !isdigit((unsigned char)*name);
    for (; *name != '\0'; name++)
        good = good && (isalnum((unsigned char)*name) || *name == '_');
    return good;
}

const char *job_decides(const char *name)
{
    char nowhere[] = "";
    texts list = {0};
    if (strcmp(name, "RING_SECRET_FILE") == 0)
        return "ringrun gives every rank a new secret (with --node-rank: the one of its "
               "environment)";
    if (strcmp(name, "TORCHELASTIC_USE_AGENT_STORE") == 0)
        return "no agent of torchrun listens on the port of this job";
    set_rank(&(job){.address = nowhere}, &(share){.ranks = 1}, 0, 0, &list);
    const bool set = texts_get(&list, name) != NULL;
    texts_free(&list);
    return set ? "ringrun sets this variable itself, for each rank" : NULL;
}

void job_environment(const job *j, const share *s, int local, int secret_fd, texts *out)
{
    for (size_t i = 0; i < j->exports.count; i++)
        texts_add(out, "%s", j->exports.items[i]);
    if (secret_fd < 0)
        texts_add(out, "RING_SECRET_FD");
    if (j->has_secret)
        texts_add(out, "RING_SECRET_FILE");
    texts_add(out, "TORCHELASTIC_USE_AGENT_STORE"); /* no agent of torchrun holds the port */
    /* The ranks of a host share its cores, so libraries must not start a thread for each core in
     * each rank. Users set the variables if they want more threads. MKL follows OpenMP's variable.
     */
    for (size_t i = 0; i < 2; i++) {
        if (binding_threads(j, s, i) == NULL)
            texts_add(out, "%s=1", binding_variables[i]);
    }
    set_rank(j, s, local, secret_fd, out);
}

/* ---- Conversion to bytes: a number is 4 bytes, a text its length and its bytes
 * ------------------------
 */

typedef struct reader {
    const unsigned char *at, *end;
    bool bad; /* a value was wrong: all later reads give 0 or "" */
} reader;

static void put_number(bytes *out, int32_t number)
{
    bytes_add(out, &number, sizeof number);
}

static void put_text(bytes *out, const char *text)
{
    put_number(out, (int32_t)strlen(text));
    bytes_add(out, text, strlen(text));
}

static void put_texts(bytes *out, const texts *list)
{
    put_number(out, (int32_t)list->count);
    for (size_t i = 0; i < list->count; i++)
        put_text(out, list->items[i]);
}

void job_pack(const job *j, const share *s, bytes *out)
{
    const int32_t numbers[] = {j->ranks,      j->nodes, j->port,       (int32_t)j->binding,
                               j->has_secret, s->node,  s->first_rank, s->ranks};
    bytes_add(out, numbers, sizeof numbers);
    bytes_add(out, s->slots, (size_t)s->ranks * sizeof *s->slots);
    put_text(out, s->host);
    put_text(out, j->directory);
    put_text(out, j->address);
    put_texts(out, &j->argv);
    put_texts(out, &j->exports);
    bytes_add(out, j->secret, sizeof j->secret);
}

/* @return the next number; 0, and r->bad, if it is not from low to high. */
static int get_number(reader *r, int low, int high)
{
    int32_t number = 0;
    r->bad = r->bad || (size_t)(r->end - r->at) < sizeof number;
    if (r->bad)
        return 0;
    memcpy(&number, r->at, sizeof number);
    r->at += sizeof number;
    r->bad = number < low || number > high;
    return r->bad ? 0 : number;
}

static char *get_text(reader *r)
{
    const int length = get_number(r, 0, INT32_MAX);
    r->bad = r->bad || length > r->end - r->at ||
             (length > 0 && memchr(r->at, '\0', (size_t)length) != NULL);
    if (r->bad)
        return memory_text("", 0);
    r->at += length;
    return memory_text((const char *)r->at - length, (size_t)length);
}

static void get_texts(reader *r, texts *out)
{
    const int count = get_number(r, 0, INT32_MAX);
    for (int i = 0; i < count && !r->bad; i++) {
        char *text = get_text(r);
        texts_add(out, "%s", text);
        free(text);
    }
}

static void get_share(reader *r, const job *j, share *s)
{
    s->node = get_number(r, 0, j->nodes - 1);
    s->first_rank = get_number(r, 0, j->ranks - 1);
    s->ranks = get_number(r, 1, j->ranks - s->first_rank);
    if (!r->bad)
        s->slots = memory_grow(NULL, (size_t)s->ranks, sizeof *s->slots);
    for (int i = 0; i < s->ranks && !r->bad; i++)
        s->slots[i] = get_number(r, 0, SLOTS_MAX);
    s->host = get_text(r);
    s->local = true;
}

ring_status job_unpack(const char *data, size_t size, job *j, share *s)
{
    reader r = {(const unsigned char *)data, (const unsigned char *)data + size, false};
    *j = (job){0};
    *s = (share){0};
    j->ranks = get_number(&r, 1, RANKS_MAX);
    j->nodes = get_number(&r, 1, HOSTS_MAX);
    j->port = get_number(&r, 1, 65535);
    j->binding = (job_binding)get_number(&r, BIND_NONE, BIND_AUTO);
    j->has_secret = get_number(&r, 0, 1) != 0;
    get_share(&r, j, s);
    j->directory = get_text(&r);
    j->address = get_text(&r);
    get_texts(&r, &j->argv);
    get_texts(&r, &j->exports);
    if (r.bad || j->argv.count == 0 || r.end - r.at != (long)sizeof j->secret) {
        job_free(j);
        share_free(s);
        return fail(RING_ERR_CONFIG, "the message that describes the job is damaged");
    }
    memcpy(j->secret, r.at, sizeof j->secret);
    return RING_OK;
}
