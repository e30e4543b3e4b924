/* SPDX-License-Identifier: Apache-2.0
 *
 * ucx: carries links over UCP, the middle layer of UCX, which chooses the network. libucp is loaded
 * when a link is first opened or probed.
 *
 * A process has one context, one worker and one lock (hub.c). A call on any link progresses all
 * links, so one peer is answered even while this end waits for another. All links to a peer process
 * share one UCP endpoint (routes.c). Every message is an active message with a ucx_label as its
 * header. The label contains the token that the receiver sent over the link's authenticated socket;
 * messages with a wrong token are dropped.
 *
 * A frame goes to the receiver's next slot, and its payload to the next place of a buffer beside
 * the slots; both ends know how much of both has been consumed. The sender keeps a copy until UCP
 * completes the send. A put is a message, too: the receiver stores its bytes at the frame's
 * reference, within the bounds of its regions; the data of a get comes back the same way. UCX never
 * writes to memory at a peer's request, so a stopped link writes nothing more on any network.
 *
 * Every message also carries the sender's status words: how many frames of the other direction it
 * has received and consumed, and how many messages it has released.
 */
#ifndef RING_UCX_H
#define RING_UCX_H

#include "regions.h"
#include "table.h"
#include "transport.h"

#include <sys/socket.h>
#include <ucp/api/ucp.h>

enum {
    UCX_SLOTS = 8192,                     /* twice the window of shortest frames             */
    UCX_PAYLOAD = 10 * TRANSPORT_SEGMENT, /* window, bytes not announced yet, and unused end */
    UCX_ANNOUNCE_SLOTS = UCX_SLOTS / 4,
    UCX_ANNOUNCE_BYTES = 2 * TRANSPORT_SEGMENT,
    UCX_GETS = 512, /* most gets in flight, in each direction */
    UCX_TOKEN = 16,
    UCX_WHY = 160,
    UCX_ADDRESS_MOST = 16384,
    UCX_MESSAGE = 7 /* libring's id among active messages */
};

/* ---- library.c ---- */

#define UCX_FUNCTIONS(X) \
    X(ucp_get_version) \
    X(ucp_get_version_string) \
    X(ucp_init_version) \
    X(ucp_cleanup) \
    X(ucp_context_print_info) \
    X(ucp_config_read) \
    X(ucp_config_modify) \
    X(ucp_config_release) \
    X(ucp_worker_create) \
    X(ucp_worker_destroy) \
    X(ucp_worker_query) \
    X(ucp_worker_release_address) \
    X(ucp_worker_get_efd) \
    X(ucp_worker_arm) \
    X(ucp_worker_progress) \
    X(ucp_worker_flush_nbx) \
    X(ucp_worker_set_am_recv_handler) \
    X(ucp_listener_create) \
    X(ucp_listener_query) \
    X(ucp_listener_destroy) \
    X(ucp_listener_reject) \
    X(ucp_ep_create) \
    X(ucp_ep_close_nbx) \
    X(ucp_am_send_nbx) \
    X(ucp_am_recv_data_nbx) \
    X(ucp_am_data_release) \
    X(ucp_request_free) \
    X(ucs_status_string)

/** Functions of libucp; filled in by ucx_load(). */
typedef struct ucx_functions {
#define X(name) __typeof__(name) *name;
    UCX_FUNCTIONS(X)
#undef X
} ucx_functions;
extern ucx_functions ucx;

/** Loads libucp once per process, and keeps it. @return false, with the reason in @p why. */
bool ucx_load(char *why, size_t size);

/* ---- tls_names.c ---- */

enum { UCX_TLS_MOST = 512 };

/** Translates a list of UCX_TLS or RING_UCX_TLS to current names: "openib" becomes "ib".
 *  @param[out] unknown  the names that no version of UCX has, separated by commas, or "".
 *  @return false if the list is too long. */
bool ucx_tls_translate(const char *list, char out[UCX_TLS_MOST], char unknown[UCX_TLS_MOST]);

/* ---- Links ---- */

