/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests GPU memory over a verbs link, with the doubles of libibverbs and of NVIDIA's driver: its
 * registration, transfers by the adapter, and the cases in which the adapter may not access it.
 * Usage: test_transport_gpu TEST */
#include "adapter.h"
#include "cuda_memory.h"
#include "fake_cuda.h"
#include "fake_ibverbs.h"
#include "named.h"
#include "regions.h"
#include "traffic.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BYTES = 300000,
    ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
};

static cuda_device gpu;

static void *find(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_NOW);
    void *found = handle != NULL ? dlsym(handle, name) : NULL;
    if (found == NULL) {
        printf("SKIPPED: %s is not its double\n", library);
        exit(SKIPPED);
    }
    return found;
}

#define CALL_OF(type, library, name) ((type)(uintptr_t)find(library, name))
#define CUDA(name) CALL_OF(__typeof__(&(name)), "libcuda.so.1", #name)
#define VERBS(name) CALL_OF(__typeof__(&(name)), "libibverbs.so.1", #name)

static fake_ibverbs_dmabuf registered(void)
{
    fake_ibverbs_dmabuf last;
    VERBS(fake_ibverbs_dmabuf_calls)(&last);
    return last;
}

static uint64_t registrations(void)
{
    fake_ibverbs_counts counts;
    VERBS(fake_ibverbs_counters)(&counts);
    return counts.registrations;
}

static unsigned char *memory_new(void)
{
    unsigned char *memory = CUDA(fake_cuda_alloc)(BYTES);
    must_ok(region_add_device(memory, BYTES, &gpu.base));
    return memory;
}

static void memory_free(unsigned char *memory)
{
    must_ok(region_remove(memory));
    CUDA(fake_cuda_free)(memory);
}

static unsigned char *at(unsigned char *memory)
{
    return CUDA(fake_cuda_at)(memory);
}

/* ---- Two ends ---- */

static transport_link *open_end(int rank, int fd, const transport_ib *ib)
{
    const transport_peer peer = {.rank = rank,
                                 .peer = rank == RANK_A ? RANK_B : RANK_A,
                                 .fd = fd,
                                 .ib = ib};
    transport_link *l;
    must_ok(ends_transport()->open(&peer, &l));
    return l;
}

static ends open_with(const transport_ib *ib)
{
    int fds[2];
    ends_sockets(fds);
    ends e = {.a = open_end(RANK_A, fds[0], ib), .b = open_end(RANK_B, fds[1], ib)};
    const double give_up = clock_now() + PATIENCE;
    bool is_open = false;
    while (!is_open) { /* both are moved */
        is_open = e.a->transport->progress(e.a) == RING_OK;
        is_open &= e.b->transport->progress(e.b) == RING_OK;
        must(clock_now() < give_up);
    }
    return e;
}

/* Options that allow any distance to the GPU. */
static transport_ib anywhere(void)
{
    transport_ib ib = TRANSPORT_IB_DEFAULTS;
    ib.farthest = PCI_SYS;
    return ib;
}

static ends begin(const char *spec)
{
    const transport_ib ib = anywhere();
    setenv("FAKE_IBVERBS", spec, 1);
    must(ends_choose("verbs"));
    must_ok(cuda_memory_open(0, "/nowhere", &gpu));
    return open_with(&ib);
}

static uint64_t ref_of(transport_link *l, const unsigned char *memory)
{
    return l->transport->ref(l, memory, BYTES);
}

static void end(ends *e)
{
    ends_close(e);
    cuda_memory_close(&gpu);
}

/* ---- Registration ---- */

static void by_dmabuf(void)
{
    ends e = begin("devices=1");
    unsigned char *memory = memory_new();
    const uint64_t before = registrations();
    must(ref_of(e.a, memory) != 0);
    const fake_ibverbs_dmabuf last = registered();
    must(last.calls == 2); /* one asked whether the adapter takes them */
    must(last.offset == 512 && last.length == BYTES && last.iova == (uintptr_t)memory);
    must(last.access == ACCESS);
    must(last.fd >= 0 && fcntl(last.fd, F_GETFD) == -1 && errno == EBADF);
    must(registrations() == before + 1);
    must(ref_of(e.b, memory) != 0 && ref_of(e.a, memory) != 0);
    must(registered().calls == 2 && registrations() == before + 1); /* once a process */
    memory_free(memory);
    must(registrations() == before);
    end(&e);
}

static void with_each_adapter(void)
{
    fake_cuda_counts counts;
    ends e = begin("devices=2");
    unsigned char *first = memory_new(), *second = memory_new();
    must(ref_of(e.a, first) != 0);
    must(registered().calls == 4); /* each was asked, and each has it */
    must(ref_of(e.a, second) != 0);
    must(registered().calls == 6);
    CUDA(fake_cuda_counters)(&counts);
    must(counts.handles == 2 && counts.sync_memops == 2);
    memory_free(first);
    memory_free(second);
    end(&e);
}

