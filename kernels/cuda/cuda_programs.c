/* SPDX-License-Identifier: Apache-2.0
 * Attaches, connects and detaches seats, and keeps programs in pinned memory that their GPU reads.
 * All of that memory belongs to the arena: to allocate or copy to memory of the GPU during calls
 * could wait for streams that are stopped. */
#include "cuda_programs.h"

#include "cuda_runs.h"
#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The seat of a membership takes at most SEAT_BYTES_MOST, that of a derived communicator at most
 * DERIVED_BYTES_MOST. LANES_ENOUGH lanes with the largest windows already exceed what NVLink moves,
 * so a seat has more of them only with such windows. FAR_LANES_ENOUGH lanes exceed what PCIe moves,
 * and windows for other hosts are larger, because frames take longer to arrive there. */
enum {
    SEAT_BYTES_MOST = (10 << 20) - ARENA_UNIT_BYTES,
    DERIVED_BYTES_MOST = 1 << 20,
    LANES_ENOUGH = 16,
    FAR_LANES_ENOUGH = 4,
    WINDOW_ENOUGH = 32 << 10,
    WINDOW_STEP = 4 << 10
};

/* The rates that the tuner assumes of GPUs, each from a compute capability on. The H100 (90) was
 * measured (docs/gpu-results.md), except its NVLink. The other rows assume launches and messages
 * like its, and the vendor's rates: NVLink one way where servers have it, else PCIe, and memory. */
static const struct {
    int32_t generation;
    accelerator_rates rates;
} generations[] = {
    {70, {.start = 10e-6, .message = 1.5e-6, .link = 120e9, .memory = 0.8e12}},
    {75, {.start = 10e-6, .message = 1.5e-6, .link = 12e9, .memory = 0.3e12}},
    {80, {.start = 9e-6, .message = 1.2e-6, .link = 240e9, .memory = 1.4e12}},
    {86, {.start = 9e-6, .message = 1.2e-6, .link = 24e9, .memory = 0.7e12}},
    {90, {.start = 9e-6, .message = 1e-6, .link = 360e9, .memory = 2.8e12}},
    {100, {.start = 9e-6, .message = 1e-6, .link = 720e9, .memory = 6e12}},
    {120, {.start = 9e-6, .message = 1e-6, .link = 50e9, .memory = 1.5e12}},
};

/* Offsets into a seat's memory. Frames come first; words are what precedes `carried`. */
typedef struct seat_layout {
    size_t receipts, departed, links, numbers, stop, ended, slots, carried, scratch, all;
} seat_layout;

/* ---- Memory ------------------------------------------------------------------------------- */

static size_t rounded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* @return the bytes of the slots of a box. */
static size_t slots_bytes(const accelerator_shape *of)
{
    return (size_t)DEVICE_SLOTS * DEVICE_SLOT_WORDS(of->window) * sizeof(uint64_t);
}

/* Other ranks compute the offsets of boxes, receipts and `departed`, too. */
static seat_layout seat_layout_of(const accelerator_shape *of, int ranks)
{
    const size_t lanes = (size_t)of->lanes, ends = (size_t)(ranks - 1) * lanes;
    seat_layout at = {.receipts = rounded(ends * of->frames * sizeof(device_frame))};
    at.departed = at.receipts + rounded(ends * sizeof(device_receipt));
    at.links = at.departed + rounded((size_t)ranks * sizeof(uint64_t));
    at.numbers = at.links + rounded(lanes * (size_t)ranks * sizeof(device_link));
    at.stop = at.numbers + rounded(lanes * sizeof(uint64_t));
    at.ended = at.stop + rounded(sizeof(uint64_t));
    at.slots = at.ended + rounded(sizeof(uint64_t));
    at.carried = at.slots + rounded(ends * slots_bytes(of));
    at.scratch = at.carried + ends * of->window;
    at.all = at.scratch + lanes * of->scratch;
    return at;
}

/* Lowers the number of lanes and then the windows until the seat fits.
 * @return the shape; it has no lanes if even the smallest seat does not fit. */
