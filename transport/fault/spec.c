/* SPDX-License-Identifier: Apache-2.0
 * Parses the variable RING_FAULT, and computes the reproducible random decisions of a fault
 * link. */
#include "fault.h"

#include "numbers.h"
#include "words.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ITEM_MAX = 64 };

static const char *const keys[] = {"seed", "delay", "drop", "truncate", "lie", "close"};

static bool parse_whole(const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    *value = number;
    return isdigit((unsigned char)*text) && *end == '\0' && errno == 0;
}

static bool parse_real(const char *text, double most, double *value)
{
    return number_real(text, value) && *value <= most;
}

static ring_status parse_item(const char *key, const char *value, fault_spec *spec)
{
    bool good;
    if (strcmp(key, "seed") == 0)
        good = parse_whole(value, &spec->seed);
    else if (strcmp(key, "delay") == 0)
        good = parse_real(value, 3600, &spec->delay);
    else if (strcmp(key, "drop") == 0)
        good = parse_real(value, 1, &spec->drop);
    else if (strcmp(key, "truncate") == 0)
        good = parse_real(value, 1, &spec->truncate);
    else if (strcmp(key, "lie") == 0)
        good = parse_real(value, 1, &spec->lie);
    else if (strcmp(key, "close") == 0)
        good = parse_whole(value, &spec->close);
    else {
        const char *near = words_nearest(key, keys, sizeof keys / sizeof *keys);
        return fail(RING_ERR_CONFIG,
                    "RING_FAULT: unknown word \"%s\"%s%s; use seed, delay, drop, truncate, lie or "
                    "close",
                    key, near != NULL ? "; did you mean " : "", near != NULL ? near : "");
    }
    if (!good)
        return fail(RING_ERR_CONFIG,
                    "RING_FAULT: \"%s\" is not a value for %s; seed and close take a whole number, "
                    "delay takes seconds from 0 to 3600, and drop, truncate and lie take a "
                    "probability from 0 to 1",
                    value, key);
    return RING_OK;
}

ring_status fault_parse(const char *text, fault_spec *spec)
{
    *spec = (fault_spec){.close = UINT64_MAX};
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        char item[ITEM_MAX];
        char *value = NULL;
        if (text_format(item, sizeof item, "%.*s", (int)min_size(length, ITEM_MAX), at))
            value = strchr(item, '=');
        if (value == NULL)
            return fail(RING_ERR_CONFIG,
                        "RING_FAULT: \"%s\" is not a comma-separated list of WORD=VALUE", text);
        *value++ = '\0';
        RING_TRY(parse_item(item, value, spec));
        at += length;
        if (*at == '\0')
            return RING_OK;
    }
}

ring_status transport_fault_check(const char *text)
{
    fault_spec spec;
    return fault_parse(text, &spec);
}

/* splitmix64: similar inputs give unrelated outputs. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t fault_random(const fault_link *l, uint64_t kind, uint64_t frame)
{
    const uint64_t stream = mix(l->spec.seed) ^ mix((uint64_t)l->head.peer << 3 | kind);
    return mix(mix(stream) ^ frame);
}

bool fault_chance(const fault_link *l, double probability, uint64_t kind, uint64_t frame)
{
    const uint64_t dice = fault_random(l, kind, frame) >> 11; /* a double holds 53 bits exactly */
    return (double)dice < probability * 0x1p53;
}
