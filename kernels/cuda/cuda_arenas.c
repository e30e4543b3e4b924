/* SPDX-License-Identifier: Apache-2.0
 * Allocates arenas, gives out their units, and frees an arena or a part of it when all ranks have
 * departed from it: each of them sets a word there after its last run. */
#include "cuda_arenas.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first unit has a word for each rank that has departed from the arena, and from GREETINGS on a
 * word for each rank whose GPU has written there. PARTS_BYTES are for the seats of derived
 * communicators. */
enum { PARTS_BYTES = 6 << 20, GREETINGS = CHORES_MOST * sizeof(uint64_t) };

/* Chores and greetings have a deadline. Their word is read every few tens of microseconds, and the
 * driver is asked at each read of so many. */
enum { CHORE_SECONDS = 10, GREETING_SECONDS = 4, DRAIN_SECONDS = 10, LOOKS_PER_QUERY = 256 };

/* The first units of pinned memory. */
typedef struct arena_words {
    _Atomic uint32_t done; /* number of the latest chores that are done */
    _Atomic uint64_t looks[CHORES_MOST];
} arena_words;
_Static_assert(sizeof(arena_words) <= PINNED_UNIT_BYTES, "the words are in the first unit");

static arena_words *words_of(const cuda_arena *a)
{
    return pinned_at(a, 0);
}

/* ---- Units -------------------------------------------------------------------------------- */

/* Marks consecutive free units as used, by first fit. @return the first; @p most: there are none.
 */
static size_t take_units(bool *used, size_t most, size_t count)
{
    size_t free = 0;
    for (size_t i = 0; i < most; i++) {
        free = used[i] ? 0 : free + 1;
        if (free < count)
            continue;
        memset(used + i + 1 - count, 1, count);
        return i + 1 - count;
    }
    return most;
}

size_t arena_pin(cuda_arena *a, size_t count)
{
    pthread_mutex_lock(&a->lock);
    const size_t first = take_units(a->pinned_used, PINNED_UNITS, count);
    pthread_mutex_unlock(&a->lock);
    return first;
}

void arena_unpin(cuda_arena *a, size_t first, size_t count)
{
    pthread_mutex_lock(&a->lock);
    memset(a->pinned_used + first, 0, count);
    pthread_mutex_unlock(&a->lock);
}

static size_t units_of(size_t bytes)
{
    return (bytes + ARENA_UNIT_BYTES - 1) / ARENA_UNIT_BYTES;
}

/* ---- Chores ------------------------------------------------------------------------------- */

void arena_add_chore(chore_args *to, uint64_t kind, CUdeviceptr at, CUdeviceptr from, size_t bytes)
{
    to->chores[to->count++] = (device_chore){.kind = kind,
                                             .to = (uint64_t *)(uintptr_t)at,
                                             .from = (const uint64_t *)(uintptr_t)from,
                                             .bytes = bytes};
}

/* The caller holds the lock. */
static ring_status launch(cuda_arena *a, chore_args *chores)
{
    void *parameters[] = {chores};
    const cuda_driver *api = cuda_driver_load();
    RING_TRY(cuda_check(api->launch(a->chores, 1, 1, 1, CHORE_THREADS, 1, 1, 0, a->of->stream,
                                    parameters, NULL),
                        "preparing memory (cuLaunchKernel)"));
    return cuda_check(api->stream_write_value(a->of->stream,
                                              a->pinned_there + offsetof(arena_words, done),
                                              ++a->launched, 0),
                      "marking the end of preparing memory (cuStreamWriteValue32)");
}

/* The word of a kernel that has failed never comes, so the state of its stream is asked for from
 * time to time. */
static ring_status work_locked(cuda_arena *a, chore_args *chores)
{
    const double end = clock_now() + CHORE_SECONDS;
    RING_TRY(launch(a, chores));
    for (int looks = 1; atomic_load(&words_of(a)->done) != a->launched; looks++) {
        const CUresult state = looks % LOOKS_PER_QUERY == 0
                                   ? cuda_query(cuda_driver_load(), a->of->stream)
                                   : CUDA_ERROR_NOT_READY;
        if (state != CUDA_ERROR_NOT_READY)
            RING_TRY(cuda_check(state, "preparing memory (cuStreamQuery)"));
        if (clock_now() > end)
            return fail(RING_ERR_TIMEOUT, "%s has not prepared memory within %d s", a->of->name,
                        CHORE_SECONDS);
        clock_sleep(1e-5);
    }
    return RING_OK;
}

