/* SPDX-License-Identifier: Apache-2.0
 * Joining by MASTER_ADDR and MASTER_PORT: secrets, users, addresses, torchrun's agent, and
 * the shared file. */
#include "ranks.h"

#include "credential.h"
#include "own_address.h"
#include "puppet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Seconds. An answer at once comes before AT_ONCE; waiting would take PATIENCE. */
enum { AT_ONCE = 60, PATIENCE = 600 };

static char directory[] = "/tmp/ring-join-XXXXXX";
static char secret[64], other_secret[64];
static int port;

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

static int set_up(void **state)
{
    clearenv();
    port = free_ports(20);
    set_number("RING_INIT_TIMEOUT", AT_ONCE);
    setenv("MASTER_ADDR", "localhost", 1);
    set_number("MASTER_PORT", port);
    return 0;
}

static int set_up_all(void **state)
{
    assert_non_null(mkdtemp(directory));
    snprintf(secret, sizeof secret, "%s/secret", directory);
    snprintf(other_secret, sizeof other_secret, "%s/other", directory);
    write_file(secret, "0123456789abcdef", 0600);
    write_file(other_secret, "fedcba9876543210", 0600);
    return 0;
}

static int tear_down_all(void **state)
{
    unlink(secret);
    unlink(other_secret);
    return rmdir(directory);
}

static crew *run(int size, rank_body body)
{
    crew *c = crew_new(size);
    crew_processes(c, size, body, NULL);
    return c;
}

static void run_well(int size, rank_body body)
{
    crew *c = run(size, body);
    crew_assert_all(c, RING_OK);
    crew_free(c);
}

/* ---- Secrets ----------------------------------------------------------------------- */

static void without_a_secret_ranks_of_one_host_join(void **state)
{
    run_well(3, full_start_env);
    run_well(2, full_start_env); /* the port is free again at once */
}

/* Terms and cards carry the deadlines and the remaining times. */
static void deadlines_may_be_as_far_as_a_setting_says(void **state)
{
    static const char *const names[] = {"RING_TIMEOUT", "RING_PEER_TIMEOUT", "RING_INIT_TIMEOUT"};
    for (int i = 0; i < 3; i++)
        setenv(names[i], "1e14", 1);
    run_well(3, full_start_env);
}

static void a_secret_file_lets_members_in(void **state)
{
    setenv("RING_SECRET_FILE", secret, 1);
    run_well(3, full_start_env);
}

static ring_status with_own_secret(int rank, int size, void *context)
{
    setenv("RING_SECRET_FILE", rank == 1 ? other_secret : secret, 1);
    return full_start_env(rank, size, context);
}

static ring_status only_rank_0_has_a_secret(int rank, int size, void *context)
{
    if (rank == 0)
        setenv("RING_SECRET_FILE", secret, 1);
    return full_start_env(rank, size, context);
}

static void another_secret_keeps_out(void **state)
{
    const rank_body bodies[] = {with_own_secret, only_rank_0_has_a_secret};
    set_number("RING_INIT_TIMEOUT", 1.5); /* it takes that long */
    for (int i = 0; i < 2; i++) {
        crew *c = run(2, bodies[i]);
        outcome_assert(&c->outcomes[0], RING_ERR_TIMEOUT, "rank 1 of 2");
        outcome_assert(&c->outcomes[1], RING_ERR_AUTH, "could not prove");
        crew_free(c);
    }
}

static void expect_refusal(const char *part)
{
    control_world *world;
    set_number("RANK", 0);
    set_number("WORLD_SIZE", 2);
    assert_int_equal(join_by_env(1, &world), RING_ERR_CONFIG);
    if (strstr(fail_text(), part) == NULL)
        stop_test("%s\n", fail_text());
}

