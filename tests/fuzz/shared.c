/* SPDX-License-Identifier: Apache-2.0
 * Memory that peers write to: rings of lines, greetings with descriptors, references. */
#include "give.h"

#include "heap.h"
#include "lines.h"
#include "lines_link.h"
#include "pass.h"
#include "region.h"
#include "regions.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile unsigned char touched;

static void touch(const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        touched ^= ((const unsigned char *)bytes)[i];
}

/* ---- Rings of lines ------------------------------------------------------------- */

/* An input is what lies at both ends of a ring: its first lines and its last ones. */
enum { END_LINES = 16, END_BYTES = END_LINES * sizeof(line), SKIP = 0x80 };

static lines_ring *some_ring(void)
{
    static lines_ring *ring;
    if (ring == NULL) {
        ring = aligned_alloc(_Alignof(lines_ring), sizeof *ring);
        must(ring != NULL);
        memset(ring, 0, sizeof *ring);
    }
    return ring;
}

static void put_header(unsigned char *lines, size_t at, transport_frame frame, uint32_t number)
{
    frame.stamp = 2 * number + 1;
    memcpy(lines + at * sizeof(line), &frame, sizeof frame);
}

static transport_frame long_frame(uint64_t bytes)
{
    return (transport_frame){.flags = FRAME_LONG, .ext = {.bytes = bytes, .count = bytes}};
}

static void seed_lines_frames(fuzz_seeds *to)
{
    unsigned char lines[2 * END_BYTES] = {0};
    put_header(lines, 0, (transport_frame){.length = 40}, 0);
    put_header(lines, 1, (transport_frame){.length = 0}, 1);
    fuzz_add(to, lines, END_BYTES);
    put_header(lines, 2, long_frame(200), 2);
    put_header(lines, 7, long_frame(64), 3);
    fuzz_add(to, lines, END_BYTES);
    transport_frame skip = {.flags = SKIP, .ext.bytes = LINES - END_LINES};
    put_header(lines, 9, skip, 4);
    put_header(lines, END_LINES, long_frame(13 * 64), 4);
    skip.ext.bytes = 12;
    put_header(lines, END_LINES + 14, skip, 5);
    put_header(lines, 12, (transport_frame){.length = 7}, 5);
    fuzz_add(to, lines, sizeof lines);
}

static ring_status take_lines(lines_consumer *c)
{
    transport_frame frame;
    RING_TRY(lines_oldest(c, &frame));
    const size_t behind = transport_behind(&frame);
    must(c->line < LINES && c->line + lines_of(behind) < LINES);
    touch(&c->ring->line[c->line + 1], behind);
    (void)lines_consume(c, lines_of(behind));
    return RING_OK;
}

static ring_status parse_lines_frames(const unsigned char *bytes, size_t size)
{
    lines_ring *ring = some_ring();
    lines_consumer c;
    int taken = 0;
    const size_t first = min_size(size, END_BYTES), rest = size - first;
    memcpy(ring->line, bytes, first);
    memcpy(ring->line + LINES - END_LINES, bytes + first, rest);
    lines_consume_from(&c, ring);
    while (taken < 1000 && take_lines(&c) == RING_OK)
        taken++;
    memset(ring->line, 0, first);
    memset(ring->line + LINES - END_LINES, 0, rest);
    return taken > 0 ? RING_OK : RING_ERR_PEER;
}

const fuzz_target fuzz_lines_frames = {.name = "lines_frames",
                                       .reads = "rings of lines that a peer writes",
                                       .most = 2 * END_BYTES,
                                       .seeds = seed_lines_frames,
                                       .parse = parse_lines_frames};

/* ---- shm's greeting ------------------------------------------------------------- */

/* An input is which descriptors come, a greeting, and the bytes that the socket brings after it. */
enum { HEAP_BYTES = 1 << 20 };
enum { GOOD, SMALL_RING, NO_SEALS, NO_MEMORY, KINDS };

/* Made once; greetings carry copies. */
static int sealed_file(size_t bytes)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    must(fd >= 0 && fd_size_and_seal(fd, bytes) == RING_OK);
    return fd;
}

static const int *descriptors(int kind)
{
    static int fds[KINDS][SHM_PASS_FDS];
    static lines_ring *ring;
    if (ring == NULL) {
        int ring_fd, pipe_fds[2];
        uint32_t lines;
        must(shm_region_create(&ring_fd, &ring, &lines) == RING_OK && pipe(pipe_fds) == 0);
        const int heap = sealed_file(HEAP_BYTES), small = sealed_file(4096);
        const int loose = memfd_create("fuzz", MFD_CLOEXEC);
        must(loose >= 0 && ftruncate(loose, HEAP_BYTES) == 0);
        const int all[KINDS][SHM_PASS_FDS] = {{ring_fd, heap},
                                              {small, heap},
                                              {ring_fd, loose},
                                              {pipe_fds[0], pipe_fds[1]}};
        memcpy(fds, all, sizeof fds);
    }
    return fds[kind];
}