ring_status arena_work(cuda_arena *a, chore_args *chores)
{
    pthread_mutex_lock(&a->lock);
    const ring_status status = work_locked(a, chores);
    pthread_mutex_unlock(&a->lock);
    return status;
}

/* ---- Parts -------------------------------------------------------------------------------- */

/* Frees the parts that all of their ranks have departed from. The caller holds the lock. */
static void collect_parts(cuda_arena *a)
{
    chore_args looks = {.count = 0};
    for (const left_part *p = a->left; p != NULL && looks.count < CHORES_MOST; p = p->next)
        arena_add_chore(&looks, CHORE_LOOK,
                        a->pinned_there + offsetof(arena_words, looks) + (size_t)looks.count * 8,
                        p->departed, (size_t)p->ranks * sizeof(uint64_t));
    if (looks.count == 0 || work_locked(a, &looks) != RING_OK)
        return;
    left_part **from = &a->left;
    for (uint32_t i = 0; i < looks.count; i++) {
        left_part *p = *from;
        if (atomic_load(&words_of(a)->looks[i]) == 0) {
            from = &p->next;
            continue;
        }
        *from = p->next;
        memset(a->used + p->first, 0, p->count);
        free(p);
    }
}

ring_status arena_take(cuda_arena *a, size_t bytes, size_t *first)
{
    const size_t units = a->bytes / ARENA_UNIT_BYTES;
    pthread_mutex_lock(&a->lock);
    collect_parts(a);
    *first = take_units(a->used, units, units_of(bytes));
    pthread_mutex_unlock(&a->lock);
    return *first < units ? RING_OK
                          : fail(RING_ERR_MEMORY,
                                 "the communicators that were made before use all of the %zu MiB "
                                 "that are reserved on %s",
                                 a->bytes >> 20, a->of->name);
}

void arena_give(cuda_arena *a, size_t first, size_t bytes)
{
    pthread_mutex_lock(&a->lock);
    memset(a->used + first, 0, units_of(bytes));
    pthread_mutex_unlock(&a->lock);
}

void arena_leave(cuda_arena *a, size_t first, size_t bytes, CUdeviceptr departed, int ranks)
{
    left_part *p = calloc(1, sizeof *p);
    if (p == NULL)
        return; /* the part is kept until the arena is freed */
    *p =
        (left_part){.first = first, .count = units_of(bytes), .departed = departed, .ranks = ranks};
    pthread_mutex_lock(&a->lock);
    p->next = a->left;
    a->left = p;
    pthread_mutex_unlock(&a->lock);
}

/* ---- Arenas that were left ------------------------------------------------------------------ */

typedef struct left_arena {
    struct left_arena *next;
    const cuda_device *of;
    CUdeviceptr memory;
    int ranks;
} left_arena;

static struct {
    pthread_mutex_t lock;
    left_arena *first;
    cuda_arena *kept; /* until the process ends */
    cuda_arena *late; /* to be freed when that may wait for streams */
    int holders;      /* communicators that may keep streams stopped */
} left = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool have_all_departed(const left_arena *m)
{
    bool all = true;
    uint64_t *words = calloc((size_t)m->ranks, sizeof *words);
    if (words == NULL)
        return false;
    const CUresult result = cuda_driver_load()->copy((uintptr_t)words, m->memory,
                                                     (size_t)m->ranks * sizeof *words);
    for (int r = 0; r < m->ranks; r++)
        all = all && words[r] != 0;
    free(words);
    return result == CUDA_SUCCESS && all;
}

static void free_left(const cuda_device *c)
{
    pthread_mutex_lock(&left.lock);
    for (left_arena **from = &left.first; *from != NULL;) {
        left_arena *m = *from;
        if (m->of != c || !have_all_departed(m)) {
            from = &m->next;
            continue;
        }
        *from = m->next;
        (void)cuda_driver_load()->mem_free(m->memory);
        free(m);
    }
    pthread_mutex_unlock(&left.lock);
}

static void leave_memory(const cuda_arena *a)
{
    left_arena *m = calloc(1, sizeof *m);
    if (m == NULL)
        return; /* the memory is kept until the process ends */
    *m = (left_arena){.of = a->of, .memory = a->memory, .ranks = a->ranks};
    pthread_mutex_lock(&left.lock);
    m->next = left.first;
    left.first = m;
    pthread_mutex_unlock(&left.lock);
}

/* ---- Arenas ------------------------------------------------------------------------------- */

/* @return the word at @p words, [ranks], of an arena that tells rank @p r about this rank. A rank
 * on another host writes nothing here, so its own word is set in its place. */
