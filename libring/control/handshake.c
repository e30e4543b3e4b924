/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the states of the handshake, its MACs, and the comparison of the two hellos. It never
 * reads a byte after the handshake, so other code can read the socket from there.
 */
#include "handshake.h"
#include "card.h"
#include "peer_credentials.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>

enum {
    ORDER_MARK = 0x01020304,    /* hello.order of this machine's byte order */
    ORDER_SWAPPED = 0x04030201, /* hello.order of the opposite byte order */
    HANDSHAKE_MARK = 16,        /* bytes of the mark: the MAC in a dialer's nonce */
    ADDRESS_PROOF = ADDRESS_PACKED + HANDSHAKE_MAC /* bytes of rank 0's address and its proof */
};
static const char magic[8] = "ringboot";

/* Computes the mark of a dialer's hello: a MAC of all bytes before the second half of the nonce,
 * where the mark is stored. */
static void make_mark(const handshake_terms *terms, const handshake_hello *hello,
                      unsigned char out[HANDSHAKE_MARK])
{
    static const char label[8] = "hello";
    unsigned char mac[HANDSHAKE_MAC];
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, terms->key, sizeof terms->key);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)label, sizeof label);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)hello,
                                  sizeof *hello - HANDSHAKE_MARK);
    crypto_auth_hmacsha256_final(&state, mac);
    memcpy(out, mac, HANDSHAKE_MARK);
    sodium_memzero(&state, sizeof state);
}

handshake_hello handshake_hello_to(const handshake_terms *terms, int peer,
                                   const handshake_purpose *purpose)
{
    handshake_hello hello = {.order = ORDER_MARK,
                             .version = RING_VERSION_CODE,
                             .card_bytes = sizeof(control_card),
                             .size = terms->size,
                             .rank = terms->rank,
                             .peer = peer,
                             .purpose = *purpose};
    memcpy(hello.magic, magic, sizeof magic);
    memcpy(hello.session, terms->session, sizeof hello.session);
    randombytes_buf(hello.nonce, sizeof hello.nonce - HANDSHAKE_MARK);
    make_mark(terms, &hello, hello.nonce + sizeof hello.nonce - HANDSHAKE_MARK);
    return hello;
}

void handshake_dial(handshake *h, int fd, const handshake_terms *terms,
                    const handshake_hello *hello, double patience)
{
    const double now = clock_now();
    *h = (handshake){.fd = fd,
                     .terms = terms,
                     .state = HANDSHAKE_CONNECTING,
                     .dialer = *hello,
                     .started = now,
                     .expires = now + patience};
}

void handshake_accept(handshake *h, int fd, const handshake_terms *terms)
{
    const double now = clock_now();
    *h = (handshake){.fd = fd,
                     .terms = terms,
                     .state = HANDSHAKE_HELLO,
                     .started = now,
                     .expires = now + HANDSHAKE_SECONDS};
}

uint32_t handshake_events(const handshake *h)
{
    return h->state == HANDSHAKE_CONNECTING ? POLLOUT : POLLIN;
}

/* ---- Bytes ------------------------------------------------------------------------- */

/* Sends all bytes without waiting, since the few bytes of a handshake fit into the buffer of a new
 * socket. */
static ring_status send_all(handshake *h, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        const ssize_t put = send(h->fd, at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EAGAIN)
            return fail(RING_ERR_PEER, "the peer reads too slowly");
        if (put < 0)
            return fail(RING_ERR_PEER, "sending to the peer: %m");
        at += put;
        bytes -= (size_t)put;
    }
    return RING_OK;
}

/* Receives a message of exactly @p want bytes into h->in, so that later bytes stay in the socket.
 * @return RING_IN_PROGRESS if bytes are missing. */
static ring_status receive(handshake *h, size_t want)
{
    while (h->got < want) {
        const ssize_t got = recv(h->fd, h->in + h->got, want - h->got, MSG_DONTWAIT);
        if (got == 0)
            return fail(RING_ERR_PEER, "the peer closed the connection");
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno == EAGAIN ? RING_IN_PROGRESS
                                   : fail(RING_ERR_PEER, "receiving from the peer: %m");
        h->got += (size_t)got;
    }
    h->got = 0;
    return RING_OK;
}