static void a_secret_file_must_be_private_and_long_enough(void **state)
{
    setenv("RING_SECRET_FILE", secret, 1);
    chmod(secret, 0640);
    expect_refusal("mode 0640");
    chmod(secret, 0602);
    expect_refusal("chmod 600");
    write_file(secret, "0123456789abcde", 0600);
    expect_refusal("15 bytes");
    write_file(secret, "0123456789abcdef", 0600);
    setenv("RING_SECRET_FILE", "/nowhere/at/all", 1);
    expect_refusal("/nowhere/at/all");
    setenv("RING_SECRET_FILE", directory, 1);
    expect_refusal("is not a file");
}

static void a_secret_of_another_user_is_refused(void **state)
{
    if (!is_root())
        skip_because("only root can become another user");
    assert_int_equal(chown(secret, 65534, 65534), 0);
    setenv("RING_SECRET_FILE", secret, 1);
    expect_refusal("belongs to user 65534");
    assert_int_equal(chown(secret, 0, 0), 0);
}

static void an_inherited_descriptor_holds_the_secret(void **state)
{
    int fd = memfd_create("secret", MFD_CLOEXEC);
    assert_int_equal(write(fd, "0123456789abcdef", 16), 16);
    set_number("RING_SECRET_FD", fd);
    run_well(3, full_start_env);
    assert_int_equal(ftruncate(fd, 3), 0);
    expect_refusal("3 bytes");
    fd_close(&fd);
    expect_refusal("RING_SECRET_FD");
}

/* ---- Users ------------------------------------------------------------------------- */

static ring_status rank_1_is_another_user(int rank, int size, void *context)
{
    if (rank == 1 && setuid(65534) != 0)
        return fail(RING_ERR_UNSUPPORTED, "setuid: %m");
    return full_start_env(rank, size, context);
}

static void without_a_secret_another_user_is_refused(void **state)
{
    if (!is_root())
        skip_because("only root can become another user");
    set_number("RING_INIT_TIMEOUT", 1.5);
    crew *c = run(2, rank_1_is_another_user);
    outcome_assert(&c->outcomes[0], RING_ERR_TIMEOUT, "rank 1 of 2");
    outcome_assert(&c->outcomes[1], RING_ERR_AUTH, "user 0, but this process runs as user 65534");
    crew_free(c);
}

/* A client that does not look at the other side's user, so that rank 0 has to. */
static ring_status dial_as_another_user(int rank, int size, void *context)
{
    if (rank == 0)
        return full_start_env(rank, size, context);
    launch_info launch = {.rank = 1, .size = size, .address = "localhost", .port = port};
    settings s;
    credential p;
    puppet rank_1 = {.terms = {.rank = 1, .size = size}};
    const handshake_purpose purpose = {.kind = HANDSHAKE_JOIN};
    if (setuid(65534) != 0)
        return fail(RING_ERR_UNSUPPORTED, "setuid: %m");
    RING_TRY(settings_read(&s));
    const double deadline = clock_now() + 30;
    RING_TRY(credential_from_launch(&launch, &s, deadline, &p));
    memcpy(rank_1.terms.key, p.key, sizeof p.key);
    while ((rank_1.fd = connect_to(port)) < 0) {
        if (clock_now() > deadline)
            return fail(RING_ERR_INTERNAL, "rank 0 does not listen at port %d", port);
        clock_sleep(0.005);
    }
    rank_1.hello = handshake_hello_to(&rank_1.terms, 0, &purpose);
    const ring_status status = puppet_prove(&rank_1);
    puppet_end(&rank_1);
    return rank_1.handshake.state == HANDSHAKE_WELCOME
               ? status
               : fail(RING_ERR_INTERNAL, "rank 0 gave no proof");
}

static void without_a_secret_rank_0_looks_at_the_user(void **state)
{
    if (!is_root())
        skip_because("only root can become another user");
    set_number("RING_INIT_TIMEOUT", 4);
    crew *c = run(2, dial_as_another_user);
    outcome_assert(&c->outcomes[0], RING_ERR_TIMEOUT, "rank 1 of 2");
    outcome_assert(&c->outcomes[1], RING_ERR_PEER, "");
    crew_free(c);
}