static void seed_shm_greeting(fuzz_seeds *to)
{
    unsigned char bytes[1 + sizeof(lines_greeting) + 3] = {GOOD};
    lines_greeting greeting = lines_link_greeting(&(lines_link){0}, HEAP_BYTES);
    for (int kind = 0; kind < KINDS; kind++) {
        bytes[0] = (unsigned char)kind;
        memcpy(bytes + 1, &greeting, sizeof greeting);
        if (kind == GOOD)
            fuzz_add(to, bytes, sizeof bytes);
        else
            fuzz_add_any(to, bytes, sizeof bytes);
    }
    greeting.offer = 0;
    bytes[0] = GOOD;
    memcpy(bytes + 1, &greeting, sizeof greeting);
    fuzz_add(to, bytes, sizeof bytes - 3);
}

/* References into the heap that the peer has lent, and beside it. */
static void check_references(transport_link *l)
{
    const char *first = transport_shm.map(l, 1, HEAP_BYTES);
    must(first == NULL || transport_shm.map(l, HEAP_BYTES, 1) == first + HEAP_BYTES - 1);
    must(transport_shm.map(l, 0, 1) == NULL && transport_shm.map(l, 2, HEAP_BYTES) == NULL);
    must(transport_shm.map(l, UINT64_MAX, 1) == NULL && transport_shm.map(l, 1, SIZE_MAX) == NULL);
    if (first != NULL)
        touch(first + HEAP_BYTES - 1, 1);
}

static ring_status use_link(transport_link *l)
{
    const transport_frame *frame;
    const void *payload;
    const ring_status status = transport_shm.progress(l);
    if (status != RING_OK)
        return status;
    lines_link_check_mapped((lines_link *)l);
    check_references(l);
    must(transport_shm.peek(l, &frame, &payload) == RING_IN_PROGRESS); /* nothing was sent */
    return RING_OK;
}

static ring_status parse_shm_greeting(const unsigned char *bytes, size_t size)
{
    const size_t greeting = min_size(size - min_size(size, 1), sizeof(lines_greeting));
    int ends[2];
    transport_link *l;
    if (greeting == 0)
        return RING_IN_PROGRESS;
    give_pair(ends);
    must(transport_shm.open(&(transport_peer){.peer = 1, .fd = ends[0]}, &l) == RING_OK);
    must(shm_pass_send(ends[1], bytes + 1, greeting, descriptors(bytes[0] % KINDS)) == RING_OK);
    must(give_sent(ends[1], bytes + 1 + greeting, size - 1 - greeting));
    const ring_status status = use_link(l);
    transport_shm.close(l);
    fd_close(&ends[1]);
    return status;
}

const fuzz_target fuzz_shm_greeting = {.name = "shm_greeting",
                                       .reads = "greetings of shm links, and bells",
                                       .most = 64,
                                       .seeds = seed_shm_greeting,
                                       .parse = parse_shm_greeting,
                                       .reason = fail_text};

/* ---- References ----------------------------------------------------------------- */

typedef struct reference {
    uint64_t ref, bytes;
} reference;

static char lent[4096];

static void seed_region_reference(fuzz_seeds *to)
{
    static bool registered;
    if (!registered)
        must(heap_open() == RING_OK && region_add(lent, sizeof lent, REGION_PLAIN) == RING_OK);
    registered = true;
    const reference whole = {region_ref(lent, sizeof lent), sizeof lent};
    const reference end = {region_ref(lent + 4095, 1), 1};
    const reference heap = {region_ref_to(REGION_HEAP_ID, 0), 64};
    fuzz_add(to, &whole, sizeof whole);
    fuzz_add(to, &end, sizeof end);
    fuzz_add(to, &heap, sizeof heap);
}

static bool lies_in(const char *at, size_t bytes, const char *base, size_t span)
{
    return at >= base && bytes <= span && (size_t)(at - base) <= span - bytes;
}

static ring_status parse_region_reference(const unsigned char *bytes, size_t size)
{
    reference r;
    if (size < sizeof r)
        return RING_IN_PROGRESS;
    memcpy(&r, bytes, sizeof r);
    const char *at = region_address(r.ref, r.bytes);
    if (at == NULL)
        return RING_ERR_PEER;
    must(lies_in(at, r.bytes, lent, sizeof lent) || lies_in(at, r.bytes, heap_base(), heap_span()));
    must(region_accelerator(r.ref) == NULL);
    return RING_OK;
}

const fuzz_target fuzz_region_reference = {.name = "region_reference",
                                           .reads = "references that peers give",
                                           .most = sizeof(reference),
                                           .seeds = seed_region_reference,
                                           .parse = parse_region_reference};
