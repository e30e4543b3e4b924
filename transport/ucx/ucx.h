/* SPDX-License-Identifier: Apache-2.0
 *
 * ucx: implements links over UCP, the middle layer of UCX, which chooses the network. libucp is
 * loaded when a link is first opened or probed.
 *
 * A process has one UCP context, one worker and one lock, which form the hub (hub.c). A call on any
 * link makes progress on all links, so a peer gets its answers even while this end waits for
 * another peer. All links to a peer process share one UCP endpoint (routes.c). Every message is an
 * active message with a ucx_label as its header. The label contains the token that the receiver has
 * sent over the link's authenticated socket; messages with a wrong token are dropped.
 *
 * A frame goes to the receiver's next slot, and its payload to the next place of the inbox's
 * payload buffer. The sender keeps a copy in the same place of its outbox until UCP has completed
 * the send. A put is also a message: the receiver stores its bytes at the frame's reference, within
 * the bounds of its regions. The data of a get comes back in the same way. UCX never writes to
 * memory at a peer's request, so a stopped link writes nothing more on any network.
 *
 * Every message also carries the sender's status words: how many frames it has received and
 * consumed, and how many messages it has released.
 */
#ifndef RING_UCX_H
#define RING_UCX_H

#include "regions.h"
#include "table.h"
#include "transport.h"

#include <sys/socket.h>
#include <ucp/api/ucp.h>