/* ---- Addresses --------------------------------------------------------------------- */

static bool own_address(char text[64])
{
    char with_port[ADDRESS_TEXT_MAX];
    const net_address a = address_of_host();
    text_format(text, 64, "%.*s", (int)strcspn(address_text(&a, with_port), ":"), with_port);
    return !address_is_loopback(&a) && a.at.any.sa_family == AF_INET;
}

/* Rank 0's listener is looked for from outside while rank 1 is not there yet. */
static ring_status look_who_listens(int rank, int size, void *context)
{
    char text[64];
    if (rank == 0)
        return full_start_env(rank, size, context);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int here = -1, outside = socket(AF_INET, SOCK_STREAM, 0);
    own_address(text);
    inet_pton(AF_INET, text, &at.sin_addr);
    while ((here = connect_to(port)) < 0)
        clock_sleep(0.005);
    const int error = connect(outside, (const struct sockaddr *)&at, sizeof at) == 0 ? 0 : errno;
    fd_close(&here);
    fd_close(&outside);
    if (error != ECONNREFUSED)
        return fail(RING_ERR_INTERNAL, "rank 0 listens at %s too", text);
    return full_start_env(rank, size, context);
}

static void without_a_secret_only_127_0_0_1_is_listened_on(void **state)
{
    char text[64];
    if (!own_address(text))
        skip_because("this host has only the loopback");
    setenv("MASTER_ADDR", text, 1);
    run_well(2, look_who_listens);
}

static void with_a_secret_the_given_address_is_used(void **state)
{
    char text[64];
    if (!own_address(text))
        skip_because("this host has only the loopback");
    setenv("MASTER_ADDR", text, 1);
    setenv("RING_SECRET_FILE", secret, 1);
    run_well(3, full_start_env);
}

static void insecure_on_demand_uses_the_given_address(void **state)
{
    char text[64];
    if (!own_address(text))
        skip_because("this host has only the loopback");
    setenv("MASTER_ADDR", text, 1);
    setenv("RING_INSECURE", "1", 1);
    run_well(2, full_start_env);
}

static void another_host_needs_a_secret(void **state)
{
    setenv("MASTER_ADDR", "192.0.2.1", 1);
    expect_refusal("RING_SECRET_FILE");
}

static void rank_0_must_be_where_master_addr_says(void **state)
{
    setenv("MASTER_ADDR", "192.0.2.1", 1);
    setenv("RING_SECRET_FILE", secret, 1);
    expect_refusal("not an address of this host");
}

static void listening_on_all_addresses_is_refused(void **state)
{
    static const char *const all[] = {"0.0.0.0", "0", "::", "::ffff:0.0.0.0"};
    setenv("RING_SECRET_FILE", secret, 1);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        setenv("MASTER_ADDR", all[i], 1);
        expect_refusal("not the wildcard");
        expect_refusal("MASTER_ADDR");
        setenv("MASTER_ADDR", "127.0.0.1", 1);
        setenv("RING_ADDR", all[i], 1);
        expect_refusal("not the wildcard");
        expect_refusal("RING_ADDR");
        unsetenv("RING_ADDR");
    }
}

/* Rank 0 stays where the others dial; links go where they were told to. */
static ring_status look_where_links_go(int rank, int size, void *address)
{
    char text[ADDRESS_TEXT_MAX];
    control_world *world;
    set_number("RANK", rank);
    set_number("WORLD_SIZE", size);
    RING_TRY(join_by_env(5, &world));
    for (int r = 0; r < size; r++) {
        net_address at;
        (void)address_unpack(world->cards[r].address, &at);
        address_text(&at, text);
        text[strcspn(text, ":")] = '\0';
        if (strcmp(text, address) != 0) {
            control_free(world);
            return fail(RING_ERR_INTERNAL, "rank %d takes links at %s", r, text);
        }
    }
    return try_world(world);
}

