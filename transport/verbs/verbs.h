/* SPDX-License-Identifier: Apache-2.0
 *
 * verbs: implements a link between hosts over InfiniBand or RoCE. Both ends use only one-sided
 * writes and reads; the adapter's receives serve as wake-ups.
 *
 * A sender writes each frame into the peer's inbox: first the payload, to the next place of the
 * payload buffer, which both ends derive from the earlier frames; then the header, into the next
 * slot. The receiver polls the last word of the slot, its stamp. The bytes of one write may reach
 * memory in any order; a checksum in the slot shows that the whole slot has arrived.
 *
 * The receiver writes five status words back to the sender, also with a checksum: slots taken,
 * messages released, sleeps, and two about rails. They only grow, so an old copy does no harm.
 *
 * Registered memory (registrations.h) is used in place by put, get and send. The keys of an
 * allocation are sent in a slot of their own before the first reference to it.
 *
 * Requests. The requests of a link are *operations*: the header of a frame and the bytes before it,
 * or a get. They wait in a ring, are posted in order as the queue pair has room, and complete in
 * order.
 *
 * Sleeping. Before an end sleeps, it writes WORD_ASLEEP to the peer, which then sends its next
 * frame with a wake-up. A frame that was posted before WORD_ASLEEP arrived has no wake-up, so the
 * sleeping thread also looks at growing intervals.
 *
 * Rails. A link has one queue pair on each of up to two ports, of different adapters if possible.
 * When the first queue pair fails, or its port goes down while the other is up, each end closes its
 * own queue pair, counts the slots that have arrived, and writes the count over the second rail;
 * the peer posts the missing slots again there. No slot is delivered twice, so memory that the
 * receiver already uses does not change.
 */
#ifndef RING_VERBS_H
#define RING_VERBS_H

#include "queue_pair.h"
#include "registrations.h"

enum {
    /* A window of shortest frames, keys, and slots taken but not announced yet. */
    VERBS_SLOTS = 4096 + 64 + 512,
    /* The window, one more segment, an unused end, and bytes taken but not announced yet. */
    VERBS_PAYLOAD = 8 * TRANSPORT_SEGMENT,
    VERBS_OPERATIONS = VERBS_SLOTS + 256,
    VERBS_RAILS = 2,
    VERBS_KEY = 0x40 /* flag of a slot that carries the keys of an allocation */
};

/* A frame header on the wire. `message` is the low half of the message's number. */
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
    WORD_TAKEN,    /* consumed slots                                           */
    WORD_RELEASED, /* released messages                                        */
    WORD_ASLEEP,   /* number of sleeps, times 2; lowest bit: waits for room, too */
    WORD_LEFT,     /* number of rails that this end has abandoned              */
    WORD_ARRIVED,  /* slots that had arrived when it abandoned the rail        */
    WORD_CHECK,
    WORDS
};

/* Written by the peer. */
typedef struct verbs_inbox {
    _Alignas(RING_CACHE_LINE) _Atomic uint64_t words[WORDS];
    _Alignas(RING_CACHE_LINE) verbs_slot slot[VERBS_SLOTS];
    _Alignas(RING_CACHE_LINE) unsigned char payload[VERBS_PAYLOAD];
} verbs_inbox;

/* Sources of this end's writes. */
typedef struct verbs_outbox {
    _Alignas(RING_CACHE_LINE) unsigned char payload[VERBS_PAYLOAD];
    _Alignas(RING_CACHE_LINE)
        verbs_slot slot[VERBS_SLOTS]; /* used if requests cannot carry data inline */
    uint64_t words[WORDS];
} verbs_outbox;

/* The keys of an allocation, for both rails. */
typedef struct verbs_key {
    uint64_t ref, bytes, address;
    uint32_t key[VERBS_RAILS];
} verbs_key;

_Static_assert(sizeof(verbs_key) <= TRANSPORT_INLINE, "a key fits into a slot");

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
    bool is_frame; /* a frame, neither a key nor a get */
    bool arrived;  /* arrived over the old rail: the receiver may already have used it */
    uint64_t slot; /* number of the slot; unused for gets */
    ticket *over;  /* the ticket of a get; NULL: not a get */
    verbs_slot header;
} verbs_operation;

