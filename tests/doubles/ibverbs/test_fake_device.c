/* SPDX-License-Identifier: Apache-2.0
 * The fake libibverbs: devices, memory, failures. */
#include "fake_tests.h"
#include "verbs_bed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096 };

static void expect_gid_type(struct ibv_context *context, uint32_t index, uint32_t type)
{
    struct ibv_gid_entry entry;
    static const uint8_t mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 1};
    assert_int_equal(verbs._ibv_query_gid_ex(context, 1, index, &entry, 0, sizeof entry), 0);
    assert_int_equal(entry.gid_type, type);
    assert_memory_equal(entry.gid.raw, mapped, sizeof mapped);
}

void test_devices(void)
{
    struct ibv_port_attr port;
    union ibv_gid gid;
    struct ibv_gid_entry entry;
    int count;
    bed_load("devices=3,down=fake2,mtu=4096");
    struct ibv_device **list = verbs.ibv_get_device_list(&count);
    assert_int_equal(count, 3);
    assert_null(list[3]);
    assert_string_equal(verbs.ibv_get_device_name(list[1]), "fake1");
    struct ibv_context *context = verbs.ibv_open_device(list[0]);
    assert_int_equal(bed_query_port(context, 1, &port), 0);
    assert_int_equal(port.state, IBV_PORT_ACTIVE);
    assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
    assert_int_equal(port.active_mtu, IBV_MTU_4096);
    assert_int_equal(port.lid, 0);
    assert_int_equal(bed_query_port(context, 2, &port), EINVAL);
    expect_gid_type(context, 0, IBV_GID_TYPE_ROCE_V1);
    expect_gid_type(context, 1, IBV_GID_TYPE_ROCE_V2);
    assert_int_equal(verbs._ibv_query_gid_ex(context, 1, 2, &entry, 0, sizeof entry), ENODATA);
    assert_int_equal(verbs.ibv_query_gid(context, 1, 2, &gid), 0);
    assert_int_equal(gid.global.interface_id, 0);
    assert_int_equal(verbs.ibv_query_gid(context, 1, 1000, &gid), -1);
    assert_int_equal(verbs.ibv_close_device(context), 0);
    context = verbs.ibv_open_device(list[2]);
    verbs.ibv_free_device_list(list);
    assert_int_equal(bed_query_port(context, 1, &port), 0);
    assert_int_equal(port.state, IBV_PORT_DOWN);
    assert_string_equal(verbs.ibv_port_state_str(port.state), "down");
    assert_int_equal(verbs.ibv_close_device(context), 0);
}

/* Also that the exported bed_query_port() leaves alone what old programs do not have. */
void test_infiniband(void)
{
    struct ibv_port_attr port;
    __be16 pkey;
    bed_load("link=ib");
    bed b = bed_open();
    memset(&port, 0x77, sizeof port);
    assert_int_equal((verbs.ibv_query_port)(b.b.context, 1,
                                            (struct _compat_ibv_port_attr *)(void *)&port),
                     0);
    assert_int_equal(port.link_layer, IBV_LINK_LAYER_INFINIBAND);
    assert_int_equal(port.lid, 2);
    assert_int_equal(port.port_cap_flags2, 0x7777);
    assert_int_equal(verbs.ibv_query_pkey(b.a.context, 1, 0, &pkey), 0);
    assert_int_equal(verbs.ibv_get_pkey_index(b.a.context, 1, pkey), 0);
    assert_int_equal(verbs.ibv_get_pkey_index(b.a.context, 1, htons(0x7fff)), -1);
    bed_set_word(b.a.memory, 7);
    bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_SEND_SIGNALED);
    bed_expect(&b.a, IBV_WC_SUCCESS);
    bed_await_word(b.b.memory, 7);
    bed_close(&b);
}

