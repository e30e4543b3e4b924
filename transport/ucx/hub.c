/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes and ends the hub: the one UCP context and worker of the process, which exist only while
 * there are links. A process that has closed its links may therefore fork; UCX's threads and
 * sockets would not survive a fork.
 *
 * A worker per link would isolate broken links better, but each would need its own receive buffers
 * (33 MB over InfiniBand), and a peer's get would wait until a call on its own link. */
#include "ucx.h"
#include "ucx_link.h"
#include "ucx_pass.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Seconds that ending the hub waits for messages in flight. */
static const double last_seconds = 0.2;

ucx_hub hub = {.lock = PTHREAD_MUTEX_INITIALIZER, .unfinished = PTHREAD_COND_INITIALIZER};

/* ---- Forks ------------------------------------------------------------------------ */

static void before_fork(void)
{
    pthread_mutex_lock(&hub.lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&hub.lock);
}

static void in_child(void)
{
    const bool unusable = hub.unusable || hub.left != NULL || hub.worker != NULL;
    pthread_mutex_unlock(&hub.lock);
    hub = (ucx_hub){.lock = PTHREAD_MUTEX_INITIALIZER,
                    .unfinished = PTHREAD_COND_INITIALIZER,
                    .unusable = unusable};
}

/* ---- Regions that are removed ----------------------------------------------------- */

/* Stops the links that still use the region, which is about to be removed. No call uses the region
 * any more, but a broken link might. */
static void region_gone(uint16_t id, uint64_t offset, size_t bytes)
{
    (void)offset, (void)bytes;
    pthread_mutex_lock(&hub.lock);
    for (ucx_posting *p = hub.lending; p != NULL;) {
        ucx_link *l = p->region == id ? p->link : NULL;
        p = p->next;
        if (l == NULL)
            continue;
        ucx_stop_now(l, "memory that the link used was deregistered");
        p = hub.lending;
    }
    pthread_mutex_unlock(&hub.lock);
}

__attribute__((constructor)) static void watch(void)
{
    static region_watcher watcher = {.gone = region_gone};
    region_watch(&watcher);
    pthread_atfork(before_fork, in_parent, in_child);
}

/* ---- Making ----------------------------------------------------------------------- */

static ring_status failed_to(const char *what, ucs_status_t status)
{
    return fail(RING_ERR_SYSTEM, "UCX: %s: %s; `ucx_info -d` lists the usable networks", what,
                ucx.ucs_status_string(status));
}

/* @return the user's list of UCX transports, or NULL. @param[out] name  the variable that has it.
 */
static const char *chosen_tls(const char **name)
{
    *name = "RING_UCX_TLS";
    const char *list = getenv(*name);
    if (list != NULL && list[0] != '\0')
        return list;
    *name = "UCX_TLS";
    return getenv(*name);
}

static ring_status choose_tls(ucp_config_t *config)
{
    char translated[UCX_TLS_MOST], unknown[UCX_TLS_MOST];
    const char *name, *list = chosen_tls(&name);
    if (list == NULL || list[0] == '\0')
        return RING_OK;
    if (!ucx_tls_translate(list, translated, unknown))
        return fail(RING_ERR_CONFIG, "%s is longer than %d bytes", name, (int)UCX_TLS_MOST - 1);
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    if ((strcmp(list, translated) != 0 || unknown[0] != '\0') && !atomic_flag_test_and_set(&logged))
        log_warn("%s=%.100s: passing \"%.100s\" to UCX%s%.100s", name, list, translated,
                 unknown[0] != '\0' ? "; UCX may not support "
                                    : ", as openib is its old name for ib",
                 unknown);
    const ucs_status_t status = ucx.ucp_config_modify(config, "TLS", translated);
    return status == UCS_OK ? RING_OK : failed_to(name, status);
}

/* Reads UCX's configuration, and adapts it. With @p for_tcp, makes UCX's tcp use a non-blocking
 * connect(). If a peer dies between a blocking connect() and the first message, UCX connects again,
 * is refused, and ends this process by an assertion (tcp_ep.c:478 of 1.13.1; 1.19 has the same
 * code). With a non-blocking connect(), only the endpoint fails.
 * @param peer_timeout  seconds; 0: UCX's default. Long ones are capped, because they would overflow
 *                      UCX's clock. */
