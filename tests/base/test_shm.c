/* SPDX-License-Identifier: Apache-2.0
 * Cases of shm alone: memory files that are passed between processes, and the checks of them. */
#include "heap.h"
#include "lines_link.h"
#include "pair.h"
#include "pass.h"
#include "region.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit_test.h"

/* ---- References ---------------------------------------------------------------- */

static int die(int number)
{
    fprintf(stderr, "child: step %d: %s\n", number, fail_text());
    return number;
}

/* Rank 1 in the child: adds one to each number that rank 0 refers to. */
static int add_one_in_place(int fd)
{
    transport_link *l;
    const transport_frame *frame;
    const void *payload;
    const transport_peer peer = {.rank = 1, .peer = 0, .fd = fd};
    if (transport_shm.open(&peer, &l) != RING_OK)
        return die(1);
    ring_status status;
    while ((status = transport_shm.peek(l, &frame, &payload)) == RING_IN_PROGRESS)
        if (transport_shm.progress(l) == RING_ERR_PEER)
            return die(2);
    int *numbers = transport_shm.map(l, frame->ext.src_ref, frame->ext.bytes);
    if (status != RING_OK || payload != NULL || numbers == NULL)
        return die(3);
    for (size_t i = 0; i < frame->ext.bytes / sizeof *numbers; i++)
        numbers[i]++;
    transport_shm.consume(l);
    transport_shm.release(l, 1);
    transport_shm.close(l);
    return 0;
}

