/* SPDX-License-Identifier: Apache-2.0
 * The list of hosts, and the two kinds of list a user writes: a file and a word. */
#include "hosts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_LENGTH = 255, FILE_MAX_BYTES = 16 << 20 };

void hosts_free(host_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        free(list->items[i].ids);
    }
    free(list->items);
    *list = (host_list){0};
}

static bool is_name(const char *name, size_t length)
{
    if (length == 0 || length > NAME_MAX_LENGTH || name[0] == '-')
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)name[i]) && strchr("._-:@%", name[i]) == NULL)
            return false;
        if (name[i] == '@' && i + 1 < length && name[i + 1] == '-')
            return false;
    }
    return memchr(name, '\0', length) == NULL;
}

host_entry *hosts_find(const host_list *list, const char *name, size_t length)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strlen(list->items[i].name) == length &&
            strncmp(list->items[i].name, name, length) == 0)
            return &list->items[i];
    }
    return NULL;
}

host_entry *hosts_add(host_list *list, const char *name, size_t length, int slots)
{
    if (!is_name(name, length)) {
        fail(RING_ERR_CONFIG, "'%.*s' is not a host name", (int)min_size(length, 80), name);
        return NULL;
    }
    if (list->count == HOSTS_MAX) {
        fail(RING_ERR_CONFIG, "more than %d hosts", HOSTS_MAX);
        return NULL;
    }
    list->items = memory_more(list->items, list->count, sizeof *list->items);
    host_entry *added = &list->items[list->count++];
    *added = (host_entry){.name = memory_text(name, length), .slots = slots};
    return added;
}

bool hosts_number(const char **text, long low, long high, int *out)
{
    char *end;
    if (!isdigit((unsigned char)**text))
        return false;
    const long value = strtol(*text, &end, 10); /* overflow gives LONG_MAX, beyond high */
    if (value < low || value > high)
        return false;
    *text = end;
    *out = (int)value;
    return true;
}

/* Adds up the slots of hosts named twice. */
static ring_status add_or_sum(host_list *list, const char *name, size_t length, int slots)
{
    host_entry *known = hosts_find(list, name, length);
    if (known == NULL)
        return hosts_add(list, name, length, slots) != NULL ? RING_OK : RING_ERR_CONFIG;
    if (known->slots > SLOTS_MAX - slots)
        return fail(RING_ERR_CONFIG, "host '%s' has more than %d slots", known->name, SLOTS_MAX);
    known->slots += slots;
    return RING_OK;
}

/* ---- A word: "a,b:2" -------------------------------------------------------------- */

/* Where the name ends: before ":N", where N is digits only; IPv6 in brackets. */
static ring_status add_word(host_list *list, const char *word, size_t length)
{
    const char *name = word, *rest = memrchr(word, ':', length);
    size_t name_length = rest != NULL ? (size_t)(rest - word) : length;
    int slots = 1;
    const char *bracket = word[0] == '[' ? memchr(word, ']', length) : NULL;
    if (bracket != NULL) {
        name = word + 1;
        name_length = (size_t)(bracket - name);
        rest = bracket + 1 < word + length ? bracket + 1 : NULL;
    }
    if (rest != NULL) {
        const char *number = rest + 1;
        if (*rest != ':' || !hosts_number(&number, 1, SLOTS_MAX, &slots) ||
            number != word + length)
            return fail(RING_ERR_CONFIG, "'%.*s' in the host list is not NAME or NAME:SLOTS with "
                        "1 to %d slots", (int)min_size(length, 80), word, SLOTS_MAX);
    }
    return add_or_sum(list, name, name_length, slots);
}

ring_status hosts_parse_list(const char *text, host_list *list)
{
    for (const char *word = text;; word++) {
        const size_t length = strcspn(word, ",");
        if (length == 0)
            return fail(RING_ERR_CONFIG, "empty name in the host list '%.200s'", text);
        RING_TRY(add_word(list, word, length));
        word += length;
        if (*word == '\0')
            return RING_OK;
    }
}

