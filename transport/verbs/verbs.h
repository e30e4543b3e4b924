/* SPDX-License-Identifier: Apache-2.0
 *
 * verbs: between hosts over InfiniBand or RoCE. A link only writes into memory of the other end and
 * reads from it; nothing is received by the adapter but wake-ups.
 *
 * Frames are written into slots at the other end: first the payload, to the next place of a buffer
 * beside them, which both ends know from the frames before; then the header, into the next slot.
 * Who waits polls the slot's last word, its stamp. Nothing is assumed of the order in which the
 * bytes of one write come to memory: a checksum in the slot tells that all of it is there.
 *
 * Five words go the other way, likewise with a checksum: slots taken, messages released, whether
 * this end sleeps, and what concerns rails. They only grow, so an old copy harms nobody.
 *
 * Memory that an adapter may touch (registrations.h) is put and got in place, and payload that lies
 * there is sent from there. The keys of an allocation go ahead of the first reference to it, in a
 * slot of their own.
 *
 * Requests. A link's requests are *operations*: the header of a frame and what goes before it, or a
 * get. They wait in a ring, are posted in order as the queue pair has room, and end in order.
 *
 * Sleeping. Whoever is about to sleep writes so to the other end, which then sends its next frame
 * with a wake-up. A frame that was posted before that came over has none: so the sleeper looks
 * again at growing intervals.
 *
 * Rails. A link has a queue pair on one port, and a second one on another if there is one, of
 * another adapter if there is one. When the first fails, or its port goes down while the other's is
 * up, each end closes its own, counts the slots that had arrived till then, and says
 * so over the second; then what had not arrived is posted there again. Nothing that the peer has
 * seen is written twice, so no memory changes that somebody already uses.
 */
#ifndef RING_VERBS_H
#define RING_VERBS_H

#include "queue_pair.h"
#include "registrations.h"

enum {
    /* The window's shortest frames, keys, and those that were taken and not told yet. */
    VERBS_SLOTS = 4096 + 64 + 512,
    /* The window, one segment more, an unused end, and what was taken and not told yet. */
    VERBS_PAYLOAD = 8 * TRANSPORT_SEGMENT,
    VERBS_OPERATIONS = VERBS_SLOTS + 256,
    VERBS_RAILS = 2,
    VERBS_KEY = 0x40 /* the flag of a slot that tells of an allocation */
};

/* A frame header as it travels. Of the message's number the low half: it counts on from the last.
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
    WORD_LEFT,     /* rails that this end has given up                         */
    WORD_ARRIVED,  /* slots that had come when it did                          */
    WORD_CHECK,
    WORDS
};

/* The peer writes here. */
typedef struct verbs_inbox {
    _Alignas(RING_CACHE_LINE) _Atomic uint64_t words[WORDS];
    _Alignas(RING_CACHE_LINE) verbs_slot slot[VERBS_SLOTS];
    _Alignas(RING_CACHE_LINE) unsigned char payload[VERBS_PAYLOAD];
} verbs_inbox;

/* What is written from here. */
typedef struct verbs_outbox {
    _Alignas(RING_CACHE_LINE) unsigned char payload[VERBS_PAYLOAD];
    _Alignas(RING_CACHE_LINE)
        verbs_slot slot[VERBS_SLOTS]; /* if requests carry nothing with them */
    uint64_t words[WORDS];
} verbs_outbox;

/* Memory of the peer's that it told of. */
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
    bool is_frame; /* not a key, nor a get */
    bool arrived;  /* over the rail before: the peer may have used it already */
    uint64_t slot; /* of all but gets */
    ticket *over;  /* of a get, NULL: it is none */
    verbs_slot header;
} verbs_operation;

typedef enum verbs_phase {
    PHASE_HELLO,   /* the peer's choice of ports is awaited          */
    PHASE_ADDRESS, /* its queue pairs                                */
    PHASE_READY    /* that it has connected them                     */
} verbs_phase;

/* Sent over the socket, one after the other. */
typedef struct verbs_hello {
    char magic[8];
    uint16_t version, ports, nearest, pad;
    uint8_t adapter[ADAPTER_MOST_PORTS]; /* of each port, a number */
} verbs_hello;

typedef struct verbs_address {
    uint64_t inbox;
    uint32_t rails;
    uint32_t key[VERBS_RAILS];
    queue_pair_address queue[VERBS_RAILS];
} verbs_address;