typedef enum ucx_kind {
    UCX_HELLO, /* the first message: proves that the endpoint belongs to the peer */
    UCX_WORDS, /* only the status words */
    UCX_FRAME,
    UCX_PUT,  /* a frame whose payload goes to `place` */
    UCX_GET,  /* requests `bytes` at `place` */
    UCX_DATA, /* the data of a get */
    UCX_REFUSAL
} ucx_kind;

/** Header of every active message, in host byte order. */
typedef struct ucx_label {
    unsigned char token[UCX_TOKEN]; /* the receiver's token for the sender */
    uint32_t link;                  /* the receiver's number of the link */
    uint8_t kind;
    uint8_t asks; /* 1: the sender wants to know soon how much was received */
    uint16_t unused;
    uint64_t taken, received, released; /* the status words of the sender               */
    uint64_t number;                    /* of the frame, or of the get                  */
    uint64_t place;                     /* FRAME: in the buffer; PUT, GET: a reference  */
    uint64_t bytes;
    /* FRAME and PUT only: sizes of the regions that the frame refers to, or 0. */
    uint64_t src_extent, dst_extent;
    transport_frame frame;
} ucx_label;

/** A message that is being sent, or whose data is being received. */
typedef struct ucx_posting {
    struct ucx_posting *next, *previous; /* in hub.lending */
    struct ucx_posting *next_landing;
    struct ucx_link *link;
    uint16_t region; /* the region that it uses, or 0 */
    void *memory;
    void *arriving; /* UCP's descriptor of the data to receive */
    ucx_label label;
} ucx_posting;

/** The size of a region of the peer, as announced in its frames. */
typedef struct ucx_extent {
    uint16_t region;
    uint64_t bytes;
} ucx_extent;

/** One UCP endpoint. */
typedef struct ucx_route {
    struct ucx_route *next;
    unsigned char hub[UCX_TOKEN]; /* id of the peer's hub */
    ucp_ep_h ep;
    bool by_socket, retired; /* retired: not for new links */
    ring_status status;
    char why[UCX_WHY];
    size_t users;
} ucx_route;

/** The first message over the socket; the worker's address follows. */
typedef struct ucx_greeting {
    char magic[8];
    uint32_t version, address_bytes; /* 0: connect by socket address */
    unsigned char hub[UCX_TOKEN], token[UCX_TOKEN];
    uint32_t link, unused;
} ucx_greeting;

/** A later message over the socket: how to connect the endpoints. */
typedef struct ucx_note {
    enum { UCX_BY_SOCKET = 1, UCX_LISTENS, UCX_BY_ADDRESS } way; /* UCX_LISTENS: at `at` */
    uint32_t length;
    struct sockaddr_storage at;
} ucx_note;

typedef struct ucx_get {
    ticket *over;
    void *to;
    size_t bytes;
    uint16_t region; /* of `to` */
    bool lands;      /* its data is being received */
} ucx_get;

typedef struct ucx_inbox {
    _Alignas(RING_CACHE_LINE) transport_frame slot[UCX_SLOTS]; /* stamp: number + 1, set last */
    uint32_t place[UCX_SLOTS];
    _Alignas(RING_CACHE_LINE) unsigned char payload[UCX_PAYLOAD];
} ucx_inbox;

typedef struct ucx_outbox {
    uint64_t end[UCX_SLOTS]; /* payload bytes up to and including those of the slot */
    bool done[UCX_SLOTS];    /* UCP has completed the send */
    _Alignas(RING_CACHE_LINE) unsigned char payload[UCX_PAYLOAD];
} ucx_outbox;

/** The exchange over the socket, until the link is open. */
typedef struct ucx_opening {
    ucx_greeting theirs;
    unsigned char *out_text, *in_text; /* bytes of the exchange */
    unsigned char *address;            /* of the peer's worker, until it is used */
    size_t out_done, out_bytes, in_done;
    bool by_socket, listens;    /* connects by socket address; this end listens */
    bool greeted, heard;        /* has the peer's greeting; has a UCP message of the peer */
    bool no_socket, no_address; /* connecting in this way has failed */
    bool answers;               /* the next pass must send the hello */
    bool helloed; /* UCP has completed the hello: the peer receives it without further progress
                     here */
} ucx_opening;

