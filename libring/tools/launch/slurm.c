/* SPDX-License-Identifier: Apache-2.0
 * Slurm's compressed lists: "n[01-04,7],x3" for nodes, "2(x3),1" for tasks a node. A few bytes may
 * expand to very many, so the result is bounded before it is expanded. */
#include "host_list.h"

#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 255 };

static ring_status bad_list(const char *text)
{
    return fail(RING_ERR_CONFIG, "'%.200s' is not a Slurm node list like n[01-04,7],x3", text);
}

/* Expands the first bracket of prefix+rest; names without one are added. */
static ring_status expand(host_list *list, const char *prefix, const char *rest, size_t length,
                          const char *whole);

/* Two entries for one node would be two hosts to the ranks. */
static ring_status add_once(host_list *list, const char *name, const char *whole)
{
    if (hosts_find(list, name, strlen(name)) != NULL)
        return fail(RING_ERR_CONFIG, "the Slurm node list '%.200s' names node '%.80s' twice", whole,
                    name);
    return hosts_add(list, name, strlen(name), 1) != NULL ? RING_OK : RING_ERR_CONFIG;
}

/* One "01-04" or "7" of a bracket: prefix, number with the width it was written in, tail. */
static ring_status expand_range(host_list *list, const char *prefix, const char **at,
                                const char *tail, size_t tail_length, const char *whole)
{
    const char *begin = *at;
    int first, last;
    if (!hosts_number(at, 0, INT32_MAX - 1, &first))
        return bad_list(whole);
    const int width = (int)(*at - begin);
    last = first;
    if (**at == '-') {
        (*at)++;
        if (!hosts_number(at, first, INT32_MAX - 1, &last))
            return bad_list(whole);
    }
    if (last - first >= HOSTS_MAX || width > WORD_MAX)
        return fail(RING_ERR_CONFIG, "the Slurm node list names more than %d hosts", HOSTS_MAX);
    for (int number = first; number <= last; number++) {
        char name[WORD_MAX + 1];
        if (!text_format(name, sizeof name, "%s%0*d", prefix, width, number))
            return bad_list(whole);
        RING_TRY(expand(list, name, tail, tail_length, whole));
    }
    return RING_OK;
}

static ring_status expand(host_list *list, const char *prefix, const char *rest, size_t length,
                          const char *whole)
{
    char name[WORD_MAX + 1];
    const char *open = memchr(rest, '[', length);
    const size_t plain = open != NULL ? (size_t)(open - rest) : length;
    if (plain > WORD_MAX || !text_format(name, sizeof name, "%s%.*s", prefix, (int)plain, rest))
        return bad_list(whole);
    if (open == NULL)
        return add_once(list, name, whole);
    const char *close = memchr(open, ']', length - plain);
    if (close == NULL)
        return bad_list(whole);
    const size_t tail_length = length - (size_t)(close + 1 - rest);
    for (const char *at = open + 1;; at++) {
        RING_TRY(expand_range(list, name, &at, close + 1, tail_length, whole));
        if (at == close)
            return RING_OK;
        if (*at != ',')
            return bad_list(whole);
    }
}

/* Up to the next comma outside brackets. */
static size_t word_length(const char *text)
{
    bool inside = false;
    size_t i = 0;
    for (; text[i] != '\0' && (inside || text[i] != ','); i++)
        inside = text[i] == '[' || (inside && text[i] != ']');
    return i;
}

/* "2(x3),1": the next value and how often it holds. */
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
                "SLURM_TASKS_PER_NODE='%.200s' does not fit the %zu nodes of SLURM_JOB_NODELIST",
                text, list->count);
}

static ring_status assign_tasks(host_list *list, const char *text)
{
    const char *at = text;
    int tasks = 1, times = 0;
    for (size_t i = 0; i < list->count; i++, times--) {
        if (times == 0 && !next_tasks(&at, &tasks, &times))
            return tasks_do_not_fit(list, text);
        list->items[i].slots = tasks;
    }
    return times == 0 && *at == '\0' ? RING_OK : tasks_do_not_fit(list, text);
}

ring_status hosts_parse_slurm(const char *nodes, const char *tasks, host_list *list)
{
    for (const char *word = nodes;; word++) {
        const size_t length = word_length(word);
        if (length == 0)
            return bad_list(nodes);
        RING_TRY(expand(list, "", word, length, nodes));
        word += length;
        if (*word == '\0')
            break;
    }
    return tasks != NULL && *tasks != '\0' ? assign_tasks(list, tasks) : RING_OK;
}
