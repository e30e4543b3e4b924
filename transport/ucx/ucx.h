/* SPDX-License-Identifier: Apache-2.0
 *
 * ucx: links over UCP, the middle layer of UCX, which finds the network by itself. libucp is loaded
 * when somebody asks for it.
 *
 * One context, one worker and one lock a process (hub.c): whoever calls any link moves all of them,
 * so a peer gets its answers also while this end waits for another. One UCP endpoint a peer process
 * (routes.c), which all links to it share. Everything is an active message, whose header is an
 * ucx_label; a label without the token that this end gave to the peer over the link's authenticated
 * socket is nobody's, and is dropped.
 *
 * A frame goes to the next slot of the receiver, its payload to the next place of a buffer beside
 * them; both ends know what is taken. The sender keeps copies until UCP has done with them. A put
 * is a message too, whose bytes the receiver lands at the place that the frame means, within the
 * bounds of its regions; what a get asks for comes back the same way. So UCX is never asked to
 * write to memory on behalf of a peer: what is stopped is over, whatever network it is.
 */
#ifndef RING_UCX_H
#define RING_UCX_H

#include "regions.h"
#include "table.h"
#include "transport.h"

#include <sys/socket.h>
#include <ucp/api/ucp.h>

enum {
    UCX_SLOTS = 8192,                     /* twice the window's shortest frames              */
    UCX_PAYLOAD = 10 * TRANSPORT_SEGMENT, /* the window, what may be taken and not told, an end */
    UCX_ANNOUNCE_SLOTS = UCX_SLOTS / 4,
    UCX_ANNOUNCE_BYTES = 2 * TRANSPORT_SEGMENT,
    UCX_GETS = 512, /* under way, each way */
    UCX_TOKEN = 16,
    UCX_WHY = 160,
    UCX_ADDRESS_MOST = 16384,
    UCX_MESSAGE = 7 /* our number among active messages */
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

/** Of libucp; filled by ucx_load(). */
typedef struct ucx_functions {
#define X(name) __typeof__(name) *name;
    UCX_FUNCTIONS(X)
#undef X
} ucx_functions;
extern ucx_functions ucx;

/** Once a process; the library stays. @return false, and why. */
bool ucx_load(char *why, size_t size);

/* ---- tls_names.c ---- */

enum { UCX_TLS_MOST = 512 };

/** What UCX_TLS and RING_UCX_TLS say, as UCX understands it: "openib" becomes "ib".
 *  @param[out] unknown  names that no UCX has, with commas, or "".
 *  @return false: it is too long. */
bool ucx_tls_translate(const char *list, char out[UCX_TLS_MOST], char unknown[UCX_TLS_MOST]);

/* ---- Links ---- */

typedef enum ucx_kind {
    UCX_HELLO, /* the first: this endpoint is the peer's */
    UCX_WORDS, /* words alone                            */
    UCX_FRAME,
    UCX_PUT,  /* a frame whose payload goes to `place`  */
    UCX_GET,  /* asks for `bytes` at `place`            */
    UCX_DATA, /* what was asked for                     */
    UCX_REFUSAL
} ucx_kind;

/** Header of every active message, in host byte order. */
typedef struct ucx_label {
    unsigned char token[UCX_TOKEN]; /* that the receiver gave to the sender */
    uint32_t link;                  /* the receiver's number of it         */
    uint8_t kind;
    uint8_t asks; /* 1: tell soon what was received */
    uint16_t unused;
    uint64_t taken, received, released; /* frames and messages that came the other way */
    uint64_t number;                    /* of the frame, or of the get                  */
    uint64_t place;                     /* FRAME: in the buffer; PUT, GET: a reference  */
    uint64_t bytes;
    /* FRAME, PUT: and these, the sizes of regions that the frame refers to; 0: none. */
    uint64_t src_extent, dst_extent;
    transport_frame frame;
} ucx_label;

/** A message on its way out, or one that lands. */
typedef struct ucx_posting {
    struct ucx_posting *next, *previous; /* among those that use memory of others than links */
    struct ucx_posting *next_landing;
    struct ucx_link *link;
    uint16_t region; /* whose memory it uses, 0: none */
    void *memory;
    void *arriving; /* UCP's descriptor of what is to land */
    ucx_label label;
} ucx_posting;

/** How big a region of the peer's is that it has referred to. */
typedef struct ucx_extent {
    uint16_t region;
    uint64_t bytes;
} ucx_extent;

/** One UCP endpoint. */
typedef struct ucx_route {
    struct ucx_route *next;
    unsigned char hub[UCX_TOKEN]; /* whose */
    ucp_ep_h ep;
    bool by_socket, retired; /* not for new links */
    ring_status status;
    char why[UCX_WHY];
    size_t users;
} ucx_route;

/** Begins what both ends send over the socket; the worker's address follows. */
typedef struct ucx_greeting {
    char magic[8];
    uint32_t version, address_bytes; /* 0: connect by socket address */
    unsigned char hub[UCX_TOKEN], token[UCX_TOKEN];
    uint32_t link, unused;
} ucx_greeting;

/** What may come over the socket after it. */
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
    bool lands;
} ucx_get;

