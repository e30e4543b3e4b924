/* SPDX-License-Identifier: Apache-2.0
 *
 * host_list: the hosts of a job, and their slots (number of ranks that each can take), from a
 * hostfile, a list, or variables of a batch system. Names are not trusted: a name has only letters,
 * digits and "._-@%", or is an IPv6 address, and cannot be mistaken for an option of ssh.
 */
#ifndef LAUNCH_HOST_LIST_H
#define LAUNCH_HOST_LIST_H

#include "grow.h"

enum { HOSTS_MAX = 65536, SLOTS_MAX = 65536 };

typedef struct host_entry {
    char *name;
    int slots;
    int *ids; /* [slots] slot numbers after --include or --exclude; NULL: 0, 1, 2 … */

    /* After hosts_unify(): */
    bool here;       /* the name means this host                              */
    texts addresses; /* numeric addresses of the name, without loopback ones  */
} host_entry;

typedef struct host_list {
    host_entry **items;
    size_t count;
    void *names;    /* an index of the same entries by name (tsearch) */
    bool adds_up;   /* the slots of a host that is named twice add up; false: this is an error */
    bool looked_up; /* hosts_unify() has looked up the addresses */
} host_list;

void hosts_free(host_list *list);

/* The parsers add hosts to a list. They return RING_ERR_CONFIG if the text is wrong. */

/** Reads a hostfile, with a line "NAME slots=N", "NAME:N" or "NAME" for each host; '#' starts a
 *  comment. As for DeepSpeed, a host that appears twice is an error. */
ring_status hosts_read_file(const char *path, host_list *list);
/** Reads a node file of PBS, with one name per line; a name that appears k times has k slots. */
ring_status hosts_read_pbs(const char *path, host_list *list);
/** Parses names with optional slots (default 1), such as "a,b:2,[fe80::1]:4". The slots of a name
 *  that appears twice add up. */
ring_status hosts_parse_list(const char *text, host_list *list);
/** Parses a list of LSF, such as "a a b"; a name that appears k times has k slots. */
ring_status hosts_parse_words(const char *text, host_list *list);
/** Parses lists of Slurm. @param nodes  such as "n[01-04,7],x3".
 *  @param tasks  number of slots of each node, such as "2(x3),1"; NULL or "": 1 for each. */
ring_status hosts_parse_slurm(const char *nodes, const char *tasks, host_list *list);

/** Looks up the addresses of all names, for at most 6 s, and finds names of the same host. If the
 *  list adds up, such names become one entry with the sum of their slots; otherwise this is an
 *  error. A name without an answer is compared with the others as a text only. */
ring_status hosts_unify(host_list *list);

/** Applies a filter in DeepSpeed's form "NODE[:slot,slot…]@NODE…": keeps only the named hosts and
 *  slots, in the order of the list.
 *  @param any_slot  slot numbers may be larger than the list allows. */
ring_status hosts_include(host_list *list, const char *text, bool any_slot);
/** Applies such a filter: drops the named hosts and slots. */
ring_status hosts_exclude(host_list *list, const char *text);

/* For the parsers of this room. */

/** Adds a host. @return NULL, after fail(), if the name is invalid or there are too many hosts. */
host_entry *hosts_add(host_list *list, const char *name, size_t length, int slots);
/** @return the entry of a name of @p length characters, or NULL. The case of letters, ssh's "user@"
 *  and a dot at the end are ignored. */
host_entry *hosts_find(const host_list *list, const char *name, size_t length);
/** @return the same; or else, after hosts_unify(), the entry of the same host under another
 *  name. */
host_entry *hosts_find_same(const host_list *list, const char *name, size_t length);
/** Adds slots to an entry. @return RING_ERR_CONFIG if it then has more than SLOTS_MAX. */
ring_status hosts_add_slots(host_entry *known, int slots);
/** @return the name without ssh's "user@". */
const char *hosts_bare_name(const char *name);
/** Removes a host from the index, and frees it; the caller removes it from `items`. */
void hosts_drop(host_list *list, host_entry *h);
/** Parses a whole number from @p low to @p high, and moves *text to its end. */
bool hosts_number(const char **text, long low, long high, int *out);

#endif
