/* SPDX-License-Identifier: Apache-2.0
 * Implements the list of hosts, and parses lists that users write: hostfiles, and the value of -H.
 */
#include "host_list.h"

#include "text_lines.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { NAME_MAX_LENGTH = 255, FILE_MAX_BYTES = 16 << 20, LINE_MOST = 1024 };

/* ---- The list ---------------------------------------------------------------------- */

const char *hosts_bare_name(const char *name)
{
    const char *at = strchr(name, '@');
    return at != NULL ? at + 1 : name;
}

static int compare_names(const void *a, const void *b)
{
    return strcasecmp(hosts_bare_name(((const host_entry *)a)->name),
                      hosts_bare_name(((const host_entry *)b)->name));
}

/* @return the length without the dot at the end of a fully qualified name: /etc/hosts has names
 * without it. */
static size_t without_dot(const char *name, size_t length)
{
    while (length > 1 && name[length - 1] == '.')
        length--;
    return length;
}

void hosts_drop(host_list *list, host_entry *h)
{
    tdelete(h, &list->names, compare_names);
    texts_free(&h->addresses);
    free(h->name);
    free(h->ids);
    free(h);
}

void hosts_free(host_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        hosts_drop(list, list->items[i]);
    free(list->items);
    *list = (host_list){0};
}

/* @return true for an IPv6 address, also with ssh's "user@" before it and a zone "%eth0" after it.
 */
static bool is_ipv6(const char *name, size_t length)
{
    char address[INET6_ADDRSTRLEN];
    struct in6_addr ignored;
    const char *at = memchr(name, '@', length), *begin = at != NULL ? at + 1 : name;
    const char *zone = memchr(begin, '%', length - (size_t)(begin - name));
    const size_t count = (size_t)((zone != NULL ? zone : name + length) - begin);
    return text_format(address, sizeof address, "%.*s", (int)count, begin) &&
           inet_pton(AF_INET6, address, &ignored) == 1;
}

/* @return true if the name may be given to ssh: see the characters in host_list.h. */
static bool is_name(const char *name, size_t length)
{
    if (length == 0 || length > NAME_MAX_LENGTH || name[0] == '-')
        return false;
    if (memchr(name, ':', length) != NULL && !is_ipv6(name, length))
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
    char text[NAME_MAX_LENGTH + 1];
    const host_entry key = {.name = text};
    length = min_size(without_dot(name, length), sizeof text);
    if (!text_format(text, sizeof text, "%.*s", (int)length, name))
        return NULL;
    host_entry *const *found = tfind(&key, &list->names, compare_names);
    return found != NULL ? *found : NULL;
}

host_entry *hosts_add(host_list *list, const char *name, size_t length, int slots)
{
    if (!is_name(name, length)) {
        fail(RING_ERR_CONFIG, "'%.*s' is not a host name", (int)min_size(length, 80), name);
        return NULL;
    }
    if (list->count == HOSTS_MAX) {
        fail(RING_ERR_CONFIG, "the list has more than %d hosts", HOSTS_MAX);
        return NULL;
    }
    host_entry *added = memory_grow(NULL, 1, sizeof *added);
    *added = (host_entry){.name = memory_text(name, without_dot(name, length)), .slots = slots};
    list->items = memory_more(list->items, list->count, sizeof *list->items);
    list->items[list->count++] = added;
    if (tsearch(added, &list->names, compare_names) == NULL)
        memory_failed();
    return added;
}

bool hosts_number(const char **text, long low, long high, int *out)
{
    char *end;
    if (!isdigit((unsigned char)**text))
        return false;
    const long value = strtol(*text, &end,
                              10); /* an overflow gives LONG_MAX, which is more than high */
    if (value < low || value > high)
        return false;
    *text = end;
    *out = (int)value;
    return true;
}

ring_status hosts_add_slots(host_entry *known, int slots)
{
    if (known->slots > SLOTS_MAX - slots)
        return fail(RING_ERR_CONFIG, "host '%s' has more than %d slots", known->name, SLOTS_MAX);
    known->slots += slots;
    return RING_OK;
}

/* Adds a host, or adds the slots to a host that the list already has. */
static ring_status add_or_sum(host_list *list, const char *name, size_t length, int slots)
{
    host_entry *known = hosts_find(list, name, length);
    list->adds_up = true;
    if (known != NULL)
        return hosts_add_slots(known, slots);
    return hosts_add(list, name, length, slots) != NULL ? RING_OK : RING_ERR_CONFIG;
}

/* ---- Lists: "a,b:2" --------------------------------------------------------------- */

typedef struct host_word {
    const char *name;
    size_t length;
    int slots; /* 0: not given */
} host_word;