/* ---- Proofs ------------------------------------------------------------------------ */

/* Computes a MAC of both hellos. @param side  [8] a label for the use of the MAC.
 * @param rank_0  rank 0's packed address, which the MAC then covers, too; NULL: none. */
static void prove(const handshake *h, const char *side, const unsigned char *rank_0,
                  unsigned char mac[HANDSHAKE_MAC])
{
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, h->terms->key, sizeof h->terms->key);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)side, 8);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)&h->dialer, sizeof h->dialer);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)&h->acceptor, sizeof h->acceptor);
    if (rank_0 != NULL)
        crypto_auth_hmacsha256_update(&state, rank_0, ADDRESS_PACKED);
    crypto_auth_hmacsha256_final(&state, mac);
    sodium_memzero(&state, sizeof state);
}

static const char acceptor_side[8] = "acceptor", dialer_side[8] = "dialer", moved[8] = "moved";

static bool is_dialer(const handshake *h)
{
    return h->dialer.rank == h->terms->rank;
}

int handshake_peer(const handshake *h)
{
    return is_dialer(h) ? h->acceptor.rank : h->dialer.rank;
}

void handshake_derive(const handshake *h, control_keys *keys)
{
    static const char from_acceptor[8] = "accepts", from_dialer[8] = "dials";
    const bool dialed = is_dialer(h);
    _Static_assert((int)CONTROL_SOCKET_KEY == (int)HANDSHAKE_MAC, "a MAC makes a key");
    prove(h, dialed ? from_dialer : from_acceptor, NULL, keys->out);
    prove(h, dialed ? from_acceptor : from_dialer, NULL, keys->in);
}

static ring_status check_proof(const handshake *h, const char *side, const unsigned char *rank_0,
                               const unsigned char *mac)
{
    unsigned char want[HANDSHAKE_MAC];
    prove(h, side, rank_0, want);
    if (sodium_memcmp(want, mac, sizeof want) != 0)
        return fail(RING_ERR_AUTH, "the peer could not prove that it belongs to this job: it has "
                                   "another secret or belongs to another job");
    return peer_check(h->fd, h->terms->users);
}

/* Writes rank 0's address and its proof. */
static void put_address(const handshake *h, const char *side, unsigned char out[ADDRESS_PROOF])
{
    memcpy(out, h->terms->rank_0, ADDRESS_PACKED);
    prove(h, side, out, out + ADDRESS_PACKED);
}

static ring_status receive_address(handshake *h, const char *side)
{
    RING_TRY(receive(h, ADDRESS_PROOF));
    RING_TRY(check_proof(h, side, h->in, h->in + ADDRESS_PACKED));
    return address_unpack(h->in, &h->rank_0)
               ? RING_OK
               : fail(RING_ERR_PEER, "the peer has sent an invalid address of rank 0");
}

static bool is_maker(const handshake_hello *hello)
{
    return hello->rank == HANDSHAKE_MAKER;
}

static const char *name_of(const handshake_hello *hello, char out[32])
{
    if (is_maker(hello))
        return "the maker of the unique id";
    text_format(out, 32, "rank %d", hello->rank);
    return out;
}

