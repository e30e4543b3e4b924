/* SPDX-License-Identifier: Apache-2.0
 * Tests the cases that only ucx has: false bytes over the socket, an unfinished connection,
 * messages of strangers, and names of UCX's transports. Usage: test_transport_ucx_wire NAME */
#include "named.h"
#include "traffic.h"

#include "ucx.h"
#include "ucx_pass.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Greetings -------------------------------------------------------------------- */

static ucx_greeting good_greeting(void)
{
    ucx_greeting g = {.version = 1, .address_bytes = 64};
    memcpy(g.magic, "ringucx", sizeof g.magic);
    memset(g.hub, 'h', sizeof g.hub);
    return g;
}

static void expect_refused(const void *bytes, size_t size)
{
    int fds[2];
    transport_link *l;
    ends_sockets(fds);
    must(write(fds[1], bytes, size) == (ssize_t)size);
    const transport_peer peer = {.rank = RANK_A, .peer = RANK_B, .fd = fds[0]};
    must_ok(ends_transport()->open(&peer, &l));
    const double end = clock_now() + 5;
    ring_status status;
    while ((status = l->transport->progress(l)) == RING_IN_PROGRESS && clock_now() < end)
        clock_sleep(1e-4);
    must_be(status, RING_ERR_PEER);
    must(strstr(fail_text(), "rank 42: the peer's first message is not a ucx greeting") != NULL);
    end_close(l);
    fd_close(&fds[1]);
}

static void test_false_greetings(void)
{
    ucx_greeting g = good_greeting();
    g.magic[3]++;
    expect_refused(&g, sizeof g);
    g = good_greeting();
    g.version = 2;
    expect_refused(&g, sizeof g);
    const uint32_t absurd[] = {0, UCX_ADDRESS_MOST + 1, UINT32_MAX};
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
        g = good_greeting();
        g.address_bytes = absurd[i];
        expect_refused(&g, sizeof g);
    }
}

/* ---- Calls ------------------------------------------------------------------------ */

static void read_all(int fd, void *to, size_t bytes)
{
    must(recv(fd, to, bytes, MSG_WAITALL) == (ssize_t)bytes);
}