void test_limits(void)
{
    struct ibv_device_attr device;
    bed_load("wrs=16,inline=32,rd_atomic=2,strict_inline");
    bed_wishes.inlined = 32;
    bed_wishes.reads = 2;
    bed b = bed_open();
    assert_int_equal(verbs.ibv_query_device(b.a.context, &device), 0);
    assert_int_equal(device.max_qp_wr, 16);
    assert_int_equal(device.max_qp_rd_atom, 2);
    assert_int_equal(device.phys_port_cnt, 1);
    struct ibv_qp_init_attr init = {.send_cq = b.a.cq,
                                    .recv_cq = b.a.cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 17, .max_send_sge = 1}};
    assert_null(verbs.ibv_create_qp(b.a.pd, &init));
    init.cap.max_send_wr = 16;
    init.cap.max_inline_data = 33;
    assert_null(verbs.ibv_create_qp(b.a.pd, &init));
    assert_int_equal(errno, EINVAL);
    init.cap.max_inline_data = 32;
    init.qp_type = IBV_QPT_UD;
    assert_null(verbs.ibv_create_qp(b.a.pd, &init));
    assert_int_equal(errno, EOPNOTSUPP);
    init.qp_type = IBV_QPT_RC;
    init.recv_cq = b.b.cq; /* of another context */
    assert_null(verbs.ibv_create_qp(b.a.pd, &init));
    bed_close(&b);
}

/* @return the signal that ended a child which runs @p body. */
static int signal_of(void (*body)(void))
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void list_devices(void)
{
    verbs.ibv_free_device_list(verbs.ibv_get_device_list(NULL));
}

void test_wrong_options(void)
{
    static const char *const wrong[] = {"device=2",   "devices=x",    "devices=17", "link=opa",
                                        "mtu=1500",   "fail=reg_mr",  "no_dmabuf=", "wrs=0",
                                        "fail=foo:1", "fail=reg_mr:0"};
    bed_load("");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("FAKE_IBVERBS", wrong[i], 1);
        assert_int_equal(signal_of(list_devices), SIGABRT);
    }
    setenv("FAKE_IBVERBS", "devices=0", 1);
    assert_int_equal(signal_of(list_devices), 0);
}