/* Compares the hellos after both sides have proved that they belong to one job. */
static ring_status compare(const handshake_hello *mine, const handshake_hello *theirs)
{
    char a[32], b[32];
    const uint16_t kind = mine->purpose.kind;
    const bool with_maker = is_maker(mine) != is_maker(theirs);
    if (theirs->order == ORDER_SWAPPED)
        return fail(RING_ERR_CONFIG,
                    "a rank of this job has another byte order; mixed machines are not supported");
    if (kind == HANDSHAKE_JOIN && with_maker)
        return RING_OK; /* rank 0 compares, so that all ranks learn of a difference */
    if (kind == HANDSHAKE_REGISTER && !with_maker)
        return fail(RING_ERR_ABORTED, "another rank 0 has joined");
    if (theirs->version != mine->version || theirs->card_bytes != mine->card_bytes)
        return fail(RING_ERR_CONFIG,
                    "%s runs libring %u (cards of %u bytes), %s runs libring %u (%u bytes); "
                    "install one version everywhere",
                    name_of(theirs, a), theirs->version, theirs->card_bytes, name_of(mine, b),
                    mine->version, mine->card_bytes);
    if (kind == HANDSHAKE_REGISTER)
        return RING_OK; /* the maker does not know the number of ranks */
    if (theirs->size != mine->size)
        return fail(
            RING_ERR_CONFIG,
            "rank %d was started with %d ranks, rank %d with %d; start all with the same number",
            theirs->rank, theirs->size, mine->rank, mine->size);
    if (theirs->rank < 0 || theirs->rank >= mine->size)
        return fail(RING_ERR_CONFIG,
                    "a process claims to be rank %d of %d; ranks are numbered from 0", theirs->rank,
                    mine->size);
    if (theirs->rank == mine->rank || theirs->peer != mine->rank || mine->peer != theirs->rank ||
        memcmp(&theirs->purpose, &mine->purpose, sizeof mine->purpose) != 0)
        return fail(RING_ERR_PEER, "rank %d is not the peer that rank %d expects", theirs->rank,
                    mine->rank);
    return kind == HANDSHAKE_JOIN || /* a joining rank gets the session only now */
                   memcmp(mine->session, theirs->session, sizeof mine->session) == 0
               ? RING_OK
               : fail(RING_ERR_PEER, "rank %d belongs to another start of this job", theirs->rank);
}

/* ---- States ------------------------------------------------------------------------ */

/* @return true if the socket is connected to itself, which the kernel allows on one host if no
 * process listens on the port. */
static bool is_itself(int fd)
{
    struct sockaddr_storage a = {0}, b = {0};
    socklen_t la = sizeof a, lb = sizeof b;
    return getsockname(fd, (struct sockaddr *)&a, &la) == 0 &&
           getpeername(fd, (struct sockaddr *)&b, &lb) == 0 && la == lb && a.ss_family != AF_UNIX &&
           memcmp(&a, &b, la) == 0;
}

static ring_status on_connecting(handshake *h)
{
    struct pollfd entry = {.fd = h->fd, .events = POLLOUT};
    int error = 0;
    socklen_t length = sizeof error;
    if (poll(&entry, 1, 0) <= 0)
        return RING_IN_PROGRESS;
    getsockopt(h->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    h->error = error;
    if (error != 0)
        return fail(RING_ERR_PEER, "%s", strerror(error));
    if (is_itself(h->fd))
        return fail(RING_ERR_PEER, "no process listens there");
    RING_TRY(send_all(h, &h->dialer, sizeof h->dialer));
    h->state = HANDSHAKE_ANSWER;
    return RING_OK;
}

static ring_status on_hello(handshake *h)
{
    struct {
        handshake_hello hello;
        unsigned char mac[HANDSHAKE_MAC];
    } answer;
    unsigned char want[HANDSHAKE_MARK];
    RING_TRY(receive(h, sizeof h->dialer));
    memcpy(&h->dialer, h->in, sizeof h->dialer);
    if (memcmp(h->dialer.magic, magic, sizeof magic) != 0)
        return fail(RING_ERR_AUTH, "the peer does not use libring's protocol");
    make_mark(h->terms, &h->dialer, want);
    h->shows_key = sodium_memcmp(want, h->dialer.nonce + HANDSHAKE_NONCE - HANDSHAKE_MARK,
                                 sizeof want) == 0;
    h->acceptor = handshake_hello_to(h->terms, h->dialer.rank, &h->dialer.purpose);
    /* The acceptor's nonce has no mark, since a stranger could send the hello back as its own. */
    randombytes_buf(h->acceptor.nonce, HANDSHAKE_NONCE);
    answer.hello = h->acceptor;
    prove(h, acceptor_side, NULL, answer.mac);
    RING_TRY(send_all(h, &answer, sizeof answer));
    h->state = HANDSHAKE_PROOF;
    return RING_OK;
}

/* Lets the kernel notice within 15 s, as long as the default of RING_PEER_TIMEOUT, that the host of
 * the peer is down: ranks and the maker of the id may wait for each other, and send nothing. */
static void keep_alive(int fd)
{
    const int on = 1, pause = 5, probes = 2;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &pause, sizeof pause);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &pause, sizeof pause);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