static CUdeviceptr word_of(const cuda_arena *a, int r, size_t words)
{
    const arena_peer *peer = &a->peers[r];
    return (peer->far ? a->shared : peer->memory) + words +
           (size_t)(peer->far ? r : a->rank) * sizeof(uint64_t);
}

static ring_status allocate(cuda_arena *a)
{
    const cuda_driver *api = cuda_driver_load();
    void *pinned;
    RING_TRY(cuda_room_new(a->far ? 2 * a->bytes : a->bytes, &a->room));
    RING_TRY(cuda_check(api->mem_alloc(&a->memory, a->bytes), "allocating memory (cuMemAlloc)"));
    RING_TRY(cuda_pin((size_t)PINNED_UNITS * PINNED_UNIT_BYTES, &pinned, &a->pinned_there));
    a->pinned = pinned;
    memset(pinned, 0, sizeof(arena_words));
    a->peers[a->rank].memory = a->shared = a->memory;
    a->used[0] = a->pinned_used[0] = true;
    chore_args clear = {.count = 0};
    arena_add_chore(&clear, CHORE_CLEAR, a->memory, 0, ARENA_UNIT_BYTES);
    return arena_work(a, &clear);
}

static void free_arena(cuda_arena *a)
{
    const cuda_driver *api = cuda_driver_load();
    for (left_part *p = a->left, *next; p != NULL; p = next) {
        next = p->next;
        free(p);
    }
    if (a->pinned != NULL)
        (void)api->host_free(a->pinned);
    if (a->connected && a->shared == a->memory)
        leave_memory(a);
    else if (a->memory != 0)
        (void)api->mem_free(a->memory);
    if (a->room >= 0)
        close(a->room);
    pthread_mutex_destroy(&a->lock);
    free(a->peers);
    free(a);
}

/* Writes to the memory of the other ranks, if this one has opened it, that this rank has departed,
 * and frees the arena. */
static void end_arena(cuda_arena *a)
{
    chore_args marks = {.count = 0};
    const bool connected = a->connected;
    for (int r = 0; connected && r < a->ranks; r++)
        if (a->peers[r].far || a->peers[r].memory != 0)
            arena_add_chore(&marks, CHORE_MARK, word_of(a, r, 0), 0, 0);
    if (connected && arena_work(a, &marks) != RING_OK) {
        arena_keep(a);
        return;
    }
    arena_close_peers(a);
    a->connected = connected;
    free_arena(a);
}

/* Frees the late arenas of a device, and what is left of others. This waits for all streams. */
static void free_late(const cuda_device *c)
{
    cuda_arena *late = NULL;
    pthread_mutex_lock(&left.lock);
    for (cuda_arena **from = &left.late, *a; (a = *from) != NULL;) {
        if (a->of != c) {
            from = &a->next;
            continue;
        }
        *from = a->next;
        a->next = late;
        late = a;
    }
    pthread_mutex_unlock(&left.lock);
    for (cuda_arena *a = late, *next; a != NULL; a = next) {
        next = a->next;
        end_arena(a);
    }
    free_left(c);
}

ring_status arena_new(const cuda_device *c, CUfunction chores, int rank, int ranks, size_t bytes,
                      bool far, cuda_arena **out)
{
    free_late(c);
    cuda_arena *a = calloc(1, sizeof *a);
    if (a == NULL || (a->peers = calloc((size_t)ranks, sizeof *a->peers)) == NULL) {
        free(a);
        return fail(RING_ERR_MEMORY, "attaching to a GPU");
    }
    a->of = c;
    a->chores = chores;
    a->rank = rank;
    a->ranks = ranks;
    a->far = far;
    a->users = 1;
    a->room = -1;
    a->bytes = (1 + units_of(bytes)) * ARENA_UNIT_BYTES + PARTS_BYTES;
    pthread_mutex_init(&a->lock, NULL);
    const ring_status status = allocate(a);
    *out = a;
    if (status == RING_OK)
        return RING_OK;
    free_arena(a);
    *out = NULL;
    return status;
}

void arena_hold(cuda_arena *a)
{
    pthread_mutex_lock(&a->lock);
    a->users++;
    pthread_mutex_unlock(&a->lock);
}

