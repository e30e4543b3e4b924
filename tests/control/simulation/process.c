/* SPDX-License-Identifier: Apache-2.0
 * State that a process has for itself. Memory is noted by rank, so that a dead rank's goes, and one
 * that has left shows what it forgot. */
#include "simulated_ranks.h"

#include "address.h"
#include "card.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void __real_free(void *memory);

/* ---- The rooms' state --------------------------------------------------------------------- */

enum { ROOMS = 3, ROOM_BYTES = 256 };

static struct {
    const settings *settings;
    const int *host_of;
    bool known;
    unsigned char pristine[ROOMS][ROOM_BYTES], kept[SIM_RANKS][ROOMS][ROOM_BYTES];
} all;

static sim_room room(int i)
{
    sim_room (*const rooms[ROOMS])(void) = {sim_room_thread, sim_room_acceptors, sim_room_ids};
    const sim_room r = rooms[i]();
    if (r.bytes > ROOM_BYTES)
        abort();
    return r;
}

void sim_rooms_save(int rank)
{
    for (int i = 0; i < ROOMS; i++)
        memcpy(all.kept[rank][i], room(i).state, room(i).bytes);
}

void sim_rooms_load(int rank)
{
    for (int i = 0; i < ROOMS; i++)
        memcpy(room(i).state, all.kept[rank][i], room(i).bytes);
}

static void learn_pristine(void)
{
    for (int i = 0; i < ROOMS && !all.known; i++)
        memcpy(all.pristine[i], room(i).state, room(i).bytes);
    all.known = true;
}

void sim_reset_processes(const settings *s, const int *host_of)
{
    learn_pristine();
    all.settings = s;
    all.host_of = host_of;
    for (int r = 0; r < SIM_RANKS; r++)
        memcpy(all.kept[r], all.pristine, sizeof all.pristine);
}

/* ---- Memory --------------------------------------------------------------------------------- */

typedef struct block {
    struct block *next, *previous;
    size_t bytes;
    int64_t rank;
} block;

static block lists[SIM_RANKS + 1]; /* the last one: of the simulation */

static void *note(block *b, size_t bytes)
{
    if (b == NULL)
        return NULL;
    b->bytes = bytes;
    b->rank = sim_rank() >= 0 ? sim_rank() : SIM_RANKS;
    block *head = &lists[b->rank];
    b->previous = head;
    b->next = head->next;
    if (b->next != NULL)
        b->next->previous = b;
    head->next = b;
    return b + 1;
}

void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes)
{
    return note(__real_malloc(sizeof(block) + bytes), bytes);
}

void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes)
{
    return note(__real_calloc(1, sizeof(block) + count * bytes), count * bytes);
}

void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
    if (memory == NULL)
        return;
    block *b = (block *)memory - 1;
    b->previous->next = b->next;
    if (b->next != NULL)
        b->next->previous = b->previous;
    __real_free(b);
}

void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes)
{
    void *memory = __wrap_malloc(bytes);
    if (memory != NULL && old != NULL) {
        memcpy(memory, old, min_size(bytes, ((block *)old - 1)->bytes));
        __wrap_free(old);
    }
    return memory;
}

int sim_free_all(int rank)
{
    int count = 0;
    for (; lists[rank].next != NULL; count++)
        __wrap_free(lists[rank].next + 1);
    return count;
}

/* Without locked pages, which are slow to make. */
void *__wrap_sodium_malloc(size_t bytes);
void *__wrap_sodium_malloc(size_t bytes)
{
    return __wrap_malloc(bytes);
}

void __wrap_sodium_free(void *memory);
void __wrap_sodium_free(void *memory)
{
    __wrap_free(memory);
}

/* ---- Facts ------------------------------------------------------------------------------------
 */

void __wrap_randombytes_buf(void *out, size_t bytes);
void __wrap_randombytes_buf(void *out, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)out)[i] = (unsigned char)sim_draw(256);
}

pid_t __wrap_getpid(void);
pid_t __wrap_getpid(void)
{
    return 100 + sim_rank();
}

int __wrap_gethostname(char *out, size_t bytes);
int __wrap_gethostname(char *out, size_t bytes)
{
    snprintf(out, bytes, "host%d", all.host_of[sim_rank()]);
    return 0;
}

ring_status __wrap_card_fill(control_card *card, const char *host_id);
ring_status __wrap_card_fill(control_card *card, const char *host_id)
{
    const int rank = sim_rank();
    card->pid = 100 + rank;
    card->cpus = 1;
    __wrap_gethostname(card->hostname, sizeof card->hostname);
    memset(card->host, 1 + all.host_of[rank], sizeof card->host);
    memset(card->process, 1 + rank, sizeof card->process);
    return RING_OK;
}

ring_status __wrap_settings_read(settings *out);
ring_status __wrap_settings_read(settings *out)
{
    *out = *all.settings;
    return RING_OK;
}

ring_status __wrap_address_chosen(const settings *s, net_address *out);
ring_status __wrap_address_chosen(const settings *s, net_address *out)
{
    *out = address_loopback(0);
    out->at.v4.sin_addr.s_addr = htonl(0x0a000001u + (uint32_t)all.host_of[sim_rank()]);
    return RING_OK;
}

net_address __wrap_address_of_host(void);
net_address __wrap_address_of_host(void)
{
    return address_loopback(0);
}