typedef struct verbs_link {
    transport_link head;
    ring_status state; /* RING_IN_PROGRESS: opening, RING_OK: open, else why it is broken */
    char why[400];
    verbs_phase phase;
    union {
        verbs_hello hello;
        verbs_address address;
        char ready;
    } theirs; /* as far as `heard` bytes */
    size_t heard;
    uint64_t peer_inbox;
    uint32_t peer_key[VERBS_RAILS], peer_handle[VERBS_RAILS];
    transport_ib options;
    int rank, channel;
    const adapter_port *ports[ADAPTER_MOST_PORTS]; /* that may be used */
    int port_count, nearest, rails;
    int active;    /* the rail in use; those before it are given up */
    bool resuming; /* the peer has not said yet what had arrived */
    bool gone;     /* the socket has ended, at */
    double gone_since;
    int fd, wake, epoll, timer;
    unsigned quiet;
    queue_pair queue[VERBS_RAILS];
    verbs_inbox *in;
    verbs_outbox *out;
    struct ibv_mr *in_mr[VERBS_RAILS], *out_mr[VERBS_RAILS];
    registration_user user;
    registration found; /* what was referred to last */
    uint64_t found_seen;
    verbs_keys announced, known;
    /* Sending: operations, slots, and bytes of payload, from 0. */
    verbs_operation *operation; /* a ring of VERBS_OPERATIONS */
    uint64_t accepted, posted, done;
    uint64_t slots_sent, bytes_sent, flushed;
    uint64_t end[VERBS_SLOTS]; /* of the payload up to and with a slot's */
    bool refused;
    uint64_t heard_words[WORDS]; /* the peer's, as last seen */
    uint64_t roused;             /* its WORD_ASLEEP that was answered */
    uint64_t gets_done, notified_flushed, notified_released,
        notified_gets; /* told: at the last arm() */
    /* Receiving. */
    uint64_t words[WORDS];    /* this end's */
    uint64_t announced_taken; /* WORD_TAKEN and bytes of it that the peer knows or will know */
    uint64_t bytes_taken, announced_bytes;
    uint64_t message;    /* number of the last one */
    uint32_t words_sent; /* request that brings them last */
    bool words_over;     /* that one is over */
    bool words_due, peeked;
    bool asleep;  /* the peer knows so, and has not woken this end since */
    unsigned nap; /* how often it has slept since it said so */
    transport_frame frame;
    _Atomic bool armed;
} verbs_link;

/* ---- verbs.c ---- */
/** Breaks the link with what fail() was called with. @return status. */
ring_status verbs_break(verbs_link *l, ring_status status);
/** @return RING_OK, RING_IN_PROGRESS while it opens, or what broke it. */
ring_status verbs_state(verbs_link *l);

/* ---- exchange.c ---- */
/** Says which ports there are. */
ring_status verbs_greet(verbs_link *l);
/** Goes on with what has come. @return RING_OK when the link is open. */
ring_status verbs_hear(verbs_link *l);

/* ---- operations.c ---- */
/** @return the next operation, cleared; to be filled and then accepted. Needs room. */
verbs_operation *verbs_next_operation(verbs_link *l);
bool verbs_has_operation(verbs_link *l);
/** Takes it, and posts what there is room for. */
void verbs_accept(verbs_link *l);
/** Closes the tickets of gets that are not over. Nothing is under way any more. */
void verbs_end_gets(verbs_link *l, ring_status status);
/** Looks what is over, posts what waits, and changes the rail when one has failed. */
void verbs_push(verbs_link *l);
/** Writes this end's words to the peer, or notes that they are due. */
void verbs_announce(verbs_link *l);
/** @return true if the peer has this end's words. */
bool verbs_words_arrived(verbs_link *l);
/** Reads the peer's words. */
void verbs_look_at_words(verbs_link *l);

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
/** @return true if a frame is here that nobody has looked at, or a part of one. */
bool verbs_has_frame(const verbs_link *l);
/** @return true if a whole segment finds room. */
bool verbs_fits(verbs_link *l);
/** @return true if a frame of so many bytes of payload does. */
bool verbs_has_room(verbs_link *l, size_t bytes);
/** @return true if two frames without payload do. */
bool verbs_has_room_for_two(verbs_link *l);
/** Fills the slot of an operation and takes it. */
void verbs_put_slot(verbs_link *l, verbs_operation *o, const transport_frame *frame, bool is_frame);
/** Slots that have come in a row, taken or not. */
uint64_t verbs_arrived(const verbs_link *l);

/* ---- reached.c ---- */
uint64_t verbs_ref(transport_link *head, const void *ptr, size_t bytes);
ring_status verbs_put(transport_link *head, const transport_frame *frame, const void *data,
                      uint64_t dst_ref);
ring_status verbs_get(transport_link *head, void *dst, uint64_t ref, size_t bytes, ticket *over);
/** Fills in from where an adapter reads @p data. @return false: it lies in no registered memory. */
bool verbs_local(verbs_link *l, verbs_operation *o, const void *data, size_t bytes);
/** @return false: no memory. */
bool verbs_learn_key(verbs_link *l, const void *data);

#endif