typedef struct ucx_inbox {
    _Alignas(RING_CACHE_LINE) transport_frame slot[UCX_SLOTS]; /* stamp: number + 1, last */
    uint32_t place[UCX_SLOTS];
    _Alignas(RING_CACHE_LINE) unsigned char payload[UCX_PAYLOAD];
} ucx_inbox;

typedef struct ucx_outbox {
    uint64_t end[UCX_SLOTS]; /* of the payload up to and with a slot's */
    bool done[UCX_SLOTS];    /* UCP needs it no more                   */
    _Alignas(RING_CACHE_LINE) unsigned char payload[UCX_PAYLOAD];
} ucx_outbox;

typedef struct ucx_link {
    transport_link head;
    ring_status state; /* RING_IN_PROGRESS: opening, RING_OK: open, else why it is broken */
    ring_status doom;  /* what breaks it as soon as what has come is taken */
    char why[UCX_WHY];
    int fd, wake, epoll;
    unsigned quiet;
    bool gone;  /* the socket has ended */
    bool grace; /* something came since: look once more before it is broken */

    /* Opening. */
    uint32_t number;
    unsigned char token[UCX_TOKEN]; /* the peer's messages have it */
    ucx_greeting theirs;
    unsigned char *out_text, *in_text; /* of the socket */
    unsigned char *address;            /* of its worker, while it is not used */
    size_t out_done, out_bytes, in_done;
    bool by_socket, listens, greeted, heard;
    bool no_socket, no_address; /* that way was tried in vain */
    bool answers;               /* is to say hello */
    bool helloed; /* UCP has handed it over: nobody need move this end for it any more */
    ucx_route *route;

    ucx_inbox *in;
    ucx_outbox *out;
    ucx_posting *spare;
    size_t postings, flying, lent; /* made; under way; of those, in memory of others */

    /* Sending. */
    uint64_t slots_sent, slots_done, bytes_sent;
    _Atomic uint64_t taken, acked, released; /* words of the peer */
    bool refused, refused_get;
    uint64_t asked; /* frames whose arrival was asked for */
    uint64_t notified_flushed, notified_released, notified_gets;

    /* Receiving. */
    uint64_t slots_taken, received, bytes_taken, messages_released;
    uint64_t announced_taken, announced_received, announced_released; /* to the peer */
    uint64_t bytes_announced;
    bool peeked, owes, announcing;
    uint64_t owed_since; /* pass */
    transport_frame frame;

    /* Reaching. */
    ucx_extent *extents;
    size_t extent_count;
    ucx_get *gets; /* [UCX_GETS], from the first */
    uint64_t gets_begun, gets_over;
    ucx_label *asked_for; /* [UCX_GETS] of the peer's gets, from the first */
    size_t asked_first, asked_count, serving;
    ucx_posting *landing; /* to be begun */

    bool due; /* in the hub's list: */
    struct ucx_link *next_due;
    bool armed, closed;
} ucx_link;

/* ---- hub.c ---- */

typedef struct ucx_hub {
    pthread_mutex_t lock; /* of everything */
    ucp_context_h context;
    ucp_worker_h worker; /* NULL: no link is open */
    ucp_listener_h listener;
    struct sockaddr_storage listens_at;
    ucp_ep_h *callers; /* endpoints of whoever has called the listener and not proved itself */
    size_t caller_count;
    int efd;
    unsigned char id[UCX_TOKEN];
    ucp_address_t *address;
    size_t address_bytes;
    ucx_link **links; /* by number */
    size_t capacity, count;
    ucx_route *routes;
    ucx_link *due;
    ucx_posting *lending; /* postings that use memory of regions */
    uint64_t passes;
    pthread_cond_t unfinished; /* frames have left that are not known to have come */
    bool has_mover, mover_sleeps;
    bool hurt;             /* a link broke: UCX is not asked to end in good order */
    struct left_hub *left; /* hubs that were hurt are still there */
    bool unusable;         /* forked while it was in use */
} ucx_hub;
extern ucx_hub hub;

