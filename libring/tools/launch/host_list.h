/* SPDX-License-Identifier: Apache-2.0
 *
 * host_list: the machines of a job, and their slots (ranks that each can take), from a hostfile, a
 * list, or a batch system's variables. Names come from outside: they hold only letters, digits and
 * "._-@%", or are IPv6 addresses, and never begin like an option of ssh.
 */
#ifndef LAUNCH_HOST_LIST_H
#define LAUNCH_HOST_LIST_H

#include "grow.h"

enum { HOSTS_MAX = 65536, SLOTS_MAX = 65536 };

typedef struct host_entry {
    char *name;
    int slots;
    int *ids; /* [slots] slot numbers that --include or --exclude left; NULL: 0, 1, 2 … */

    /* After hosts_unify(): */
    bool here;       /* the machine that we are on                                  */
    texts addresses; /* numeric ones that the name stands for, without the loopback */
} host_entry;

typedef struct host_list {
    host_entry **items;
    size_t count;
    void *names;    /* the same by name (tsearch) */
    bool adds_up;   /* names that come twice add up; false: they are an error */
    bool looked_up; /* by hosts_unify() */
} host_list;

void hosts_free(host_list *list);

/** A hostfile: "NAME slots=N", "NAME:N" or "NAME" a line, '#' starts a comment. A host that
 *  appears twice is an error, as for DeepSpeed. Adds to @p list. */
ring_status hosts_read_file(const char *path, host_list *list);
/** PBS: one name a line; a name that comes k times has k slots. */
ring_status hosts_read_pbs(const char *path, host_list *list);
/** "a,b:2,[fe80::1]:4": names with optional slots (1); a name that comes twice adds up. */
ring_status hosts_parse_list(const char *text, host_list *list);
/** LSF: "a a b"; a name that comes k times has k slots. */
ring_status hosts_parse_words(const char *text, host_list *list);
/** Slurm: "n[01-04,7],x3" and tasks a node like "2(x3),1" (NULL or "": 1 each). */
ring_status hosts_parse_slurm(const char *nodes, const char *tasks, host_list *list);

/** Looks the names up, for at most 6 s, and makes one host of those that stand for the same
 * machine: with the sum of their slots if the list adds up, else it fails and names them. A name
 * that no answer comes for differs from others by its letters. */
ring_status hosts_unify(host_list *list);

/** DeepSpeed's "NODE[:slot,slot…]@NODE…". Include keeps only what is named, in the list's
 *  order; exclude drops it. @p any_slot: slot numbers are not bounded by the list. */
ring_status hosts_include(host_list *list, const char *text, bool any_slot);
ring_status hosts_exclude(host_list *list, const char *text);

/* For the parsers of this room. */

/** Adds a host. @return NULL and fail() if the name is invalid or there are too many. */
host_entry *hosts_add(host_list *list, const char *name, size_t length, int slots);
/** @return the entry of that name: upper and lower case are the same, and ssh's "user@" and a dot
 * at the end make no difference. NULL: there is none. */
host_entry *hosts_find(const host_list *list, const char *name, size_t length);
/** The same, or after hosts_unify() the entry of another name of that host. */
host_entry *hosts_find_same(const host_list *list, const char *name, size_t length);
ring_status hosts_add_slots(host_entry *known, int slots);
/** @return the name without ssh's "user@". */
const char *hosts_bare_name(const char *name);
/** Takes a host out of the index, and frees it. */
void hosts_drop(host_list *list, host_entry *h);
/** A whole number from @p low to @p high that ends where @p *text then points. */
bool hosts_number(const char **text, long low, long high, int *out);

#endif