void test_port_events(void)
{
    struct ibv_async_event event;
    struct ibv_port_attr port;
    bed_load("");
    struct ibv_context *context = bed_open_device(1);
    assert_false(verbs.fake_ibverbs_port_event("fake7", IBV_EVENT_PORT_ERR));
    assert_true(verbs.fake_ibverbs_port_event("fake1", IBV_EVENT_PORT_ERR));
    assert_int_equal(verbs.ibv_get_async_event(context, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
    assert_int_equal(event.element.port_num, 1);
    assert_string_equal(verbs.ibv_event_type_str(event.event_type), "port error");
    verbs.ibv_ack_async_event(&event);
    assert_int_equal(bed_query_port(context, 1, &port), 0);
    assert_int_equal(port.state, IBV_PORT_DOWN);
    assert_int_equal(verbs.ibv_close_device(context), 0);
}

/* ---- Failures ---- */

static void expect_failing(const char *function, const bed *b)
{
    bed_request r;
    struct ibv_send_wr *bad;
    struct ibv_wc wc;
    bed_request_make(&r, b, IBV_WR_RDMA_WRITE, 0, 0, 8);
    assert_true(verbs.fake_ibverbs_fail(function, 2));
    for (int i = 0; i < 3; i++) {
        int result;
        if (strcmp(function, "post_send") == 0)
            result = ibv_post_send(b->a.qp, &r.wr, &bad);
        else if (strcmp(function, "poll_cq") == 0)
            result = ibv_poll_cq(b->b.cq, 1, &wc);
        else
            result = ibv_req_notify_cq(b->a.cq, 0);
        assert_int_equal(result != 0, i == 1);
    }
}

static void expect_known(void)
{
    static const char *const names[] = {"open_device",         "alloc_pd",      "reg_mr",
                                        "create_comp_channel", "create_cq",     "create_srq",
                                        "create_qp",           "modify_qp",     "post_send",
                                        "post_srq_recv",       "poll_cq",       "query_port",
                                        "post_recv",           "req_notify_cq", "query_gid"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_true(verbs.fake_ibverbs_fail(names[i], 0));
}

static void expect_nothing_made(const bed *b)
{
    struct ibv_srq_init_attr shared = {.attr = {.max_wr = 1, .max_sge = 1}};
    struct ibv_qp_init_attr init = {.send_cq = b->a.cq,
                                    .recv_cq = b->a.cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 1}};
    static const char *const names[] = {"reg_mr", "create_comp_channel", "create_cq", "create_srq",
                                        "create_qp"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_true(verbs.fake_ibverbs_fail(names[i], 1));
    assert_null((verbs.ibv_reg_mr)(b->a.pd, b->a.memory, 8, 0));
    assert_int_equal(errno, ENOMEM);
    assert_null(verbs.ibv_create_comp_channel(b->a.context));
    assert_int_equal(errno, EMFILE);
    assert_null(verbs.ibv_create_cq(b->a.context, 1, NULL, NULL, 0));
    assert_null(verbs.ibv_create_srq(b->a.pd, &shared));
    assert_null(verbs.ibv_create_qp(b->a.pd, &init));
}

void test_failures(void)
{
    bed_load("");
    bed b = bed_open();
    assert_false(verbs.fake_ibverbs_fail("ibv_post_send", 1));
    expect_failing("post_send", &b);
    expect_failing("poll_cq", &b);
    expect_failing("req_notify_cq", &b);
    assert_true(verbs.fake_ibverbs_fail("modify_qp", 1));
    assert_int_not_equal(bed_modify(&b.a, bed_attr(&b.a, &b.b), IBV_QPS_ERR, IBV_QP_STATE), 0);
    assert_int_equal(bed_state(&b.a), IBV_QPS_RTS);
    expect_known();
    expect_nothing_made(&b);
    bed_expect(&b.a, IBV_WC_SUCCESS);
    bed_expect(&b.a, IBV_WC_SUCCESS);
    bed_close(&b);
}

void test_failure_by_environment(void)
{
    bed_load("fail=alloc_pd:2,fail=open_device:1");
    assert_null(bed_open_device(0));
    assert_int_equal(errno, EPERM);
    struct ibv_context *context = bed_open_device(0);
    struct ibv_pd *pd = verbs.ibv_alloc_pd(context);
    assert_non_null(pd);
    assert_null(verbs.ibv_alloc_pd(context));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(verbs.ibv_dealloc_pd(pd), 0);
    assert_int_equal(verbs.ibv_close_device(context), 0);
}

void test_in_use(void)
{
    fake_ibverbs_counts counts;
    bed_load("");
    bed b = bed_open();
    verbs.fake_ibverbs_counters(&counts);
    assert_int_equal(counts.contexts, 2);
    assert_int_equal(counts.registrations, 2);
    assert_int_equal(counts.registered_bytes, 2 * BED_BYTES);
    assert_int_equal(verbs.ibv_destroy_cq(b.a.cq), EBUSY);
    assert_int_equal(verbs.ibv_destroy_srq(b.a.srq), EBUSY);
    assert_int_equal(verbs.ibv_destroy_comp_channel(b.a.channel), EBUSY);
    assert_int_equal(verbs.ibv_dealloc_pd(b.a.pd), EBUSY);
    assert_int_equal(verbs.ibv_close_device(b.a.context), EBUSY);
    bed_close(&b);
}

static bed forked;

static void close_it(void)
{
    if (verbs.ibv_dereg_mr(forked.a.mr) != 0 || verbs.ibv_destroy_qp(forked.a.qp) != 0)
        abort();
}

/* While the adapter works. */
void test_forks(void)
{
    bed_load("no_copy_on_fork");
    assert_int_equal(verbs.ibv_is_fork_initialized(), IBV_FORK_DISABLED);
    assert_int_equal(verbs.ibv_fork_init(), 0);
    assert_int_equal(verbs.ibv_is_fork_initialized(), IBV_FORK_ENABLED);
    forked = bed_open();
    for (int i = 0; i < 20; i++) {
        bed_must_post(&forked, IBV_WR_RDMA_WRITE, 0, 0, BED_BYTES, IBV_SEND_SIGNALED);
        assert_int_equal(signal_of(close_it), 0);
        bed_expect(&forked.a, IBV_WC_SUCCESS);
    }
    bed_close(&forked);
}

/* ---- Memory ---- */

void test_registrations(void)
{
    static char readable[2 * PAGE] __attribute__((aligned(PAGE)));
    bed_load("memlock=8192");
    struct ibv_context *context = bed_open_device(0);
    struct ibv_pd *pd = verbs.ibv_alloc_pd(context);
    struct ibv_mr *mr = (verbs.ibv_reg_mr)(pd, readable, PAGE, IBV_ACCESS_REMOTE_READ);
    assert_non_null(mr);
    assert_int_not_equal(mr->lkey, mr->rkey);
    assert_null((verbs.ibv_reg_mr)(pd, readable, PAGE + 1, 0)); /* memlock */
    assert_int_equal(errno, ENOMEM);
    assert_null((verbs.ibv_reg_mr)(pd, readable, 8, IBV_ACCESS_REMOTE_WRITE));
    assert_int_equal(errno, EINVAL);
    assert_null(verbs.ibv_reg_mr_iova2(pd, readable, 8, 100, 0));
    assert_int_equal(errno, EINVAL);
    char *none = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_null((verbs.ibv_reg_mr)(pd, none, 8, 0));
    assert_int_equal(errno, EFAULT);
    munmap(none, PAGE);
    assert_int_equal(verbs.ibv_dereg_mr(mr), 0);
    mr = (verbs.ibv_reg_mr)(pd, readable, 2 * PAGE, 0);
    assert_non_null(mr);
    assert_int_equal(verbs.ibv_dereg_mr(mr), 0);
    assert_int_equal(verbs.ibv_dealloc_pd(pd), 0);
    assert_int_equal(verbs.ibv_close_device(context), 0);
}

void test_keys(void)
{
    enum { KEYS = 100000 };
    static uint32_t before;
    fake_ibverbs_counts counts;
    bed_load("");
    bed b = bed_open();
    for (int i = 0; i < KEYS; i++) {
        struct ibv_mr *mr = (verbs.ibv_reg_mr)(b.a.pd, b.a.memory, 8, 0);
        assert_non_null(mr);
        assert_true(mr->lkey >> 8 > before >> 8); /* so none comes twice */
        assert_int_equal(mr->lkey >> 8, mr->rkey >> 8);
        before = mr->lkey;
        assert_int_equal(verbs.ibv_dereg_mr(mr), 0);
    }
    verbs.fake_ibverbs_counters(&counts);
    assert_int_equal(counts.registrations_made, KEYS + 2);
    bed_close(&b);
}

/* Memory that the program maps elsewhere stands for a device's. */
void test_dmabuf(void)
{
    fake_ibverbs_dmabuf last;
    bed_load("");
    bed b = bed_open();
    const int fd = memfd_create("device", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
    char *seen = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const uint64_t address = 0x7000000000 + 24;
    assert_null(verbs.ibv_reg_dmabuf_mr(b.b.pd, 0, 0, 0, -1, 0));
    assert_int_equal(errno, EBADF);
    assert_null(verbs.ibv_reg_dmabuf_mr(b.b.pd, PAGE, 64, address, fd, 0));
    struct ibv_mr *mr = verbs.ibv_reg_dmabuf_mr(b.b.pd, PAGE + 24, 64, address, fd,
                                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    assert_non_null(mr);
    verbs.fake_ibverbs_dmabuf_calls(&last);
    assert_int_equal(last.calls, 3);
    assert_int_equal(last.offset, PAGE + 24);
    assert_int_equal(last.iova, address);
    assert_int_equal(last.fd, fd);
    bed_request r;
    bed_request_make(&r, &b, IBV_WR_RDMA_WRITE, 0, 0, 8);
    r.wr.wr.rdma.remote_addr = address + 8;
    r.wr.wr.rdma.rkey = mr->rkey;
    bed_set_word(b.a.memory, 77);
    assert_int_equal(bed_post(&b, &r), 0);
    bed_expect(&b.a, IBV_WC_SUCCESS);
    assert_int_equal(bed_word(seen + PAGE + 32), 77);
    assert_int_equal(verbs.ibv_dereg_mr(mr), 0);
    munmap(seen, 4 * PAGE);
    close(fd);
    bed_close(&b);
}
