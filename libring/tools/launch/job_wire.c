/* SPDX-License-Identifier: Apache-2.0
 * A job as bytes: numbers are 4 bytes, least first; a text is its length and its bytes. */
#include "job.h"

#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const unsigned char *at, *end;
    bool bad; /* sticky: later reads give 0 or empty */
} reader;

static void put_number(bytes *out, long number)
{
    unsigned char wire[4];
    for (int i = 0; i < 4; i++)
        wire[i] = (unsigned char)((unsigned long)number >> (8 * i));
    bytes_add(out, wire, sizeof wire);
}

static void put_text(bytes *out, const char *text)
{
    put_number(out, (long)strlen(text));
    bytes_add(out, text, strlen(text));
}

static void put_texts(bytes *out, const texts *list)
{
    put_number(out, (long)list->count);
    for (size_t i = 0; i < list->count; i++)
        put_text(out, list->items[i]);
}

void job_pack(const job *j, const share *s, bytes *out)
{
    const long numbers[] = {j->ranks,      j->nodes, j->port,       j->binding,
                            j->has_secret, s->node,  s->first_rank, s->ranks};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        put_number(out, numbers[i]);
    for (int i = 0; i < s->ranks; i++)
        put_number(out, s->slots[i]);
    put_text(out, s->host);
    put_text(out, j->directory);
    put_text(out, j->address);
    put_texts(out, &j->argv);
    put_texts(out, &j->exports);
    bytes_add(out, j->secret, sizeof j->secret);
}

/* A number from low to high. */
static int get_number(reader *r, long low, long high)
{
    unsigned long number = 0;
    if (r->bad || r->end - r->at < 4) {
        r->bad = true;
        return 0;
    }
    for (int i = 0; i < 4; i++)
        number |= (unsigned long)*r->at++ << (8 * i);
    r->bad = (long)number < low || (long)number > high;
    return r->bad ? 0 : (int)number;
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
