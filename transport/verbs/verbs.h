/* SPDX-License-Identifier: Apache-2.0
 *
 * verbs: implements a link between hosts over InfiniBand or RoCE. Both ends move data by RDMA
 * writes and reads only; receive requests serve only to wake a sleeping peer.
 *
 * A sender writes each frame into the peer's inbox: first the payload, into the next place of the
 * payload buffer, which both ends compute from the earlier frames; then the header, into the next
 * slot. The receiver polls the last word of the slot, its stamp. The bytes of one write may reach
 * memory in any order, so a checksum in the slot shows when the whole slot has arrived.
 *
 * The receiver writes five status words (WORD_*) into the sender's inbox, also with a checksum.
 * Their values only grow, so it does no harm to read old values.
 *
 * put(), get() and send() use registered memory (registrations.h) in place. The keys of an
 * allocation are sent in a slot of their own before the first reference to that allocation.
 *
 * Requests. The requests of a link are *operations*: either a frame, which is its payload followed
 * by its header, or a get. Operations are queued in a ring, posted in order when the queue pair has
 * room, and complete in order.
 *
 * Sleeping. Before an end sleeps, it writes WORD_ASLEEP to the peer, which then sends its next
 * frame with a wake-up. A frame that was posted before WORD_ASLEEP arrived has no wake-up, so the
 * sleeping thread also wakes by a timer, at growing intervals.
 *
 * Rails. A link has one queue pair on each of up to two ports, of different adapters if possible.
 * When the queue pair in use fails, or its port goes down while the other port is up, each end
 * closes its own queue pair, counts the slots that have arrived, and writes the count to the peer
 * over the second rail. The peer posts the slots that are missing again, over that rail. No slot is
 * delivered twice, so memory that the receiver already uses does not change.
 */
#ifndef RING_VERBS_H
#define RING_VERBS_H

#include "queue_pair.h"
#include "registrations.h"

enum {
    /* Slots for a window of the shortest frames, for keys, and for slots that the receiver has
     * consumed but not announced yet. */
    VERBS_SLOTS = 4096 + 64 + 512,
    /* Bytes for the window, for one more segment, for an unused end of the buffer, and for payload
     * that the receiver has consumed but not announced yet. */
    VERBS_PAYLOAD = 8 * TRANSPORT_SEGMENT,
    VERBS_OPERATIONS = VERBS_SLOTS + 256,
    VERBS_RAILS = 2,
    VERBS_KEY = 0x40 /* flag of a slot that carries the keys of an allocation */
};

/* A frame header on the wire. `message` is the low 32 bits of the message's number. */
typedef struct verbs_slot {
    uint64_t signature;
    uint32_t message;
    uint8_t flags, length;
    uint16_t call;
    unsigned char data[TRANSPORT_INLINE];
    uint32_t check; /* checksum of the other fields */
    uint32_t stamp; /* number of the slot, from 1 */
} verbs_slot;

_Static_assert(sizeof(verbs_slot) == sizeof(transport_frame), "a slot is one cache line");

/* Indices of the status words that each end writes to the other. */
enum {
    WORD_TAKEN,    /* number of consumed slots                                        */
    WORD_RELEASED, /* number of released messages                                     */
    WORD_ASLEEP,   /* number of sleeps times 2, plus 1 if the sleeper also waits for room */
    WORD_LEFT,     /* number of rails that the writer has abandoned                   */
    WORD_ARRIVED,  /* number of slots that had arrived when it abandoned the last one */
    WORD_CHECK,    /* checksum of the other words                                     */
    WORDS
};

/* The memory of this end that the peer writes. */
typedef struct verbs_inbox {
    _Alignas(RING_CACHE_LINE) _Atomic uint64_t words[WORDS];
    _Alignas(RING_CACHE_LINE) verbs_slot slot[VERBS_SLOTS];
    _Alignas(RING_CACHE_LINE) unsigned char payload[VERBS_PAYLOAD];
} verbs_inbox;