static accelerator_shape choose_shape(int ranks, int lanes, bool far, size_t bytes)
{
    const int enough = far ? FAR_LANES_ENOUGH : LANES_ENOUGH;
    accelerator_shape s = {.lanes = lanes,
                           .window = far ? DEVICE_FAR_WINDOW_MOST : DEVICE_WINDOW_MOST};
    for (;;) {
        s.frames = s.window > WINDOW_ENOUGH ? DEVICE_FRAMES_MOST : DEVICE_FRAMES_MOST / 2;
        s.scratch = s.window / 2;
        if (s.lanes == 0 || seat_layout_of(&s, ranks).all <= bytes)
            return s;
        if (s.lanes > enough || s.window == WINDOW_ENOUGH)
            s.lanes--;
        else
            s.window -= WINDOW_STEP;
    }
}

/* ---- Attaching ---------------------------------------------------------------------------- */

static void *at(CUdeviceptr memory, size_t offset)
{
    return (void *)(uintptr_t)(memory + offset);
}

static void bind_seat(accelerator_seat *s)
{
    const seat_layout in = seat_layout_of(&s->shape, s->ranks);
    s->call = (device_call){.links = at(s->memory, in.links),
                            .numbers = at(s->memory, in.numbers),
                            .stop = at(s->memory, in.stop),
                            .ended = at(s->memory, in.ended),
                            .scratch = at(s->memory, in.scratch),
                            .verdicts = at(s->words_there, offsetof(seat_words, verdicts)),
                            .abort = at(s->words_there, offsetof(seat_words, abort)),
                            .ranks = s->ranks};
}

/* Clears what other ranks write to, before they know of the part: if the start fails, they may
 * depart before this rank connects. The room of a seat that is not derived is new, and so clear. */
static ring_status clear_memory(const accelerator_seat *s)
{
    const size_t bytes = seat_layout_of(&s->shape, s->ranks).carried;
    const cuda_room *room = &s->arena->peers[s->arena->rank].room;
    chore_args clears = {.count = 0};
    arena_add_chore(&clears, CHORE_CLEAR, s->memory, 0, bytes);
    for (size_t half = 0; room->at != NULL && half < room->bytes; half += s->arena->bytes)
        arena_add_chore(&clears, CHORE_CLEAR, room->there + half + s->first * ARENA_UNIT_BYTES, 0,
                        bytes);
    return arena_work(s->arena, &clears);
}

/* Takes a part of the arena and words of its pinned memory. */
static ring_status take_memory(accelerator_seat *s)
{
    const size_t bytes = seat_layout_of(&s->shape, s->ranks).all;
    RING_TRY(arena_take(s->arena, bytes, &s->first));
    s->memory = arena_at(s->arena, s->first);
    s->pinned = arena_pin(s->arena, pinned_units(sizeof(seat_words)));
    if (s->pinned == PINNED_UNITS)
        return fail(RING_ERR_MEMORY, "the pinned memory for calls on %s is full", s->of->name);
    s->words = memset(pinned_at(s->arena, s->pinned), 0, sizeof(seat_words));
    s->words_there = pinned_there(s->arena, s->pinned);
    bind_seat(s);
    RING_TRY(cuda_run_open(s));
    return program_group_new(s->arena, &s->group);
}

/* @return 90 for compute capability 9.0; 0 if it is unknown. */
static int32_t generation_of(CUdevice device)
{
    const cuda_driver *api = cuda_driver_load();
    int major = 0, minor = 0;
    (void)api->device_get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    (void)api->device_get_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    return major * 10 + minor;
}

static ring_status fill_card(const accelerator_seat *s, int blocks, accelerator_card *card)
{
    const cuda_driver *api = cuda_driver_load();
    CUuuid device;
    CUipcMemHandle handle;
    RING_TRY(cuda_check(api->device_get_uuid(&device, s->of->device),
                        "finding a GPU's UUID (cuDeviceGetUuid)"));
    memcpy(card->device, device.bytes, sizeof card->device);
    card->ordinal = s->of->device;
    card->blocks = blocks;
    card->admitted = s->admitted;
    card->generation = generation_of(s->of->device);
    card->processes = s->of->programs->processes;
    if (api->device_get_attribute(&card->concurrent, CU_DEVICE_ATTRIBUTE_MPS_ENABLED,
                                  s->of->device) != CUDA_SUCCESS)
        card->concurrent = 0; /* the driver is older than the attribute */
    card->shape = s->shape;
    card->member = s->arena->rank;
    card->offset = s->first * ARENA_UNIT_BYTES;
    card->memory = s->arena->memory;
    card->group = (uintptr_t)s->group;
    if (s->derived)
        return RING_OK; /* the other ranks have opened the arena */
    if (api->ipc_get_memory(&handle, s->arena->memory) == CUDA_SUCCESS)
        memcpy(card->handle, handle.reserved, sizeof card->handle);
    return cuda_room_describe(s->arena->room, &card->room);
}