/* @param peer  the socket on which a link greets that will listen. @return a connection to it. */
static int call_its_listener(int peer)
{
    ucx_greeting theirs;
    unsigned char address[UCX_ADDRESS_MOST];
    ucx_note note;
    read_all(peer, &theirs, sizeof theirs);
    must(theirs.address_bytes <= sizeof address);
    read_all(peer, address, theirs.address_bytes);
    read_all(peer, &note, sizeof note);
    must(note.way == UCX_LISTENS);
    const int call = socket(note.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(connect(call, (const struct sockaddr *)&note.at, (socklen_t)note.length) == 0);
    return call;
}

/* UCX 1.13 passes a connection request to its listener even after that was destroyed, so the
 * listener must not be destroyed while one is in progress. */
static void test_listener_outlives_a_call(void)
{
    int fds[2];
    char byte;
    transport_link *l;
    ends_sockets(fds);
    ucx_greeting g = good_greeting();
    const unsigned char address[64] = {0};
    memset(g.hub, 0xff, sizeof g.hub); /* so that the link listens */
    must(write(fds[1], &g, sizeof g) == (ssize_t)sizeof g);
    must(write(fds[1], address, sizeof address) == (ssize_t)sizeof address);
    const transport_peer peer = {.rank = RANK_A, .peer = RANK_B, .fd = fds[0]};
    must_ok(ends_transport()->open(&peer, &l));
    must_be(l->transport->progress(l), RING_IN_PROGRESS);
    const int call = call_its_listener(fds[1]);
    fd_close(&fds[1]);
    end_expect_broken(l, RANK_B, 5);
    end_close(l);
    must(recv(call, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    close(call);
}

/* ---- Messages --------------------------------------------------------------------- */

static void forget(void *request, ucs_status_t status, void *unused)
{
    ucx.ucp_request_free(request);
}

/* Sends a message like any process that knows the worker's address. */
static void say(const ucx_label *label, size_t label_bytes, const void *data, size_t bytes)
{
    static unsigned char of[UCX_TOKEN]; /* the hub */
    static ucp_ep_h ep;
    const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                    .address = hub.address};
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
                                       .cb.send = forget};
    pthread_mutex_lock(&hub.lock);
    if (memcmp(of, hub.id, sizeof of) != 0)
        ep = NULL;
    memcpy(of, hub.id, sizeof of);
    must(ep != NULL || ucx.ucp_ep_create(hub.worker, &params, &ep) == UCS_OK);
    must(!UCS_PTR_IS_ERR(
        ucx.ucp_am_send_nbx(ep, UCX_MESSAGE, label, label_bytes, data, bytes, &param)));
    for (int i = 0; i < 100; i++)
        ucx_pass();
    pthread_mutex_unlock(&hub.lock);
}

/* Makes a label like those of the peer of @p to. */
static ucx_label true_label(const transport_link *to, ucx_kind kind)
{
    const ucx_link *l = (const ucx_link *)to;
    ucx_label label = {.link = l->number, .kind = (uint8_t)kind};
    memcpy(label.token, l->token, sizeof label.token);
    return label;
}

static void expect_frames_still_come(const ends *e, uint64_t n)
{
    const transport_frame frame = frame_make(n, 0);
    const void *none;
    must_ok(e->a->transport->send(e->a, &frame, NULL, true));
    frame_check(ends_receive(e->a, e->b, &none), n, 0);
    e->b->transport->consume(e->b);
}

/* Messages without the token are dropped and do no harm. */
static void test_strangers_are_not_heard(void)
{
    ends e = ends_open();
    for (uint64_t n = 0; n < 400; n++) {
        ucx_label label = true_label(e.b, (ucx_kind)(n % 8));
        const transport_frame *frame;
        const void *payload;
        label.frame = frame_make_short(n, 8);
        if (n % 2 == 0)
            label.token[n % UCX_TOKEN] ^= (unsigned char)(1u << n % 8);
        else
            label.link = (uint32_t)scramble(n);
        say(&label, n % 5 == 0 ? 40 + n % 30 : sizeof label, &n, n % 9);
        must_be(e.b->transport->peek(e.b, &frame, &payload), RING_IN_PROGRESS);
    }
    expect_frames_still_come(&e, 1);
    ends_close(&e);
}

static void expect_doom(const ucx_label *label, const transport_link *to, ends *e, const char *why)
{
    say(label, ucx_label_bytes((ucx_kind)label->kind), NULL, 0);
    end_expect_broken(e->b, RANK_A, 5);
    (void)e->b->transport->progress(e->b);
    must(strstr(fail_text(), why) != NULL);
    ends_close(e);
}

/* A peer that sends false labels breaks its link, and accesses only registered memory. */
static void test_lies_of_the_peer_end_the_link(void)
{
    ends e = ends_open();
    ucx_label label = true_label(e.b, UCX_WORDS);
    label.received = label.taken = 1000;
    expect_doom(&label, e.b, &e, "acknowledges frames that were not sent");
    e = ends_open();
    label = true_label(e.b, UCX_FRAME);
    label.number = UCX_SLOTS;
    expect_doom(&label, e.b, &e, "a damaged frame");
    e = ends_open();
    label = true_label(e.b, UCX_FRAME);
    label.place = UCX_PAYLOAD;
    expect_doom(&label, e.b, &e, "a payload at an invalid offset");
    e = ends_open();
    label = true_label(e.b, UCX_PUT);
    label.place = UINT64_C(5) << REGION_OFFSET_BITS;
    label.frame.flags = FRAME_LONG | FRAME_STORED;
    expect_doom(&label, e.b, &e, "a put outside the registered memory");
    e = ends_open();
    label = true_label(e.b, UCX_DATA);
    expect_doom(&label, e.b, &e, "data that was not requested");
}

/* ---- Names ------------------------------------------------------------------------ */

static void expect_names(const char *list, const char *translated, const char *unknown)
{
    char out[UCX_TLS_MOST], strange[UCX_TLS_MOST];
    must(ucx_tls_translate(list, out, strange));
    must(strcmp(out, translated) == 0 && strcmp(strange, unknown) == 0);
}

static void test_names(void)
{
    char out[UCX_TLS_MOST], unknown[UCX_TLS_MOST], longest[2 * UCX_TLS_MOST];
    expect_names("tcp,self", "tcp,self", "");
    expect_names("openib", "ib", "");
    expect_names("self,openib,sm", "self,ib,sm", "");
    expect_names("^openib,tcp", "^ib,tcp", "");
    expect_names("rc_verbs,ud:aux", "rc_verbs,ud:aux", "");
    expect_names("openibs,tcp,vader", "openibs,tcp,vader", "openibs,vader");
    expect_names("", "", "");
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    must(!ucx_tls_translate(longest, out, unknown));
}

int main(int argc, char **argv)
{
    static const named_test tests[] = {
        {"false_greetings", test_false_greetings},
        {"listener_outlives_a_call", test_listener_outlives_a_call},
        {"strangers_are_not_heard", test_strangers_are_not_heard},
        {"lies_of_the_peer_end_the_link", test_lies_of_the_peer_end_the_link},
        {"names", test_names},
    };
    if (argc == 2 && ends_choose("ucx"))
        return named_run(tests, sizeof tests / sizeof *tests, argv[1]);
    fprintf(stderr, "usage: %s NAME\n", argv[0]);
    return 2;
}
