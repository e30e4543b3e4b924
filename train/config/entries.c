/* SPDX-License-Identifier: Apache-2.0
 * cJSON does not keep positions; but its tree in depth-first order has the keys in the
 * order in which lenient_read() met them, so the n-th of one is the n-th of the other. */
#include "entries.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"

/* Far more than any configuration has; keeps the search for duplicates quick. */
enum { KEYS_MAX = 2000 };

/* The walk over the tree. */
typedef struct entries_walk {
    config_entries *entries;
    size_t seen; /* keys met so far, those inside lists included */
} entries_walk;

static ring_status check_duplicate(const config_entries *entries, const config_entry *entry)
{
    const config_entry *first = entries_find(entries, entry->path);
    if (first == NULL)
        return RING_OK;
    return lenient_fail(&entries->text, entry->at, RING_ERR_CONFIG,
                        "\"%s\" is given twice; keep one", entry->path);
}

static ring_status add_entry(config_entries *entries, const char *parent, const cJSON *value,
                             size_t at)
{
    config_entry entry = {.value = value, .at = at};
    if (strchr(value->string, '.') != NULL)
        return lenient_fail(&entries->text, at, RING_ERR_CONFIG,
                            "unknown key \"%s\"; sections are nested: { … { … } }", value->string);
    const int length = snprintf(entry.path, sizeof entry.path, "%s%s%s", parent,
                                parent[0] != '\0' ? "." : "", value->string);
    if (length < 0 || (size_t)length >= sizeof entry.path)
        return lenient_fail(&entries->text, at, RING_ERR_CONFIG,
                            "no key is that long or nested that deeply");
    RING_TRY(check_duplicate(entries, &entry));
    entries->list[entries->count++] = entry;
    return RING_OK;
}

/* Counts keys below a list, which are no settings of their own. */
static void count_keys(entries_walk *walk, const cJSON *value)
{
    for (const cJSON *child = value->child; child != NULL; child = child->next) {
        walk->seen += child->string != NULL;
        count_keys(walk, child);
    }
}

static ring_status walk_object(entries_walk *walk, const char *parent, const cJSON *object)
{
    config_entries *entries = walk->entries;
    for (const cJSON *child = object->child; child != NULL; child = child->next) {
        if (walk->seen == entries->text.key_count)
            return train_fail(RING_ERR_INTERNAL, "%s: more keys than were read",
                              entries->text.name);
        const size_t at = entries->text.keys[walk->seen++];
        const ring_status status = add_entry(entries, parent, child, at);
        faults_note(entries->text.faults, at, status);
        if (status == RING_OK && cJSON_IsObject(child))
            RING_TRY(walk_object(walk, entries->list[entries->count - 1].path, child));
        else
            count_keys(walk, child);
    }
    return RING_OK;
}

/* Messages quote keys and texts: the control characters in them, also those from U+0080 to U+009F,
 * would be orders to a terminal. */
static void hide_controls(char *text)
{
    for (unsigned char *at = (unsigned char *)text; at != NULL && *at != '\0'; at++) {
        if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0)
            at[0] = at[1] = '?';
        else if (*at < ' ' || *at == 0x7f)
            *at = '?';
    }
}

static void make_printable(cJSON *value)
{
    for (; value != NULL; value = value->next) {
        hide_controls(value->string);
        hide_controls(value->valuestring);
        make_printable(value->child);
    }
}

static ring_status parse(config_entries *entries, size_t *failed_at)
{
    const char *end = NULL;
    entries->tree = cJSON_ParseWithOpts(entries->text.json, &end, 1);
    if (entries->tree == NULL) {
        *failed_at = entries->text.origin[end - entries->text.json];
        return lenient_syntax_error(&entries->text, (size_t)(end - entries->text.json));
    }
    make_printable(entries->tree);
    if (!cJSON_IsObject(entries->tree))
        return lenient_fail(&entries->text, 0, RING_ERR_CONFIG,
                            "the file must hold one object: { … }");
    return RING_OK;
}

static ring_status list_entries(config_entries *entries)
{
    const char *name = entries->text.name;
    if (entries->text.key_count > KEYS_MAX)
        return train_fail(RING_ERR_CONFIG, "%s: more than %d keys", name, KEYS_MAX);
    entries->list = calloc(entries->text.key_count + 1, sizeof *entries->list);
    if (entries->list == NULL)
        return train_fail(RING_ERR_MEMORY, "%s: no memory to read it", name);
    return walk_object(&(entries_walk){.entries = entries}, "", entries->tree);
}

ring_status entries_read(config_entries *entries, const char *name, const char *source,
                         size_t length, faults *list)
{
    size_t failed_at = SIZE_MAX; /* behind all that was read before */
    *entries = (config_entries){0};
    ring_status status = lenient_read(&entries->text, name, source, length, list);
    if (status == RING_OK)
        status = parse(entries, &failed_at);
    if (status == RING_OK)
        status = list_entries(entries);
    faults_note(list, failed_at, status);
    return status;
}

void entries_free(config_entries *entries)
{
    cJSON_Delete(entries->tree);
    free(entries->list);
    lenient_free(&entries->text);
    *entries = (config_entries){0};
}

const config_entry *entries_find(const config_entries *entries, const char *path)
{
    for (size_t i = 0; i < entries->count; i++) {
        if (strcmp(entries->list[i].path, path) == 0)
            return &entries->list[i];
    }
    return NULL;
}