/** One link more. */
ring_status ucx_hub_join(ucx_link *l, double peer_timeout);
void ucx_hub_leave(ucx_link *l);
/** Moves everything; with the lock held. */
void ucx_pass(void);
/** The same for who waits: lets others in. */
void ucx_pass_politely(void);
/** The same, and tells all words that are owed: nobody may move the hub for long. */
void ucx_settle(void);
/** Has a message with the words leave soon. */
void ucx_owe(ucx_link *l);
void ucx_make_due(ucx_link *l);
/** Frames are under way: they go on also if nobody calls. */
void ucx_stir(void);
/** Can a hub be made? */
bool ucx_probe(const transport_ib *ib, char *why, size_t size);

/* ---- routes.c ---- */

/** @return a route to that hub for new links, NULL: none yet. */
ucx_route *ucx_route_find(const unsigned char id[UCX_TOKEN]);
ucs_status_t ucx_route_by_address(const unsigned char id[UCX_TOKEN], const void *address,
                                  ucx_route **out);
ucs_status_t ucx_route_by_socket(const unsigned char id[UCX_TOKEN], const ucx_note *at,
                                 ucx_route **out);
/** Of an endpoint that came through the listener and has proved itself. @return NULL: no memory. */
ucx_route *ucx_route_of(const unsigned char id[UCX_TOKEN], ucp_ep_h ep);
/** Listens, once a hub. @param family  AF_INET or AF_INET6. */
ucs_status_t ucx_listen(int family);
void ucx_route_use(ucx_link *l, ucx_route *route);
void ucx_route_release(ucx_route *route);
/** All who use it break. */
void ucx_route_fail(ucx_route *route, const char *why);
/** At the hub's end. */
void ucx_routes_close(void);
void ucx_routes_free(void);
/** Closes an endpoint by force; its requests are over soon. */
void ucx_ep_close(ucp_ep_h ep);

/* ---- greeting.c ---- */

ring_status ucx_greet(ucx_link *l);
/** Goes on with the opening. */
void ucx_greeting_move(ucx_link *l);
/** Looks whether the peer has closed the socket. */
void ucx_greeting_look(ucx_link *l);
bool ucx_has_left(const ucx_link *l);

/* ---- messages.c ---- */

/** @return NULL: no memory, and the link is doomed. */
ucx_posting *ucx_posting_new(ucx_link *l);
void ucx_posting_lend(ucx_posting *p, uint16_t region_id, void *memory);
/** Sends it with what the label says. @param data  stays until it is over. */
void ucx_post(ucx_posting *p, ucx_kind kind, const void *data, size_t bytes);
void ucx_land(ucx_posting *p);
/** What has not begun to land never will. */
void ucx_land_nothing(ucx_link *l);
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
/** Room for a frame, with the lock held. */
bool ucx_fits(ucx_link *l, size_t bytes);
ucx_posting *ucx_frame_posting(ucx_link *l, const transport_frame *frame);
void ucx_count_frame(ucx_link *l, const transport_frame *frame);
void ucx_count_done(ucx_link *l);
bool ucx_has_frame(const ucx_link *l);

/* ---- reach.c ---- */
uint64_t ucx_ref(transport_link *head, const void *ptr, size_t bytes);
ring_status ucx_put(transport_link *head, const transport_frame *frame, const void *data,
                    uint64_t dst_ref);
ring_status ucx_get_from(transport_link *head, void *dst, uint64_t ref, size_t bytes, ticket *over);
/** @return the address, NULL: not within what peers may reach here. */
void *ucx_address(uint64_t ref, uint64_t bytes);
bool ucx_learn(ucx_link *l, uint64_t ref, uint64_t extent);
uint64_t ucx_extent_of(uint64_t ref);
/** A get is over. */
void ucx_got(ucx_link *l, uint64_t number, ring_status status);
/** No ticket is used from here on, unless @p status tells how they ended. */
void ucx_gets_end(ucx_link *l, ring_status status);
void ucx_serve(ucx_link *l);

/* ---- ucx.c ---- */
/** Breaks the link when all that has come is taken. */
void ucx_doom(ucx_link *l, ring_status status, const char *format, ...) RING_PRINTF(3, 4);
/** @return RING_OK, RING_IN_PROGRESS while it opens, or what broke it. */
ring_status ucx_state(ucx_link *l);
/** Breaks it at once. */
ring_status ucx_break(ucx_link *l, ring_status status, const char *why);
void ucx_rouse(ucx_link *l);
/** Breaks the link, until nothing of it uses memory of others. */
void ucx_stop_now(ucx_link *l, const char *why);

/** Label bytes of kinds that bring no frame. */
static inline size_t ucx_label_bytes(ucx_kind kind)
{
    return kind == UCX_FRAME || kind == UCX_PUT ? sizeof(ucx_label)
                                                : offsetof(ucx_label, src_extent);
}

#endif
