/* SPDX-License-Identifier: Apache-2.0
 * Finds the names in a list that mean this host, and names that mean the same host. All names are
 * looked up in parallel, so that a name server without an answer costs one wait for the whole list.
 */
#include "host_list.h"

#include "host_address.h"
#include "name_question.h"
#include "topo.h"

#include <ifaddrs.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Seconds for all lookups: the resolver repeats a question after 5 s, and may get an answer
 * then. */
static const double patience = 6;

/* ---- Lookups ---------------------------------------------------------------- */

/* @return true for names that mean this host without a lookup. */
static bool is_own_name(const char *name)
{
    static const char *const names[] = {"localhost",     "localhost.localdomain",
                                        "localhost4",    "localhost4.localdomain4",
                                        "localhost6",    "localhost6.localdomain6",
                                        "ip6-localhost", "ip6-loopback"};
    char own[256];
    bool same = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        same = same || strcasecmp(name, names[i]) == 0;
    topo_hostname(own, sizeof own);
    same = same || strcasecmp(name, own) == 0;
    own[strcspn(own, ".")] = '\0';
    return same || strcasecmp(name, own) == 0;
}

static void add_own_addresses(texts *out)
{
    char text[HOST_ADDRESS_MAX];
    struct ifaddrs *list;
    if (getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next) {
        if (at->ifa_addr != NULL && host_address_text(at->ifa_addr, text))
            texts_add(out, "%s", text);
    }
    freeifaddrs(list);
}

static bool have_common(const texts *a, const texts *b)
{
    for (size_t i = 0; i < a->count; i++) {
        for (size_t k = 0; k < b->count; k++) {
            if (strcmp(a->items[i], b->items[k]) == 0)
                return true;
        }
    }
    return false;
}

/* Stores the addresses of a name, and whether it means this host: one of them is this host's, or is
 * a loopback address. Frees @p found. */
static void take_addresses(host_entry *h, struct addrinfo *found, const texts *own)
{
    char text[HOST_ADDRESS_MAX];
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        if (host_address_text(at->ai_addr, text))
            texts_add(&h->addresses, "%s", text);
        else
            h->here = true;
    }
    h->here = h->here || have_common(&h->addresses, own);
    freeaddrinfo(found);
}

/* Looks up all names of a list. A name without an answer has no addresses. */
static void look_up(host_list *list)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    const double deadline = clock_now() + patience;
    struct addrinfo *found;
    texts own = {0};
    name_question **asked = memory_zeroed(list->count, sizeof(name_question *));
    for (size_t i = 0; i < list->count; i++) {
        const char *name = hosts_bare_name(list->items[i]->name);
        list->items[i]->here = is_own_name(name);
        asked[i] = list->items[i]->here ? NULL : name_ask_begin(name, NULL, &hints);
    }
    add_own_addresses(&own);
    for (size_t i = 0; i < list->count; i++) {
        if (asked[i] != NULL && name_ask_end(asked[i], deadline, &found) == 0)
            take_addresses(list->items[i], found, &own);
    }
    texts_free(&own);
    free(asked);
    list->looked_up = true;
}

/* ---- Names of one host ------------------------------------------------------------------------
 */

/* Rejects "user@host" for this host with another user than the caller: ringrun starts ranks on its
 * own host without ssh, as its own user. */
static ring_status check_user(const host_entry *h)
{
    const size_t length = (size_t)(hosts_bare_name(h->name) - h->name);
    const struct passwd *us = h->here && length > 0 ? getpwuid(geteuid()) : NULL;
    if (us == NULL ||
        (strlen(us->pw_name) == length - 1 && strncmp(us->pw_name, h->name, length - 1) == 0))
        return RING_OK;
    return fail(RING_ERR_CONFIG,
                "host '%s' is this host, where ranks run as user %s; leave out '%.*s', or start "
                "ringrun as that user",
                h->name, us->pw_name, (int)length, h->name);
}

/* @param known   maps addresses to hosts: an entry has an address as its name and the number of the
 *                host as its slots. The addresses of a new host are added.
 * @param number  of @p h, if it is new.
 * @return the number of the first host that has an address in common with @p h, or @p number. */
static size_t first_same(host_list *known, const host_entry *h, size_t number)
{
    static char here[] = "localhost", *items[] = {here};
    const texts addresses = h->here ? (texts){items, 1} : h->addresses;
    for (size_t i = 0; i < addresses.count; i++) {
        const char *text = addresses.items[i];
        const host_entry *found = hosts_find(known, text, strlen(text));
        if (found != NULL)
            return (size_t)found->slots;
    }
    for (size_t i = 0; i < addresses.count; i++)
        (void)hosts_add(known, addresses.items[i], strlen(addresses.items[i]), (int)number);
    return number;
}

ring_status hosts_unify(host_list *list)
{
    host_list known = {0};
    ring_status status = RING_OK;
    size_t kept = 0;
    look_up(list);
    for (size_t i = 0; i < list->count; i++) {
        host_entry *h = list->items[i];
        const size_t first = first_same(&known, h, kept);
        if (status == RING_OK)
            status = check_user(h);
        if (status == RING_OK && first < kept)
            status = list->adds_up
                         ? hosts_add_slots(list->items[first], h->slots)
                         : fail(RING_ERR_CONFIG,
                                "'%s' and '%s' are the same host; name it once, with all its slots",
                                list->items[first]->name, h->name);
        if (status == RING_OK && first < kept)
            hosts_drop(list, h);
        else
            list->items[kept++] = h;
    }
    list->count = kept;
    hosts_free(&known);
    return status;
}

host_entry *hosts_find_same(const host_list *list, const char *name, size_t length)
{
    host_list wanted = {0};
    host_entry *found = hosts_find(list, name, length);
    if (found != NULL || !list->looked_up || hosts_add(&wanted, name, length, 1) == NULL)
        return found;
    look_up(&wanted);
    for (size_t i = 0; i < list->count && found == NULL; i++) {
        host_entry *h = list->items[i];
        if ((h->here && wanted.items[0]->here) ||
            have_common(&h->addresses, &wanted.items[0]->addresses))
            found = h;
    }
    hosts_free(&wanted);
    return found;
}
