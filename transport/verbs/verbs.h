/* SPDX-License-Identifier: Apache-2.0
 *
 * verbs: a link between hosts over InfiniBand or RoCE. Both ends use one-sided writes and reads
 * only; the adapter's receives serve as wake-ups.
 *
 * A sender writes each frame into the peer's inbox: first the payload, to the next place of the
 * payload buffer, which both ends compute from the frames before; then the header, into the next
 * slot. The receiver polls the slot's last word, its stamp. The bytes of one write may reach memory
 * in any order: a checksum in the slot shows that the whole slot has arrived.
 *
 * Five words go back, likewise with a checksum: slots taken, messages released, sleeps, and two
 * about rails. They only grow, so an old copy does no harm.
 *
 * Registered memory (registrations.h) is put, got, and sent from in place. An allocation's keys
 * precede the first reference to it, in a slot of their own.
 *
 * Requests. A link's requests are *operations*: a frame's header and the bytes before it, or a get.
 * They wait in a ring, are posted in order as the queue pair has room, and complete in order.
 *
 * Sleeping. Before a sleep an end writes WORD_ASLEEP to the peer, which then sends its next frame
 * with a wake-up. A frame posted before WORD_ASLEEP arrived carries none, so the sleeper also looks
 * at growing intervals.
 *
 * Rails. A link has one queue pair on each of up to two ports, of different adapters if possible.
 * When the first queue pair fails, or its port goes down while the other's is up, each end closes
 * its own, counts the slots that arrived and writes the count over the second; the peer posts the
 * slots that did not arrive again there. No slot is delivered twice, so no memory changes that the
 * receiver already uses.
 */
#ifndef RING_VERBS_H
#define RING_VERBS_H

#include "queue_pair.h"
#include "registrations.h"

enum {
    /* The window's shortest frames, keys, and slots taken but not announced yet. */
    VERBS_SLOTS = 4096 + 64 + 512,
    /* The window, one segment more, an unused end, and bytes taken but not announced yet. */
    VERBS_PAYLOAD = 8 * TRANSPORT_SEGMENT,
    VERBS_OPERATIONS = VERBS_SLOTS + 256,
    VERBS_RAILS = 2,
    VERBS_KEY = 0x40 /* flag of a slot that carries the keys of an allocation */
};

/* A frame header on the wire. `message` is the low half of the message's number.
 */
typedef struct verbs_slot {
    uint64_t signature;
    uint32_t message;
    uint8_t flags, length;
    uint16_t call;
    unsigned char data[TRANSPORT_INLINE];
    uint32_t check;
    uint32_t stamp; /* number of the slot, from 1 */
} verbs_slot;

_Static_assert(sizeof(verbs_slot) == sizeof(transport_frame), "a slot is one cache line");

enum {
    WORD_TAKEN,    /* slots                                                    */
    WORD_RELEASED, /* messages                                                 */
    WORD_ASLEEP,   /* counts sleeps, times 2; lowest bit: also for room        */
    WORD_LEFT,     /* rails that this end has given up */
    WORD_ARRIVED,  /* slots that had arrived when it gave the rail up */
    WORD_CHECK,
    WORDS
};

/* Written by the peer. */
typedef struct verbs_inbox {
    _Alignas(RING_CACHE_LINE) _Atomic uint64_t words[WORDS];
    _Alignas(RING_CACHE_LINE) verbs_slot slot[VERBS_SLOTS];
    _Alignas(RING_CACHE_LINE) unsigned char payload[VERBS_PAYLOAD];
} verbs_inbox;

/* The source of this end's writes. */
typedef struct verbs_outbox {
    _Alignas(RING_CACHE_LINE) unsigned char payload[VERBS_PAYLOAD];
    _Alignas(RING_CACHE_LINE)
        verbs_slot slot[VERBS_SLOTS]; /* used where requests carry no data inline */
    uint64_t words[WORDS];
} verbs_outbox;

/* The keys of an allocation of the peer. */
typedef struct verbs_key {
    uint64_t ref, bytes, address;
    uint32_t key[VERBS_RAILS];
} verbs_key;

_Static_assert(sizeof(verbs_key) <= TRANSPORT_INLINE, "a key fits a slot");

typedef struct verbs_keys {
    verbs_key *all;
    size_t count, room;
} verbs_keys;

typedef struct verbs_operation {
    char *local;
    uint64_t remote; /* address */
    size_t bytes, moved;
    uint32_t local_key[VERBS_RAILS], remote_key[VERBS_RAILS];
    uint32_t last; /* number of its last request */
    bool is_frame; /* a frame, not a key nor a get */
    bool arrived;  /* over the previous rail: the receiver may have used it already */
    uint64_t slot; /* slot number; not for gets */
    ticket *over;  /* the ticket of a get; NULL: no get */
    verbs_slot header;
} verbs_operation;

typedef enum verbs_phase {
    PHASE_HELLO,   /* waits for the peer's ports */
    PHASE_ADDRESS, /* waits for the peer's queue pairs */
    PHASE_READY    /* waits until the peer has connected them */
} verbs_phase;

/* Messages of the exchange over the socket, in this order. */
typedef struct verbs_hello {
    char magic[8];
    uint16_t version, ports, nearest, pad;
    uint8_t adapter[ADAPTER_MOST_PORTS]; /* number of each port's adapter */
} verbs_hello;

typedef struct verbs_address {
    uint64_t inbox;
    uint32_t rails;
    uint32_t key[VERBS_RAILS];
    queue_pair_address queue[VERBS_RAILS];
} verbs_address;

