/* SPDX-License-Identifier: Apache-2.0
 * Implements a transport's calls over two rings of lines, for loop and shm. */
#include "lines_link.h"

#include "membarrier.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

/* The socket is read after QUIET_LOOKS calls of progress() without a frame, which are tens of
 * microseconds of spinning. A sleep counts as QUIET_SLEEP calls. */
enum { QUIET_LOOKS = 1024, QUIET_SLEEP = QUIET_LOOKS / 16 };
/* Lines that prefetch_payload() fetches. */
enum { PREFETCH_LINES = 4 };

static const char magic[8] = {'r', 'i', 'n', 'g', 'l', 'i', 'n', '2'};

/* ---- Opening -------------------------------------------------------------------- */

/* The inbound ring of every link until the peer's greeting has arrived. It never has frames. */
static lines_ring empty_ring;

void lines_link_init(lines_link *l, const transport *made_by, const transport_peer *peer,
                     ring_status (*look)(lines_link *l))
{
    l->head = (transport_link){.transport = made_by, .peer = peer->peer};
    l->fd = fd_guard(peer->fd);
    l->state = RING_IN_PROGRESS;
    l->look = look;
    lines_consume_from(&l->in, &empty_ring);
    l->pair = peer->pair;
    l->waiter.pair = &l->pair;
    if (peer->pair.owner == NULL || getrandom(&l->nonce, sizeof l->nonce, 0) != sizeof l->nonce)
        l->nonce = 0;
    if (l->nonce != 0)
        l->offered = bell_find(&l->pair);
}

lines_greeting lines_link_greeting(const lines_link *l, uint64_t offer)
{
    lines_greeting greeting = {.lines = LINES,
                               .barriers = membarrier_join(),
                               .offer = offer,
                               .nonce = l->nonce,
                               .bell = bell_id(l->offered)};
    memcpy(greeting.magic, magic, sizeof magic);
    return greeting;
}

ring_status lines_link_received(ssize_t got, size_t bytes)
{
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return RING_IN_PROGRESS;
    if (got < 0)
        return fail(RING_ERR_PEER, "receiving the peer's greeting: %m");
    if (got == 0)
        return fail(RING_ERR_PEER, "the peer closed the connection before it sent its greeting");
    return (size_t)got == bytes
               ? RING_OK
               : fail(RING_ERR_PEER, "the peer's greeting has %zd byte%s instead of %zu", got,
                      plural((unsigned long long)got), bytes);
}

ring_status lines_link_check(const lines_greeting *theirs)
{
    if (memcmp(theirs->magic, magic, sizeof magic) == 0 && theirs->lines == LINES)
        return RING_OK;
    return fail(RING_ERR_PEER, "the peer's first message is not a shared-memory greeting of this "
                               "version; run the same libring on all ranks");
}

/* Both ends compare the same two offers, so they make the same choice. If they need a new bell,
 * both compute the same id for it. */
static ring_status choose_bell(lines_link *l, const lines_greeting *theirs)
{
    if (l->offered != NULL && bell_id(l->offered) == theirs->bell) {
        l->bell = l->offered;
        l->offered = NULL;
        fd_close(&l->fd);
        return RING_OK;
    }
    const bool shared = l->nonce != 0 && theirs->nonce != 0;
    l->bell = bell_new(l->fd, &l->pair, shared ? l->nonce ^ theirs->nonce : 0);
    l->fd = -1;
    bell_drop(l->offered);
    l->offered = NULL;
    return l->bell != NULL ? RING_OK : fail(RING_ERR_MEMORY, "no memory for the link's socket");
}

ring_status lines_link_accept(lines_link *l, const lines_greeting *theirs, lines_ring *in,
                              uint8_t refers)
{
    RING_TRY(choose_bell(l, theirs));
    lines_consume_from(&l->in, in);
    l->in.strict = l->out.strict = !(theirs->barriers != 0 && membarrier_join());
    l->flags = FRAME_LONG | refers;
    l->answered = (refers & FRAME_STORED) != 0;
    l->state = RING_OK;
    return RING_OK;
}

/* Even if this end has not received the peer's greeting, the peer may have received ours and may
 * sleep. It sleeps either on the bell that both ends have offered, which is rung here, or on the
 * socket, where it gets an end of file. */
void lines_link_close(lines_link *l)
{
    l->out.strict = l->in.strict = true; /* correct with any peer, even before its greeting */
    const bool sleeps = l->out.ring != NULL && lines_end(&l->out, &l->in);
    if (l->bell != NULL) {
        bell_remove_waiter(l->bell, &l->waiter);
        if (sleeps)
            bell_ring(l->bell);
    } else if (l->offered != NULL) {
        bell_ring(l->offered);
    }
    bell_drop(l->bell);
    bell_drop(l->offered);
    fd_close(&l->fd);
}

/* ---- Broken links -------------------------------------------------------------- */

