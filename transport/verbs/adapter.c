/* SPDX-License-Identifier: Apache-2.0
 * Opens all RDMA devices once per process, and selects those of their ports that a link may use. */
#include "adapter.h"

#include "gids.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* CQ_ENTRIES is the number of completions that may wait to be polled. When a link fails, all its
 * requests complete, at most QUEUE_DEPTH of them, so 500 links may fail at once. WAKE_UPS is the
 * number of receive requests for wake-ups. */
enum { CQ_ENTRIES = 1 << 18, WAKE_UPS = 4096 };

/* The devices and ports of this process. */
static struct {
    pthread_mutex_t lock;
    bool looked; /* the devices have been opened */
    adapter_device devices[ADAPTER_MOST_DEVICES];
    adapter_port ports[ADAPTER_MOST_PORTS];
    int device_count, port_count;
    char why[512]; /* the reason if there is no port */
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A child cannot use the parent's devices; fd_guard() has closed their descriptors. */
static void in_child(void)
{
    pthread_mutex_init(&process.lock, NULL);
    process.looked = false;
    process.device_count = process.port_count = 0;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

/* ---- Devices ------------------------------------------------------------------------------ */

static void close_device(const ibverbs *api, adapter_device *d)
{
    if (d->srq != NULL)
        api->destroy_srq(d->srq);
    if (d->cq != NULL)
        api->destroy_cq(d->cq);
    if (d->channel != NULL)
        api->destroy_comp_channel(d->channel);
    if (d->pd != NULL)
        api->dealloc_pd(d->pd);
    if (d->context != NULL)
        api->close_device(d->context);
}

static bool make_nonblocking(int fd)
{
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static bool make_queues(const ibverbs *api, adapter_device *d)
{
    const int wake_ups = least(WAKE_UPS, d->attributes.max_srq_wr);
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = (uint32_t)wake_ups, .max_sge = 1}};
    d->pd = api->alloc_pd(d->context);
    d->channel = d->pd != NULL ? api->create_comp_channel(d->context) : NULL;
    if (d->channel != NULL)
        d->cq = api->create_cq(d->context, least(CQ_ENTRIES, d->attributes.max_cqe), NULL,
                               d->channel, 0);
    d->srq = d->cq != NULL ? api->create_srq(d->pd, &srq) : NULL;
    if (d->srq == NULL)
        return false;
    struct ibv_recv_wr receive = {.wr_id = 0}, *bad;
    for (int i = 0; i < wake_ups; i++)
        if (ibv_post_srq_recv(d->srq, &receive, &bad) != 0)
            return false;
    return make_nonblocking(d->channel->fd) && make_nonblocking(d->context->async_fd);
}

static void place(adapter_device *d)
{
    char folder[128];
    (void)text_format(folder, sizeof folder, "/sys/class/infiniband/%s/device", d->name);
    d->place = pci_place_of("", folder);
}

static bool open_device(const ibverbs *api, struct ibv_device *device, adapter_device *d)
{
    *d = (adapter_device){.index = process.device_count,
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .context = api->open_device(device)};
    (void)text_format(d->name, sizeof d->name, "%s", api->get_device_name(device));
    if (d->context == NULL || api->query_device(d->context, &d->attributes) != 0 ||
        !make_queues(api, d)) {
        (void)text_format(process.why, sizeof process.why,
                          "cannot open %s: %m; is the limit on locked memory too low "
                          "(ulimit -l)?",
                          d->name);
        log_info("verbs: %s", process.why);
        close_device(api, d);
        return false;
    }
    fd_guard(d->context->cmd_fd);
    fd_guard(d->context->async_fd);
    fd_guard(d->channel->fd);
    place(d);
    process.device_count++;
    return true;
}

/* ---- Ports -------------------------------------------------------------------------------- */

/* @return bytes per second: the number of lanes times the data rate of one lane, without coding
 * overhead; 0 if the speed is unknown. */
static double rate_of(const struct ibv_port_attr *p)
{
    static const struct {
        int speed;
        double gbits;
    } lane[] = {{1, 2}, {2, 4}, {4, 8}, {8, 9.7}, {16, 13.6}, {32, 24.2}, {64, 48.5}, {128, 97}};
    const int lanes = p->active_width == 1   ? 1
                      : p->active_width == 2 ? 4
                      : p->active_width == 4 ? 8
                      : p->active_width == 8 ? 12
                                             : 2;
    for (size_t i = 0; i < sizeof lane / sizeof *lane; i++)
        if (lane[i].speed == p->active_speed)
            return lanes * lane[i].gbits * 1e9 / 8;
    return 0;
}

/* Logs that a port is not used, and keeps the text in case no other port is usable. */
static void note_unused(const adapter_device *d, uint8_t number, const char *why)
{
    (void)text_format(process.why, sizeof process.why, "port %s:%d is not used: %s", d->name,
                      number, why);
    log_info("verbs: %s", process.why);
}

/* @return why a port in this state cannot be used. */
static const char *state_word(enum ibv_port_state state)
{
    switch (state) {
    case IBV_PORT_DOWN:
        return "it is down; is the cable plugged in, and the switch port up?";
    case IBV_PORT_INIT:
        return "it is initializing; is a subnet manager (opensm) running?";
    case IBV_PORT_ARMED:
        return "it is armed but not active; check the subnet manager";
    default:
        return "it is not active";
    }
}

static void add_port(const ibverbs *api, adapter_device *d, uint8_t number)
{
    struct ibv_port_attr p = {.state = IBV_PORT_NOP};
    adapter_port *port = &process.ports[process.port_count];
    if (process.port_count == ADAPTER_MOST_PORTS)
        return;
    if (api->query_port(d->context, number, &p) != 0) {
        note_unused(d, number, "ibv_query_port failed");
        return;
    }
    if (p.state != IBV_PORT_ACTIVE && p.state != IBV_PORT_ACTIVE_DEFER) {
        note_unused(d, number, state_word(p.state));
        return;
    }
    *port = (adapter_port){.device = d,
                           .number = number,
                           .ethernet = p.link_layer == IBV_LINK_LAYER_ETHERNET,
                           .lid = p.lid,
                           .mtu = (int)p.active_mtu,
                           .longest = p.max_msg_sz,
                           .rate = rate_of(&p)};
    (void)text_format(port->name, sizeof port->name, "%s:%d", d->name, number);
    if (gid_choose(api, port, p.gid_tbl_len) || !port->ethernet)
        process.port_count++;
    else
        note_unused(d, number, "it has no GID; assign an IP address to its network interface");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const adapter_port *)a)->name, ((const adapter_port *)b)->name);
}