static void expect_links_at(const char *address)
{
    char text[64];
    text_format(text, sizeof text, "%s", address);
    crew *c = crew_new(2);
    crew_processes(c, 2, look_where_links_go, text);
    crew_assert_all(c, RING_OK);
    crew_free(c);
}

static void addresses_for_links_leave_rank_0_at_master_addr(void **state)
{
    char text[64];
    if (!own_address(text))
        skip_because("this host has only the loopback");
    setenv("RING_SECRET_FILE", secret, 1);
    expect_links_at("127.0.0.1");
    setenv("NCCL_SOCKET_IFNAME", "^docker,virbr,br-,veth,cni,flannel", 1); /* not lo either */
    expect_links_at(text);
    setenv("NCCL_SOCKET_IFNAME", "nope0", 1); /* it stops no job; the choice is as without it */
    expect_links_at("127.0.0.1");
    unsetenv("NCCL_SOCKET_IFNAME");
    setenv("RING_ADDR", text, 1);
    expect_links_at(text);
    unsetenv("RING_SECRET_FILE"); /* then only 127.0.0.1 is listened on */
    expect_links_at("127.0.0.1");
}

/* A router's address leads to rank 0; only rank 0 knows where it really is. */
static ring_status rank_0_is_behind_a_router(int rank, int size, void *context)
{
    setenv("MASTER_ADDR", rank == 0 ? "198.51.100.1" : "127.0.0.1", 1);
    if (rank == 0)
        setenv("RING_ADDR", "127.0.0.1", 1);
    return full_start_env(rank, size, context);
}

static void ring_addr_stands_in_for_an_address_that_is_not_here(void **state)
{
    setenv("RING_SECRET_FILE", secret, 1);
    run_well(2, rank_0_is_behind_a_router);
}

static void a_loopback_for_ranks_on_several_hosts_is_refused(void **state)
{
    char text[64];
    setenv("RING_SECRET_FILE", secret, 1);
    set_number("LOCAL_WORLD_SIZE", 1);
    expect_refusal("set RING_ADDR");
    setenv("MASTER_ADDR", "127.0.1.1", 1);
    expect_refusal("1 of 2 ranks");
    if (!own_address(text))
        skip_because("this host has only the loopback");
    setenv("RING_ADDR", text, 1);
    run_well(2, full_start_env);
}

static void torchruns_last_port_leaves_none_for_rank_0(void **state)
{
    set_number("MASTER_PORT", 65535);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    expect_refusal("MASTER_PORT=65535");
    setenv("RING_SECRET_FILE", secret, 1);
    expect_refusal("MASTER_PORT=65535");
}

static void a_port_in_use_is_named(void **state)
{
    control_world *world;
    int fd = listen_at(port);
    set_number("RANK", 0);
    set_number("WORLD_SIZE", 2);
    set_number("RING_INIT_TIMEOUT", 0.3);
    assert_int_equal(join_by_env(1, &world), RING_ERR_SYSTEM);
    assert_non_null(strstr(fail_text(), "another program listens on port"));
    fd_close(&fd);
}

/* ---- torchrun's agent -------------------------------------------------------------- */

static void the_agents_port_is_never_touched(void **state)
{
    int agent = listen_at(port), stranger = listen_at(port + 1), other_job = listen_at(port + 3);
    assert_true(agent >= 0 && stranger >= 0 && other_job >= 0);
    fcntl(agent, F_SETFL, O_NONBLOCK);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    setenv("TORCHELASTIC_RUN_ID", "run7", 1);
    set_number("RING_INIT_TIMEOUT", PATIENCE);
    crew *c = run(4, full_start_env); /* at port + 2: + 1 and + 3 never answer */
    crew_assert_all(c, RING_OK);
    for (int i = 0; i < 4; i++)
        assert_true(c->outcomes[i].seconds < AT_ONCE);
    assert_int_equal(accept(agent, NULL, NULL), -1);
    assert_int_equal(errno, EAGAIN);
    crew_free(c);
    fd_close(&agent);
    fd_close(&stranger);
    fd_close(&other_job);
}