/** The link's socket, which shows whether the peer is alive. */
typedef struct ucx_socket {
    int fd;
    bool ended; /* the peer has closed it */
} ucx_socket;

/** The descriptors that a thread which sleeps on the link waits for. */
typedef struct ucx_sleep {
    int wake, epoll;
    unsigned quiet;
    bool armed;
} ucx_sleep;

/** Messages of the link that UCP sends or lands. */
typedef struct ucx_postings {
    ucx_posting *spare;
    size_t count, flying, lent; /* allocated; in flight; in flight with memory of regions */
    ucx_posting *landing;       /* data that has yet to be requested from UCP */
} ucx_postings;

/** The peer's status words, and the sizes of its regions. */
typedef struct ucx_peer {
    _Atomic uint64_t taken, acked, released;
    ucx_extent *extents;
    size_t extent_count;
} ucx_peer;

typedef struct ucx_sending {
    uint64_t slots, slots_done, bytes;
    bool refused, refused_get;
    uint64_t asked; /* frames for which a receipt has been requested */
    uint64_t notified_flushed, notified_released, notified_gets;
} ucx_sending;

typedef struct ucx_receiving {
    uint64_t slots, received, bytes, released;
    uint64_t announced_taken, announced_received, announced_released; /* as last sent to the peer */
    uint64_t announced_bytes;
    bool peeked, owes, announcing;
    uint64_t owed_since; /* hub.passes when `owes` was set */
    transport_frame frame;
} ucx_receiving;

typedef struct ucx_gets {
    ucx_get *own; /* gets of this end, a ring of UCX_GETS */
    uint64_t begun, over;
    ucx_label *asked; /* requests of the peer, a ring of UCX_GETS */
    size_t asked_first, asked_count, serving;
} ucx_gets;

typedef struct ucx_link {
    transport_link head;
    ring_status state; /* RING_IN_PROGRESS: opening, RING_OK: open, else the status that broke it */
    ring_status doom;  /* status that breaks the link once received frames are consumed */
    char why[UCX_WHY];
    bool grace; /* status words arrived: report RING_OK once more before breaking */
    uint32_t number;
    unsigned char token[UCX_TOKEN]; /* expected in every message of the peer */
    ucx_route *route;
    ucx_inbox *in;
    ucx_outbox *out;
    ucx_opening opening;
    ucx_socket socket;
    ucx_sleep sleep;
    ucx_postings postings;
    ucx_peer peer;
    ucx_sending send;
    ucx_receiving recv;
    ucx_gets gets;
    bool due; /* it is in the list hub.due, linked by: */
    struct ucx_link *next_due;
    bool closed;
} ucx_link;

/* ---- hub.c ---- */

typedef struct ucx_hub {
    pthread_mutex_t lock; /* guards the hub, and all links */
    ucp_context_h context;
    ucp_worker_h worker; /* NULL: no link is open */
    ucp_listener_h listener;
    struct sockaddr_storage listens_at;
    ucp_ep_h *callers; /* endpoints that the listener accepted, until their first valid message */
    size_t caller_count;
    int efd;
    unsigned char id[UCX_TOKEN];
    ucp_address_t *address;
    size_t address_bytes;
    ucx_link **links; /* by number */
    size_t capacity, count;
    ucx_route *routes;
    ucx_link *due;
    ucx_posting *lending;      /* postings that use memory of regions */
    uint64_t passes;           /* calls of ucx_pass() so far */
    pthread_cond_t unfinished; /* signalled when there are unacknowledged frames */
    bool has_mover, mover_sleeps;
    bool hurt;             /* a link broke, so UCX's objects must not be destroyed */
    struct left_hub *left; /* objects of former hubs that could not be destroyed */
    bool unusable;         /* the process was forked while the hub was in use */
} ucx_hub;
extern ucx_hub hub;

/** Adds a link, and makes the hub for the first one. */
ring_status ucx_hub_join(ucx_link *l, double peer_timeout);
/** Removes a link; the last one ends the hub. */
void ucx_hub_leave(ucx_link *l);
/** Checks whether a hub can be made; see transport.probe. */
bool ucx_probe(const transport_ib *ib, char *why, size_t size);

