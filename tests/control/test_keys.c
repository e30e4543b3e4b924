/* SPDX-License-Identifier: Apache-2.0
 * After a start no memory of a process holds the job's key, and one place that of the
 * membership. */
#include "ranks.h"

#include "credential.h"
#include "membership_state.h"

#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { SIZE = 3, MASK = 0x5a };

/** Facts that the ranks pass on; never a key itself. */
typedef struct handover {
    unsigned char id[RING_UNIQUE_ID_BYTES]; /* masked */
    _Atomic bool made;
    int job_keys[SIZE], membership_keys[SIZE];
    bool locked[SIZE]; /* the page of the membership's key, and it is not dumped */
} handover;

static void mask(unsigned char *to, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = ((const unsigned char *)from)[i] ^ MASK;
}

static bool is_masked(const unsigned char *at, const unsigned char *masked)
{
    for (int i = 0; i < CREDENTIAL_KEY; i++)
        if ((at[i] ^ MASK) != masked[i])
            return false;
    return true;
}

static int count_in(const unsigned char *from, const unsigned char *to, const unsigned char *masked)
{
    int count = 0;
    for (const unsigned char *at = from; at + CREDENTIAL_KEY <= to; at++)
        count += is_masked(at, masked);
    return count;
}

/* @return how often the key lies in what this process can write. */
static int count_everywhere(const unsigned char masked[CREDENTIAL_KEY])
{
    char line[512], rights[8];
    unsigned long from, to;
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && rights[0] == 'r' &&
            rights[1] == 'w' && to - from < 64UL << 20)
            count += count_in((const unsigned char *)from, (const unsigned char *)to, masked);
    fclose(maps);
    return count;
}

/* @return whether the kernel says of the mapping that it is locked and not dumped. */
static bool is_locked(const void *at)
{
    char line[512];
    unsigned long from, to;
    bool here = false, locked = false;
    FILE *maps = fopen("/proc/self/smaps", "re");
    while (fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = (unsigned long)at >= from && (unsigned long)at < to;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            locked = strstr(line, " lo") != NULL && strstr(line, " dd") != NULL;
    }
    fclose(maps);
    return locked;
}

static bool may_lock(void)
{
    struct rlimit most;
    return getrlimit(RLIMIT_MEMLOCK, &most) == 0 && most.rlim_cur >= 65536;
}

/* Rank 0 makes the id; the others' copies and its own are wiped here, as a careful caller would. */
static ring_status join_masked(handover *h, int rank, int size,
                               unsigned char job_key[CREDENTIAL_KEY], control_world **world)
{
    ring_unique_id id;
    credential c;
    if (rank == 0)
        id = new_id();
    if (rank == 0)
        mask(h->id, id.bytes, sizeof id.bytes);
    atomic_store(&h->made, rank == 0 || atomic_load(&h->made));
    while (!atomic_load(&h->made))
        clock_sleep(0.001);
    mask((unsigned char *)id.bytes, h->id, sizeof id.bytes);
    ring_status status = credential_from_id(&id, &c);
    mask(job_key, c.key, sizeof c.key);
    sodium_memzero(&c, sizeof c);
    if (status == RING_OK)
        status = join_by_id(&id, size, rank, 5, world);
    sodium_memzero(&id, sizeof id);
    return status;
}

static ring_status look_for_keys(int rank, int size, void *context)
{
    handover *h = context;
    unsigned char job_key[CREDENTIAL_KEY], key[CREDENTIAL_KEY];
    control_world *world;
    RING_TRY(join_masked(h, rank, size, job_key, &world));
    ring_status status = control_agree(world, RING_OK);
    control_start(world, no_wake, NULL);
    mask(key, group_of(world)->member->terms->key, sizeof key);
    h->locked[rank] = is_locked(group_of(world)->member->terms);
    sodium_stackzero(16384); /* of the calls that have returned */
    h->job_keys[rank] = count_everywhere(job_key);
    h->membership_keys[rank] = count_everywhere(key);
    if (status == RING_OK)
        status = control_agree(world, RING_OK);
    control_free(world);
    return status;
}

static void keys_do_not_stay(void **state)
{
    if (SANITIZED) {
        skip_because("sanitizers keep copies of their own");
    }
    handover *h = shared_memory(sizeof *h);
    crew *c = crew_new(SIZE);
    crew_processes(c, SIZE, look_for_keys, h);
    crew_assert_all(c, RING_OK);
    for (int rank = 0; rank < SIZE; rank++) {
        assert_int_equal(h->job_keys[rank], 0);
        assert_int_equal(h->membership_keys[rank], 1);
        assert_true(h->locked[rank] || !may_lock());
    }
    crew_free(c);
    shared_free(h, sizeof *h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_do_not_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