static ring_status repeat_error(const lines_link *l)
{
    return fail(l->state, "%s link to rank %d: %s", l->head.transport->name, l->head.peer, l->why);
}

static ring_status link_break(lines_link *l, ring_status status, const char *why)
{
    l->state = status;
    (void)text_format(l->why, sizeof l->why, "%s", why); /* a longer text is truncated */
    return repeat_error(l);
}

static bool has_news(const lines_link *l)
{
    return atomic_load(lines_news(&l->in)) != 0;
}

static ring_status link_state(lines_link *l)
{
    if (l->state == RING_IN_PROGRESS) {
        const ring_status status = l->look(l);
        return status == RING_OK || status == RING_IN_PROGRESS ? status
                                                               : link_break(l, status, fail_text());
    }
    if (l->state != RING_OK)
        return repeat_error(l);
    if (l->gone && !l->peeked && !has_news(l))
        return link_break(l, RING_ERR_PEER,
                          "the peer closed the connection: it ended or was killed; the reason is "
                          "in its own output or the launcher's");
    return RING_OK;
}

/* ---- The bell ------------------------------------------------------------------ */

static bool has_ended(const lines_link *l)
{
    return atomic_load(&l->in.ring->ended) != 0;
}

static void drain_bell(lines_link *l)
{
    l->gone = !bell_drain(l->bell) || has_ended(l);
    l->quiet = 0;
}

void lines_link_check_mapped(lines_link *l)
{
    const uint32_t maps = atomic_load(&l->in.ring->maps);
    l->answered = maps != 0;
    l->flags |= maps == LINES_MAPPED ? FRAME_STORED : 0;
}

ring_status lines_link_progress(transport_link *head)
{
    lines_link *l = (lines_link *)head;
    if (l->state == RING_OK && ++l->quiet >= QUIET_LOOKS)
        drain_bell(l);
    return link_state(l);
}

/* ---- Sending ------------------------------------------------------------------- */

static ring_status make_room(lines_link *l, size_t bytes)
{
    const ring_status status = lines_room(&l->out, bytes);
    if (status != RING_OK && status != RING_IN_PROGRESS)
        return link_break(l, status, fail_text());
    l->refused = status != RING_OK;
    l->wanted = bytes;
    return status;
}

void *lines_link_reserve(transport_link *head)
{
    lines_link *l = (lines_link *)head;
    if (link_state(l) != RING_OK)
        return NULL;
    l->reserved = l->reserved || make_room(l, TRANSPORT_SEGMENT) == RING_OK;
    return l->reserved ? lines_payload(&l->out) : NULL;
}

ring_status lines_link_send(transport_link *head, const transport_frame *frame, const void *payload,
                            bool copy)
{
    lines_link *l = (lines_link *)head;
    (void)copy; /* payloads are always copied */
    RING_TRY(link_state(l));
    /* l->flags is about received frames. If the peer may send FRAME_STORED, it has mapped our
     * memory, so this end may send FRAME_REF, and the other way round. */
    const unsigned allowed = FRAME_LONG | (l->flags & FRAME_STORED ? FRAME_REF : 0) |
                             (l->flags & FRAME_REF ? FRAME_STORED : 0);
    if (!transport_is_sound(frame, allowed))
        return link_break(l, RING_ERR_INTERNAL,
                          "cannot send a frame with a wrong length or with flags that this link "
                          "does not allow");
    if (!l->reserved || payload != lines_payload(&l->out))
        RING_TRY(make_room(l, transport_behind(frame)));
    if (lines_publish(&l->out, frame, payload))
        bell_ring(l->bell);
    l->reserved = false;
    l->quiet = 0;
    head->frames_sent++;
    head->bytes_sent += transport_carried(frame);
    return RING_OK;
}

uint64_t lines_link_flushed(const transport_link *head)
{
    return head->frames_sent; /* payloads are always copied */
}

uint64_t lines_link_released(const transport_link *head)
{
    const lines_link *l = (const lines_link *)head;
    return atomic_load_explicit(&l->out.ring->released, memory_order_acquire);
}

/* ---- Receiving ----------------------------------------------------------------- */

/* Prefetches the first lines of the payload while the engine examines the header. */
static void prefetch_payload(const lines_link *l)
{
    const line *payload = &l->in.ring->line[l->in.line + 1];
    const uint32_t lines = lines_of(transport_behind(&l->frame)) - 1;
    for (uint32_t i = 0; i < lines && i < PREFETCH_LINES; i++)
        __builtin_prefetch(payload + i);
}

