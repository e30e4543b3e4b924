/* SPDX-License-Identifier: Apache-2.0
 * DeepSpeed's --include and --exclude: "NODE[:slot,slot…]@NODE…". */
#include "hosts.h"

#include <stdlib.h>
#include <string.h>

typedef struct choice {
    size_t host; /* index in the list */
    int *ids;    /* NULL: all slots   */
    int count;
} choice;

static ring_status bad_filter(const char *text)
{
    return fail(RING_ERR_CONFIG,
                "'%.200s' is not NODE[:slot,slot...] with '@' between nodes, e.g. node1:0,2@node2",
                text);
}

/* The slots between colon and `end`. */
static ring_status parse_slots(const char *text, const char *at, const char *end,
                               const host_entry *of, bool any_slot, choice *out)
{
    for (;; at++) {
        int id;
        if (!hosts_number(&at, 0, SLOTS_MAX - 1, &id))
            return bad_filter(text);
        if (!any_slot && id >= of->slots)
            return fail(RING_ERR_CONFIG, "host '%s' has no slot %d: its slots are 0 to %d",
                        of->name, id, of->slots - 1);
        out->ids = memory_more(out->ids, (size_t)out->count, sizeof *out->ids);
        for (int i = 0; i < out->count; i++) {
            if (out->ids[i] == id)
                return fail(RING_ERR_CONFIG, "slot %d of host '%s' is named twice", id, of->name);
        }
        out->ids[out->count++] = id;
        if (at == end)
            return RING_OK;
        if (*at != ',')
            return bad_filter(text);
    }
}

static ring_status parse_choice(const host_list *list, const char *word, size_t length,
                                bool any_slot, choice *out)
{
    const char *colon = memchr(word, ':', length);
    const size_t name_length = colon != NULL ? (size_t)(colon - word) : length;
    const host_entry *of = hosts_find(list, word, name_length);
    if (of == NULL)
        return fail(RING_ERR_CONFIG, "host '%.*s' is not in the list of hosts",
                    (int)min_size(name_length, 80), word);
    *out = (choice){.host = (size_t)(of - list->items)};
    if (colon == NULL)
        return RING_OK;
    return parse_slots(word, colon + 1, word + length, of, any_slot, out);
}

static void free_choices(choice *choices, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(choices[i].ids);
    free(choices);
}

static ring_status parse_choices(const host_list *list, const char *text, bool any_slot,
                                 choice **out, size_t *count)
{
    for (const char *word = text;; word++) {
        const size_t length = strcspn(word, "@");
        if (length == 0)
            return bad_filter(text);
        *out = memory_more(*out, *count, sizeof **out);
        (*out)[*count] = (choice){0};
        choice *made = &(*out)[(*count)++];
        RING_TRY(parse_choice(list, word, length, any_slot, made));
        for (size_t i = 0; i + 1 < *count; i++) {
            if ((*out)[i].host == made->host)
                return fail(RING_ERR_CONFIG, "host '%s' is named twice in '%.200s'",
                            list->items[made->host].name, text);
        }
        word += length;
        if (*word == '\0')
            return RING_OK;
    }
}

static const choice *choice_of(const choice *choices, size_t count, size_t index)
{
    for (size_t i = 0; i < count; i++) {
        if (choices[i].host == index)
            return &choices[i];
    }
    return NULL;
}

static bool has_id(const choice *c, int id)
{
    for (int i = 0; i < c->count; i++) {
        if (c->ids[i] == id)
            return true;
    }
    return false;
}

static void keep_named(host_entry *h, const choice *named)
{
    if (named->ids == NULL)
        return;
    h->ids = memory_grow(h->ids, (size_t)named->count, sizeof *h->ids);
    memcpy(h->ids, named->ids, (size_t)named->count * sizeof *h->ids);
    h->slots = named->count;
}

static void drop_named(host_entry *h, const choice *named)
{
    int *left = memory_grow(NULL, (size_t)h->slots, sizeof *left);
    int count = 0;
    for (int id = 0; id < h->slots; id++) {
        if (named->ids != NULL && !has_id(named, id))
            left[count++] = id;
    }
    free(h->ids);
    h->ids = left;
    h->slots = count;
}

/* Applies the choices to all hosts and drops those without slots. */
static ring_status apply(host_list *list, const choice *choices, size_t count, bool include)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        host_entry *h = &list->items[i];
        const choice *named = choice_of(choices, count, i);
        if (named != NULL && include)
            keep_named(h, named);
        else if (named != NULL)
            drop_named(h, named);
        else if (include)
            h->slots = 0;
        if (h->slots > 0) {
            list->items[kept++] = *h;
            continue;
        }
        free(h->name);
        free(h->ids);
    }
    list->count = kept;
    hosts_reindex(list);
    return kept > 0 ? RING_OK
                    : fail(RING_ERR_CONFIG, "no host is left after --%s",
                           include ? "include" : "exclude");
}

static ring_status filter(host_list *list, const char *text, bool any_slot, bool include)
{
    choice *choices = NULL;
    size_t count = 0;
    ring_status status = parse_choices(list, text, any_slot, &choices, &count);
    if (status == RING_OK)
        status = apply(list, choices, count, include);
    free_choices(choices, count);
    return status;
}

ring_status hosts_include(host_list *list, const char *text, bool any_slot)
{
    return filter(list, text, any_slot, true);
}

ring_status hosts_exclude(host_list *list, const char *text)
{
    return filter(list, text, false, false);
}