enum {
    UCX_SLOTS = 8192, /* twice the window of shortest frames */
    /* Bytes for the window, for consumed payload that is not announced yet, and for an unused end
     * of the buffer. */
    UCX_PAYLOAD = 10 * TRANSPORT_SEGMENT,
    /* Consumed slots and payload bytes after which the receiver announces them. */
    UCX_ANNOUNCE_SLOTS = UCX_SLOTS / 4,
    UCX_ANNOUNCE_BYTES = 2 * TRANSPORT_SEGMENT,
    UCX_GETS = 512,           /* most gets in flight, in each direction           */
    UCX_TOKEN = 16,           /* bytes of a token, and of the id of a hub         */
    UCX_WHY = 160,            /* bytes of the text of a failure                   */
    UCX_ADDRESS_MOST = 16384, /* bytes of the longest worker address              */
    UCX_MESSAGE = 7           /* UCP's id of the active messages that libring sends */
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

/** The functions of libucp; filled in by ucx_load(). */
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

/** The kinds of messages. */
typedef enum ucx_kind {
    UCX_HELLO,  /* the first message: proves that the endpoint belongs to the peer */
    UCX_WORDS,  /* only the status words */
    UCX_FRAME,  /* a frame, whose payload goes to the inbox */
    UCX_PUT,    /* a frame whose payload goes to the reference `place` */
    UCX_GET,    /* requests `bytes` at the reference `place` */
    UCX_DATA,   /* the data of a get */
    UCX_REFUSAL /* the answer to a get of memory that is not registered */
} ucx_kind;

/** Header of every active message, in host byte order. */
typedef struct ucx_label {
    unsigned char token[UCX_TOKEN]; /* the receiver's token for the sender */
    uint32_t link;                  /* the receiver's number of the link */
    uint8_t kind;
    uint8_t asks; /* 1: the receiver must send its status words soon */
    uint16_t unused;
    uint64_t taken, received, released; /* the status words: frames consumed and received, and
                                           messages released by the sender of this message */
    uint64_t number;                    /* of the frame, or of the get                  */
    uint64_t place;                     /* FRAME: offset in the inbox's payload buffer; PUT, GET: a
                                           reference to the receiver's memory */
    uint64_t bytes;                     /* PUT, GET, DATA: size of the transfer         */
    /* FRAME and PUT only: sizes of the regions that the frame refers to, or 0. */
    uint64_t src_extent, dst_extent;
    transport_frame frame;
} ucx_label;

/** A message that is being sent, or whose data is being received (is landing). */
typedef struct ucx_posting {
    struct ucx_posting *next, *previous; /* in hub.lending */
    struct ucx_posting *next_landing;    /* in ucx_postings.landing */
    struct ucx_link *link;
    uint16_t region; /* id of the region whose memory it uses; 0: none */
    void *memory;    /* that memory; NULL: none */
    void *arriving;  /* UCP's descriptor of the data to receive */
    ucx_label label;
} ucx_posting;

/** The size of a region of the peer, as announced in its frames. */
typedef struct ucx_extent {
    uint16_t region;
    uint64_t bytes;
} ucx_extent;

/** A route: one UCP endpoint to a peer process. */
typedef struct ucx_route {
    struct ucx_route *next;
    unsigned char hub[UCX_TOKEN]; /* id of the peer's hub */
    ucp_ep_h ep;                  /* NULL: closed */
    bool by_socket;               /* it was connected by socket address */
    bool retired;                 /* new links do not use it */
    ring_status status;           /* RING_OK, or RING_ERR_PEER after a failure */
    char why[UCX_WHY];            /* the text of the failure */
    size_t users;                 /* number of links that use it */
} ucx_route;

/** The first message over the socket; the worker's address follows. */
typedef struct ucx_greeting {
    char magic[8];
    uint32_t version, address_bytes;
    unsigned char hub[UCX_TOKEN];   /* id of the sender's hub */
    unsigned char token[UCX_TOKEN]; /* required in all messages to the sender over this link */
    uint32_t link, unused;          /* the sender's number of the link */
} ucx_greeting;

/** A later message over the socket: how to connect the endpoints. */
typedef struct ucx_note {
    enum {
        UCX_BY_SOCKET = 1, /* the sender cannot connect by worker address; connect by socket */
        UCX_LISTENS,       /* the sender listens at `at` */
        UCX_BY_ADDRESS     /* the sender does not connect by socket; connect by worker address */
    } way;
    uint32_t length; /* bytes of `at` */
    struct sockaddr_storage at;
} ucx_note;

/** A get of this end, while it is in flight. */
typedef struct ucx_get {
    ticket *over; /* closed with the result; NULL: this entry is free */
    void *to;
    size_t bytes;
    uint16_t region; /* id of the region that contains `to` */
    bool lands;      /* its data is being received */
} ucx_get;

/** Received frames. Frame n is in slot n % UCX_SLOTS. */
typedef struct ucx_inbox {
    _Alignas(RING_CACHE_LINE) transport_frame slot[UCX_SLOTS]; /* stamp: number + 1, set last */
    uint32_t place[UCX_SLOTS]; /* offset of each frame's payload in `payload` */
    _Alignas(RING_CACHE_LINE) unsigned char payload[UCX_PAYLOAD];
} ucx_inbox;

/** Sent frames. Frame n has the entries n % UCX_SLOTS. */
typedef struct ucx_outbox {
    uint64_t end[UCX_SLOTS]; /* payload position after the frame (payload_ring.h) */
    bool done[UCX_SLOTS];    /* UCP has completed the send */
    _Alignas(RING_CACHE_LINE) unsigned char payload[UCX_PAYLOAD];
} ucx_outbox;

/** The exchange over the socket, until the link is open. */
typedef struct ucx_opening {
    ucx_greeting theirs;
    unsigned char *out_text; /* out_bytes to send over the socket; out_done are sent */
    unsigned char *in_text;  /* the current message from the socket; in_done bytes have arrived */
    unsigned char *address;  /* address of the peer's worker */
    size_t out_done, out_bytes, in_done;
    bool by_socket;             /* this link connects by socket address, not by worker address */
    bool listens;               /* this end listens for the peer */
    bool greeted;               /* the peer's greeting has arrived */
    bool heard;                 /* a UCP message of the peer has arrived */
    bool no_socket, no_address; /* connecting by socket or by worker address has failed */
    bool answers;               /* the next pass must send UCX_HELLO */
    bool helloed;               /* UCP has completed sending UCX_HELLO, so the peer receives it even
                                   without further progress at this end */
} ucx_opening;

/** The link's socket, which shows whether the peer is alive. */
typedef struct ucx_socket {
    int fd;
    bool ended; /* the peer has closed it */
} ucx_socket;

/** The descriptors that a thread which sleeps on the link waits for. */
typedef struct ucx_sleep {
    int wake, epoll;
    unsigned quiet; /* calls of progress() since the socket was last checked */
    bool armed;     /* a thread sleeps, or is about to; wake it by writing `wake` */
} ucx_sleep;

/** The messages of a link that UCP sends or receives. */
typedef struct ucx_postings {
    ucx_posting *spare;   /* list of unused ones */
    size_t count;         /* number of allocated ones */
    size_t flying;        /* number of those in flight */
    size_t lent;          /* number of those in flight that use memory of regions */
    ucx_posting *landing; /* list of those whose data must be requested from UCP */
} ucx_postings;

/** The peer's status words, and the sizes of its regions. */
typedef struct ucx_peer {
    _Atomic uint64_t taken, acked, released; /* the words taken, received and released */
    ucx_extent *extents;
    size_t extent_count;
} ucx_peer;

typedef struct ucx_sending {
    uint64_t slots;            /* number of sent frames */
    uint64_t slots_done;       /* number of frames that UCP has completely sent, without a gap */
    uint64_t bytes;            /* payload position (payload_ring.h) */
    bool refused, refused_get; /* there was no room for the last frame, or get */
    uint64_t asked;            /* number of frames whose acknowledgement was requested */
    uint64_t notified_flushed, notified_released, notified_gets; /* as of the last arm() */
} ucx_sending;

typedef struct ucx_receiving {
    uint64_t slots;    /* number of consumed frames */
    uint64_t received; /* number of received frames, without a gap */
    uint64_t bytes;    /* payload bytes of consumed frames */
    uint64_t released; /* number of released messages */
    uint64_t announced_taken, announced_received, announced_released; /* as last sent to the peer */
    uint64_t announced_bytes; /* `bytes` when the words were last sent */
    bool peeked;
    bool owes;           /* the status words must be sent soon */
    bool announcing;     /* a message of kind UCX_WORDS is in flight */
    uint64_t owed_since; /* hub.passes when `owes` was set */
    transport_frame frame;
} ucx_receiving;

typedef struct ucx_gets {
    ucx_get *own;         /* gets of this end, a ring of UCX_GETS */
    uint64_t begun, over; /* numbers of begun and of ended gets of this end */
    ucx_label *asked;     /* gets that the peer has requested, a ring of UCX_GETS */
    size_t asked_first, asked_count;
    size_t serving; /* number of the peer's gets whose data is being sent */
} ucx_gets;

typedef struct ucx_link {
    transport_link head;
    ring_status state; /* RING_IN_PROGRESS: opening; RING_OK: open; else the failure's status */
    ring_status doom;  /* RING_OK, or the status of a failure that breaks the link once its received
                          frames are consumed */
    char why[UCX_WHY]; /* the text of that failure */
    bool grace;        /* status words have arrived: report RING_OK once more before breaking */
    uint32_t number;   /* index in hub.links; UINT32_MAX until it has joined the hub */
    unsigned char token[UCX_TOKEN]; /* required in every message of the peer */
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
    bool due; /* it is in the list hub.due */
    struct ucx_link *next_due;
    bool closed; /* it is freed when its last message is complete */
} ucx_link;

/* ---- hub.c ---- */

/** The UCP objects of this process and all its links. */
typedef struct ucx_hub {
    pthread_mutex_t lock; /* guards the hub, and all links */
    ucp_context_h context;
    ucp_worker_h worker; /* NULL: no link is open */
    ucp_listener_h listener;
    struct sockaddr_storage listens_at;
    ucp_ep_h *callers; /* endpoints that the listener accepted, until their first valid message */
    size_t caller_count;
    int efd;                     /* the worker's event descriptor */
    unsigned char id[UCX_TOKEN]; /* random; identifies the hub to peers */
    ucp_address_t *address;      /* of the worker */
    size_t address_bytes;
    ucx_link **links;       /* [capacity], by number; NULL: free */
    size_t capacity, count; /* count: links that are not closed */
    ucx_route *routes;
    ucx_link *due;                /* links that the next pass serves */
    ucx_posting *lending;         /* postings that use memory of regions */
    uint64_t passes;              /* number of passes so far (ucx_pass.c) */
    pthread_cond_t unfinished;    /* wakes the mover when there are unacknowledged frames */
    bool has_mover, mover_sleeps; /* the mover is the thread of ucx_start_mover() */
    bool hurt;                    /* a connection broke in a way that makes destroying UCP's objects
                                     dangerous */
    struct left_hub *left;        /* objects of former hubs that could not be destroyed */
    bool unusable;                /* the process was forked while the hub was in use */
} ucx_hub;
extern ucx_hub hub;

/** Adds a link to the hub. The first link makes the hub's UCP objects. Needs the lock. */
ring_status ucx_hub_join(ucx_link *l, double peer_timeout);
/** Removes a link, and frees it when it has no message in flight. The last link destroys the hub's
 *  UCP objects. Needs the lock. */
void ucx_hub_leave(ucx_link *l);
/** Checks whether UCP works on this host; see transport.probe. */
bool ucx_probe(const transport_ib *ib, char *why, size_t size);

/* ---- routes.c: all functions need the lock. ---- */

/** @return a route to the hub @p id that new links may use; NULL if there is none. */
ucx_route *ucx_route_find(const unsigned char id[UCX_TOKEN]);
/** Makes a route to the hub @p id from the address of its worker. */
ucs_status_t ucx_route_by_address(const unsigned char id[UCX_TOKEN], const void *address,
                                  ucx_route **out);
/** Makes a route to the hub @p id, which listens at the socket address in @p at. */
ucs_status_t ucx_route_by_socket(const unsigned char id[UCX_TOKEN], const ucx_note *at,
                                 ucx_route **out);
/** @return the route of an accepted endpoint that has sent a valid message; NULL: no memory. */
ucx_route *ucx_route_of(const unsigned char id[UCX_TOKEN], ucp_ep_h ep);
/** Makes the hub listen, if it does not yet. @param family  AF_INET or AF_INET6. */
ucs_status_t ucx_listen(int family);
/** Makes the link use the route, and releases the route that it used before. */
void ucx_route_use(ucx_link *l, ucx_route *route);
/** Ends a link's use of the route. Closes and frees a retired or failed route that no link uses. */
void ucx_route_release(ucx_route *route);
/** Records that the route has failed, which breaks all its links. */
void ucx_route_fail(ucx_route *route, const char *why);
/** Closes all endpoints of the hub. Called when the hub ends. */
void ucx_routes_close(void);
/** Frees all routes, whose endpoints must be closed or abandoned. */
void ucx_routes_free(void);
/** Closes an endpoint forcibly, which soon completes its requests. */
void ucx_ep_close(ucp_ep_h ep);

/* ---- greeting.c: all functions need the lock. ---- */

/** Sends this end's greeting. */
ring_status ucx_greet(ucx_link *l);
/** Continues to open the link with the bytes that have arrived over its socket. */
void ucx_greeting_move(ucx_link *l);
/** Checks whether the peer has closed the socket, which breaks the link. */
void ucx_greeting_look(ucx_link *l);

/* ---- messages.c: all functions need the lock. ---- */

/** @return a new posting; NULL if there is no memory, which breaks the link. */
ucx_posting *ucx_posting_new(ucx_link *l);
/** Records that the posting uses memory of a region until it completes. */
void ucx_posting_lend(ucx_posting *p, uint16_t region_id, void *memory);
/** Sends a message with the posting's label as its header. The posting is freed when the send is
 *  complete. @param data  must not change until then. */
void ucx_post(ucx_posting *p, ucx_kind kind, const void *data, size_t bytes);
/** Makes UCP receive the posting's data into its memory. */
void ucx_land(ucx_posting *p);
/** Drops the link's postings whose data has not been requested from UCP yet. */
void ucx_land_nothing(ucx_link *l);
/** Sends a message with only the status words. @param asks  the peer must send its own in return.
 */
void ucx_announce(ucx_link *l, bool asks);
/** Handles an active message; called by UCP. */
ucs_status_t ucx_on_message(void *unused, const void *header, size_t header_bytes, void *data,
                            size_t bytes, const ucp_am_recv_param_t *param);
/** Frees the link's unused postings. */
void ucx_postings_free(ucx_link *l);

/* ---- carry.c: calls of transport.h, and: ---- */
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
/** @return true if there is room for a frame with @p bytes of payload. Needs the lock. */
bool ucx_fits(ucx_link *l, size_t bytes);
/** @return a posting whose label contains the frame, which gets the next number; NULL: no memory.
 */
ucx_posting *ucx_frame_posting(ucx_link *l, const transport_frame *frame);
/** Counts the frame as sent. */
void ucx_count_frame(ucx_link *l, const transport_frame *frame);

/* ---- reach.c: calls of transport.h ---- */
uint64_t ucx_ref(transport_link *head, const void *ptr, size_t bytes);
ring_status ucx_put(transport_link *head, const transport_frame *frame, const void *data,
                    uint64_t dst_ref);
ring_status ucx_get_from(transport_link *head, void *dst, uint64_t ref, size_t bytes, ticket *over);

/** @return the bytes of the header of a message: messages without a frame omit the end of the
 *  label. */
static inline size_t ucx_label_bytes(ucx_kind kind)
{
    return kind == UCX_FRAME || kind == UCX_PUT ? sizeof(ucx_label)
                                                : offsetof(ucx_label, src_extent);
}

#endif