static void open_all(const ibverbs *api)
{
    int count = 0;
    struct ibv_device **list = api->get_device_list(&count);
    (void)text_format(process.why, sizeof process.why,
                      "there is no RDMA device; is the adapter's driver loaded (rdma link)?");
    for (int i = 0; list != NULL && i < count && process.device_count < ADAPTER_MOST_DEVICES; i++) {
        adapter_device *d = &process.devices[process.device_count];
        if (open_device(api, list[i], d))
            for (int port = 1; port <= d->attributes.phys_port_cnt; port++)
                add_port(api, d, (uint8_t)port);
    }
    if (list != NULL)
        api->free_device_list(list);
    qsort(process.ports, (size_t)process.port_count, sizeof *process.ports, by_name);
    char text[256];
    for (int i = 0; i < process.port_count; i++) {
        adapter_describe(&process.ports[i], text, sizeof text);
        log_debug("verbs: %s", text);
    }
}

int adapter_ports(const adapter_port **out)
{
    const ibverbs *api = ibverbs_load();
    if (api == NULL)
        return 0;
    pthread_mutex_lock(&process.lock);
    if (!process.looked)
        open_all(api);
    process.looked = true;
    const int count = process.port_count;
    pthread_mutex_unlock(&process.lock);
    *out = process.ports;
    if (count == 0)
        fail(RING_ERR_UNSUPPORTED, "%s", process.why);
    return count;
}