static ring_status configure(double peer_timeout, bool for_tcp, ucp_config_t **out)
{
    char interval[32];
    ucp_config_t *config;
    const ucs_status_t status = ucx.ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return failed_to("reading the configuration (UCX_*)", status);
    *out = config;
    RING_TRY(choose_tls(config));
    if (peer_timeout > 0 && getenv("UCX_KEEPALIVE_INTERVAL") == NULL &&
        text_format(interval, sizeof interval, "%.0fms", fmin(peer_timeout / 3, 3600) * 1e3))
        (void)ucx.ucp_config_modify(config, "KEEPALIVE_INTERVAL", interval);
    if (for_tcp) {
        unsigned major, minor, release;
        ucx.ucp_get_version(&major, &minor, &release);
        const bool has_prefix = major > 1 || minor >= 17;
        (void)ucx.ucp_config_modify(config, has_prefix ? "TCP_CONN_NB" : "CONN_NB", "y");
    }
    return RING_OK;
}

static ring_status make_context(double peer_timeout, bool for_tcp, ucp_context_h *out)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME,
                                 .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
                                 .name = "libring"};
    ucp_config_t *config = NULL;
    ring_status status = configure(peer_timeout, for_tcp, &config);
    if (status == RING_OK) {
        const char *name;
        const char *list = chosen_tls(&name);
        const ucs_status_t made = ucx.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params,
                                                       config, out);
        if (made != UCS_OK)
            status = fail(RING_ERR_SYSTEM,
                          "ucp_init: %s (%s=%.100s); `ucx_info -d` lists the usable networks",
                          ucx.ucs_status_string(made), name, list != NULL ? list : "");
    }
    if (config != NULL)
        ucx.ucp_config_release(config);
    return status;
}

/* The context lists its resources as TRANSPORT/DEVICE. */
static bool has_tcp(ucp_context_h context)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream == NULL)
        return true;
    ucx.ucp_context_print_info(context, stream);
    const bool found = fclose(stream) != 0 || strstr(text, " tcp/") != NULL;
    free(text);
    return found;
}

/* UCX warns about settings for its tcp if tcp is not used. In that case the context is made again,
 * without these settings. */
static ring_status make_context_of_hub(double peer_timeout)
{
    const bool for_tcp = getenv("UCX_TCP_CONN_NB") == NULL;
    RING_TRY(make_context(peer_timeout, for_tcp, &hub.context));
    if (!for_tcp || has_tcp(hub.context))
        return RING_OK;
    ucx.ucp_cleanup(hub.context);
    hub.context = NULL;
    return make_context(peer_timeout, false, &hub.context);
}

bool ucx_probe(const transport_ib *ib, char *why, size_t size)
{
    (void)ib;
    ucp_context_h context;
    if (!ucx_load(why, size))
        return false;
    pthread_mutex_lock(&hub.lock);
    const bool unusable = hub.unusable, is_made = hub.context != NULL;
    pthread_mutex_unlock(&hub.lock);
    if (unusable) {
        (void)text_format(why, size,
                          "this process was forked while its parent had links over ucx, which UCX "
                          "does not survive; start it with exec, or fork before opening links");
        return false;
    }
    if (is_made)
        return true;
    if (make_context(0, false, &context) != RING_OK) {
        (void)text_format(why, size, "%s", fail_text());
        return false;
    }
    ucx.ucp_cleanup(context);
    return true;
}

/* Gets the worker's address, and checks that it accepts headers as long as a label. */
static ring_status ask_worker(void)
{
    ucp_worker_attr_t attributes = {.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS |
                                                  UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER};
    const ucs_status_t status = ucx.ucp_worker_query(hub.worker, &attributes);
    if (status != UCS_OK)
        return failed_to("ucp_worker_query", status);
    hub.address = attributes.address;
    hub.address_bytes = attributes.address_length;
    if (attributes.max_am_header < sizeof(ucx_label))
        return fail(RING_ERR_UNSUPPORTED,
                    "UCX accepts headers of at most %zu bytes, and links need %zu; choose other "
                    "transports in UCX_TLS",
                    attributes.max_am_header, sizeof(ucx_label));
    return RING_OK;
}

static ring_status make_worker(void)
{
    const ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    const ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                          UCP_AM_HANDLER_PARAM_FIELD_CB,
                                            .id = UCX_MESSAGE,
                                            .cb = ucx_on_message};
    ucs_status_t status = ucx.ucp_worker_create(hub.context, &params, &hub.worker);
    if (status != UCS_OK)
        return failed_to("ucp_worker_create", status);
    status = ucx.ucp_worker_set_am_recv_handler(hub.worker, &handler);
    if (status == UCS_OK)
        status = ucx.ucp_worker_get_efd(hub.worker, &hub.efd);
    if (status != UCS_OK)
        return failed_to("ucp_worker_get_efd", status);
    randombytes_buf(hub.id, sizeof hub.id);
    return ask_worker();
}

