/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes and keeps routes: UCP endpoints, one for each peer process. With one endpoint per link,
 * endpoints of different links could be paired, because UCP pairs the endpoints of two workers in
 * the order in which each end makes them. A route is kept until it fails or the hub ends, so that
 * both ends agree on it.
 *
 * An endpoint is made from a socket address, on which the hub with the lower id listens, or from
 * the address of the peer's worker. If one way fails, the other is tried (greeting.c). An accepted
 * endpoint is identified by the token in its first message. */
#include "ucx.h"
#include "ucx_link.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CALLERS = 64 }; /* accepted endpoints that have not sent a valid message yet */

/* ---- Closing and failing ---------------------------------------------------------- */

static void closed(void *request, ucs_status_t status, void *unused)
{
    (void)status, (void)unused;
    ucx.ucp_request_free(request);
}

void ucx_ep_close(ucp_ep_h ep)
{
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS |
                                                       UCP_OP_ATTR_FIELD_CALLBACK,
                                       .flags = UCP_EP_CLOSE_FLAG_FORCE,
                                       .cb.send = closed};
    (void)ucx.ucp_ep_close_nbx(ep, &param);
}

void ucx_route_release(ucx_route *route)
{
    if (--route->users > 0 || (!route->retired && route->status == RING_OK) || hub.hurt)
        return;
    if (route->ep != NULL)
        ucx_ep_close(route->ep);
    ucx_route **at = &hub.routes;
    while (*at != route)
        at = &(*at)->next;
    *at = route->next;
    free(route);
}

void ucx_routes_close(void)
{
    for (ucx_route *r = hub.routes; r != NULL; r = r->next)
        if (r->ep != NULL)
            ucx_ep_close(r->ep);
    for (size_t i = 0; i < hub.caller_count; i++)
        ucx_ep_close(hub.callers[i]);
    hub.caller_count = 0;
}

void ucx_routes_free(void)
{
    for (size_t i = 0; i < hub.capacity; i++)
        if (hub.links[i] != NULL)
            hub.links[i]->route = NULL;
    while (hub.routes != NULL) {
        ucx_route *route = hub.routes;
        hub.routes = route->next;
        free(route);
    }
}

void ucx_route_fail(ucx_route *route, const char *why)
{
    if (route->status != RING_OK)
        return;
    route->status = RING_ERR_PEER;
    (void)text_format(route->why, sizeof route->why, "%s", why);
    for (size_t i = 0; i < hub.capacity; i++)
        if (hub.links[i] != NULL && hub.links[i]->route == route)
            ucx_doom(hub.links[i], RING_ERR_PEER, "UCX lost the connection: %s", why);
}

/* Called by UCP when an endpoint has failed. */
static void on_error(void *unused, ucp_ep_h ep, ucs_status_t status)
{
    (void)unused;
    for (ucx_route *r = hub.routes; r != NULL; r = r->next)
        if (r->ep == ep)
            ucx_route_fail(r, ucx.ucs_status_string(status));
}

/* ---- Making routes ---------------------------------------------------------------- */

ucx_route *ucx_route_find(const unsigned char id[UCX_TOKEN])
{
    for (ucx_route *r = hub.routes; r != NULL; r = r->next)
        if (r->status == RING_OK && !r->retired && memcmp(r->hub, id, UCX_TOKEN) == 0)
            return r;
    return NULL;
}

/* Adds a route with the endpoint @p ep. @return NULL, with the endpoint closed, without memory. */
static ucx_route *keep(const unsigned char id[UCX_TOKEN], ucp_ep_h ep, bool by_socket)
{
    ucx_route *route = calloc(1, sizeof *route);
    if (route == NULL) {
        ucx_ep_close(ep);
        return NULL;
    }
    memcpy(route->hub, id, UCX_TOKEN);
    route->ep = ep;
    route->by_socket = by_socket;
    route->next = hub.routes;
    hub.routes = route;
    return route;
}

/* @param params  must contain the peer's address; this function adds the rest. */
static ucs_status_t make_ep(ucp_ep_params_t *params, ucp_ep_h *out)
{
    params->field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params->err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params->err_handler = (ucp_err_handler_t){.cb = on_error};
    return ucx.ucp_ep_create(hub.worker, params, out);
}

static ucs_status_t make_route(const unsigned char id[UCX_TOKEN], ucp_ep_params_t *params,
                               bool by_socket, ucx_route **out)
{
    ucp_ep_h ep;
    const ucs_status_t status = make_ep(params, &ep);
    if (status != UCS_OK)
        return status;
    *out = keep(id, ep, by_socket);
    return *out != NULL ? UCS_OK : UCS_ERR_NO_MEMORY;
}

ucs_status_t ucx_route_by_address(const unsigned char id[UCX_TOKEN], const void *address,
                                  ucx_route **out)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = address};
    return make_route(id, &params, false, out);
}

ucs_status_t ucx_route_by_socket(const unsigned char id[UCX_TOKEN], const ucx_note *at,
                                 ucx_route **out)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR,
                              .flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
                              .sockaddr = {.addr = (const struct sockaddr *)&at->at,
                                           .addrlen = (socklen_t)at->length}};
    return make_route(id, &params, true, out);
}

void ucx_route_use(ucx_link *l, ucx_route *route)
{
    if (l->route != NULL)
        ucx_route_release(l->route);
    l->route = route;
    route->users++;
}

/* ---- Listening -------------------------------------------------------------------- */

/* Called by UCP for a connection request. Rejects it if there are MOST_CALLERS already; the peer's
 * link then reports that. */
static void on_call(ucp_conn_request_h request, void *unused)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST,
                              .conn_request = request};
    ucp_ep_h ep;
    (void)unused;
    if (hub.callers == NULL)
        hub.callers = calloc(MOST_CALLERS, sizeof(ucp_ep_h));
    if (hub.callers == NULL || hub.caller_count == MOST_CALLERS) {
        (void)ucx.ucp_listener_reject(hub.listener, request);
        return;
    }
    if (make_ep(&params, &ep) == UCS_OK)
        hub.callers[hub.caller_count++] = ep;
}

ucs_status_t ucx_listen(int family)
{
    const struct sockaddr_in any = {.sin_family = AF_INET};
    const struct sockaddr_in6 any6 = {.sin6_family = AF_INET6};
    const bool six = family == AF_INET6;
    const ucp_listener_params_t params = {.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
                                                        UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
                                          .sockaddr = {.addr = six ? (const struct sockaddr *)&any6
                                                                   : (const struct sockaddr *)&any,
                                                       .addrlen = six ? sizeof any6 : sizeof any},
                                          .conn_handler = {.cb = on_call}};
    ucp_listener_attr_t attributes = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};
    if (hub.listener != NULL)
        return UCS_OK;
    ucs_status_t status = ucx.ucp_listener_create(hub.worker, &params, &hub.listener);
    if (status != UCS_OK) {
        hub.listener = NULL;
        return status;
    }
    status = ucx.ucp_listener_query(hub.listener, &attributes);
    hub.listens_at = attributes.sockaddr;
    return status;
}

ucx_route *ucx_route_of(const unsigned char id[UCX_TOKEN], ucp_ep_h ep)
{
    for (ucx_route *r = hub.routes; r != NULL; r = r->next)
        if (r->ep == ep)
            return r;
    for (size_t i = 0; i < hub.caller_count; i++)
        if (hub.callers[i] == ep)
            hub.callers[i--] = hub.callers[--hub.caller_count];
    return keep(id, ep, true);
}