/* Writes a word to each arena, and reads it there. */
static ring_status write_greetings(cuda_arena *a)
{
    chore_args marks = {.count = 0}, looks = {.count = 0};
    for (int r = 0; r < a->ranks; r++) {
        const CUdeviceptr word = word_of(a, r, GREETINGS);
        arena_add_chore(&marks, CHORE_MARK, word, 0, 0);
        arena_add_chore(&looks, CHORE_LOOK,
                        a->pinned_there + offsetof(arena_words, looks) + (size_t)r * 8, word, 8);
    }
    ring_status status = work_locked(a, &marks);
    if (status == RING_OK)
        status = work_locked(a, &looks);
    if (status != RING_OK)
        return fail(status, "%s does not reach the memory of other GPUs (RING_P2P=0 avoids it): %s",
                    a->of->name, fail_text());
    for (int r = 0; r < a->ranks; r++)
        if (atomic_load(&words_of(a)->looks[r]) == 0)
            return fail(RING_ERR_UNSUPPORTED,
                        "%s does not read what it writes to the memory of rank %d's GPU, although "
                        "the driver reports that it can access it (RING_P2P=0 avoids it)",
                        a->of->name, r);
    return RING_OK;
}

/* Repeats a chore that checks words in memory until it succeeds, or for @p seconds. Holds the lock
 * only during each check. @param[out] found  true if it has succeeded. */
static ring_status await_look(cuda_arena *a, uint64_t kind, CUdeviceptr at, size_t bytes,
                              double seconds, bool *found)
{
    const double end = clock_now() + seconds;
    for (double step = 1e-4;; step = step < 1e-2 ? 2 * step : step) {
        chore_args look = {.count = 0};
        arena_add_chore(&look, kind, a->pinned_there + offsetof(arena_words, looks), at, bytes);
        pthread_mutex_lock(&a->lock);
        const ring_status status = work_locked(a, &look);
        *found = atomic_load(&words_of(a)->looks[0]) != 0;
        pthread_mutex_unlock(&a->lock);
        if (status != RING_OK || *found || clock_now() > end)
            return status;
        clock_sleep(step);
    }
}

/* The other ranks write their greetings within the time that their GPUs need for a few chores. */
ring_status arena_greet(cuda_arena *a)
{
    bool greeted;
    pthread_mutex_lock(&a->lock);
    const ring_status written = write_greetings(a);
    pthread_mutex_unlock(&a->lock);
    RING_TRY(written);
    RING_TRY(await_look(a, CHORE_LOOK, a->shared + GREETINGS, (size_t)a->ranks * 8,
                        GREETING_SECONDS, &greeted));
    return greeted
               ? RING_OK
               : fail(RING_ERR_UNSUPPORTED,
                      "not all GPUs have written to the memory of %s, although the driver reports "
                      "that they can access it",
                      a->of->name);
}

void arena_drain(cuda_arena *a, CUdeviceptr links, size_t bytes)
{
    bool drained;
    (void)await_look(a, CHORE_DRAIN, links, bytes, DRAIN_SECONDS, &drained);
}

ring_status arena_open_own_room(cuda_arena *a, const accelerator_card *cards)
{
    cuda_room *own = &a->peers[a->rank].room;
    return own->at != NULL ? RING_OK : cuda_room_open(&cards[a->rank].room, own);
}

ring_status arena_open_rooms(cuda_arena *a, const accelerator_card *cards)
{
    for (int r = 0; r < a->ranks; r++) {
        if (cards[r].host != cards[a->rank].host)
            continue;
        RING_TRY(cuda_room_open(&cards[r].room, &a->peers[r].room));
        a->peers[r].memory = a->peers[r].room.there;
    }
    a->shared = a->peers[a->rank].memory;
    return RING_OK;
}

void arena_close_peers(cuda_arena *a)
{
    for (int r = 0; r < a->ranks; r++) {
        if (a->peers[r].opened)
            (void)cuda_driver_load()->ipc_close_memory(a->peers[r].memory);
        a->peers[r].opened = false;
        cuda_room_close(&a->peers[r].room);
    }
    a->connected = false;
}

void arena_keep(cuda_arena *a)
{
    pthread_mutex_lock(&left.lock);
    if (!a->kept) {
        a->next = left.kept;
        left.kept = a;
    }
    a->kept = true;
    pthread_mutex_unlock(&left.lock);
}

void arena_count_holders(const accelerator *a, int change)
{
    (void)a;
    pthread_mutex_lock(&left.lock);
    left.holders += change;
    pthread_mutex_unlock(&left.lock);
}

void arena_drop(cuda_arena *a)
{
    pthread_mutex_lock(&a->lock);
    const bool last = --a->users == 0;
    pthread_mutex_unlock(&a->lock);
    if (!last)
        return;
    const cuda_device *c = a->of;
    pthread_mutex_lock(&left.lock);
    a->next = left.late;
    left.late = a;
    const bool may_wait = left.holders == 0;
    pthread_mutex_unlock(&left.lock);
    if (may_wait)
        free_late(c);
}
