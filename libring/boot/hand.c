/* SPDX-License-Identifier: Apache-2.0
 * The handshake's states, and what the two sides compare. */
#include "hand.h"
#include "boot.h"

#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>

enum { ORDER_MARK = 0x01020304, ORDER_SWAPPED = 0x04030201 };
static const char magic[8] = "ringboot";

hand_hello hand_hello_to(const hand_terms *terms, int peer, enum hand_purpose purpose, int lane)
{
    hand_hello hello = {.order = ORDER_MARK, .version = RING_VERSION_CODE,
                        .card_bytes = sizeof(boot_card), .size = terms->size,
                        .rank = terms->rank, .peer = peer, .purpose = (uint16_t)purpose,
                        .lane = (uint16_t)lane};
    memcpy(hello.magic, magic, sizeof magic);
    randombytes_buf(hello.nonce, sizeof hello.nonce);
    return hello;
}

void hand_call(hand *h, int fd, const hand_terms *terms, const hand_hello *hello,
               const void *extra, size_t extra_bytes)
{
    *h = (hand){.fd = fd, .terms = terms, .state = HAND_CONNECTING, .caller = *hello,
                .extra = extra, .extra_bytes = extra_bytes,
                .expires = clock_now() + HAND_SECONDS};
}

void hand_answer(hand *h, int fd, const hand_terms *terms)
{
    *h = (hand){.fd = fd, .terms = terms, .state = HAND_HELLO,
                .expires = clock_now() + HAND_SECONDS};
}

void hand_drop(hand *h)
{
    fd_close(&h->fd);
}

short hand_events(const hand *h)
{
    return h->state == HAND_CONNECTING ? POLLOUT : POLLIN;
}

/* ---- Bytes ------------------------------------------------------------------------ */

/* A few hundred bytes always fit into the buffer of a new socket. */
static ring_status say(hand *h, const void *data, size_t bytes)
{
    const ssize_t put = send(h->fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0)
        return fail(RING_ERR_PEER, "sending to the other side: %m");
    return (size_t)put == bytes ? RING_OK : fail(RING_ERR_PEER, "the other side reads too slowly");
}

/* Never reads more than `want`, so nothing that follows the handshake is lost. */
static ring_status hear(hand *h, size_t want)
{
    while (h->got < want) {
        const ssize_t got = recv(h->fd, h->in + h->got, want - h->got, MSG_DONTWAIT);
        if (got == 0)
            return fail(RING_ERR_PEER, "the other side closed the connection");
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno == EAGAIN ? RING_IN_PROGRESS
                                   : fail(RING_ERR_PEER, "reading from the other side: %m");
        h->got += (size_t)got;
    }
    h->got = 0;
    return RING_OK;
}

/* ---- Proofs ------------------------------------------------------------------------ */

static void prove(const hand *h, const char *side, unsigned char mac[HAND_MAC])
{
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, h->terms->key, sizeof h->terms->key);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)side, 8);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)&h->caller, sizeof h->caller);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)&h->listener, sizeof h->listener);
    crypto_auth_hmacsha256_final(&state, mac);
}

static const char listener_side[8] = "listener", caller_side[8] = "caller";

static ring_status check_proof(const hand *h, const char *side, const unsigned char *mac)
{
    unsigned char want[HAND_MAC];
    prove(h, side, want);
    if (sodium_memcmp(want, mac, sizeof want) != 0)
        return fail(RING_ERR_AUTH, "the other side could not prove that it belongs to this job "
                    "(another secret, or another job)");
    return owner_check(h->fd, h->terms->users);
}

/* Both sides are members of one job from here. */
static ring_status compare(const hand_hello *mine, const hand_hello *theirs)
{
    if (theirs->order == ORDER_SWAPPED)
        return fail(RING_ERR_CONFIG, "a rank of this job has the other byte order; mixed machines "
                    "are not supported");
    if (theirs->version != mine->version || theirs->card_bytes != mine->card_bytes)
        return fail(RING_ERR_CONFIG, "rank %d runs libring %u (cards of %u bytes), rank %d runs "
                    "libring %u (%u bytes); install one version everywhere", theirs->rank,
                    theirs->version, theirs->card_bytes, mine->rank, mine->version,
                    mine->card_bytes);
    if (theirs->size != mine->size)
        return fail(RING_ERR_CONFIG, "rank %d was told of %d ranks, rank %d of %d; start all with "
                    "the same number", theirs->rank, theirs->size, mine->rank, mine->size);
    if (theirs->rank < 0 || theirs->rank >= mine->size)
        return fail(RING_ERR_CONFIG, "a process says that it is rank %d of %d; ranks are numbered "
                    "from 0", theirs->rank, mine->size);
    if (theirs->peer != mine->rank || mine->peer != theirs->rank ||
        theirs->purpose != mine->purpose || theirs->lane != mine->lane)
        return fail(RING_ERR_PEER, "rank %d is not whom rank %d wanted to speak to", theirs->rank,
                    mine->rank);
    return RING_OK;
}