static void a_peer_process_reads_and_writes_heap_memory_in_place(void **state)
{
    enum { NUMBERS = 100000 };
    int fds[2], status, *numbers;
    opening o;
    pair_sockets(fds);
    const pid_t child = fork();
    if (child == 0) {
        close(fds[0]);
        _exit(add_one_in_place(fds[1]));
    }
    close(fds[1]);
    opening_start(&o, &transport_shm, 0, fds[0], 20);
    assert_int_equal(opening_end(&o), RING_OK);
    assert_int_equal(heap_alloc((void **)&numbers, NUMBERS * sizeof *numbers), RING_OK);
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = i;
    const double end = clock_now() + 20;
    transport_frame frame = {.flags = FRAME_LONG | FRAME_REF,
                             .ext.bytes = NUMBERS * sizeof *numbers};
    do /* the peer has still to say that it has mapped the heap */
        frame.ext.src_ref = transport_shm.ref(o.link, numbers, NUMBERS * sizeof *numbers);
    while (frame.ext.src_ref == 0 && clock_now() < end);
    assert_int_equal(transport_shm.send(o.link, &frame, NULL, false), RING_OK);
    /* A child that has released it goes at once: its end may be seen first. */
    ring_status going = RING_OK;
    while (transport_shm.released(o.link) < 1 && going == RING_OK && clock_now() < end)
        going = transport_shm.progress(o.link);
    assert_int_equal(transport_shm.released(o.link), 1);
    for (int i = 0; i < NUMBERS; i++)
        assert_int_equal(numbers[i], i + 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    transport_shm.close(o.link);
    heap_free(numbers);
}

static void references_stay_within_the_heap(void **state)
{
    transport_link *ends[2];
    int local;
    pair_open(&transport_shm, ends);
    const uint64_t span = heap_span();
    assert_int_equal(transport_shm.ref(ends[0], &local, sizeof local), 0);
    char *base = transport_shm.map(ends[1], 1, span);
    assert_non_null(base);
    assert_ptr_equal(transport_shm.map(ends[1], span, 1), base + span - 1);
    assert_null(transport_shm.map(ends[1], 0, 1));
    assert_null(transport_shm.map(ends[1], 2, span));
    assert_null(transport_shm.map(ends[1], span, 2));
    assert_null(transport_shm.map(ends[1], span + 2, 0));
    assert_null(transport_shm.map(ends[1], 1, span + 1));
    assert_null(transport_shm.map(ends[1], UINT64_MAX, 8));
    assert_null(transport_shm.map(ends[1], 8, SIZE_MAX));
    pair_close(ends);
}

/* ---- Without shared buffers -------------------------------------------------------- */

/* The other end cannot mean this. */
static bool refuses(transport_link *ends[2], unsigned reference)
{
    lines_producer *out = &((lines_link *)ends[0])->out;
    const transport_frame frame = {.flags = (uint8_t)(FRAME_LONG | reference), .ext.src_ref = 1};
    const transport_frame *got;
    const void *payload;
    if (lines_room(out, 0) == RING_OK)
        lines_publish(out, &frame, NULL);
    return transport_shm.peek(ends[1], &got, &payload) == RING_ERR_PEER;
}

/* Both ends in this process: nothing is lent, and frames still pass. */
static int carry_everything(void *buffer, unsigned reference)
{
    transport_link *ends[2];
    const void *payload;
    const transport_frame hello = {.flags = FRAME_LONG, .ext.bytes = 5};
    pair_open(&transport_shm, ends);
    if (transport_shm.ref(ends[0], buffer, 8) != 0 || transport_shm.map(ends[1], 1, 8) != NULL)
        return 1;
    if (transport_shm.send(ends[0], &hello, "hello", false) != RING_OK)
        return 2;
    pair_receive(ends[1], &payload);
    const int result = memcmp(payload, "hello", 5) == 0 ? 0 : 3;
    transport_shm.consume(ends[1]);
    if (!refuses(ends, reference))
        return 4;
    pair_close(ends);
    return result;
}

static bool limit_to(int resource, size_t bytes)
{
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
    return setrlimit(resource, &limit) == 0;
}

static size_t address_space_used(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu", &pages), 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* A heap is there, and no room for another. */
static int link_in_a_full_address_space(void)
{
    void *buffer;
    if (heap_alloc(&buffer, 8) != RING_OK)
        return 10;
    if (!limit_to(RLIMIT_AS, address_space_used() + min_size(heap_span() / 2, (size_t)1 << 30)))
        return 11;
    return carry_everything(buffer, FRAME_REF);
}

static int link_without_a_heap(void)
{
    int buffer[2];
    if (!limit_to(RLIMIT_FSIZE, (size_t)2 << 20) || heap_open() == RING_OK)
        return 10;
    return carry_everything(buffer, FRAME_STORED);
}

/* No memory file at all: the transport says so and nothing is killed. */
static int probe_without_files(void)
{
    char why[256] = "";
    if (!limit_to(RLIMIT_FSIZE, 4096) || transport_shm.probe(NULL, why, sizeof why))
        return 1;
    return strstr(why, "ulimit -f") != NULL ? 0 : 2;
}

static void expect_of_child(int (*body)(void))
{
    int status;
    const pid_t child = fork();
    if (child == 0)
        _exit(body());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_peers_heap_that_cannot_be_mapped_is_done_without(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip_because("sanitizers need to map more at any time");
#endif
    expect_of_child(link_in_a_full_address_space);
}

static void a_link_needs_no_heap(void **state)
{
    expect_of_child(link_without_a_heap);
    expect_of_child(probe_without_files);
}

/* ---- Resources ----------------------------------------------------------------- */

static void a_quiet_link_holds_little_and_leaves_nothing(void **state)
{
    transport_link *ends[2];
    pair_open(&transport_shm, ends); /* the heap is there from now on */
    assert_in_range(transport_shm.memory(ends[0]), sizeof(lines_link), 64 * 1024);
    pair_close(ends);
    const size_t before = pair_count_fds();
    pair_open(&transport_shm, ends);
    assert_true(pair_count_fds() > before);
    pair_close(ends);
    assert_int_equal(pair_count_fds(), before);
}

static void a_ring_has_no_name_and_cannot_shrink(void **state)
{
    int fd;
    char path[64], target[256] = "";
    lines_ring *ring;
    uint32_t lines;
    assert_int_equal(shm_region_create(&fd, &ring, &lines), RING_OK);
    assert_int_equal(lines, LINES);
    assert_true(text_format(path, sizeof path, "/proc/self/fd/%d", fd));
    assert_true(readlink(path, target, sizeof target - 1) > 0);
    assert_non_null(strstr(target, "/memfd:"));
    assert_int_not_equal(ftruncate(fd, 0), 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    shm_region_unmap(ring);
    close(fd);
}

static void a_limit_on_file_sizes_makes_rings_shorter(void **state)
{
    static char payload[TRANSPORT_SEGMENT];
    transport_link *ends[2];
    struct rlimit limit, low;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    low = (struct rlimit){.rlim_cur = 1000 << 10, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    pair_open(&transport_shm, ends);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(((lines_link *)ends[i])->out.lines, LINES_OF_MANY);
        assert_int_equal(((lines_link *)ends[i])->in.lines, LINES_OF_MANY);
    }
    for (uint64_t i = 0; i < 50; i++) {
        const transport_frame frame = {.flags = FRAME_LONG,
                                       .message = i,
                                       .ext.bytes = TRANSPORT_SEGMENT};
        const transport_frame *got;
        const void *came;
        memset(payload, (int)i, sizeof payload);
        assert_int_equal(transport_shm.send(ends[0], &frame, payload, true), RING_OK);
        assert_int_equal(transport_shm.peek(ends[1], &got, &came), RING_OK);
        assert_memory_equal(came, payload, sizeof payload);
        transport_shm.consume(ends[1]);
    }
    pair_close(ends);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* ---- Wrong peers ----------------------------------------------------------------- */

static int file_of(size_t bytes, int seals)
{
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static size_t ring_bytes(void)
{
    return (sizeof(lines_ring) + 4095) / 4096 * 4096;
}

/* Plays rank 1 with a right greeting, these two files and the word that it mapped the heap. */
static ring_status open_with_files(int ring, int heap)
{
    int fds[2];
    opening o;
    const lines_greeting mine = lines_link_greeting(&(lines_link){0}, heap_span());
    const int passed[SHM_PASS_FDS] = {ring, heap};
    pair_sockets(fds);
    opening_start(&o, &transport_shm, 0, fds[0], 10);
    assert_int_equal(shm_pass_send(fds[1], &mine, sizeof mine, passed), RING_OK);
    const ring_status status = opening_end(&o);
    if (status == RING_OK)
        transport_shm.close(o.link);
    close(fds[1]);
    close(ring);
    close(heap);
    return status;
}

static void files_that_may_shrink_or_have_the_wrong_size_are_refused(void **state)
{
    assert_int_equal(heap_open(), RING_OK);
    const size_t before = pair_count_fds();
    const size_t ring = ring_bytes(), heap = heap_span();
    const int seal = F_SEAL_SHRINK;
    assert_int_equal(open_with_files(file_of(ring, seal), file_of(heap, seal)), RING_OK);
    assert_int_equal(open_with_files(file_of(ring, 0), file_of(heap, seal)), RING_ERR_PEER);
    assert_int_equal(open_with_files(file_of(ring, seal), file_of(heap, 0)), RING_ERR_PEER);
    assert_int_equal(open_with_files(file_of(4096, seal), file_of(heap, seal)), RING_ERR_PEER);
    assert_int_equal(open_with_files(file_of(ring, seal), file_of(4096, seal)), RING_ERR_PEER);
    assert_int_equal(open_with_files(file_of(heap, seal), file_of(ring, seal)), RING_ERR_PEER);
    assert_int_equal(open_with_files(dup(STDERR_FILENO), file_of(heap, seal)), RING_ERR_PEER);
    assert_int_equal(pair_count_fds(), before);
}

static void a_greeting_without_files_is_refused(void **state)
{
    int fds[2];
    opening o;
    const lines_greeting mine = lines_link_greeting(&(lines_link){0}, 0);
    pair_sockets(fds);
    opening_start(&o, &transport_shm, 0, fds[0], 10);
    assert_int_equal(fd_write_all(fds[1], &mine, sizeof mine, clock_now() + 10), RING_OK);
    assert_int_equal(opening_end(&o), RING_ERR_PEER);
    assert_non_null(strstr(o.text, "0 descriptors"));
    close(fds[1]);
}

/* In a child, whose limit leaves room for @p left more descriptors. */
static int open_with_few_descriptors(int left)
{
    int fds[2];
    opening o;
    const lines_greeting mine = lines_link_greeting(&(lines_link){0}, 0);
    const int passed[SHM_PASS_FDS] = {STDERR_FILENO, STDERR_FILENO};
    if (heap_open() != RING_OK)
        return 1;
    pair_sockets(fds);
    if (shm_pass_send(fds[1], &mine, sizeof mine, passed) != RING_OK)
        return 2;
    const int next = dup(STDERR_FILENO);
    close(next);
    const struct rlimit limit = {.rlim_cur = (rlim_t)(next + left), .rlim_max = 1 << 10};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 3;
    opening_start(&o, &transport_shm, 0, fds[0], 10);
    if (opening_end(&o) != RING_ERR_SYSTEM || strstr(o.text, "ulimit -n") == NULL)
        return 4;
    const int after = dup(STDERR_FILENO);
    return after == fds[0] ? 0 : 5; /* the lowest one again: none was kept */
}

static void a_full_table_of_descriptors_is_an_error_that_says_so(void **state)
{
    for (int left = 0; left <= 1; left++) { /* the ring takes one meanwhile */
        int status;
        const pid_t child = fork();
        if (child == 0)
            _exit(open_with_few_descriptors(left));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static void a_frame_that_claims_more_than_a_segment_breaks_the_link(void **state)
{
    transport_link *ends[2];
    const transport_frame *frame;
    const void *payload;
    pair_open(&transport_shm, ends);
    lines_producer *out = &((lines_link *)ends[0])->out;
    assert_int_equal(lines_room(out, 0), RING_OK);
    lines_publish(out, &(transport_frame){.flags = FRAME_LONG}, NULL);
    ((transport_frame *)(void *)out->ring->line)->ext.bytes = TRANSPORT_SEGMENT + 1;
    for (int again = 0; again < 2; again++)
        assert_int_equal(transport_shm.peek(ends[1], &frame, &payload), RING_ERR_PEER);
    assert_int_equal(transport_shm.send(ends[1], &(transport_frame){0}, NULL, false),
                     RING_ERR_PEER);
    assert_null(transport_shm.reserve(ends[1]));
    assert_false(transport_shm.arm(ends[1], false));
    assert_non_null(strstr(fail_text(), "rank 0"));
    pair_close(ends);
}

static void a_header_does_not_change_after_it_was_checked(void **state)
{
    transport_link *ends[2];
    const transport_frame *frame, three = {.flags = FRAME_LONG, .ext.bytes = 3};
    const void *payload;
    pair_open(&transport_shm, ends);
    assert_int_equal(transport_shm.send(ends[0], &three, "ab", false), RING_OK);
    pair_receive(ends[1], &payload);
    transport_frame *shared = (void *)((lines_link *)ends[0])->out.ring->line;
    shared->ext.bytes = UINT64_MAX;
    assert_int_equal(transport_shm.peek(ends[1], &frame, &payload), RING_OK);
    assert_int_equal(frame->ext.bytes, 3);
    pair_close(ends);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_process_reads_and_writes_heap_memory_in_place),
        cmocka_unit_test(references_stay_within_the_heap),
        cmocka_unit_test(a_peers_heap_that_cannot_be_mapped_is_done_without),
        cmocka_unit_test(a_link_needs_no_heap),
        cmocka_unit_test(a_quiet_link_holds_little_and_leaves_nothing),
        cmocka_unit_test(a_ring_has_no_name_and_cannot_shrink),
        cmocka_unit_test(a_limit_on_file_sizes_makes_rings_shorter),
        cmocka_unit_test(files_that_may_shrink_or_have_the_wrong_size_are_refused),
        cmocka_unit_test(a_greeting_without_files_is_refused),
        cmocka_unit_test(a_full_table_of_descriptors_is_an_error_that_says_so),
        cmocka_unit_test(a_frame_that_claims_more_than_a_segment_breaks_the_link),
        cmocka_unit_test(a_header_does_not_change_after_it_was_checked),
    };
    return cmocka_run_group_tests_name("base.shm", tests, NULL, NULL);
}