ring_status hosts_parse_words(const char *text, host_list *list)
{
    static const char blanks[] = " \t\n";
    for (const char *word = text + strspn(text, blanks); *word != '\0';) {
        const size_t length = strcspn(word, blanks);
        RING_TRY(add_or_sum(list, word, length, 1));
        word += length;
        word += strspn(word, blanks);
    }
    return list->count > 0 ? RING_OK : fail(RING_ERR_CONFIG, "the host list is empty");
}

/* ---- Files ------------------------------------------------------------------------ */

typedef struct file_line {
    const char *path;
    int number;
    char *word, *rest; /* first word, and what follows it without blanks around */
} file_line;

static void cut_comment(char *text)
{
    text[strcspn(text, "#\r\n")] = '\0';
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
}

/* Calls take() for each line that holds a word. */
static ring_status each_line(FILE *file, const char *path, host_list *list,
                             ring_status (*take)(const file_line *line, host_list *list))
{
    char text[1024];
    size_t total = 0;
    ring_status status = RING_OK;
    for (int number = 1; status == RING_OK && fgets(text, sizeof text, file) != NULL; number++) {
        total += strlen(text);
        if (strlen(text) == sizeof text - 1 || total > FILE_MAX_BYTES)
            return fail(RING_ERR_CONFIG, "%s:%d: too long for a host list", path, number);
        cut_comment(text);
        char *word = text + strspn(text, " \t");
        if (*word == '\0')
            continue;
        char *rest = word + strcspn(word, " \t");
        if (*rest != '\0')
            *rest++ = '\0';
        const file_line line = {path, number, word, rest + strspn(rest, " \t")};
        status = take(&line, list);
    }
    return status;
}

static ring_status read_lines(const char *path, host_list *list,
                              ring_status (*take)(const file_line *line, host_list *list))
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return fail(RING_ERR_CONFIG, "host list %s: %m", path);
    ring_status status = each_line(file, path, list, take);
    if (status == RING_OK && ferror(file))
        status = fail(RING_ERR_CONFIG, "host list %s: %m", path);
    if (status == RING_OK && list->count == 0)
        status = fail(RING_ERR_CONFIG, "host list %s names no host; expected lines like "
                      "'node1 slots=4'", path);
    fclose(file);
    return status;
}

static ring_status take_hostfile_line(const file_line *line, host_list *list)
{
    int slots = 1;
    const char *rest = line->rest;
    if (*rest != '\0') {
        const char *number = rest + strlen("slots=");
        if (strncmp(rest, "slots=", strlen("slots=")) != 0 ||
            !hosts_number(&number, 0, SLOTS_MAX, &slots) || *number != '\0')
            return fail(RING_ERR_CONFIG, "%s:%d: '%.80s' after the host name; expected slots=N "
                        "with N at most %d", line->path, line->number, rest, SLOTS_MAX);
    }
    if (hosts_find(list, line->word, strlen(line->word)) != NULL)
        return fail(RING_ERR_CONFIG, "%s:%d: hostfile contains multiple entries for %.80s; give "
                    "each host one line with all its slots", line->path, line->number, line->word);
    if (hosts_add(list, line->word, strlen(line->word), slots) == NULL)
        return fail(RING_ERR_CONFIG, "%s:%d: %s", line->path, line->number, fail_text());
    return RING_OK;
}

static ring_status take_pbs_line(const file_line *line, host_list *list)
{
    if (*line->rest != '\0')
        return fail(RING_ERR_CONFIG, "%s:%d: more than one word in a PBS node file", line->path,
                    line->number);
    return add_or_sum(list, line->word, strlen(line->word), 1);
}

ring_status hosts_read_file(const char *path, host_list *list)
{
    return read_lines(path, list, take_hostfile_line);
}

ring_status hosts_read_pbs(const char *path, host_list *list)
{
    return read_lines(path, list, take_pbs_line);
}
