/* SPDX-License-Identifier: Apache-2.0
 * Implements the ring of lines of lines.h. Nothing here blocks; system calls are made only when a
 * page of the ring is used for the first time. */
#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

enum {
    SKIP = 0x80, /* the frame flag of a skip, whose ext.bytes is the line of the next frame */
    WINDOW_LINES = (TRANSPORT_WINDOW + 1) * (1 + TRANSPORT_SEGMENT / (int)sizeof(line)) + 1,
    /* Pages are committed in steps of COMMIT_STEP bytes near the start of the ring, where short
     * frames travel, and of FAR_STEP bytes after it, so that few calls commit a whole ring. */
    COMMIT_STEP = 16384,
    FAR_STEP = 65536
};

/* Number of rings that this process produces. */
static _Atomic uint32_t producers;

/* ---- Publishing words ---------------------------------------------------------- */

static void hand_over(_Atomic uint32_t *word, uint32_t value, bool strict)
{
    if (strict)
        atomic_store(word, value);
    else
        atomic_store_explicit(word, value, memory_order_release);
}

static void hand_over_wide(_Atomic uint64_t *word, uint64_t value, bool strict)
{
    if (strict)
        atomic_store(word, value);
    else
        atomic_store_explicit(word, value, memory_order_release);
}

/* Called after a word was published. Clears the peer's flag @p sleeps. The fence keeps the compiler
 * from reading the flag before the word is stored; lines.h explains why the processor may do so.
 * @return true if the flag was set. */
static bool must_wake(_Atomic uint32_t *sleeps, bool strict)
{
    atomic_signal_fence(memory_order_seq_cst);
    const uint32_t up = strict ? atomic_load(sleeps)
                               : atomic_load_explicit(sleeps, memory_order_relaxed);
    return up != 0 && atomic_exchange(sleeps, 0) != 0;
}

/* Prefetches a line for writing. For the generic x86-64 target, GCC's builtin would only prefetch
 * for reading. All recent x86-64 processors have this instruction, and older ones ignore it. */
static void prefetch_to_write(const line *at)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
    __builtin_prefetch(at, 1);
#endif
}

/* ---- Producer ---------------------------------------------------------------- */

/* Commits the pages of bytes [from, end) of the ring through the mapping, in one call instead of
 * one page fault each. @return false: there is no memory, or the kernel is older than 5.14. */
static bool populate(const lines_producer *p, size_t from, size_t end)
{
#if defined(MADV_POPULATE_WRITE)
    int result;
    do
        result = madvise((char *)p->ring + from, end - from, MADV_POPULATE_WRITE);
    while (result != 0 && (errno == EINTR || errno == EAGAIN));
    return result == 0;
#else
    (void)p, (void)from, (void)end;
    return false;
#endif
}

/* Commits the ring's pages up to byte @p end. */
static bool commit_pages(const lines_producer *p, size_t end)
{
    if (p->file == LINES_MAPPING)
        return populate(p, p->committed, end);
    if (p->file == LINES_PLAIN)
        return true;
    int result;
    do
        result = fallocate(p->file, 0, (off_t)p->committed, (off_t)(end - p->committed));
    while (result != 0 && errno == EINTR);
    if (result == 0)
        (void)populate(p, p->committed, end); /* if this fails, each page causes a fault later */
    return result == 0;
}

/* Commits the pages of the first @p lines lines explicitly. If memory is short, this returns an
 * error, whereas the first access to such a page would raise SIGBUS. */
static ring_status commit(lines_producer *p, uint32_t lines)
{
    const size_t used = offsetof(lines_ring, line) + lines * sizeof(line);
    if (used <= p->committed)
        return RING_OK;
    const size_t step = used < FAR_STEP ? COMMIT_STEP : FAR_STEP;
    const size_t whole = (used + step - 1) / step * step;
    const size_t most = lines_bytes(p->lines), end = whole + step > most ? most : whole;
    if (!commit_pages(p, end))
        return fail(RING_ERR_MEMORY, "committing %zu bytes of shared memory: %s",
                    end - p->committed, strerror(errno == EFAULT ? ENOMEM : errno));
    p->committed = end;
    return RING_OK;
}