static void in_any_order(void)
{
    setenv("FAKE_IBVERBS", "devices=1", 1);
    must(ends_choose("verbs"));
    must_ok(cuda_memory_open(0, "/nowhere", &gpu));
    transport_ib ib = anywhere();
    ib.relaxed = true;
    ends e = open_with(&ib);
    unsigned char *memory = memory_new();
    must(ref_of(e.a, memory) != 0);
    must(registered().access == (ACCESS | IBV_ACCESS_RELAXED_ORDERING));
    memory_free(memory);
    end(&e);
}

/* A refused registration is not tried again. */
static void refused(void)
{
    fake_cuda_counts counts;
    ends e = begin("devices=1");
    unsigned char *memory = memory_new();
    must(VERBS(fake_ibverbs_fail)("reg_dmabuf_mr", 2));
    must(ref_of(e.a, memory) == 0);
    must(registered().calls == 2);
    must(ref_of(e.a, memory) == 0 && ref_of(e.b, memory) == 0);
    must(registered().calls == 2);
    CUDA(fake_cuda_counters)(&counts);
    must(counts.handles == 1);
    unsigned char *other = memory_new();
    must(ref_of(e.a, other) != 0);
    memory_free(memory);
    memory_free(other);
    end(&e);
}

static void refused_by_the_driver(void)
{
    ends e = begin("devices=1");
    unsigned char *memory = memory_new();
    CUDA(fake_cuda_fail)("cuMemGetHandleForAddressRange", 801);
    must(ref_of(e.a, memory) == 0 && registered().calls == 0);
    CUDA(fake_cuda_fail)("", 0);
    memory_free(memory);
    end(&e);
}

/* ---- By address ---- */

static void check_by_address(const ends *e)
{
    unsigned char *memory = memory_new();
    gpu.peermem = true;
    VERBS(fake_ibverbs_peer_memory)(memory, at(memory), BYTES);
    const uint64_t before = registrations();
    must(ref_of(e->a, memory) != 0);
    must(registrations() == before + 1);
    memory_free(memory);
}

static void adapter_takes_no_dmabuf(void)
{
    ends e = begin("devices=1,no_dmabuf");
    check_by_address(&e);
    must(registered().calls == 1 && registered().fd == -1);
    unsigned char *memory = memory_new();
    gpu.peermem = false;
    must(ref_of(e.a, memory) == 0 && registered().calls == 1);
    memory_free(memory);
    end(&e);
}

static void dmabuf_fails(void)
{
    ends e = begin("devices=1");
    must(VERBS(fake_ibverbs_fail)("reg_dmabuf_mr", 2));
    check_by_address(&e);
    must(registered().calls == 2);
    end(&e);
}

/* Without the driver that knows the addresses, the adapter refuses them, because the host cannot
 * access that memory. */
static void unknown_address(void)
{
    ends e = begin("devices=1,no_dmabuf");
    unsigned char *memory = memory_new();
    gpu.peermem = true;
    must(ref_of(e.a, memory) == 0);
    memory_free(memory);
    end(&e);
}

/* ---- Transfers ---- */

static void move(const ends *e, const ticket *over)
{
    const double give_up = clock_now() + PATIENCE;
    while (ticket_status(over) == RING_IN_PROGRESS) {
        must_ok(e->a->transport->progress(e->a));
        must_ok(e->b->transport->progress(e->b));
        must(clock_now() < give_up);
    }
    must_ok(ticket_status(over));
}

/* Sends frames that refer to memory, whose keys are sent before them. */
static uint64_t refer(const ends *e, unsigned char *memory)
{
    const void *none;
    transport_frame frame = frame_make(0, BYTES);
    frame.flags = FRAME_LONG | FRAME_REF;
    frame.ext.src_ref = ref_of(e->b, memory);
    must(frame.ext.src_ref != 0);
    must_ok(e->b->transport->send(e->b, &frame, NULL, true));
    const uint64_t ref = ends_receive(e->b, e->a, &none)->ext.src_ref;
    e->a->transport->consume(e->a);
    return ref;
}

static void check_and_clear(unsigned char *memory, uint64_t n, size_t bytes)
{
    payload_check(at(memory), n, bytes);
    memset(at(memory), 0, bytes);
}