static ring_status take_oldest(lines_link *l)
{
    const ring_status status = lines_oldest(&l->in, &l->frame);
    if (status == RING_IN_PROGRESS)
        return l->gone ? link_state(l) : RING_IN_PROGRESS;
    /* A peer announces that it has mapped our memory before it stores there. */
    if (status == RING_OK && !l->answered && (l->frame.flags & FRAME_STORED))
        lines_link_check_mapped(l);
    if (status != RING_OK || !transport_is_sound(&l->frame, l->flags))
        return link_break(l, RING_ERR_PEER,
                          "received a damaged frame: the peer overwrote shared memory, or referred "
                          "to memory that was not exposed to it");
    if (l->frame.flags == FRAME_LONG)
        prefetch_payload(l);
    l->peeked = true;
    return RING_OK;
}

static const void *payload_of(const lines_link *l)
{
    if (l->frame.flags == 0)
        return l->frame.data;
    return transport_behind(&l->frame) > 0 ? &l->in.ring->line[l->in.line + 1] : NULL;
}

ring_status lines_link_peek(transport_link *head, const transport_frame **frame,
                            const void **payload)
{
    lines_link *l = (lines_link *)head;
    if (l->state != RING_OK)
        RING_TRY(link_state(l));
    if (!l->peeked)
        RING_TRY(take_oldest(l));
    *frame = &l->frame;
    *payload = payload_of(l);
    return RING_OK;
}

ring_status lines_link_pull(transport_link *head, void *dst)
{
    lines_link *l = (lines_link *)head;
    RING_TRY(link_state(l));
    const size_t bytes = transport_carried(&l->frame);
    if (bytes > 0)
        memcpy(dst, payload_of(l), bytes);
    return RING_OK;
}

void lines_link_consume(transport_link *head)
{
    lines_link *l = (lines_link *)head;
    head->frames_received++;
    head->bytes_received += transport_carried(&l->frame);
    l->peeked = false;
    l->quiet = 0;
    if (lines_consume(&l->in, lines_of(transport_behind(&l->frame))))
        bell_ring(l->bell);
}

void lines_link_release(transport_link *head, uint64_t messages)
{
    lines_link *l = (lines_link *)head;
    if (lines_release(&l->in, messages))
        bell_ring(l->bell);
}

const _Atomic uint32_t *lines_link_news(const transport_link *head, uint32_t *value)
{
    const lines_link *l = (const lines_link *)head;
    *value = l->in.stamp;
    return lines_news(&l->in);
}

/* ---- Sleeping ------------------------------------------------------------------ */

int lines_link_wake_fd(const transport_link *head)
{
    const lines_link *l = (const lines_link *)head;
    return l->bell != NULL ? bell_fd(l->bell) : l->fd;
}

static void raise_flags(lines_link *l)
{
    _Atomic uint32_t *const in = l->armed_in ? &l->in.ring->consumer_sleeps : NULL;
    _Atomic uint32_t *const out = l->armed_out ? &l->out.ring->producer_sleeps : NULL;
    bell_add_waiter(l->bell, &l->waiter, &(bell_flags){in, out});
    if (in != NULL)
        atomic_store(in, 1);
    if (out != NULL)
        atomic_store(out, 1);
}

/* Sets the flags first and reads the words afterwards, as lines.h explains. A caller that has
 * peeked a frame without consuming it waits for something else, so frames do not wake it. */
bool lines_link_arm(transport_link *head, bool wants_send)
{
    lines_link *l = (lines_link *)head;
    if (l->state != RING_OK) /* the peer's greeting makes the socket readable */
        return link_state(l) == RING_IN_PROGRESS && l->greeted;
    l->armed_in = !l->peeked;
    l->armed_out = wants_send;
    raise_flags(l);
    bool may_sleep = (l->in.strict || membarrier_all()) && !l->gone && !has_ended(l) &&
                     !(l->armed_in && has_news(l));
    /* Each change of `released` wakes the caller once. It goes back to sleep if the message that it
     * waits for is not released yet. */
    if (may_sleep && l->armed_out) {
        const uint64_t released = atomic_load(&l->out.ring->released);
        may_sleep = released == l->notified && !(l->refused && lines_fit(&l->out, l->wanted));
        l->notified = released;
    }
    if (may_sleep)
        return true;
    lines_link_disarm(head);
    return false;
}

/* Clears a flag of this end. @return true if the peer has already cleared it, in which case it has
 * rung the bell or is about to. */
static bool clear_flag(_Atomic uint32_t *flag, bool armed)
{
    return armed && atomic_exchange(flag, 0) == 0;
}

/* If the bell rings after this call, or the socket reaches its end of file, the next sleep ends at
 * once. After a few such sleeps, progress() reads the socket. */
void lines_link_disarm(transport_link *head)
{
    lines_link *l = (lines_link *)head;
    const bool cleared_in = clear_flag(&l->in.ring->consumer_sleeps, l->armed_in);
    const bool cleared_out = clear_flag(&l->out.ring->producer_sleeps, l->armed_out);
    l->armed_in = l->armed_out = false;
    if (l->bell != NULL)
        bell_remove_waiter(l->bell, &l->waiter);
    if (cleared_in || cleared_out)
        drain_bell(l);
    else
        l->quiet += QUIET_SLEEP;
}