/* The memory from which this end's adapters read the bytes that they write to the peer. */
typedef struct verbs_outbox {
    _Alignas(RING_CACHE_LINE) unsigned char payload[VERBS_PAYLOAD];
    /* `slot` and `words` are used only if requests cannot carry data inline. */
    _Alignas(RING_CACHE_LINE) verbs_slot slot[VERBS_SLOTS];
    uint64_t words[WORDS];
} verbs_outbox;

/* The remote keys of an allocation of `bytes` at `address`, for both rails. `ref` is the reference
 * to its start. */
typedef struct verbs_key {
    uint64_t ref, bytes, address;
    uint32_t key[VERBS_RAILS];
} verbs_key;

_Static_assert(sizeof(verbs_key) <= TRANSPORT_INLINE, "a key fits into a slot");

/* A table of keys, sorted by reference. */
typedef struct verbs_keys {
    verbs_key *all;
    size_t count, room;
} verbs_keys;

typedef struct verbs_operation {
    char *local;     /* source of a write, destination of a get */
    uint64_t remote; /* the other address, in the peer's memory */
    size_t bytes;    /* to transfer before the header */
    size_t moved;    /* bytes whose requests have been posted */
    uint32_t local_key[VERBS_RAILS], remote_key[VERBS_RAILS];
    uint32_t last; /* number of its last request in the queue pair */
    bool is_frame; /* a frame, neither a key nor a get */
    bool arrived;  /* its slot arrived over the old rail, so it must not be sent again */
    uint64_t slot; /* number of the slot; unused for gets */
    ticket *over;  /* the ticket of a get; NULL: not a get */
    verbs_slot header;
} verbs_operation;

typedef enum verbs_phase {
    PHASE_HELLO,   /* waiting for the peer's ports */
    PHASE_ADDRESS, /* waiting for the addresses of the peer's queue pairs */
    PHASE_READY    /* waiting until the peer has connected them */
} verbs_phase;

/* The first message over the socket: the sender's usable ports. */
typedef struct verbs_hello {
    char magic[8];
    uint16_t version;
    uint16_t ports;   /* number of ports */
    uint16_t nearest; /* index of the nearest port */
    uint16_t pad;
    uint8_t adapter[ADAPTER_MOST_PORTS]; /* index of each port's adapter */
} verbs_hello;

/* The second message over the socket: the address and keys of the sender's inbox, and its queue
 * pairs. The third message is the byte 'R'. */
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
    const adapter_port *ports[ADAPTER_MOST_PORTS]; /* this end's usable ports */
    int port_count, nearest;
} verbs_opening;

/* The address, keys and sink handles of the peer, and its status words as last read. */
typedef struct verbs_peer {
    uint64_t inbox;
    uint32_t key[VERBS_RAILS], handle[VERBS_RAILS];
    uint64_t words[WORDS];
} verbs_peer;

typedef struct verbs_rail_set {
    int count;
    int active;    /* index of the rail in use; this end has abandoned those before it */
    bool resuming; /* this end waits for the peer's WORD_ARRIVED after a change of rail */
    queue_pair queue[VERBS_RAILS];
    struct ibv_mr *in_mr[VERBS_RAILS], *out_mr[VERBS_RAILS];
} verbs_rail_set;

/* The link's socket, which shows whether the peer is alive. */
typedef struct verbs_socket {
    int fd;
    bool ended;      /* the peer has closed it */
    double ended_at; /* when this end found out; clock_now() */
} verbs_socket;

/* The descriptors and the state of a thread that sleeps on the link. */
typedef struct verbs_sleep {
    int wake, epoll, timer;
    unsigned quiet;     /* calls of progress() since the socket and events were last checked */
    unsigned naps;      /* sleeps since WORD_ASLEEP was last written, up to LONGEST_NAP */
    bool asleep;        /* WORD_ASLEEP was written, and the peer has not sent a wake-up since */
    uint64_t roused;    /* the peer's WORD_ASLEEP when this end last sent a wake-up */
    _Atomic bool armed; /* a completion must write `wake` */
} verbs_sleep;