static ring_status attach_inside(accelerator_seat *s, bool far, accelerator_card *card)
{
    CUfunction function;
    int blocks;
    RING_TRY(program_kernel(s->of, &function, RING_FLOAT32, &blocks));
    s->admitted = program_admit(s->of, s->shape.lanes);
    if (!s->derived)
        RING_TRY(arena_new(s->of, s->of->programs->chores, s->rank, s->ranks,
                           seat_layout_of(&s->shape, s->ranks).all, far, &s->arena));
    RING_TRY(take_memory(s));
    RING_TRY(fill_card(s, blocks, card));
    return clear_memory(s);
}

static ring_status cuda_create(const accelerator *a, const accelerator_seat *parent, int rank,
                               int ranks, accelerator_seat **out)
{
    if (ranks > CHORES_MOST)
        return fail(RING_ERR_UNSUPPORTED, "%d ranks are more than %d", ranks, CHORES_MOST);
    accelerator_seat *s = calloc(1, sizeof *s);
    if (s == NULL || (s->peers = calloc((size_t)ranks, sizeof *s->peers)) == NULL) {
        free(s);
        return fail(RING_ERR_MEMORY, "attaching to a GPU");
    }
    s->of = cuda_device_of(a);
    s->rank = rank;
    s->ranks = ranks;
    s->derived = parent != NULL;
    if (parent != NULL) {
        arena_hold(parent->arena);
        s->arena = parent->arena;
    }
    *out = s;
    return RING_OK;
}

static ring_status cuda_attach(accelerator_seat *s, int lanes, bool far, accelerator_card *card)
{
    s->shape = choose_shape(s->ranks, lanes < SEAT_LANES_MOST ? lanes : SEAT_LANES_MOST, far,
                            s->derived ? DERIVED_BYTES_MOST : SEAT_BYTES_MOST);
    RING_TRY(cuda_enter(s->of));
    const ring_status status = attach_inside(s, far, card);
    cuda_leave();
    return status;
}

/* ---- Connecting --------------------------------------------------------------------------- */

static bool is_same_device(const accelerator_card *a, const accelerator_card *b)
{
    return a->host == b->host && memcmp(a->device, b->device, sizeof a->device) == 0;
}

static bool is_same_process(const accelerator_card *a, const accelerator_card *b)
{
    return memcmp(a->process, b->process, sizeof a->process) == 0;
}

/* @return true if the ranks share launches: they are in one process, on one device. */
static bool is_same_launch(const accelerator_card *a, const accelerator_card *b)
{
    return is_same_device(a, b) && is_same_process(a, b);
}

/* Ranks that share launches use half of their GPU's blocks, or more if there are many ranks. */
static int blocks_of_each(int blocks, int sharing)
{
    return blocks / 2 >= sharing ? blocks / 2 / sharing : blocks / sharing;
}

/* Lowers a shape to what another seat and the blocks of its device allow. */
static void limit_shape(accelerator_shape *s, const accelerator_shape *by, int blocks)
{
    const int lanes = by->lanes < blocks ? by->lanes : blocks;
    s->lanes = s->lanes < lanes ? s->lanes : lanes;
    s->frames = s->frames < by->frames ? s->frames : by->frames;
    s->window = s->window < by->window ? s->window : by->window;
    s->scratch = s->scratch < by->scratch ? s->scratch : by->scratch;
}

/* @return true if all ranks share launches, which then wait for no other launch. */
static bool is_one_launch(const accelerator_card *cards, int ranks)
{
    int r = 1;
    while (r < ranks && is_same_launch(&cards[0], &cards[r]))
        r++;
    return r == ranks;
}

/* Limits the rates to those of a device. Ranks that share it read and write its memory. */
static void limit_rates(accelerator_rates *r, int32_t generation, bool alone)
{
    size_t at = sizeof generations / sizeof *generations - 1;
    while (at > 0 && generations[at].generation > generation)
        at--;
    const accelerator_rates *of = &generations[at].rates;
    r->start = fmax(r->start, of->start);
    r->message = fmax(r->message, of->message);
    r->link = fmin(r->link, alone ? of->memory / 2 : of->link);
    r->memory = fmin(r->memory, of->memory);
}