/* ---- Ending ----------------------------------------------------------------------- */

static bool is_any_posting_in_flight(void)
{
    for (size_t i = 0; i < hub.capacity; i++)
        if (hub.links[i] != NULL && hub.links[i]->postings.flying > 0)
            return true;
    return false;
}

static void await_postings(void)
{
    const double end = clock_now() + last_seconds;
    while (is_any_posting_in_flight() && clock_now() < end)
        ucx_pass();
}

static void end_worker(void)
{
    await_postings();
    ucx_routes_close();
    await_postings();
    if (hub.address != NULL)
        ucx.ucp_worker_release_address(hub.worker, hub.address);
    if (hub.listener != NULL)
        ucx.ucp_listener_destroy(hub.listener);
    ucx.ucp_worker_destroy(hub.worker);
}

/* The objects of a hub that cannot be destroyed. They stay in a list, so that leak checkers do not
 * report them. */
typedef struct left_hub {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    ucx_route *routes;
    struct left_hub *next;
} left_hub;

/* Keeps the objects of a hurt hub for ever. UCX 1.13 ends the process by assertions when it closes
 * connections that broke before they were complete (ucp_request.c:684), and its thread may call a
 * destroyed listener (ucp_cm_server_conn_request_cb()). No thread makes progress on these objects
 * any more, so they access no memory. Their descriptors stay open until the process ends. */
static void leave(void)
{
    left_hub *left = malloc(sizeof *left);
    if (left == NULL) /* the objects are leaked */
        return;
    *left = (left_hub){.context = hub.context,
                       .worker = hub.worker,
                       .address = hub.address,
                       .routes = hub.routes,
                       .next = hub.left};
    hub.left = left;
    hub.routes = NULL;
}

static void unmake(void)
{
    if (hub.hurt)
        leave();
    if (hub.worker != NULL && !hub.hurt)
        end_worker();
    if (hub.context != NULL && !hub.hurt)
        ucx.ucp_cleanup(hub.context);
    ucx_routes_free();
    for (size_t i = 0; i < hub.capacity; i++)
        if (hub.links[i] != NULL)
            ucx_link_free(hub.links[i]);
    free(hub.links);
    free(hub.callers);
    hub.hurt = false;
    hub.context = NULL;
    hub.worker = NULL;
    hub.listener = NULL;
    hub.address = NULL;
    hub.links = NULL;
    hub.callers = NULL;
    hub.capacity = hub.caller_count = 0;
}

/* ---- Links ------------------------------------------------------------------------ */

static ring_status take_number(ucx_link *l)
{
    size_t i = 0;
    while (i < hub.capacity && hub.links[i] != NULL)
        i++;
    if (i == hub.capacity) {
        const size_t capacity = hub.capacity > 0 ? 2 * hub.capacity : 16;
        ucx_link **links = realloc(hub.links, capacity * sizeof(ucx_link *));
        if (links == NULL)
            return fail(RING_ERR_MEMORY, "no memory for a table of %zu ucx links", capacity);
        memset(links + hub.capacity, 0, (capacity - hub.capacity) * sizeof(ucx_link *));
        hub.links = links;
        hub.capacity = capacity;
    }
    l->number = (uint32_t)i;
    hub.links[i] = l;
    hub.count++;
    return RING_OK;
}

ring_status ucx_hub_join(ucx_link *l, double peer_timeout)
{
    char why[256];
    if (!ucx_load(why, sizeof why))
        return fail(RING_ERR_UNSUPPORTED, "%s", why);
    if (sodium_init() < 0)
        return fail(RING_ERR_SYSTEM, "libsodium cannot be initialised");
    if (hub.unusable)
        return fail(RING_ERR_UNSUPPORTED, "this process was forked while its parent had links over "
                                          "ucx, which UCX does not survive");
    ring_status status = hub.context == NULL ? make_context_of_hub(peer_timeout) : RING_OK;
    if (status == RING_OK && hub.worker == NULL)
        status = make_worker();
    if (status == RING_OK)
        status = ucx_start_mover();
    if (status == RING_OK)
        status = take_number(l);
    if (status != RING_OK && hub.count == 0)
        unmake();
    return status;
}

void ucx_hub_leave(ucx_link *l)
{
    l->closed = true;
    if (l->postings.flying == 0)
        ucx_link_free(l);
    if (--hub.count == 0)
        unmake();
}