void lines_clear(lines_ring *ring)
{
    memset(ring, 0, offsetof(lines_ring, line) + sizeof(line));
}

ring_status lines_produce(lines_producer *p, lines_ring *ring, int file)
{
    const bool many = atomic_fetch_add(&producers, 1) >= LINES_MANY;
    *p = (lines_producer){.ring = ring, .stamp = 1, .over = LINES, .file = file};
    p->lines = p->end = many ? LINES_OF_MANY : LINES;
    return commit(p, LINES_NEAR + 1);
}

bool lines_leave_file(lines_producer *p)
{
    if (populate(p, 0, p->committed))
        p->file = LINES_MAPPING;
    return p->file == LINES_MAPPING;
}

void lines_use(lines_producer *p, uint32_t most)
{
    if (most < p->lines)
        p->lines = p->end = most;
}

void lines_produce_no_more(lines_producer *p)
{
    if (p->lines > 0)
        atomic_fetch_sub(&producers, 1);
    p->lines = 0;
}

/* Reads the consumer's position and finds a place for a frame of @p lines.
 *
 * Skips divide the frames into contiguous runs. The consumer is in a run that is `skips_left` skips
 * older than the producer's current run. If the consumer's line is greater than the producer's, the
 * current run must end before the consumer's line. Otherwise all lines up to the end of the ring
 * are free for the current run, and `may_go_back` is true if the frame would also fit before the
 * consumer's line, after a skip back to line 0. */
static bool find_place(lines_producer *p, uint32_t lines, uint32_t *at, uint32_t *limit)
{
    const uint64_t taken = atomic_load(&p->ring->taken);
    const uint32_t theirs = (uint32_t)taken, skips_left = p->skips - (uint32_t)(taken >> 32);
    if (theirs >= p->lines || skips_left > 2)
        return false; /* the peer has damaged the word; the caller's wait for room times out */
    const bool below = theirs <= p->line;
    const bool may_go_back = below && skips_left < 2 && lines < theirs;
    const bool all_taken = skips_left == 0 && theirs == p->line;
    const bool is_long = lines > LINES_NEAR;
    const bool keeps_near = all_taken && p->line >= LINES_NEAR && !is_long;
    const bool goes_on = all_taken && is_long && p->far > p->line &&
                         p->far < p->lines - WINDOW_LINES;
    p->since = 0;
    p->end = below ? p->lines : theirs;
    *at = goes_on ? p->far : p->line;
    *limit = p->end;
    if (goes_on || (lines < p->end - p->line && !(keeps_near && may_go_back)))
        return true;
    *at = below ? 0 : p->over;
    *limit = below ? theirs : p->lines;
    return below ? may_go_back : skips_left == 1 && lines < p->lines - p->over;
}

/* Finds a place for a frame of @p lines, and one more line for the next header. A short frame
 * usually continues the current run without reading the consumer's position; a long frame always
 * reads it.
 * @param[out] at     first line of the place.
 * @param[out] limit  end of the free lines that begin there. */
static bool place(lines_producer *p, uint32_t lines, uint32_t *at, uint32_t *limit)
{
    *at = p->line;
    *limit = p->end;
    return (lines < p->end - p->line && lines <= LINES_NEAR && p->since < LINES_NEAR) ||
           find_place(p, lines, at, limit);
}

bool lines_fit(lines_producer *p, size_t bytes)
{
    uint32_t at, limit;
    return place(p, lines_of(bytes), &at, &limit);
}

ring_status lines_room(lines_producer *p, size_t bytes)
{
    const uint32_t lines = lines_of(bytes);
    uint32_t at, limit;
    if (!place(p, lines, &at, &limit))
        return RING_IN_PROGRESS;
    RING_TRY(commit(p, at + lines + 1));
    p->at = at;
    p->limit = limit;
    return RING_OK;
}