/* ---- routes.c ---- */

/** @return a route to that hub for new links; NULL if there is none yet. */
ucx_route *ucx_route_find(const unsigned char id[UCX_TOKEN]);
ucs_status_t ucx_route_by_address(const unsigned char id[UCX_TOKEN], const void *address,
                                  ucx_route **out);
ucs_status_t ucx_route_by_socket(const unsigned char id[UCX_TOKEN], const ucx_note *at,
                                 ucx_route **out);
/** @return the route of an accepted endpoint that has sent a valid message; NULL: no memory. */
ucx_route *ucx_route_of(const unsigned char id[UCX_TOKEN], ucp_ep_h ep);
/** Makes the hub listen, if it does not yet. @param family  AF_INET or AF_INET6. */
ucs_status_t ucx_listen(int family);
void ucx_route_use(ucx_link *l, ucx_route *route);
void ucx_route_release(ucx_route *route);
/** Breaks all links of the route. */
void ucx_route_fail(ucx_route *route, const char *why);
/** Closes the endpoints of all routes, when the hub ends. */
void ucx_routes_close(void);
void ucx_routes_free(void);
/** Closes an endpoint forcibly; its requests complete soon. */
void ucx_ep_close(ucp_ep_h ep);

/* ---- greeting.c ---- */

/** Sends this end's greeting. */
ring_status ucx_greet(ucx_link *l);
/** Continues to open the link. */
void ucx_greeting_move(ucx_link *l);
/** Checks whether the peer has closed the socket. */
void ucx_greeting_look(ucx_link *l);

/* ---- messages.c ---- */

/** @return NULL if there is no memory; the link is doomed then. */
ucx_posting *ucx_posting_new(ucx_link *l);
/** Records that the posting uses memory of a region until it completes. */
void ucx_posting_lend(ucx_posting *p, uint16_t region_id, void *memory);
/** Sends the posting with its label. @param data  unchanged until the send completes. */
void ucx_post(ucx_posting *p, ucx_kind kind, const void *data, size_t bytes);
/** Begins to receive the posting's data. */
void ucx_land(ucx_posting *p);
/** Drops the link's postings whose data has not been requested from UCP yet. */
void ucx_land_nothing(ucx_link *l);
/** Sends the status words. @param asks  request the peer's in return. */
void ucx_announce(ucx_link *l, bool asks);
/** Called by UCP. */
ucs_status_t ucx_on_message(void *unused, const void *header, size_t header_bytes, void *data,
                            size_t bytes, const ucp_am_recv_param_t *param);
void ucx_postings_free(ucx_link *l);

/* ---- carry.c ---- */
ring_status ucx_send(transport_link *head, const transport_frame *frame, const void *payload,
                     bool copy);
void *ucx_reserve(transport_link *head);
uint64_t ucx_flushed(const transport_link *head);
void ucx_release(transport_link *head, uint64_t messages);
uint64_t ucx_released(const transport_link *head);
ring_status ucx_peek(transport_link *head, const transport_frame **frame, const void **payload);
ring_status ucx_pull(transport_link *head, void *dst);
void ucx_consume(transport_link *head);
const _Atomic uint32_t *ucx_news(const transport_link *head, uint32_t *value);
/** @return true if there is room for a frame. Needs the lock. */
bool ucx_fits(ucx_link *l, size_t bytes);
ucx_posting *ucx_frame_posting(ucx_link *l, const transport_frame *frame);
void ucx_count_frame(ucx_link *l, const transport_frame *frame);

/* ---- reach.c ---- */
uint64_t ucx_ref(transport_link *head, const void *ptr, size_t bytes);
ring_status ucx_put(transport_link *head, const transport_frame *frame, const void *data,
                    uint64_t dst_ref);
ring_status ucx_get_from(transport_link *head, void *dst, uint64_t ref, size_t bytes, ticket *over);

/** @return the bytes of the header: messages without a frame omit the end of the label. */
static inline size_t ucx_label_bytes(ucx_kind kind)
{
    return kind == UCX_FRAME || kind == UCX_PUT ? sizeof(ucx_label)
                                                : offsetof(ucx_label, src_extent);
}

#endif
