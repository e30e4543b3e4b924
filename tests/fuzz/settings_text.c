/* SPDX-License-Identifier: Apache-2.0
 * Texts of the environment: settings, lists of names, and who launched this process. */
#include "give.h"
#include "settings.h"

#include "fault.h"
#include "interface.h"
#include "launch.h"
#include "numbers.h"
#include "transport_list.h"

#include <math.h>
#include <string.h>

/* ---- Settings ------------------------------------------------------------------- */

static const char *const good_settings[] = {
    "RING_TRANSPORT=shm,tcp\nRING_CHANNELS=4\nRING_TIMEOUT=2.5",
    "RING_ALGO=ring\nRING_CHECKSUM=0\nRING_PEER_TIMEOUT=1e3\nRING_INIT_TIMEOUT=0.01",
    "RING_TIMEOUT=none\nRING_INIT_TIMEOUT=None",
    "RING_INSECURE=1\nRING_SECRET_FILE=/etc/ring/secret\nRING_RENDEZVOUS_DIR=.\nRING_DEBUG=WARN",
    "RING_ADDR=[fe80::1]\nRING_SOCKET_IFNAME=^docker,virbr\nRING_FAULT=seed=1,delay=0.01",
    "RING_SECRET_FD=3\nRING_DEBUG=TRACE\nRING_CHANNELS=16"};

static void seed_settings(fuzz_seeds *to)
{
    for (size_t i = 0; i < sizeof good_settings / sizeof *good_settings; i++)
        fuzz_add_text(to, good_settings[i]);
}

static void check_seconds(double s)
{
    must(isfinite(s) && s >= 0.01 && s <= NUMBER_SECONDS_MOST);
}

#define CHECK_TEXT(member) must(memchr(s->member, '\0', sizeof s->member) != NULL)

static void check_settings(const settings *s)
{
    must(s->channels >= 0 && s->channels <= SETTINGS_MOST_CHANNELS);
    must(s->secret_fd >= -1 && s->secret_fd <= 1 << 20);
    must(s->debug <= LOG_DEBUG);
    check_seconds(s->timeout);
    check_seconds(s->peer_timeout);
    check_seconds(s->init_timeout);
    CHECK_TEXT(transport);
    CHECK_TEXT(algo);
    CHECK_TEXT(secret_file);
    CHECK_TEXT(rendezvous_dir);
    CHECK_TEXT(address);
    CHECK_TEXT(interface);
    CHECK_TEXT(fault);
}

static void check_unknown(char *const *entries)
{
    char name[SETTINGS_NAME_MAX];
    for (; *entries != NULL; entries++) {
        const char *nearest = NULL;
        if (!settings_unknown(*entries, name, &nearest))
            continue;
        must(strncmp(name, "RING_", 5) == 0 && strncmp(name, *entries, strlen(name)) == 0);
        must(nearest == NULL || strncmp(nearest, "RING_", 5) == 0);
    }
}

/* The environment of this process is nothing else meanwhile. */
static ring_status with_environment(const unsigned char *bytes, size_t size,
                                    ring_status (*read)(void))
{
    extern char **environ;
    char **const own = environ;
    give_lines lines = give_text(bytes, size);
    environ = lines.line;
    check_unknown(lines.line);
    const ring_status status = read();
    environ = own;
    give_free(&lines);
    return status;
}

static ring_status read_settings(void)
{
    settings s;
    const ring_status status = settings_read(&s);
    if (status == RING_OK)
        check_settings(&s);
    return status;
}

static ring_status parse_environment(const unsigned char *bytes, size_t size)
{
    return with_environment(bytes, size, read_settings);
}

const fuzz_target fuzz_environment = {.name = "environment",
                                      .reads = "RING_* and NCCL_* variables",
                                      .most = 2048,
                                      .seeds = seed_settings,
                                      .parse = parse_environment,
                                      .reason = fail_text};

static void seed_overrides(fuzz_seeds *to)
{
    seed_settings(to);
    fuzz_add_any_text(to, "RING_SIZE=4");
    fuzz_add_any_text(to, "NCCL_DEBUG=INFO\nRING_TIMOUT=3");
}

static ring_status parse_overrides(const unsigned char *bytes, size_t size)
{
    settings s;
    give_lines lines = give_text(bytes, size);
    must(settings_read(&s) == RING_OK);
    const ring_status status = settings_override(&s, (const char *const *)lines.line);
    if (status == RING_OK)
        check_settings(&s);
    give_free(&lines);
    return status;
}

const fuzz_target fuzz_overrides = {.name = "overrides",
                                    .reads = "ring_config.settings",
                                    .most = 2048,
                                    .seeds = seed_overrides,
                                    .parse = parse_overrides,
                                    .reason = fail_text};

/* ---- Lists of names ------------------------------------------------------------- */

static void seed_transport_list(fuzz_seeds *to)
{
    fuzz_add_text(to, "");
    fuzz_add_text(to, "shm,tcp");
    fuzz_add_text(to, "^loop, shm");
}

