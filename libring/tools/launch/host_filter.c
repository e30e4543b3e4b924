/* SPDX-License-Identifier: Apache-2.0
 * Applies DeepSpeed's --include and --exclude to a list of hosts. */
#include "host_list.h"

#include <stdlib.h>
#include <string.h>

static ring_status bad_filter(const char *text)
{
    return fail(RING_ERR_CONFIG,
                "expected NODE[:slot,slot...] with '@' between nodes, e.g. node1:0,2@node2; found "
                "'%.200s'",
                text);
}

/* @return true if the entry lists the slot number @p id. */
static bool has_id(const host_entry *h, int id)
{
    for (int i = 0; i < h->slots; i++) {
        if (h->ids[i] == id)
            return true;
    }
    return false;
}

/* Parses the slot numbers between @p at and @p end. @param text  the node, for messages.
 * @param of  the host. @param any_slot  numbers may exceed its slots. */
static ring_status parse_slots(const char *text, const char *at, const char *end,
                               const host_entry *of, bool any_slot, host_entry *out)
{
    for (;; at++) {
        int id;
        if (!hosts_number(&at, 0, SLOTS_MAX - 1, &id))
            return bad_filter(text);
        if (!any_slot && id >= of->slots)
            return fail(RING_ERR_CONFIG, "host '%s' has no slot %d: its slots are 0 to %d",
                        of->name, id, of->slots - 1);
        if (has_id(out, id))
            return fail(RING_ERR_CONFIG, "slot %d of host '%s' is named twice", id, of->name);
        out->ids = memory_more(out->ids, (size_t)out->slots, sizeof *out->ids);
        out->ids[out->slots++] = id;
        if (at == end)
            return RING_OK;
        if (*at != ',')
            return bad_filter(text);
    }
}

/* Parses "NODE" or "NODE:slot,slot…" and adds an entry to @p out. */
static ring_status parse_node(const host_list *list, const char *word, size_t length, bool any_slot,
                              host_list *out)
{
    const char *colon = memchr(word, ':', length);
    const size_t name_length = colon != NULL ? (size_t)(colon - word) : length;
    const host_entry *of = hosts_find_same(list, word, name_length);
    if (of == NULL)
        return fail(RING_ERR_CONFIG, "host '%.*s' is not in the list of hosts",
                    (int)min_size(name_length, 80), word);
    if (hosts_find(out, of->name, strlen(of->name)) != NULL)
        return fail(RING_ERR_CONFIG, "host '%s' is named twice in '%.200s'", of->name, word);
    host_entry *named = hosts_add(out, of->name, strlen(of->name), 0);
    return colon == NULL ? RING_OK
                         : parse_slots(word, colon + 1, word + length, of, any_slot, named);
}

/* Parses a filter. @param[out] out  the named hosts, with the named slots as `ids`; `ids` is NULL
 * if all slots of the host are meant. */
static ring_status parse_nodes(const host_list *list, const char *text, bool any_slot,
                               host_list *out)
{
    for (const char *word = text;; word++) {
        const size_t length = strcspn(word, "@");
        if (length == 0)
            return bad_filter(text);
        RING_TRY(parse_node(list, word, length, any_slot, out));
        word += length;
        if (*word == '\0')
            return RING_OK;
    }
}

/* Drops the named slots of a host. */
static void drop_named(host_entry *h, const host_entry *named)
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

/* Keeps only the named hosts and slots (@p include), or drops them. Then drops hosts without slots.
 */
static ring_status apply(host_list *list, const host_list *all_named, bool include)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        host_entry *h = list->items[i];
        host_entry *named = hosts_find(all_named, h->name, strlen(h->name));
        if (named != NULL && include && named->ids != NULL) {
            free(h->ids);
            h->ids = named->ids;
            h->slots = named->slots;
            named->ids = NULL;
        } else if (named != NULL && !include) {
            drop_named(h, named);
        } else if (named == NULL && include) {
            h->slots = 0;
        }
        if (h->slots > 0)
            list->items[kept++] = h;
        else
            hosts_drop(list, h);
    }
    list->count = kept;
    return kept > 0 ? RING_OK
                    : fail(RING_ERR_CONFIG, "no host is left after --%s",
                           include ? "include" : "exclude");
}

static ring_status filter(host_list *list, const char *text, bool any_slot, bool include)
{
    host_list named = {0};
    ring_status status = parse_nodes(list, text, any_slot, &named);
    if (status == RING_OK)
        status = apply(list, &named, include);
    hosts_free(&named);
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