typedef enum verbs_phase {
    PHASE_HELLO,   /* waiting for the peer's ports */
    PHASE_ADDRESS, /* waiting for the addresses of the peer's queue pairs */
    PHASE_READY    /* waiting until the peer has connected them */
} verbs_phase;

/* Messages of the exchange over the socket, in this order. */
typedef struct verbs_hello {
    char magic[8];
    uint16_t version, ports, nearest, pad;
    uint8_t adapter[ADAPTER_MOST_PORTS]; /* index of each port's adapter */
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
    } theirs;                                      /* the peer's current message */
    size_t heard;                                  /* bytes of `theirs` that have arrived */
    const adapter_port *ports[ADAPTER_MOST_PORTS]; /* usable ports */
    int port_count, nearest;
} verbs_opening;

/* The peer's memory, and its status words as last read. */
typedef struct verbs_peer {
    uint64_t inbox;
    uint32_t key[VERBS_RAILS], handle[VERBS_RAILS];
    uint64_t words[WORDS];
} verbs_peer;

typedef struct verbs_rail_set {
    int count;
    int active;    /* the rail in use; this end has abandoned lower ones */
    bool resuming; /* waiting for the peer's WORD_ARRIVED */
    queue_pair queue[VERBS_RAILS];
    struct ibv_mr *in_mr[VERBS_RAILS], *out_mr[VERBS_RAILS];
} verbs_rail_set;

/* The link's socket, which shows whether the peer is alive. */
typedef struct verbs_socket {
    int fd;
    bool ended; /* the peer has closed it, at ended_at */
    double ended_at;
} verbs_socket;

/* The descriptors and the state of a thread that sleeps on the link. */
typedef struct verbs_sleep {
    int wake, epoll, timer;
    unsigned quiet;
    unsigned naps;   /* sleeps since WORD_ASLEEP was written */
    bool asleep;     /* the peer knows of this sleep, and has not sent a wake-up since */
    uint64_t roused; /* the peer's WORD_ASLEEP when this end last sent a wake-up */
    _Atomic bool armed;
} verbs_sleep;

/* Registered memory of this end, and the keys that the ends have sent each other. */
typedef struct verbs_registered {
    registration_user user;
    registration found; /* the registration that was found last */
    uint64_t found_seen;
    verbs_keys announced, known;
} verbs_registered;

/* Sending. Operations, slots and payload bytes are counted from 0. */
typedef struct verbs_sending {
    verbs_operation *operation; /* a ring of VERBS_OPERATIONS */
    uint64_t accepted, posted, done;
    uint64_t slots, bytes, flushed;
    uint64_t end[VERBS_SLOTS]; /* payload bytes up to and including those of the slot */
    bool refused;
    uint64_t gets_done;
    uint64_t notified_flushed, notified_released, notified_gets; /* as of the last arm() */
} verbs_sending;

typedef struct verbs_receiving {
    uint64_t words[WORDS];    /* this end's status words */
    uint64_t announced_taken; /* WORD_TAKEN as last written to the peer, and bytes_taken then */
    uint64_t bytes_taken, announced_bytes;
    uint64_t message;    /* number of the last message */
    uint32_t words_sent; /* number of the request that wrote the latest words */
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
/** Continues to open the link with the bytes that have arrived. @return RING_OK when it is open. */
ring_status verbs_continue_opening(verbs_link *l);

/* ---- operations.c ---- */
/** @return the next operation, cleared, for the caller to fill in and accept. Needs room. */
verbs_operation *verbs_next_operation(verbs_link *l);
bool verbs_has_operation(verbs_link *l);
/** Appends the operation to the ring, and posts operations as far as there is room. */
void verbs_accept(verbs_link *l);
/** Takes completions, posts waiting operations, and changes the rail when one has failed. */
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
/** @return true if a whole segment fits. */
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