static ring_status parse_transport_list(const unsigned char *bytes, size_t size)
{
    static const char *const names[] = {"loop", "shm", "tcp", "slow"};
    enum { SLOW = 8 };
    settings s = {.channels = 1};
    uint32_t mask = 0;
    if (!text_format(s.transport, sizeof s.transport, "%s", (const char *)bytes))
        return RING_IN_PROGRESS; /* settings_read() has refused it */
    const ring_status status = settings_transports(&s, names, 4, SLOW, &mask);
    must(status != RING_OK || (mask != 0 && mask < 1u << 4));
    must((mask & SLOW) == 0 || strstr(s.transport, "slow") != NULL);
    return status;
}

const fuzz_target fuzz_transport_list = {.name = "transport_list",
                                         .reads = "RING_TRANSPORT",
                                         .most = 160,
                                         .text = true,
                                         .seeds = seed_transport_list,
                                         .parse = parse_transport_list,
                                         .reason = fail_text};

static void seed_interface_list(fuzz_seeds *to)
{
    fuzz_add_text(to, "lo");
    fuzz_add_text(to, "eth,=lo,lo");
    fuzz_add_text(to, INTERFACES_FOR_OTHERS);
    fuzz_add_any_text(to, "=eth0,eth1");
}

static ring_status parse_interface_list(const unsigned char *bytes, size_t size)
{
    struct sockaddr_storage found;
    if (!interface_choose((const char *)bytes, &found))
        return RING_ERR_CONFIG;
    must(found.ss_family == AF_INET || found.ss_family == AF_INET6);
    return RING_OK;
}

const fuzz_target fuzz_interface_list = {.name = "interface_list",
                                         .reads = "RING_SOCKET_IFNAME",
                                         .most = 64,
                                         .text = true,
                                         .seeds = seed_interface_list,
                                         .parse = parse_interface_list};

static void seed_fault_spec(fuzz_seeds *to)
{
    fuzz_add_text(to, "seed=1,delay=0.01,drop=0.1");
    fuzz_add_text(to, "truncate=.5,lie=1,close=18446744073709551615");
    fuzz_add_text(to, "seed=7");
}

static bool is_probability(double p)
{
    return p >= 0 && p <= 1;
}

static ring_status parse_fault_spec(const unsigned char *bytes, size_t size)
{
    fault_spec spec;
    const ring_status status = fault_parse((const char *)bytes, &spec);
    if (status != RING_OK)
        return status;
    must(spec.delay >= 0 && spec.delay <= 3600);
    must(is_probability(spec.drop) && is_probability(spec.truncate) && is_probability(spec.lie));
    return RING_OK;
}

const fuzz_target fuzz_fault_spec = {.name = "fault_spec",
                                     .reads = "RING_FAULT",
                                     .most = 160,
                                     .text = true,
                                     .seeds = seed_fault_spec,
                                     .parse = parse_fault_spec,
                                     .reason = fail_text};

/* ---- The launcher --------------------------------------------------------------- */

/* No PMIx variables, as its library would be loaded. */
static void seed_launch(fuzz_seeds *to)
{
    fuzz_add_text(to, "RING_RANK=1\nRING_SIZE=4\nRING_LOCAL_RANK=0\nRING_LOCAL_SIZE=2\n"
                      "MASTER_ADDR=127.0.0.1\nMASTER_PORT=29500\nRING_LAUNCHER=ringrun");
    fuzz_add_text(to, "RANK=0\nWORLD_SIZE=2\nLOCAL_RANK=0\nLOCAL_WORLD_SIZE=2\nMASTER_ADDR=n0\n"
                      "MASTER_PORT=65535\nTORCHELASTIC_USE_AGENT_STORE=True\n"
                      "TORCHELASTIC_RUN_ID=9");
    fuzz_add_text(to, "OMPI_COMM_WORLD_RANK=3\nOMPI_COMM_WORLD_SIZE=8\n"
                      "OMPI_COMM_WORLD_LOCAL_RANK=3\nOMPI_COMM_WORLD_LOCAL_SIZE=8\nRING_JOB_ID=x");
    fuzz_add_text(to, "SLURM_PROCID=2\nSLURM_STEP_NUM_TASKS=4\nSLURM_STEP_ID=0\nSLURM_LOCALID=0\n"
                      "SLURM_JOB_ID=77\nSLURM_NNODES=1");
    fuzz_add_text(to, "PMI_RANK=0\nPMI_SIZE=1\nMPI_LOCALRANKID=0\nMPI_LOCALNRANKS=1\nPMI_JOBID=k");
    fuzz_add_text(to, "");
    fuzz_add_any_text(to, "RING_SIZE=4");
}

static ring_status detect_launch(void)
{
    launch_info l;
    const ring_status status = launch_detect(&l);
    if (status != RING_OK)
        return status;
    must(l.size >= 1 && l.rank >= 0 && l.rank < l.size);
    must(l.local_rank >= -1 && l.local_size >= 0);
    must(l.port >= 0 && l.port <= 65535);
    must(memchr(l.address, '\0', sizeof l.address) && memchr(l.job, '\0', sizeof l.job));
    must(l.launcher[0] != '\0' && memchr(l.launcher, '\0', sizeof l.launcher));
    (void)launch_on_one_host(&l);
    return RING_OK;
}

static ring_status parse_launch(const unsigned char *bytes, size_t size)
{
    return with_environment(bytes, size, detect_launch);
}

const fuzz_target fuzz_launch = {.name = "launch",
                                 .reads = "launchers' variables",
                                 .most = 2048,
                                 .seeds = seed_launch,
                                 .parse = parse_launch,
                                 .reason = fail_text};