/* ---- States ------------------------------------------------------------------------ */

/* On one host a socket may connect to itself when nobody listens on that port yet. */
static bool is_itself(int fd)
{
    struct sockaddr_storage a = {0}, b = {0};
    socklen_t la = sizeof a, lb = sizeof b;
    return getsockname(fd, (struct sockaddr *)&a, &la) == 0 &&
           getpeername(fd, (struct sockaddr *)&b, &lb) == 0 && la == lb &&
           a.ss_family != AF_UNIX && memcmp(&a, &b, la) == 0;
}

static ring_status on_connecting(hand *h)
{
    struct pollfd entry = {.fd = h->fd, .events = POLLOUT};
    int error = 0;
    socklen_t length = sizeof error;
    if (poll(&entry, 1, 0) <= 0)
        return RING_IN_PROGRESS;
    getsockopt(h->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0)
        return fail(RING_ERR_PEER, "%s", strerror(error));
    if (is_itself(h->fd))
        return fail(RING_ERR_PEER, "nobody listens there");
    RING_TRY(say(h, &h->caller, sizeof h->caller));
    h->state = HAND_ANSWER;
    return RING_OK;
}

static ring_status on_hello(hand *h)
{
    struct {
        hand_hello hello;
        unsigned char mac[HAND_MAC];
    } answer;
    RING_TRY(hear(h, sizeof h->caller));
    memcpy(&h->caller, h->in, sizeof h->caller);
    if (memcmp(h->caller.magic, magic, sizeof magic) != 0)
        return fail(RING_ERR_AUTH, "the other side does not speak this protocol");
    h->listener = hand_hello_to(h->terms, h->caller.rank, h->caller.purpose, h->caller.lane);
    answer.hello = h->listener;
    prove(h, listener_side, answer.mac);
    RING_TRY(say(h, &answer, sizeof answer));
    h->state = HAND_PROOF;
    return RING_OK;
}

/* Sends the proof even to a wrong version, so that both sides can name it. */
static ring_status on_answer(hand *h)
{
    unsigned char proof[HAND_MAC + HAND_EXTRA];
    RING_TRY(hear(h, sizeof h->listener + HAND_MAC));
    memcpy(&h->listener, h->in, sizeof h->listener);
    RING_TRY(check_proof(h, listener_side, h->in + sizeof h->listener));
    if (h->extra_bytes > HAND_EXTRA)
        return fail(RING_ERR_INTERNAL, "%zu bytes behind a proof", h->extra_bytes);
    prove(h, caller_side, proof);
    if (h->extra_bytes > 0)
        memcpy(proof + HAND_MAC, h->extra, h->extra_bytes);
    RING_TRY(say(h, proof, HAND_MAC + h->extra_bytes));
    RING_TRY(compare(&h->caller, &h->listener));
    h->state = HAND_WELCOME;
    h->expires = 1e300; /* from here on the other side may be slow: it is one of us */
    return RING_OK;
}

static ring_status on_proof(hand *h)
{
    RING_TRY(hear(h, HAND_MAC));
    RING_TRY(check_proof(h, caller_side, h->in));
    RING_TRY(compare(&h->listener, &h->caller));
    RING_TRY(say(h, "w", 1));
    return RING_OK;
}

static ring_status on_welcome(hand *h)
{
    RING_TRY(hear(h, 1));
    return h->in[0] == 'w' ? RING_OK : fail(RING_ERR_PEER, "the other side said nonsense");
}

static ring_status step_once(hand *h, bool *done)
{
    switch (h->state) {
    case HAND_CONNECTING:
        return on_connecting(h);
    case HAND_HELLO:
        return on_hello(h);
    case HAND_ANSWER:
        return on_answer(h);
    case HAND_PROOF:
        *done = true;
        return on_proof(h);
    case HAND_WELCOME:
        *done = true;
        return on_welcome(h);
    }
    return fail(RING_ERR_INTERNAL, "a handshake in state %d", (int)h->state);
}

ring_status hand_step(hand *h)
{
    bool done = false;
    ring_status status = RING_OK;
    while (!done && status == RING_OK)
        status = step_once(h, &done);
    if (status == RING_IN_PROGRESS && clock_now() >= h->expires)
        status = fail(RING_ERR_TIMEOUT, "the other side did not finish the handshake within %d s",
                      HAND_SECONDS);
    if (status != RING_OK && status != RING_IN_PROGRESS)
        hand_drop(h);
    return status;
}