/* @param[out] ranks_of  number of ranks in the launch of rank @p r. @param[out] processes  number
 * of processes on its device. */
static void count_sharing(const accelerator_card *cards, int ranks, int r, int *ranks_of,
                          int *processes)
{
    *ranks_of = *processes = 0;
    for (int q = 0; q < ranks; q++) {
        int first = 0;
        while (!is_same_launch(&cards[first], &cards[q]))
            first++;
        *ranks_of += is_same_launch(&cards[r], &cards[q]);
        *processes += first == q && is_same_device(&cards[r], &cards[q]);
    }
}

/* @return RING_ERR_UNSUPPORTED if the launches of two ranks cannot run together. */
static ring_status check_pair(const accelerator_card *cards, int r, int q)
{
    const bool concurrent = cards[r].concurrent != 0 && cards[q].concurrent != 0;
    if (is_same_device(&cards[r], &cards[q]) && !is_same_process(&cards[r], &cards[q]) &&
        !concurrent)
        return fail(RING_ERR_UNSUPPORTED,
                    "ranks %d and %d are processes that share a GPU, which runs their kernels at "
                    "the same time only under MPS, CUDA's Multi-Process Service",
                    r, q);
    return RING_OK;
}

/* Computes the terms from the cards alone, so that all ranks agree on them. */
static ring_status agree(const accelerator_card *cards, int ranks, bool by_rooms,
                         accelerator_terms *out)
{
    *out = (accelerator_terms){.shape = cards[0].shape,
                               .captures = true,
                               .apart = by_rooms,
                               .by_rooms = by_rooms,
                               .window = 4};
    out->rates = (accelerator_rates){.link = HUGE_VAL, .memory = HUGE_VAL};
    bool alone = true; /* on one device */
    for (int r = 1; r < ranks; r++)
        alone = alone && is_same_device(&cards[0], &cards[r]);
    for (int r = 0; r < ranks; r++) {
        int sharing, processes;
        count_sharing(cards, ranks, r, &sharing, &processes);
        for (int q = 0; q < ranks; q++)
            RING_TRY(check_pair(cards, r, q));
        const int among = cards[r].processes >= processes ? 1 : processes;
        const int lanes = is_one_launch(cards, ranks) ? blocks_of_each(cards[r].blocks, sharing)
                                                      : cards[r].admitted / among;
        if (sharing > DEVICE_LAUNCH_RANKS || lanes == 0)
            return fail(RING_ERR_UNSUPPORTED,
                        "the GPU of rank %d has room for %d blocks, which is too few for the %d "
                        "ranks and %d processes that share it and the calls of other communicators",
                        r, cards[r].blocks, sharing, processes);
        out->far |= cards[0].host != cards[r].host;
        out->apart |= out->far || !is_same_process(&cards[0], &cards[r]);
        out->captures = out->captures && sharing == 1;
        limit_rates(&out->rates, cards[r].generation, alone);
        limit_shape(&out->shape, &cards[r].shape, lanes);
    }
    if (out->shape.lanes == 0)
        return fail(RING_ERR_UNSUPPORTED, "the memory for calls of %d ranks is too small", ranks);
    out->segment = DEVICE_SEGMENT_BYTES(out->shape.window);
    out->eager = DEVICE_EAGER_BYTES(out->shape.window);
    out->outstanding = out->apart ? DEVICE_APART_BYTES(out->shape.window) : SIZE_MAX;
    out->scratch = (size_t)out->shape.lanes * out->shape.scratch;
    return RING_OK;
}