/* The exchange over the socket, until the link is open. */
typedef struct verbs_opening {
    verbs_phase phase;
    union {
        verbs_hello hello;
        verbs_address address;
        char ready;
    } theirs;                                      /* the peer's present message */
    size_t heard;                                  /* bytes of it that have arrived */
    const adapter_port *ports[ADAPTER_MOST_PORTS]; /* usable ports */
    int port_count, nearest;
} verbs_opening;

/* The peer's memory, and its words as last read. */
typedef struct verbs_peer {
    uint64_t inbox;
    uint32_t key[VERBS_RAILS], handle[VERBS_RAILS];
    uint64_t words[WORDS];
} verbs_peer;

typedef struct verbs_rail_set {
    int count;
    int active;    /* the rail in use; this end has given up lower ones */
    bool resuming; /* the peer's WORD_ARRIVED is awaited */
    queue_pair queue[VERBS_RAILS];
    struct ibv_mr *in_mr[VERBS_RAILS], *out_mr[VERBS_RAILS];
} verbs_rail_set;

/* The link's socket, which shows that the peer lives. */
typedef struct verbs_socket {
    int fd;
    bool ended; /* the peer has closed it, at ended_at */
    double ended_at;
} verbs_socket;

/* What a thread that sleeps on the link waits for. */
typedef struct verbs_sleep {
    int wake, epoll, timer;
    unsigned quiet;
    unsigned naps;   /* since WORD_ASLEEP was written */
    bool asleep;     /* the peer knows of this sleep, and has sent no wake-up since */
    uint64_t roused; /* the peer's WORD_ASLEEP of the last wake-up sent */
    _Atomic bool armed;
} verbs_sleep;

/* Registered memory: this end's, and the keys that the ends have told each other. */
typedef struct verbs_registered {
    registration_user user;
    registration found; /* the last registration found */
    uint64_t found_seen;
    verbs_keys announced, known;
} verbs_registered;

/* Sending: counts of operations, slots and payload bytes, from 0. */
typedef struct verbs_sending {
    verbs_operation *operation; /* a ring of VERBS_OPERATIONS */
    uint64_t accepted, posted, done;
    uint64_t slots, bytes, flushed;
    uint64_t end[VERBS_SLOTS]; /* of the payload, up to and including a slot's */
    bool refused;
    uint64_t gets_done;
    uint64_t notified_flushed, notified_released, notified_gets; /* as of the last arm() */
} verbs_sending;

typedef struct verbs_receiving {
    uint64_t words[WORDS];    /* this end's words */
    uint64_t announced_taken; /* WORD_TAKEN as last written to the peer, and bytes_taken then */
    uint64_t bytes_taken, announced_bytes;
    uint64_t message;    /* number of the last message */
    uint32_t words_sent; /* number of the request with the latest words */
    bool words_over;     /* that request is complete */
    bool words_due, peeked;
    transport_frame frame;
} verbs_receiving;

typedef struct verbs_link {
    transport_link head;
    ring_status state; /* RING_IN_PROGRESS: opening, RING_OK: open, else the status that broke it */
    char why[400];
    transport_ib options;
    int rank, channel;
    verbs_inbox *in;
    verbs_outbox *out;
    verbs_opening opening;
    verbs_peer peer;
    verbs_rail_set rail;
    verbs_socket socket;
    verbs_sleep sleep;
    verbs_registered memory;
    verbs_sending send;
    verbs_receiving recv;
} verbs_link;

static inline verbs_operation *verbs_operation_at(const verbs_link *l, uint64_t n)
{
    return &l->send.operation[n % VERBS_OPERATIONS];
}

/* ---- exchange.c ---- */
/** Sends the hello: this end's ports. */
ring_status verbs_greet(verbs_link *l);
/** Handles the exchange's received bytes. @return RING_OK when the link is open. */
ring_status verbs_hear(verbs_link *l);

/* ---- operations.c ---- */
/** @return the next operation, cleared; fill it in, then accept it. Needs room. */
verbs_operation *verbs_next_operation(verbs_link *l);
bool verbs_has_operation(verbs_link *l);
/** Appends the operation to the ring, and posts as far as there is room. */
void verbs_accept(verbs_link *l);
/** Looks what is over, posts what waits, and changes the rail when one has failed. */
void verbs_push(verbs_link *l);

/* ---- slots.c ---- */
ring_status verbs_send(transport_link *head, const transport_frame *frame, const void *payload,
                       bool copy);
void *verbs_reserve(transport_link *head);
uint64_t verbs_flushed(const transport_link *head);
void verbs_release(transport_link *head, uint64_t messages);
uint64_t verbs_released(const transport_link *head);
ring_status verbs_peek(transport_link *head, const transport_frame **frame, const void **payload);
ring_status verbs_pull(transport_link *head, void *dst);
void verbs_consume(transport_link *head);
const _Atomic uint32_t *verbs_news(const transport_link *head, uint32_t *value);
/** @return true if a whole segment finds room. */
bool verbs_fits(verbs_link *l);
/** @return true if a frame with @p bytes of payload fits. */
bool verbs_has_room(verbs_link *l, size_t bytes);
/** @return true if two frames without payload fit. */
bool verbs_has_room_for_two(verbs_link *l);
/** Fills in the operation's slot and accepts the operation. */
void verbs_put_slot(verbs_link *l, verbs_operation *o, const transport_frame *frame, bool is_frame);

/* ---- put_get.c ---- */
uint64_t verbs_ref(transport_link *head, const void *ptr, size_t bytes);
ring_status verbs_put(transport_link *head, const transport_frame *frame, const void *data,
                      uint64_t dst_ref);
ring_status verbs_get(transport_link *head, void *dst, uint64_t ref, size_t bytes, ticket *over);

#endif
