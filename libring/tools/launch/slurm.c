/* SPDX-License-Identifier: Apache-2.0
 * Parses Slurm's compressed lists: "n[01-04,7],x3" names nodes, and "2(x3),1" gives the number of
 * tasks of each node. A short text can expand to very many nodes, so ranges are limited before they
 * are expanded. */
#include "host_list.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_MAX = 255 };

static ring_status bad_list(const char *text)
{
    return fail(RING_ERR_CONFIG, "'%.200s' is not a Slurm node list like n[01-04,7],x3", text);
}

/* Parses "01-04" or "7" in a bracket. @param[out] width  number of digits of the first number, to
 * which all numbers are filled with zeros. */
static ring_status parse_range(const char **at, int *first, int *last, int *width,
                               const char *whole)
{
    const char *begin = *at;
    if (!hosts_number(at, 0, INT32_MAX - 1, first))
        return bad_list(whole);
    *width = (int)(*at - begin);
    *last = *first;
    if (**at == '-') {
        (*at)++;
        if (!hosts_number(at, *first, INT32_MAX - 1, last))
            return bad_list(whole);
    }
    if (*last - *first >= HOSTS_MAX || *width > WORD_MAX)
        return fail(RING_ERR_CONFIG, "the Slurm node list names more than %d hosts", HOSTS_MAX);
    return RING_OK;
}

/* Expands the first bracket of prefix + rest and calls itself for each result. Adds a name without
 * a bracket to the list; a name that the list has is an error, since a node must be one host. */
static ring_status expand(host_list *list, const char *prefix, const char *rest, const char *whole)
{
    char name[WORD_MAX + 1];
    const size_t plain = strcspn(rest, "[");
    const char *close = strchr(rest + plain, ']');
    int first, last, width = 0;
    if (!text_format(name, sizeof name, "%s%.*s", prefix, (int)plain, rest))
        return bad_list(whole);
    if (rest[plain] == '\0' && hosts_find(list, name, strlen(name)) != NULL)
        return fail(RING_ERR_CONFIG, "the Slurm node list '%.200s' names node '%.80s' twice", whole,
                    name);
    if (rest[plain] == '\0')
        return hosts_add(list, name, strlen(name), 1) != NULL ? RING_OK : RING_ERR_CONFIG;
    const size_t length = strlen(name);
    for (const char *at = rest + plain + 1; close != NULL; at++) {
        RING_TRY(parse_range(&at, &first, &last, &width, whole));
        for (int number = first; number <= last; number++) {
            if (!text_format(name + length, sizeof name - length, "%0*d", width, number))
                return bad_list(whole);
            RING_TRY(expand(list, name, close + 1, whole));
        }
        if (at == close)
            return RING_OK;
        if (*at != ',')
            break;
    }
    return bad_list(whole);
}

/* Ends the word at the next comma outside brackets. @return the text after the comma, or NULL. */
static char *cut_word(char *text)
{
    bool inside = false;
    for (; *text != '\0' && (inside || *text != ','); text++)
        inside = *text == '[' || (inside && *text != ']');
    if (*text == '\0')
        return NULL;
    *text = '\0';
    return text + 1;
}

/* Parses the next item of "2(x3),1": a number of tasks, and of nodes that have it. */
static bool next_tasks(const char **at, int *tasks, int *times)
{
    *times = 1;
    if (!hosts_number(at, 1, SLOTS_MAX, tasks))
        return false;
    if (strncmp(*at, "(x", 2) == 0) {
        *at += 2;
        if (!hosts_number(at, 1, HOSTS_MAX, times) || **at != ')')
            return false;
        (*at)++;
    }
    if (**at == ',')
        (*at)++;
    else if (**at != '\0')
        return false;
    return true;
}

static ring_status tasks_do_not_fit(const host_list *list, const char *text)
{
    return fail(RING_ERR_CONFIG,
                "SLURM_TASKS_PER_NODE='%.200s' does not fit the %zu node%s of SLURM_JOB_NODELIST",
                text, list->count, plural(list->count));
}

/* Sets the slots of all nodes. */
static ring_status assign_tasks(host_list *list, const char *text)
{
    const char *at = text;
    int tasks = 1, times = 0;
    for (size_t i = 0; i < list->count; i++, times--) {
        if (times == 0 && !next_tasks(&at, &tasks, &times))
            return tasks_do_not_fit(list, text);
        list->items[i]->slots = tasks;
    }
    return times == 0 && *at == '\0' ? RING_OK : tasks_do_not_fit(list, text);
}

ring_status hosts_parse_slurm(const char *nodes, const char *tasks, host_list *list)
{
    ring_status status = RING_OK;
    char *words = memory_text(nodes, strlen(nodes)), *next;
    for (char *word = words; word != NULL && status == RING_OK; word = next) {
        next = cut_word(word);
        status = *word != '\0' ? expand(list, "", word, nodes) : bad_list(nodes);
    }
    free(words);
    RING_TRY(status);
    return tasks != NULL && *tasks != '\0' ? assign_tasks(list, tasks) : RING_OK;
}