static ring_status enable_access(const cuda_driver *api, const cuda_device *c, int ordinal)
{
    CUcontext context;
    int can = 0;
    RING_TRY(cuda_check(api->device_can_access_peer(&can, c->device, ordinal),
                        "checking peer access (cuDeviceCanAccessPeer)"));
    if (can == 0)
        return fail(RING_ERR_UNSUPPORTED, "%s cannot access the memory of CUDA device %d", c->name,
                    ordinal);
    RING_TRY(cuda_check(api->primary_retain(&context, ordinal),
                        "opening the context of another GPU (cuDevicePrimaryCtxRetain)"));
    CUresult result = api->enable_peer_access(context, 0);
    if (result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        result = CUDA_SUCCESS;
    (void)api->primary_release(ordinal);
    return cuda_check(result, "enabling peer access (cuCtxEnablePeerAccess)");
}

/* Opens the arena of another member of the membership. */
static ring_status open_arena(const accelerator_seat *s, const accelerator_card *cards, int rank)
{
    const accelerator_card *theirs = &cards[rank];
    arena_peer *peer = &s->arena->peers[rank];
    CUipcMemHandle handle;
    if (is_same_process(theirs, &cards[s->rank])) {
        if (theirs->ordinal != s->of->device)
            RING_TRY(enable_access(cuda_driver_load(), s->of, theirs->ordinal));
        peer->memory = theirs->memory;
        return RING_OK;
    }
    static const unsigned char none[sizeof theirs->handle];
    if (memcmp(theirs->handle, none, sizeof none) == 0)
        return fail(RING_ERR_UNSUPPORTED, "rank %d cannot share memory of its GPU", rank);
    memcpy(handle.reserved, theirs->handle, sizeof handle.reserved);
    RING_TRY(cuda_check(cuda_driver_load()->ipc_open_memory(&peer->memory, handle,
                                                            CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                        "opening another process's memory (cuIpcOpenMemHandle)"));
    peer->opened = true;
    return RING_OK;
}

static device_box box_at(CUdeviceptr memory, const accelerator_shape *of, int ranks, size_t end)
{
    const seat_layout in = seat_layout_of(of, ranks);
    return (device_box){.frames = at(memory, end * of->frames * sizeof(device_frame)),
                        .carried = at(memory, in.carried + end * of->window),
                        .slots = at(memory, in.slots + end * slots_bytes(of))};
}

/* @return the number of the box for a rank, of one lane, among those of rank @p of. */
static size_t end_of(int ranks, int lane, int of, int rank)
{
    return (size_t)lane * (size_t)(ranks - 1) + (size_t)(rank - (rank > of));
}

/* @return this rank's end of the link to a rank, of one lane. */
static device_link link_to(const accelerator_seat *s, const accelerator_card *cards,
                           const accelerator_shape *agreed, int lane, int rank)
{
    const seat_peer *peer = &s->peers[rank];
    const bool near = s->shared == s->memory && is_same_process(&cards[rank], &cards[s->rank]);
    const size_t mine = end_of(s->ranks, lane, s->rank, rank);
    const size_t theirs = peer->far ? mine : end_of(s->ranks, lane, rank, s->rank);
    const accelerator_shape *of = peer->far ? &s->shape : &peer->shape;
    const CUdeviceptr in = peer->far ? s->far[0].there : s->shared;
    const CUdeviceptr out = peer->far ? s->far[1].there : peer->memory;
    const CUdeviceptr receipts = in + seat_layout_of(&s->shape, s->ranks).receipts;
    const CUdeviceptr given = out + seat_layout_of(of, s->ranks).receipts;
    return (device_link){.in = box_at(in, &s->shape, s->ranks, mine),
                         .out = box_at(out, of, s->ranks, theirs),
                         .receipt = at(receipts, mine * sizeof(device_receipt)),
                         .given = at(given, theirs * sizeof(device_receipt)),
                         .frames = agreed->frames,
                         .window = agreed->window,
                         .apart = peer->far ? DEVICE_FAR
                                  : near    ? DEVICE_NEAR
                                            : DEVICE_APART};
}

/* The GPU copies the links from pinned memory. */
static ring_status write_links(accelerator_seat *s, const accelerator_card *cards,
                               const accelerator_terms *terms)
{
    const seat_layout in = seat_layout_of(&s->shape, s->ranks);
    const accelerator_shape *agreed = &terms->shape;
    const size_t bytes = (size_t)agreed->lanes * (size_t)s->ranks * sizeof(device_link);
    const size_t units = pinned_units(bytes);
    const size_t pinned = arena_pin(s->arena, units);
    chore_args chores = {.count = 0};
    if (pinned == PINNED_UNITS)
        return fail(RING_ERR_MEMORY, "the pinned memory for calls on %s is full", s->of->name);
    device_link *links = memset(pinned_at(s->arena, pinned), 0, bytes);
    for (int lane = 0; lane < agreed->lanes; lane++)
        for (int r = 0; r < s->ranks; r++)
            if (r != s->rank)
                links[lane * s->ranks + r] = link_to(s, cards, agreed, lane, r);
    arena_add_chore(&chores, CHORE_COPY, s->memory + in.links, pinned_there(s->arena, pinned),
                    bytes);
    s->window = agreed->window;
    RING_TRY(arena_work(s->arena, &chores)); /* else the GPU may still read the pinned memory */
    arena_unpin(s->arena, pinned, units);
    s->apart_bytes = terms->apart && s->shared == s->memory ? bytes : 0;
    return RING_OK;
}

/* Replaces the seat's own group by the group of the first rank that shares its launches. */
static ring_status join_group(accelerator_seat *s, const accelerator_card *cards)
{
    int first = 0;
    while (!is_same_launch(&cards[first], &cards[s->rank]))
        first++;
    program_group *g;
    const ring_status status = program_group_join(cards[first].group, s, &g);
    if (g == NULL)
        return fail(RING_ERR_PEER, "rank %d has already detached from its GPU", first);
    program_group_drop(s->group);
    s->group = g;
    return status;
}

static ring_status open_inside(accelerator_seat *s, const accelerator_card *cards)
{
    for (int r = 0; r < s->ranks; r++)
        if (cards[r].shuts != 0 && !is_one_launch(cards, s->ranks))
            return fail(RING_ERR_UNSUPPORTED,
                        "rank %d has RING_P2P=0, so no other GPU accesses the memory of its GPU",
                        r);
    s->arena->connected = true; /* even if this rank cannot open their memory */
    for (int r = 0; r < s->ranks; r++)
        s->arena->peers[r].far = cards[r].host != cards[s->rank].host;
    for (int r = 0; r < s->ranks; r++)
        if (r != s->rank && !s->arena->peers[r].far && open_arena(s, cards, r) != RING_OK)
            return fail(RING_ERR_UNSUPPORTED, "%s", fail_text());
    return arena_greet(s->arena);
}

static ring_status cuda_open(accelerator_seat *s, const accelerator_card *cards)
{
    if (s->derived)
        return RING_OK;
    RING_TRY(cuda_enter(s->of));
    const ring_status status = open_inside(s, cards);
    cuda_leave();
    return status;
}

static ring_status connect_inside(accelerator_seat *s, const accelerator_card *cards,
                                  const accelerator_terms *terms)
{
    if (terms->by_rooms && !s->derived) {
        arena_close_peers(s->arena);
        RING_TRY(arena_open_rooms(s->arena, cards));
    }
    const size_t own = s->first * ARENA_UNIT_BYTES;
    for (int r = 0; r < s->ranks; r++)
        s->peers[r] = (seat_peer){.memory = s->arena->peers[cards[r].member].memory +
                                            cards[r].offset,
                                  .shape = cards[r].shape,
                                  .far = cards[r].host != cards[s->rank].host};
    s->shared = s->arena->shared + own;
    if (terms->far) {
        RING_TRY(arena_open_own_room(s->arena, cards));
        const cuda_room *room = &s->arena->peers[s->arena->rank].room;
        for (size_t half = 0; half < 2; half++) {
            s->far[half].at = (char *)room->at + half * s->arena->bytes + own;
            s->far[half].there = room->there + half * s->arena->bytes + own;
        }
    }
    s->connected = s->arena->connected = true;
    RING_TRY(write_links(s, cards, terms));
    return join_group(s, cards);
}

static void cuda_boxes(const accelerator_seat *s, int rank, int lane, accelerator_boxes *out)
{
    const seat_layout layout = seat_layout_of(&s->shape, s->ranks);
    const size_t end = end_of(s->ranks, lane, s->rank, rank);
    const size_t receipt = layout.receipts + end * sizeof(device_receipt);
    const device_box in = box_at((uintptr_t)s->far[0].at, &s->shape, s->ranks, end);
    const device_box to = box_at((uintptr_t)s->far[1].at, &s->shape, s->ranks, end);
    *out = (accelerator_boxes){.in = in.frames,
                               .out = to.frames,
                               .in_bytes = in.carried,
                               .out_bytes = to.carried,
                               .in_receipt = (void *)(s->far[0].at + receipt),
                               .out_receipt = (void *)(s->far[1].at + receipt),
                               .memory = {s->far[0].at, s->far[1].at},
                               .bytes = layout.scratch};
}

static void cuda_disconnect(accelerator_seat *s)
{
    if (cuda_enter(s->of) != RING_OK)
        return;
    if (!s->derived)
        arena_close_peers(s->arena);
    s->connected = false;
    cuda_leave();
}

static ring_status cuda_connect(accelerator_seat *s, const accelerator_card *cards, bool by_rooms,
                                accelerator_terms *out)
{
    int sharing, processes;
    RING_TRY(agree(cards, s->ranks, by_rooms || s->arena->shared != s->arena->memory, out));
    count_sharing(cards, s->ranks, s->rank, &sharing, &processes);
    const int needed = is_one_launch(cards, s->ranks) ? 0 : out->shape.lanes;
    program_dismiss(s->of, s->admitted - needed, processes);
    s->admitted = needed;
    RING_TRY(cuda_enter(s->of));
    const ring_status status = connect_inside(s, cards, out);
    cuda_leave();
    return status;
}

/* ---- Programs ----------------------------------------------------------------------------- */

static void bind_program(const accelerator_program *p, size_t window, device_call *call)
{
    call->scratch_bytes = p->scratch;
    call->signature = p->signature;
    call->slice = p->slice;
    call->segment = p->segment;
    call->words = DEVICE_SLOT_ELEMENTS(window, kernel_acc_size(p->dtype));
    call->op_count = p->op_count;
    call->peer_count = p->peer_count;
    call->slices = p->slices;
    call->op = (int32_t)p->op;
}

/* Copies ops, operands and peers, in this order, to pinned memory of the seat. */
static ring_status write_program(const accelerator_program *p, kept_program *k)
{
    cuda_arena *a = k->seat->arena;
    const size_t ops = rounded((size_t)p->op_count * sizeof *p->ops);
    const size_t operands = rounded((size_t)p->operand_count * sizeof *p->operands);
    const size_t all = ops + operands + rounded((size_t)p->peer_count * sizeof *p->peers);
    const size_t count = all / PINNED_UNIT_BYTES + 1, first = arena_pin(a, count);
    if (first == PINNED_UNITS)
        return fail(RING_ERR_MEMORY, "keeping a program of %zu bytes for %s", all,
                    k->seat->of->name);
    char *image = pinned_at(a, first);
    const CUdeviceptr there = pinned_there(a, first);
    memcpy(image, p->ops, (size_t)p->op_count * sizeof *p->ops);
    memcpy(image + ops, p->operands, (size_t)p->operand_count * sizeof *p->operands);
    memcpy(image + ops + operands, p->peers, (size_t)p->peer_count * sizeof *p->peers);
    k->first = first;
    k->count = count;
    k->call.program_bytes = all <= DEVICE_PROGRAM_BYTES ? all : 0;
    k->call.ops = at(there, 0);
    k->call.operands = at(there, ops);
    k->call.peers = at(there, ops + operands);
    return RING_OK;
}

static ring_status cuda_keep(accelerator_seat *s, const accelerator_program *p, void **out)
{
    const size_t scratch = (size_t)s->shape.lanes * s->shape.scratch;
    if (p->lanes > s->shape.lanes || p->scratch * (size_t)p->lanes > scratch)
        return fail(RING_ERR_INTERNAL,
                    "a program needs %d lanes with %zu bytes of scratch memory each; a GPU seat "
                    "has %d lanes and %zu bytes",
                    p->lanes, p->scratch, s->shape.lanes, scratch);
    kept_program *k = calloc(1, sizeof *k);
    if (k == NULL)
        return fail(RING_ERR_MEMORY, "keeping a program for a GPU");
    *k = (kept_program){.seat = s, .call = s->call, .lanes = p->lanes, .dtype = p->dtype};
    bind_program(p, s->window, &k->call);
    const ring_status status = write_program(p, k);
    if (status != RING_OK)
        free(k);
    *out = status == RING_OK ? k : NULL;
    return status;
}

/* The memory is kept if a graph may still run the program, or if a run of it has not ended. */
static void cuda_drop(void *kept)
{
    kept_program *k = kept;
    const bool may_run = k->seat->group->dead && !cuda_run_await_end(k->seat);
    if (!k->captured && !may_run)
        arena_unpin(k->seat->arena, k->first, k->count);
    free(k);
}

/* ---- Detaching ---------------------------------------------------------------------------- */

/* Tells the other ranks that this one no longer accesses their memory. Ranks of other hosts access
 * no memory of this host. */
static ring_status depart(const accelerator_seat *s)
{
    chore_args marks = {.count = 0};
    for (int r = 0; r < s->ranks; r++) {
        const seat_peer *peer = &s->peers[r];
        const size_t departed = seat_layout_of(&peer->shape, s->ranks).departed;
        const size_t own = seat_layout_of(&s->shape, s->ranks).departed;
        const CUdeviceptr word = peer->far
                                     ? s->shared + own + (size_t)r * sizeof(uint64_t)
                                     : peer->memory + departed + (size_t)s->rank * sizeof(uint64_t);
        arena_add_chore(&marks, CHORE_MARK, word, 0, 0);
    }
    return arena_work(s->arena, &marks);
}

/* If the GPU does not tell the other ranks in time, all parts are kept. */
static void give_memory_back(accelerator_seat *s)
{
    const seat_layout in = seat_layout_of(&s->shape, s->ranks);
    if (s->apart_bytes > 0 && atomic_load(&s->words->abort) == 0)
        arena_drain(s->arena, s->memory + in.links, s->apart_bytes);
    if (s->connected && depart(s) != RING_OK) {
        arena_keep(s->arena);
        return;
    }
    cuda_run_close(s);
    if (s->connected)
        arena_leave(s->arena, s->first, in.all, s->shared + in.departed, s->ranks);
    else if (s->memory != 0)
        arena_give(s->arena, s->first, in.all);
    if (s->words != NULL)
        arena_unpin(s->arena, s->pinned, pinned_units(sizeof(seat_words)));
    if (s->group != NULL)
        program_group_drop(s->group);
    if (s->arena != NULL)
        arena_drop(s->arena);
}

/* A graph that runs programs of the seat may be replayed at any time, and a stream may not have
 * passed a run that was aborted. In both cases the seat is aborted, and its memory and that of the
 * other ranks is kept. */
static void cuda_detach(accelerator_seat *s)
{
    const bool may_run = s->words != NULL && (s->captured || !cuda_run_await_end(s));
    program_dismiss(s->of, s->admitted, 1);
    cuda_pairs_close(s);
    if (may_run) {
        cuda_run_abort(s);
        cuda_run_let_go(s);
    }
    if (!may_run && cuda_enter(s->of) == RING_OK) {
        give_memory_back(s);
        cuda_leave();
    } else if (s->arena != NULL) {
        arena_keep(s->arena);
    }
    free(s->peers);
    free(s);
}

/* ---- Devices ------------------------------------------------------------------------------ */

ring_status cuda_programs_open(cuda_device *c)
{
    static const accelerator_programs programs = {.create = cuda_create,
                                                  .attach = cuda_attach,
                                                  .open = cuda_open,
                                                  .connect = cuda_connect,
                                                  .boxes = cuda_boxes,
                                                  .disconnect = cuda_disconnect,
                                                  .keep = cuda_keep,
                                                  .drop = cuda_drop,
                                                  .start = cuda_run_start,
                                                  .settle = cuda_run_settle,
                                                  .start_pairs = cuda_pairs_start,
                                                  .state = cuda_run_state,
                                                  .abort = cuda_run_abort,
                                                  .release = cuda_run_release,
                                                  .count_holders = arena_count_holders,
                                                  .detach = cuda_detach};
    int cooperative = 0;
    c->programs = calloc(1, sizeof *c->programs);
    if (c->programs == NULL)
        return fail(RING_ERR_MEMORY, "opening a GPU");
    pthread_mutex_init(&c->programs->lock, NULL);
    c->programs->processes = 1;
    RING_TRY(cuda_check(cuda_driver_load()->device_get_attribute(
                            &cooperative, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, c->device),
                        "checking for cooperative launches (cuDeviceGetAttribute)"));
    c->base.programs = cooperative != 0 ? &programs : NULL;
    return RING_OK;
}

void cuda_programs_close(cuda_device *c)
{
    if (c->programs == NULL)
        return;
    if (c->programs->module != NULL)
        (void)cuda_driver_load()->module_unload(c->programs->module);
    pthread_mutex_destroy(&c->programs->lock);
    free(c->programs);
}