/* Splits "NAME" or "NAME:N". An IPv6 address may be in brackets, and must be if ":N" follows. */
static ring_status split_word(const char *word, size_t length, host_word *out)
{
    const char *end = word + length, *colon = memrchr(word, ':', length);
    const char *rest = colon != NULL && !is_ipv6(word, length) ? colon : end;
    const char *bracket = word[0] == '[' ? memchr(word, ']', length) : NULL;
    *out = (host_word){.name = word, .length = (size_t)(rest - word)};
    if (bracket != NULL) {
        *out = (host_word){.name = word + 1, .length = (size_t)(bracket - word - 1)};
        rest = bracket + 1;
    }
    const char *number = rest + 1;
    if (rest == end ||
        (*rest == ':' && hosts_number(&number, 1, SLOTS_MAX, &out->slots) && number == end))
        return RING_OK;
    return fail(RING_ERR_CONFIG, "'%.*s' is not NAME or NAME:SLOTS with 1 to %d slots",
                (int)min_size(length, 80), word, SLOTS_MAX);
}

ring_status hosts_parse_list(const char *text, host_list *list)
{
    for (const char *word = text;; word++) {
        host_word w;
        const size_t length = strcspn(word, ",");
        if (length == 0)
            return fail(RING_ERR_CONFIG, "empty name in the host list '%.200s'", text);
        RING_TRY(split_word(word, length, &w));
        RING_TRY(add_or_sum(list, w.name, w.length, w.slots > 0 ? w.slots : 1));
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

/* Opens a list, which must be a regular file: a device may never end, and opening a FIFO may block.
 */
static ring_status open_list(const char *path, FILE **out)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &info) != 0) {
        fail(RING_ERR_CONFIG, "host list %s: %m", path);
    } else if (!S_ISREG(info.st_mode)) {
        fail(RING_ERR_CONFIG, "host list %s: not a regular file", path);
    } else if (info.st_size > FILE_MAX_BYTES) {
        fail(RING_ERR_CONFIG, "host list %s: the file has %lld bytes, more than %d", path,
             (long long)info.st_size, FILE_MAX_BYTES);
    } else if ((*out = fdopen(fd, "r")) != NULL) {
        return RING_OK;
    } else {
        fail(RING_ERR_CONFIG, "host list %s: %m", path);
    }
    fd_close(&fd);
    return RING_ERR_CONFIG;
}

static ring_status read_lines(const char *path, host_list *list,
                              ring_status (*take)(void *list, char *line))
{
    FILE *file;
    RING_TRY(open_list(path, &file));
    ring_status status = lines_each(file, path, take, list);
    if (status == RING_OK && list->count == 0)
        status = fail(RING_ERR_CONFIG,
                      "host list %s names no host; expected lines like 'node1 slots=4'", path);
    fclose(file);
    return status;
}

/* Ends the first word of a line. @return the rest of the line, trimmed, without a comment. */
static char *cut_word(char *line)
{
    line[strcspn(line, "#")] = '\0';
    char *rest = line + strcspn(line, " \t");
    if (*rest != '\0')
        *rest++ = '\0';
    return lines_trim(rest);
}

/* Parses the rest of the line: "slots=N", or nothing. After "NAME:N", as MPICH writes it, the rest
 * must be empty. */
static ring_status take_slots(const char *word, const char *rest, const host_word *w, int *slots)
{
    *slots = w->slots > 0 ? w->slots : 1;
    if (*rest == '\0')
        return RING_OK;
    const bool is_slots = w->slots == 0 && strncmp(rest, "slots=", strlen("slots=")) == 0;
    const char *number = is_slots ? rest + strlen("slots=") : rest;
    if (!is_slots || !hosts_number(&number, 0, SLOTS_MAX, slots) || *number != '\0')
        return fail(RING_ERR_CONFIG,
                    "'%.80s' after '%.80s'; expected slots=N with N from 0 to %d, or NAME:N alone",
                    rest, word, SLOTS_MAX);
    return RING_OK;
}

static ring_status take_hostfile_line(void *context, char *line)
{
    host_list *list = context;
    host_word w;
    int slots;
    if (strlen(line) > LINE_MOST)
        return fail(RING_ERR_CONFIG, "the line is longer than %d characters", LINE_MOST);
    const char *rest = cut_word(line);
    RING_TRY(split_word(line, strlen(line), &w));
    RING_TRY(take_slots(line, rest, &w, &slots));
    if (hosts_find(list, w.name, w.length) != NULL)
        return fail(RING_ERR_CONFIG,
                    "hostfile contains multiple entries for %.*s; give each host one line with all "
                    "its slots",
                    (int)min_size(w.length, 80), w.name);
    return hosts_add(list, w.name, w.length, slots) != NULL ? RING_OK : RING_ERR_CONFIG;
}

static ring_status take_pbs_line(void *list, char *line)
{
    if (*cut_word(line) != '\0')
        return fail(RING_ERR_CONFIG, "a line of a PBS node file must be one name");
    return add_or_sum(list, line, strlen(line), 1);
}

ring_status hosts_read_file(const char *path, host_list *list)
{
    return read_lines(path, list, take_hostfile_line);
}

ring_status hosts_read_pbs(const char *path, host_list *list)
{
    return read_lines(path, list, take_pbs_line);
}
