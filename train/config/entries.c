/* SPDX-License-Identifier: Apache-2.0
 * Lists the members of all objects in a file recursively, and refuses keys that are given twice. */
#include "entries.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"

/* Far more than any configuration has; it keeps the search for duplicates fast. */
enum { KEYS_MAX = 2000 };

static ring_status add_entry(config_entries *entries, const char *parent, const cJSON *value)
{
    config_entry *entry = &entries->list[entries->count];
    *entry = (config_entry){.value = value, .at = lenient_place(value)};
    if (strchr(value->string, '.') != NULL)
        return lenient_fail(&entries->text, entry->at, RING_ERR_CONFIG,
                            "unknown key \"%s\"; sections are nested: { … { … } }", value->string);
    const int length = snprintf(entry->path, sizeof entry->path, "%s%s%s", parent,
                                parent[0] != '\0' ? "." : "", value->string);
    if (length < 0 || (size_t)length >= sizeof entry->path)
        return lenient_fail(&entries->text, entry->at, RING_ERR_CONFIG,
                            "the path of this key is longer than any known one; check its name and "
                            "its section");
    if (entries_find(entries, entry->path) != NULL)
        return lenient_fail(&entries->text, entry->at, RING_ERR_CONFIG,
                            "\"%s\" is given twice; keep one", entry->path);
    entries->count++;
    return RING_OK;
}

static void list_members(config_entries *entries, const char *parent, const cJSON *object,
                         faults *list)
{
    for (const cJSON *member = object->child; member != NULL; member = member->next) {
        const ring_status status = add_entry(entries, parent, member);
        faults_note(list, lenient_place(member), status);
        if (status == RING_OK && cJSON_IsObject(member))
            list_members(entries, entries->list[entries->count - 1].path, member, list);
    }
}

static ring_status list_entries(config_entries *entries, faults *list)
{
    const lenient_text *text = &entries->text;
    if (!cJSON_IsObject(text->tree))
        return lenient_fail(text, 0, RING_ERR_CONFIG, "the file must have one object: { … }");
    if (text->key_count > KEYS_MAX)
        return train_fail(
            RING_ERR_CONFIG,
            "%s: the file has more than %d keys, so it is probably not a configuration", text->name,
            KEYS_MAX);
    entries->list = calloc(text->key_count + 1, sizeof *entries->list);
    if (entries->list == NULL)
        return train_fail(RING_ERR_MEMORY, "%s: no memory to read it", text->name);
    list_members(entries, "", text->tree, list);
    return RING_OK;
}

ring_status entries_read(config_entries *entries, const char *name, const char *source,
                         size_t length, faults *list)
{
    *entries = (config_entries){0};
    RING_TRY(lenient_read(&entries->text, name, source, length, list));
    const ring_status status = list_entries(entries, list);
    faults_note(list, SIZE_MAX, status);
    return status;
}

void entries_free(config_entries *entries)
{
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