/* Two jobs, ports one apart: each finds its own rank 0 among the other's. */
static ring_status one_of_two_jobs(int rank, int size, void *context)
{
    set_number("MASTER_PORT", port + rank % 2);
    return full_start_env(rank / 2, size / 2, context);
}

static void jobs_beside_each_other_do_not_mix(void **state)
{
    int agents[2] = {listen_at(port), listen_at(port + 1)};
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    run_well(6, one_of_two_jobs);
    fd_close(&agents[0]);
    fd_close(&agents[1]);
}

/* The same secret and port, another job: a rank of it that is still there takes no seat. Rank 1
 * comes when it has been refused. */
static ring_status a_stale_rank_comes(int rank, int size, void *context)
{
    atomic_bool *refused = context;
    control_world *world;
    setenv("RING_JOB_ID", rank == 2 ? "yesterday" : "today", 1);
    while (rank == 1 && !atomic_load(refused))
        clock_sleep(0.001);
    if (rank < 2)
        return full_start_env(rank, 2, NULL);
    setenv("RING_RANK", "1", 1);
    setenv("RING_SIZE", "2", 1);
    set_number("RING_INIT_TIMEOUT", 3);
    const ring_status status = join_by_env(5, &world);
    atomic_store(refused, true);
    return status;
}

static void ranks_of_another_job_take_no_seat(void **state)
{
    crew *c = crew_new(3);
    atomic_bool *refused = shared_memory(sizeof *refused);
    set_number("RING_INIT_TIMEOUT", AT_ONCE);
    crew_processes(c, 3, a_stale_rank_comes, refused);
    outcome_assert(&c->outcomes[0], RING_OK, "");
    outcome_assert(&c->outcomes[1], RING_OK, "");
    outcome_assert(&c->outcomes[2], RING_ERR_AUTH, "another secret or belongs to another job");
    crew_free(c);
    shared_free(refused, sizeof *refused);
}

/* ---- The shared file --------------------------------------------------------------- */

static ring_status in_a_slurm_step(int rank, int size, void *stale)
{
    control_world *world;
    char text[16];
    unsetenv("MASTER_ADDR");
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_JOB_ID", "77", 1);
    text_format(text, sizeof text, "%d", rank);
    setenv("SLURM_PROCID", text, 1);
    text_format(text, sizeof text, "%d", size);
    setenv("SLURM_NTASKS", text, 1);
    if (rank == 0 && stale != NULL)
        clock_sleep(0.3);
    for (int i = 0; i < 3; i++) {
        RING_TRY(join_by_env(5, &world));
        RING_TRY(try_world(world));
    }
    return RING_OK;
}

static int files_left(void)
{
    char command[128];
    int count = -1;
    snprintf(command, sizeof command, "ls %s | grep -c 'ring-.*[0-9]$'", directory);
    FILE *out = popen(command, "r");
    assert_int_equal(fscanf(out, "%d", &count), 1);
    pclose(out);
    return count;
}

static void a_shared_file_leads_to_rank_0_and_is_removed(void **state)
{
    setenv("PATH", "/usr/bin:/bin", 1);
    setenv("RING_RENDEZVOUS_DIR", directory, 1);
    run_well(3, in_a_slurm_step);
    assert_int_equal(files_left(), 0);
}

/* The name that rank 0 will use, learnt from a rank 0 that is killed while it waits. */
static void leave_a_stale_file(void)
{
    crew *c = crew_new(1);
    crew_fork(c, 3, in_a_slurm_step, NULL);
    while (files_left() == 0)
        clock_sleep(0.01);
    kill(c->pids[0], SIGKILL);
    crew_wait(c);
    crew_free(c);
    assert_int_equal(files_left(), 1);
}