/* ---- Choice ------------------------------------------------------------------------------- */

/* "mlx5_0:1" selects that port, and "mlx5_0" selects all ports of the device. Without '=', a device
 * name also selects all devices whose names begin with it. */
bool adapter_list_has(const char *list, const adapter_port *port)
{
    const bool excludes = list[0] == '^', exact = list[excludes] == '=';
    bool found = false;
    list += excludes + exact;
    if (list[0] == '\0')
        return true;
    while (list[0] != '\0') {
        const size_t length = strcspn(list, ", ");
        const char *device = port->device->name;
        if (memchr(list, ':', length) != NULL)
            found |= strlen(port->name) == length && strncmp(port->name, list, length) == 0;
        else if (length > 0)
            found |= strncmp(device, list, length) == 0 && (!exact || device[length] == '\0');
        list += length + (list[length] != '\0');
    }
    return found != excludes;
}

int adapter_nearest(const adapter_port *const *ports, int count)
{
    unsigned node = 0;
    if (syscall(SYS_getcpu, NULL, &node, NULL) != 0)
        return 0;
    for (int i = 0; i < count; i++)
        if (ports[i]->device->place.numa == (int)node)
            return i;
    return 0;
}

int adapter_nearest_to(const pci_place *place, const adapter_port *const *ports, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        if (pci_distance_between(place, &ports[i]->device->place) <
            pci_distance_between(place, &ports[best]->device->place))
            best = i;
    return best;
}

/* ---- Memory ------------------------------------------------------------------------------- */

/* Older versions of libibverbs accept relaxed ordering only in ibv_reg_mr_iova2(). */
struct ibv_mr *adapter_register(const adapter_device *device, void *base, size_t bytes,
                                unsigned access)
{
    const ibverbs *api = ibverbs_load();
    if ((access & IBV_ACCESS_RELAXED_ORDERING) != 0)
        return api->reg_mr_iova2(device->pd, base, bytes, (uintptr_t)base, access);
    return api->reg_mr(device->pd, base, bytes, (int)access);
}

/* ---- Events and descriptions -------------------------------------------------------------- */

/* Events of queue pairs are logged at debug level, because every link that closes causes them. */
static log_level level_of(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_PORT_ERR:
        return LOG_WARN;
    case IBV_EVENT_PORT_ACTIVE:
        return LOG_INFO;
    default:
        return LOG_DEBUG;
    }
}

void adapter_look_at_events(adapter_device *device)
{
    const ibverbs *api = ibverbs_load();
    struct ibv_async_event event;
    if (pthread_mutex_trylock(&device->lock) != 0)
        return; /* another thread reads the events, or polls */
    while (api->get_async_event(device->context, &event) == 0) {
        const bool is_down = event.event_type == IBV_EVENT_PORT_ERR;
        if (event.event_type == IBV_EVENT_DEVICE_FATAL || event.event_type == IBV_EVENT_CQ_ERR)
            atomic_store(&device->dead, true);
        for (int i = 0; i < process.port_count; i++)
            if ((is_down || event.event_type == IBV_EVENT_PORT_ACTIVE) &&
                process.ports[i].device == device &&
                process.ports[i].number == event.element.port_num)
                atomic_store(&process.ports[i].down, is_down);
        log_at(level_of(event.event_type), "verbs: adapter %s reports an event: %s", device->name,
               api->event_type_str(event.event_type));
        api->ack_async_event(&event);
    }
    pthread_mutex_unlock(&device->lock);
}

void adapter_describe(const adapter_port *port, char *out, size_t size)
{
    char gid[40];
    gid_write(&port->gid, gid, sizeof gid);
    (void)text_format(out, size, "%s, %s, %.3g Gbit/s, MTU %d, GID %d %s (%s)", port->name,
                      port->ethernet ? "RoCE" : "InfiniBand", port->rate * 8e-9, 128 << port->mtu,
                      port->gid_index, gid, port->why);
}