static void fill_header(line *at, const transport_frame *frame)
{
    memcpy(at->rest, (const char *)frame + sizeof frame->stamp, sizeof at->rest);
}

bool lines_publish(lines_producer *p, const transport_frame *frame, const void *payload)
{
    const size_t bytes = transport_behind(frame);
    const uint32_t lines = lines_of(bytes);
    line *at = &p->ring->line[p->at], *next = at + lines;
    atomic_store_explicit(&next->stamp, 0, memory_order_relaxed);
    if (bytes > 0 && payload != at + 1)
        lines_copy(&p->copier, at + 1, payload, bytes);
    fill_header(at, frame);
    hand_over(&at->stamp, p->stamp, p->strict);
    if (p->at != p->line) {
        /* Publish a skip at p->line, where the consumer expects the header. It points to p->at. */
        const transport_frame skip = {.flags = SKIP, .ext.bytes = p->at};
        line *from = &p->ring->line[p->line];
        fill_header(from, &skip);
        hand_over(&from->stamp, p->stamp, p->strict);
        p->over = p->at < p->line ? p->line + 1 : LINES;
        p->skips++;
    }
    prefetch_to_write(next + 1);
    p->stamp += 2;
    p->line = p->at + lines;
    if (lines > LINES_NEAR)
        p->far = p->line;
    p->end = p->limit;
    p->since += lines;
    return must_wake(&p->ring->consumer_sleeps, p->strict);
}

/* ---- Consumer ---------------------------------------------------------------- */

void lines_consume_from(lines_consumer *c, lines_ring *ring)
{
    *c = (lines_consumer){.ring = ring, .lines = LINES, .stamp = 1};
}

static ring_status read_header(const lines_consumer *c, transport_frame *frame)
{
    const line *at = &c->ring->line[c->line];
    const uint32_t stamp = atomic_load_explicit(&at->stamp, memory_order_acquire);
    if (stamp == 0)
        return RING_IN_PROGRESS;
    frame->stamp = stamp;
    memcpy((char *)frame + sizeof stamp, at->rest, sizeof at->rest);
    return stamp == c->stamp ? RING_OK : RING_ERR_PEER;
}

ring_status lines_oldest(lines_consumer *c, transport_frame *frame)
{
    RING_TRY(read_header(c, frame));
    if (frame->flags == SKIP) {
        if (frame->ext.bytes >= c->lines)
            return RING_ERR_PEER;
        c->line = (uint32_t)frame->ext.bytes;
        c->skips++;
        if (read_header(c, frame) != RING_OK)
            return RING_ERR_PEER;
    }
    /* A second skip in a row, or a frame that leaves no line for the next header, is an error. */
    const size_t bytes = transport_behind(frame);
    const bool fits = bytes <= TRANSPORT_SEGMENT && lines_of(bytes) < c->lines - c->line;
    return fits && frame->flags != SKIP ? RING_OK : RING_ERR_PEER;
}

bool lines_consume(lines_consumer *c, uint32_t lines)
{
    c->stamp += 2;
    c->line += lines;
    hand_over_wide(&c->ring->taken, (uint64_t)c->skips << 32 | c->line, c->strict);
    return must_wake(&c->ring->producer_sleeps, c->strict);
}

bool lines_release(lines_consumer *c, uint64_t messages)
{
    hand_over_wide(&c->ring->released, messages, c->strict);
    return must_wake(&c->ring->producer_sleeps, c->strict);
}

/* ---- Both ends ----------------------------------------------------------------- */

bool lines_end(lines_producer *p, lines_consumer *c)
{
    hand_over(&p->ring->ended, 1, p->strict);
    const bool consumer = must_wake(&p->ring->consumer_sleeps, p->strict);
    const bool producer = must_wake(&c->ring->producer_sleeps, c->strict);
    return consumer || producer;
}