/* Sends the proof even to a peer of another version, so that both sides can report the versions. */
static ring_status on_answer(handshake *h)
{
    unsigned char proof[ADDRESS_PROOF];
    const bool registers = h->dialer.purpose.kind == HANDSHAKE_REGISTER;
    RING_TRY(receive(h, sizeof h->acceptor + HANDSHAKE_MAC));
    memcpy(&h->acceptor, h->in, sizeof h->acceptor);
    RING_TRY(check_proof(h, acceptor_side, NULL, h->in + sizeof h->acceptor));
    if (registers)
        put_address(h, dialer_side, proof);
    else
        prove(h, dialer_side, NULL, proof);
    RING_TRY(send_all(h, proof, registers ? ADDRESS_PROOF : HANDSHAKE_MAC));
    RING_TRY(compare(&h->dialer, &h->acceptor));
    if (is_maker(&h->acceptor))
        keep_alive(h->fd);
    h->state = HANDSHAKE_WELCOME;
    h->expires = 1e300; /* the peer is a member, which may take any time for the welcome */
    return RING_OK;
}

static ring_status on_proof(handshake *h)
{
    const bool registers = h->dialer.purpose.kind == HANDSHAKE_REGISTER;
    if (registers) {
        RING_TRY(receive_address(h, dialer_side));
    } else {
        RING_TRY(receive(h, HANDSHAKE_MAC));
        RING_TRY(check_proof(h, dialer_side, NULL, h->in));
    }
    if (is_maker(&h->dialer) || (registers && h->dialer.rank != 0))
        return fail(RING_ERR_PEER, "a rank %d may not dial for this purpose", h->dialer.rank);
    if (is_maker(&h->acceptor))
        keep_alive(h->fd);
    return compare(&h->acceptor, &h->dialer);
}

/* The maker of the id redirects a joining rank; all other acceptors welcome the dialer. */
static ring_status on_welcome(handshake *h, bool *done)
{
    const bool held = h->dialer.purpose.kind == HANDSHAKE_JOIN && is_maker(&h->acceptor);
    RING_TRY(receive(h, 1));
    *done = !held || h->in[0] != 'm';
    h->state = *done ? h->state : HANDSHAKE_REDIRECT;
    if (h->in[0] == 'l')
        return fail(RING_ERR_ABORTED, "it has left the communicator");
    return h->in[0] == (held ? 'm' : 'w')
               ? RING_OK
               : fail(RING_ERR_PEER, "the peer's answer to the proof is invalid");
}

ring_status handshake_welcome(handshake *h)
{
    return send_all(h, "w", 1);
}

/* Both parts in one message, so that no part waits for an acknowledgement. */
void handshake_redirect(handshake *h)
{
    unsigned char out[1 + ADDRESS_PROOF] = "m";
    put_address(h, moved, out + 1);
    (void)send_all(h, out, sizeof out); /* if it does not arrive, the dialer retries */
}

void handshake_decline(handshake *h)
{
    (void)send_all(h, "l", 1); /* if it does not arrive, the dialer retries */
}

/* Handles the next message or event. @param[out] done  set in the last state of each side. */
static ring_status step_once(handshake *h, bool *done)
{
    switch (h->state) {
    case HANDSHAKE_CONNECTING:
        return on_connecting(h);
    case HANDSHAKE_HELLO:
        return on_hello(h);
    case HANDSHAKE_ANSWER:
        return on_answer(h);
    case HANDSHAKE_PROOF:
        *done = true;
        return on_proof(h);
    case HANDSHAKE_WELCOME:
        return on_welcome(h, done);
    case HANDSHAKE_REDIRECT:
        *done = true;
        return receive_address(h, moved);
    }
    return fail(RING_ERR_INTERNAL, "a bug in libring: invalid handshake state %d", (int)h->state);
}

ring_status handshake_step(handshake *h)
{
    bool done = false;
    ring_status status = RING_OK;
    while (!done && status == RING_OK)
        status = step_once(h, &done);
    if (status == RING_IN_PROGRESS && clock_now() >= h->expires)
        status = fail(RING_ERR_TIMEOUT, "the peer did not finish the handshake within %g s",
                      h->expires - h->started);
    return status;
}