static void put_get_and_carried(void)
{
    ends e = begin("devices=2");
    unsigned char *a = memory_new(), *b = memory_new();
    const transport *t = e.a->transport;
    const void *payload;
    ticket over;
    transport_frame stored = frame_make(1, BYTES);
    stored.flags = FRAME_LONG | FRAME_STORED;
    must(ref_of(e.a, a) != 0);
    const uint64_t ref = refer(&e, b);
    payload_fill(at(a), 1, BYTES);
    must_ok(t->put(e.a, &stored, a, ref));
    must((ends_receive(e.a, e.b, &payload)->flags & FRAME_STORED) != 0);
    t->consume(e.b);
    check_and_clear(b, 1, BYTES);
    payload_fill(at(b), 2, BYTES);
    must_ok(t->get(e.a, a, ref, BYTES, &over));
    move(&e, &over);
    check_and_clear(a, 2, BYTES);
    const transport_frame carried = frame_make(3, TRANSPORT_SEGMENT);
    payload_fill(at(a), 3, TRANSPORT_SEGMENT);
    must_ok(t->send(e.a, &carried, a, false));
    frame_check(ends_receive(e.a, e.b, &payload), 3, TRANSPORT_SEGMENT);
    payload_check(payload, 3, TRANSPORT_SEGMENT);
    t->consume(e.b);
    ends_close(&e);
    memory_free(a);
    memory_free(b);
    cuda_memory_close(&gpu);
}

/* ---- Distance ---- */

/* Each link has its own limit, regardless of earlier registrations. The places of both are unknown
 * here, so they only count as being on one NUMA node. */
static void near_enough(void)
{
    static const struct {
        pci_distance farthest;
        bool reached;
    } rows[] = {{PCI_LOC, false}, {PCI_PXB, false}, {PCI_PHB, false},
                {PCI_NODE, true}, {PCI_SYS, true},  {PCI_PXB, false}};
    ends e = begin("devices=1");
    unsigned char *memory = memory_new();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        transport_ib ib = anywhere();
        ib.farthest = rows[i].farthest;
        ends other = open_with(&ib);
        must((ref_of(other.a, memory) != 0) == rows[i].reached);
        ends_close(&other);
    }
    gpu.base.place = NULL; /* near to all, unless it is never used */
    unsigned char *nowhere = memory_new();
    for (pci_distance farthest = PCI_LOC; farthest <= PCI_PIX; farthest++) {
        transport_ib ib = anywhere();
        ib.farthest = farthest;
        ends other = open_with(&ib);
        must((ref_of(other.a, nowhere) != 0) == (farthest != PCI_LOC));
        ends_close(&other);
    }
    memory_free(memory);
    memory_free(nowhere);
    end(&e);
}

static void place_at(pci_place *place, const char *path)
{
    place->numa = -1;
    (void)text_format(place->path, sizeof place->path, "%s", path);
}

static bool reached_over_a_new_link(const unsigned char *memory)
{
    const transport_ib ib = TRANSPORT_IB_DEFAULTS;
    ends e = open_with(&ib);
    const bool reached = ref_of(e.a, memory) != 0;
    ends_close(&e);
    return reached;
}

/* A link's first rail is the adapter next to the GPU if there is only one GPU; the second may be
 * far from it. */
static void nearest_rail(void)
{
    static cuda_device other;
    const adapter_port *ports;
    setenv("FAKE_IBVERBS", "devices=2", 1);
    must(ends_choose("verbs"));
    must_ok(cuda_memory_open(0, "/nowhere", &gpu));
    must_ok(cuda_memory_open(0, "/nowhere", &other));
    must(adapter_ports(&ports) == 2);
    place_at(&ports[0].device->place, "pci0000:00/0000:00:01.0/0000:01:00.0");
    place_at(&ports[1].device->place, "pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:00.0");
    place_at(&gpu.place, "pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:01.0");
    unsigned char *memory = memory_new();
    must(reached_over_a_new_link(memory));
    unsigned char *second = CUDA(fake_cuda_alloc)(BYTES);
    must_ok(region_add_device(second, BYTES, &other.base));
    must(!reached_over_a_new_link(memory));
    memory_free(second);
    must(reached_over_a_new_link(memory));
    memory_free(memory);
    cuda_memory_close(&gpu);
    cuda_memory_close(&other);
}

/* One that shares nothing. */
static void not_shared(void)
{
    ends e = begin("devices=1");
    gpu.base.share = NULL;
    unsigned char *memory = memory_new();
    must(ref_of(e.a, memory) == 0 && registered().calls == 0);
    memory_free(memory);
    end(&e);
}

int main(int argc, char **argv)
{
    static const named_test tests[] = {{"by_dmabuf", by_dmabuf},
                                       {"with_each_adapter", with_each_adapter},
                                       {"in_any_order", in_any_order},
                                       {"refused", refused},
                                       {"refused_by_the_driver", refused_by_the_driver},
                                       {"adapter_takes_no_dmabuf", adapter_takes_no_dmabuf},
                                       {"dmabuf_fails", dmabuf_fails},
                                       {"unknown_address", unknown_address},
                                       {"put_get_and_carried", put_get_and_carried},
                                       {"near_enough", near_enough},
                                       {"nearest_rail", nearest_rail},
                                       {"not_shared", not_shared}};
    if (argc == 2)
        return named_run(tests, sizeof tests / sizeof *tests, argv[1]);
    fprintf(stderr, "usage: %s TEST\n", argv[0]);
    return 2;
}