/* Registered memory of this end, and the keys that the ends have sent each other. */
typedef struct verbs_registered {
    registration_user user;
    registration found;   /* the registration that was found last */
    uint64_t found_seen;  /* the `seen` of registration_find() for it */
    verbs_keys announced; /* keys of this end that were sent to the peer */
    verbs_keys known;     /* keys that the peer has sent */
} verbs_registered;

/* Sending. Operations, slots and payload positions are counted from 0. */
typedef struct verbs_sending {
    verbs_operation *operation;      /* a ring of VERBS_OPERATIONS */
    uint64_t accepted, posted, done; /* numbers of operations */
    uint64_t slots;                  /* number of accepted slots: frames and keys */
    uint64_t bytes;                  /* position in the payload buffer (payload_ring.h) */
    uint64_t flushed;                /* number of flushed frames */
    uint64_t end[VERBS_SLOTS];       /* payload position after each slot */
    bool refused;                    /* there was no room for the last frame, put or get */
    uint64_t gets_done;              /* number of completed gets */
    uint64_t notified_flushed, notified_released, notified_gets; /* as of the last arm() */
} verbs_sending;

typedef struct verbs_receiving {
    uint64_t words[WORDS];    /* this end's status words */
    uint64_t announced_taken; /* WORD_TAKEN as last written to the peer */
    uint64_t bytes_taken;     /* payload position after the consumed slots */
    uint64_t announced_bytes; /* bytes_taken when the words were last written to the peer */
    uint64_t message;         /* number of the last message */
    uint32_t words_sent;      /* number of the request that wrote the latest words */
    bool words_over;          /* that request is complete */
    bool words_due;           /* the words must be written to the peer */
    bool peeked;              /* `frame` is the header of the oldest frame */
    transport_frame frame;
} verbs_receiving;

typedef struct verbs_link {
    transport_link head;
    ring_status state; /* RING_IN_PROGRESS: opening; RING_OK: open; else the failure's status */
    char why[400];     /* the failure's text */
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

/** @return the place of operation number @p n in the ring. */
static inline verbs_operation *verbs_operation_at(const verbs_link *l, uint64_t n)
{
    return &l->send.operation[n % VERBS_OPERATIONS];
}

/* ---- exchange.c ---- */
/** Sends the first message, with this end's ports. */
ring_status verbs_greet(verbs_link *l);
/** Continues to open the link with the bytes that have arrived. @return RING_OK when it is open. */
ring_status verbs_continue_opening(verbs_link *l);

/* ---- operations.c ---- */
/** @return true if the ring has room for another operation. */
bool verbs_has_operation(verbs_link *l);
/** @return the next operation, all zero, which the caller fills in and then passes on with
 *  verbs_accept(). The ring must have room. */
verbs_operation *verbs_next_operation(verbs_link *l);
/** Appends that operation to the ring, and posts as many operations as the queue pair has room
 *  for. */
void verbs_accept(verbs_link *l);
/** Handles completions, posts queued operations, and changes the rail if the current one has
 *  failed. Breaks the link if there is no other rail. */
void verbs_push(verbs_link *l);

/* ---- slots.c: calls of transport.h, and: ---- */
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
/** @return true if there is room for a frame with a whole segment of payload. */
bool verbs_fits(verbs_link *l);
/** @return true if there is room for a frame with @p bytes of payload. */
bool verbs_has_room(verbs_link *l, size_t bytes);
/** @return true if there is room for two frames without payload. */
bool verbs_has_room_for_two(verbs_link *l);
/** Assigns the next slot to the operation, fills in its header from @p frame, and accepts it.
 *  @param is_frame  false: the slot carries a key. */
void verbs_put_slot(verbs_link *l, verbs_operation *o, const transport_frame *frame, bool is_frame);

/* ---- put_get.c: calls of transport.h ---- */
uint64_t verbs_ref(transport_link *head, const void *ptr, size_t bytes);
ring_status verbs_put(transport_link *head, const transport_frame *frame, const void *data,
                      uint64_t dst_ref);
ring_status verbs_get(transport_link *head, void *dst, uint64_t ref, size_t bytes, ticket *over);

#endif