static void a_stale_file_only_delays(void **state)
{
    setenv("PATH", "/usr/bin:/bin", 1);
    setenv("RING_RENDEZVOUS_DIR", directory, 1);
    leave_a_stale_file();
    crew *c = crew_new(3);
    crew_processes(c, 3, in_a_slurm_step, c);
    crew_assert_all(c, RING_OK);
    crew_free(c);
    assert_int_equal(files_left(), 0);
}

/* @param[out] path  of the one file of a job that is left. */
static void find_file(char path[256])
{
    char command[128];
    snprintf(command, sizeof command, "ls -d %s/ring-*[0-9]", directory);
    FILE *out = popen(command, "r");
    assert_int_equal(fscanf(out, "%255s", path), 1);
    pclose(out);
}

/* A user that may write to the folder must not get the key. */
static void a_fifo_at_the_files_place_gets_nothing(void **state)
{
    char path[256], heard[16];
    setenv("PATH", "/usr/bin:/bin", 1);
    setenv("RING_RENDEZVOUS_DIR", directory, 1);
    leave_a_stale_file();
    find_file(path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0666), 0);
    int fifo = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(fifo >= 0);
    run_well(3, in_a_slurm_step);
    assert_int_equal(read(fifo, heard, sizeof heard), -1);
    fd_close(&fifo);
    assert_int_equal(files_left(), 0);
}

static ring_status on_one_host_in_a_step(int rank, int size, void *unused)
{
    unsetenv("RING_RENDEZVOUS_DIR");
    setenv("SLURM_NNODES", "1", 1);
    return in_a_slurm_step(rank, size, NULL);
}

/* Another user made the folder: no rank waits for rank 0 to write. */
static void a_folder_of_others_is_told_at_once(void **state)
{
    char folder[64];
    snprintf(folder, sizeof folder, "/tmp/ring-%u", (unsigned)geteuid());
    (void)mkdir(folder, 0700);
    assert_int_equal(chmod(folder, 0755), 0);
    set_number("RING_INIT_TIMEOUT", PATIENCE);
    crew *c = crew_new(2);
    crew_processes(c, 2, on_one_host_in_a_step, NULL);
    assert_int_equal(chmod(folder, 0700), 0);
    crew_assert_all(c, RING_ERR_CONFIG);
    for (int i = 0; i < 2; i++) {
        outcome_assert(&c->outcomes[i], RING_ERR_CONFIG,
                       "is not a directory of this user with mode 0700");
        assert_true(c->outcomes[i].seconds < AT_ONCE);
    }
    crew_free(c);
    run_well(2, on_one_host_in_a_step);
}

static void a_directory_that_is_not_there_is_told_at_once(void **state)
{
    setenv("RING_RENDEZVOUS_DIR", "/nowhere/at/all", 1);
    set_number("RING_INIT_TIMEOUT", PATIENCE);
    crew *c = crew_new(2);
    crew_processes(c, 2, in_a_slurm_step, NULL);
    for (int i = 0; i < 2; i++) {
        outcome_assert(&c->outcomes[i], RING_ERR_CONFIG, "through the directory /nowhere/at/all: ");
        assert_true(c->outcomes[i].seconds < AT_ONCE);
    }
    crew_free(c);
}

static ring_status with_rank_0_nowhere(int rank, int size, void *unused)
{
    if (rank == 0)
        setenv("RING_ADDR", "192.0.2.1", 1);
    return in_a_slurm_step(rank, size, unused);
}

/* Rank 0 cannot be reached, so the file gives the reason; and is gone when a next job may begin. */
static void a_rank_0_that_cannot_listen_says_why_in_the_file(void **state)
{
    setenv("RING_RENDEZVOUS_DIR", directory, 1);
    set_number("RING_INIT_TIMEOUT", PATIENCE);
    crew *c = crew_new(3);
    crew_processes(c, 3, with_rank_0_nowhere, NULL);
    for (int i = 0; i < 3; i++) {
        outcome_assert(&c->outcomes[i], RING_ERR_CONFIG, "192.0.2.1");
        assert_true(c->outcomes[i].seconds < AT_ONCE);
    }
    outcome_assert(&c->outcomes[2], RING_ERR_CONFIG, "rank 0");
    crew_free(c);
    assert_int_equal(files_left(), 0);
    run_well(3, in_a_slurm_step);
}

static ring_status refuse_as_rank_1(int rank, int size, void *join)
{
    settings s;
    if (rank != 1)
        return ((rank_body)join)(rank, size, NULL);
    set_number("RANK", rank);
    set_number("WORLD_SIZE", size);
    RING_TRY(settings_read(&s));
    return control_refuse(&s, NULL, 0, 0, fail(RING_ERR_CONFIG, "an invalid value"));
}

static void a_rank_that_failed_before_says_why_at_the_address(void **state)
{
    set_number("RING_INIT_TIMEOUT", PATIENCE);
    crew *c = crew_new(3);
    crew_processes(c, 3, refuse_as_rank_1, full_start_env);
    for (int i = 0; i < 3; i++) {
        outcome_assert(&c->outcomes[i], RING_ERR_CONFIG, "an invalid value");
        assert_true(c->outcomes[i].seconds < AT_ONCE);
    }
    crew_free(c);
}

static void without_a_file_its_name_is_told(void **state)
{
    setenv("RING_RENDEZVOUS_DIR", directory, 1);
    set_number("RING_INIT_TIMEOUT", 0.2);
    crew *c = crew_new(1);
    c->ranks[0] = 1;
    crew_processes(c, 2, in_a_slurm_step, NULL);
    outcome_assert(&c->outcomes[0], RING_ERR_TIMEOUT, directory);
    crew_free(c);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        TEST(without_a_secret_ranks_of_one_host_join),
        TEST(deadlines_may_be_as_far_as_a_setting_says),
        TEST(a_secret_file_lets_members_in),
        TEST(another_secret_keeps_out),
        TEST(a_secret_file_must_be_private_and_long_enough),
        TEST(a_secret_of_another_user_is_refused),
        TEST(an_inherited_descriptor_holds_the_secret),
        TEST(without_a_secret_another_user_is_refused),
        TEST(without_a_secret_rank_0_looks_at_the_user),
        TEST(without_a_secret_only_127_0_0_1_is_listened_on),
        TEST(with_a_secret_the_given_address_is_used),
        TEST(insecure_on_demand_uses_the_given_address),
        TEST(another_host_needs_a_secret),
        TEST(rank_0_must_be_where_master_addr_says),
        TEST(listening_on_all_addresses_is_refused),
        TEST(addresses_for_links_leave_rank_0_at_master_addr),
        TEST(ring_addr_stands_in_for_an_address_that_is_not_here),
        TEST(a_loopback_for_ranks_on_several_hosts_is_refused),
        TEST(torchruns_last_port_leaves_none_for_rank_0),
        TEST(a_port_in_use_is_named),
        TEST(the_agents_port_is_never_touched),
        TEST(jobs_beside_each_other_do_not_mix),
        TEST(ranks_of_another_job_take_no_seat),
        TEST(a_shared_file_leads_to_rank_0_and_is_removed),
        TEST(a_stale_file_only_delays),
        TEST(a_fifo_at_the_files_place_gets_nothing),
        TEST(a_folder_of_others_is_told_at_once),
        TEST(a_directory_that_is_not_there_is_told_at_once),
        TEST(a_rank_0_that_cannot_listen_says_why_in_the_file),
        TEST(a_rank_that_failed_before_says_why_at_the_address),
        TEST(without_a_file_its_name_is_told),
    };
    return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
