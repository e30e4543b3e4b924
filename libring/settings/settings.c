/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds the table of RING_* variables and reads them from the environment. Parsing, defaults, help,
 * `ringinfo env` and the warning about unknown names all use this table, so that each variable is
 * known to all of them.
 */
#include "settings.h"

#include "numbers.h"
#include "words.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef enum setting_kind {
    SETTING_TEXT,
    SETTING_SECONDS,
    SETTING_LIMIT,
    SETTING_FLAG,
    SETTING_NUMBER,
    SETTING_ENCRYPTION,
    SETTING_PROGRESS,
    SETTING_EXIT,
    SETTING_DISTANCE,
    SETTING_LEVEL,
    SETTING_DESCRIPTOR,
    SETTING_ELSEWHERE /* read and checked by another room or program */
} setting_kind;

typedef struct setting {
    const char *name, *nccl, *unit, *help, *fallback;
    setting_kind kind;
    size_t offset, size;
    int least, most; /* the range of a number */
} setting;

#define NUMBER(member, least, most) \
    offsetof(settings, member), sizeof(((settings *)0)->member), least, most
#define FIELD(member) NUMBER(member, 0, 0)
#define ELSEWHERE SETTING_ELSEWHERE, 0, 0, 0, 0

static const setting table[] = {
    {"RING_TRANSPORT", NULL, "list",
     "transports to use: shm, verbs, tcp, loop, ucx; a leading ^ excludes those listed; ucx is "
     "used "
     "only if it is named",
     "", SETTING_TEXT, FIELD(transport)},
    {"RING_ALGO", NULL, "name",
     "algorithm: oneshot, direct, ring, halving, tree, chain, hierarchical; empty: the cost model "
     "chooses",
     "", SETTING_TEXT, FIELD(algo)},
    {"RING_CHANNELS", NULL, "number",
     "connections that long calls use between two ranks, at most 16; 0: one for each rail of the "
     "RDMA adapters that connect the hosts, else 1; rank 0's value applies to all",
     "0", SETTING_NUMBER, NUMBER(channels, 0, SETTINGS_MOST_CHANNELS)},
    {"RING_DEVICE_PROGRAMS", NULL, "0 or 1",
     "1: GPUs run calls themselves; 0: the host drives these calls", "1", SETTING_FLAG,
     FIELD(device_programs)},
    {"RING_DEVICE_BLOCKS", "NCCL_MAX_CTAS", "number",
     "blocks that a call uses on a GPU, at most 64", "16", SETTING_NUMBER,
     NUMBER(device_blocks, 1, 64)},
    {"RING_HOLD_STREAMS", NULL, "0 or 1",
     "1: if a communicator fails, streams stay stopped at its calls until this rank aborts or "
     "destroys it; 0: they continue, and results are undefined",
     "0", SETTING_FLAG, FIELD(hold_streams)},
    {"RING_NVTX", NULL, "0 or 1",
     "1: each call is a range (NVTX) for NVIDIA's profilers, on the thread that makes it; it "
     "needs CUDA's NVTX library",
     "0", SETTING_FLAG, FIELD(nvtx)},
    {"RING_P2P", "NCCL_P2P_DISABLE", "0 or 1",
     "1: GPUs access each other's memory, by peer access or by CUDA's IPC; 0: they "
     "communicate through pinned memory of the host",
     "1", SETTING_FLAG, FIELD(p2p)},
    {"RING_REPRODUCIBLE", NULL, "0 or 1",
     "1: sums are combined in the order of ranks, so that they have the same bits for every size, "
     "bucket, transport and algorithm; rank 0's value applies to all",
     "0", SETTING_FLAG, FIELD(reproducible)},
    {"RING_CHECKSUM", NULL, "0 or 1",
     "1: data sent over tcp carries checksums, and a mismatch fails the call; rank 0's value "
     "applies to all",
     "1", SETTING_FLAG, FIELD(checksum)},
    {"RING_ENCRYPT", NULL, "0, 1 or name",
     "data sent over tcp is encrypted and authenticated; 1: by aes256gcm if rank 0's processor "
     "supports it, else by chacha20; rank 0's value applies to all",
     "0", SETTING_ENCRYPTION, FIELD(encrypt)},
    {"RING_PROGRESS", NULL, "name",
     "how calls that no thread waits for make progress; auto: by a thread of the library that "
     "yields its core before each turn if CPUs copy the data; thread: by a thread that does not "
     "yield; none: only during this process's calls to libring",
     "auto", SETTING_PROGRESS, FIELD(progress)},
    {"RING_TIMEOUT", NULL, "s", "a call that takes longer fails; none: no limit", "600",
     SETTING_LIMIT, FIELD(timeout)},
    {"RING_PEER_TIMEOUT", NULL, "s", "a peer that is silent for longer is considered lost", "15",
     SETTING_SECONDS, FIELD(peer_timeout)},
    {"RING_INIT_TIMEOUT", NULL, "s", "time in which all ranks must join; none: no limit", "60",
     SETTING_LIMIT, FIELD(init_timeout)},
    {"RING_EXIT", NULL, "name",
     "what a process that exits without ring_comm_destroy() is to the other ranks; lost: a lost "
     "rank, which ends its communicators; leave: a rank that has left, if none of its calls is in "
     "flight",
     "lost", SETTING_EXIT, FIELD(at_exit)},
    {"RING_SECRET_FILE", NULL, "path",
     "file (mode 0600, at least 16 bytes) with the secret that proves membership", "", SETTING_TEXT,
     FIELD(secret_file)},
    {"RING_SECRET_FD", NULL, "number",
     "inherited descriptor that the secret is read from; set by ringrun", "", SETTING_DESCRIPTOR,
     FIELD(secret_fd)},
    {"RING_INSECURE", NULL, "0 or 1", "1: without a secret, accept any peer that connects", "0",
     SETTING_FLAG, FIELD(insecure)},
    {"RING_ADDR", NULL, "address", "address of this host that other ranks connect to", "",
     SETTING_TEXT, FIELD(address)},
    {"RING_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "list",
     "interfaces that other ranks connect to, as prefixes, best first; =eth0: exact name; ^docker: "
     "all but these",
     "", SETTING_TEXT, FIELD(interface)},
    {"RING_HOST_ID", "NCCL_HOSTID", "text",
     "ranks with different ids are treated as if they were on different hosts", "", SETTING_TEXT,
     FIELD(host_id)},
    {"RING_IB_DISABLE", "NCCL_IB_DISABLE", "0 or 1", "1: do not use InfiniBand and RoCE", "0",
     SETTING_FLAG, FIELD(ib.disabled)},
    {"RING_IB_HCA", "NCCL_IB_HCA", "list",
     "RDMA devices as prefixes, or ports (mlx5_0:1); =mlx5_0: exact name; ^mlx5_2: all but these",
     "", SETTING_TEXT, FIELD(ib.hca)},
    {"RING_IB_GID_INDEX", "NCCL_IB_GID_INDEX", "number",
     "entry of the port's GID table; -1: chosen by libring, which prefers RoCE v2 and IPv4", "-1",
     SETTING_NUMBER, NUMBER(ib.gid_index, -1, 255)},
    {"RING_IB_PKEY", "NCCL_IB_PKEY", "number", "entry of the port's P_Key table", "0",
     SETTING_NUMBER, NUMBER(ib.pkey_index, 0, 65535)},
    {"RING_IB_SL", "NCCL_IB_SL", "number", "service level of InfiniBand", "0", SETTING_NUMBER,
     NUMBER(ib.service_level, 0, 15)},
    {"RING_IB_TC", "NCCL_IB_TC", "number", "traffic class of RoCE: DSCP times 4", "0",
     SETTING_NUMBER, NUMBER(ib.traffic_class, 0, 255)},
    {"RING_IB_TIMEOUT", "NCCL_IB_TIMEOUT", "number",
     "an unacknowledged packet is sent again after 4.096 us * 2^timeout", "20", SETTING_NUMBER,
     NUMBER(ib.timeout, 1, 31)},
    {"RING_IB_RETRY_CNT", "NCCL_IB_RETRY_CNT", "number",
     "how often a packet is sent again before its connection fails", "6", SETTING_NUMBER,
     NUMBER(ib.retries, 0, 7)},
    {"RING_IB_PCI_RELAXED_ORDERING", NULL, "0 or 1",
     "1: adapters may write payload to memory in any order, which is faster on some hosts", "0",
     SETTING_FLAG, FIELD(ib.relaxed)},
    {"RING_NET_GDR_LEVEL", "NCCL_NET_GDR_LEVEL", "level",
     "largest distance between an adapter and a GPU whose memory it reads and writes: LOC (never), "
     "PIX (one PCI switch), PXB (several), PHB (one NUMA node), SYS (any)",
     "PXB", SETTING_DISTANCE, FIELD(ib.farthest)},
    {"RING_REGISTRATION_CACHE", NULL, "0 or 1",
     "1: adapters read and write large unregistered buffers in place if the kernel reports when "
     "they are unmapped; 0: these buffers are copied",
     "1", SETTING_FLAG, FIELD(registration_cache)},
    {"RING_RENDEZVOUS_DIR", NULL, "path",
     "directory shared by all ranks, used to find rank 0 under mpirun or srun", "", SETTING_TEXT,
     FIELD(rendezvous_dir)},
    {"RING_DEBUG", "NCCL_DEBUG", "level",
     "least severe level that is logged: error, warn, info, debug", "warn", SETTING_LEVEL,
     FIELD(debug)},
    {"RING_FAULT", NULL, "list", "for tests: injects link faults, e.g. seed=1,delay=0.01,drop=0.1",
     "", SETTING_TEXT, FIELD(fault)},
    {"RING_SIMD", NULL, "name", "instruction set of the host kernels", "the CPU's best", ELSEWHERE},
    {"RING_DATA", NULL, "path", "directory of the training data", "", ELSEWHERE},
    {"RING_UCX_TLS", NULL, "list",
     "transports that UCX may use, by UCX's names; overrides UCX_TLS; openib means ib", "UCX's own",
     ELSEWHERE},
    {"RING_UCX_SOCKADDR", NULL, "0 or 1",
     "0: ucx connects by worker addresses, for fabrics without IP; 1: by socket addresses, or by "
     "worker addresses where that is impossible",
     "1", ELSEWHERE},
    {"RING_NCCL_VERSION", NULL, "version",
     "the version of NCCL that libring's libnccl.so.2 reports to programs", "2.28.9", ELSEWHERE},
    {"RING_RANK", NULL, "number", "launch: this process's rank, from 0", "", ELSEWHERE},
    {"RING_SIZE", NULL, "number", "launch: number of ranks", "", ELSEWHERE},
    {"RING_LOCAL_RANK", NULL, "number", "launch: this process's number on its host", "", ELSEWHERE},
    {"RING_LOCAL_SIZE", NULL, "number", "launch: number of ranks on this host", "", ELSEWHERE},
    {"RING_LAUNCHER", NULL, "name", "launch: the launcher that set these variables", "", ELSEWHERE},
    {"RING_JOB_ID", NULL, "text",
     "launch: identifies the job, equal on all its ranks; ranks of other jobs are rejected",
     "the launcher's", ELSEWHERE},
    {"MASTER_ADDR", NULL, "address", "launch: address on which rank 0 listens", "", ELSEWHERE},
    {"MASTER_PORT", NULL, "port", "launch: port on which rank 0 listens", "", ELSEWHERE},
};

enum { SETTINGS = sizeof table / sizeof table[0], DESCRIPTOR_MOST = 1 << 20 };
_Static_assert(SETTINGS <= 64, "each setting has a bit in settings.foreign");

/* ---- Sources of values -------------------------------------------------------------- */

/* Translates the names of NCCL's log levels to libring's names. */
static const char *level_word(const char *text)
{
    static const char *const words[][2] = {
        {"version", "warn"}, {"abort", "debug"}, {"trace", "debug"}, {"error", "error"},
        {"warn", "warn"},    {"info", "info"},   {"debug", "debug"},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(text, words[i][0]) == 0)
            return words[i][1];
    return text;
}

/* @return the value of a variable; NULL if it is unset or empty. */
static const char *environment(const char *name)
{
    const char *value = name != NULL ? getenv(name) : NULL;
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Converts NCCL's numbers to decimal: NCCL accepts C's notation, such as "0x60", and any number but
 * 0 as yes. Yes to NCCL_P2P_DISABLE is no to RING_P2P. */
static const char *nccl_number(const setting *s, const char *value)
{
    static _Thread_local char text[24];
    char *end;
    long long number = strtoll(value, &end, 0);
    if ((s->kind != SETTING_NUMBER && s->kind != SETTING_FLAG) || *end != '\0')
        return value;
    if (s->kind == SETTING_FLAG)
        number = (number != 0) != (strcmp(s->nccl, "NCCL_P2P_DISABLE") == 0);
    (void)text_format(text, sizeof text, "%lld", number);
    return text;
}

/* @return the value of a setting, as text: of its own variable, else of NCCL's, else the default.
 * @param[out] source  "environment", the name of NCCL's variable, or "default". */
static const char *setting_value(const setting *s, const char **source)
{
    const char *value = environment(s->name);
    *source = "environment";
    if (value == NULL && environment(s->nccl) != NULL) {
        value = nccl_number(s, environment(s->nccl));
        *source = s->nccl;
    }
    if (value == NULL) {
        value = s->fallback;
        *source = "default";
    }
    return s->kind == SETTING_LEVEL ? level_word(value) : value;
}

/* ---- Parsing --------------------------------------------------------------------- */

/* @param allowed  the values that the setting may have. */
static ring_status wrong(const setting *s, const char *value, const char *allowed)
{
    return fail(RING_ERR_CONFIG, "%s=%.100s: want %s (%s)", s->name, value, allowed, s->help);
}

static bool parse_whole(const char *value, int least, int most, int *out)
{
    long long number;
    if (!number_whole(value, least, most, &number))
        return false;
    *out = (int)number;
    return true;
}

static const char *const encryption_words[] = {[ENCRYPT_NO] = "0",
                                               [ENCRYPT_AES256GCM] = "aes256gcm",
                                               [ENCRYPT_CHACHA20] = "chacha20",
                                               [ENCRYPT_BEST] = "1",
                                               NULL};
static const char *const progress_words[] = {
    [PROGRESS_AUTO] = "auto", [PROGRESS_THREAD] = "thread", [PROGRESS_NONE] = "none", NULL};
static const char *const exit_words[] = {[EXIT_LOST] = "lost", [EXIT_LEAVE] = "leave", NULL};

/* Stores the index of a word. @param words  ended by NULL. */
static bool parse_word(const char *value, const char *const *words, int *out)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcasecmp(value, words[i]) != 0)
            continue;
        *out = i;
        return true;
    }
    return false;
}

static const char *range_of(const char *what, int least, int most)
{
    static _Thread_local char text[64];
    (void)text_format(text, sizeof text, "%s from %d to %d", what, least, most);
    return text;
}

/* Stores the value in its field. @return NULL; the allowed values if @p value is not allowed. */
static const char *setting_parse(const setting *s, const char *value, settings *out)
{
    void *field = (char *)out + s->offset;
    switch (s->kind) {
    case SETTING_TEXT:
        return text_format(field, s->size, "%s", value)
                   ? NULL
                   : range_of("a text with a length", 0, (int)s->size - 1);
    case SETTING_SECONDS:
        return number_seconds(value, field) ? NULL : NUMBER_SECONDS_TEXT;
    case SETTING_LIMIT:
        return number_limit(value, field) ? NULL : NUMBER_LIMIT_TEXT;
    case SETTING_FLAG:
        *(bool *)field = strcmp(value, "1") == 0;
        return *(bool *)field || strcmp(value, "0") == 0 ? NULL : "0 or 1";
    case SETTING_NUMBER:
        return parse_whole(value, s->least, s->most, field)
                   ? NULL
                   : range_of("a number", s->least, s->most);
    case SETTING_ENCRYPTION:
        return parse_word(value, encryption_words, field) ? NULL : "0, 1, aes256gcm or chacha20";
    case SETTING_PROGRESS:
        return parse_word(value, progress_words, field) ? NULL : "auto, thread or none";
    case SETTING_EXIT:
        return parse_word(value, exit_words, field) ? NULL : "lost or leave";
    case SETTING_DISTANCE:
        return pci_distance_parse(value, field) ? NULL : "LOC, PIX, PXB, PHB or SYS, or 0 to 5";
    case SETTING_LEVEL:
        return log_level_parse(value, field) ? NULL : "error, warn, info or debug";
    case SETTING_DESCRIPTOR:
        *(int *)field = -1;
        return value[0] == '\0' || parse_whole(value, 0, DESCRIPTOR_MOST, field)
                   ? NULL
                   : range_of("the number of an open file", 0, DESCRIPTOR_MOST);
    case SETTING_ELSEWHERE:
        break;
    }
    return NULL;
}

enum { PREFIX = sizeof "RING_" - 1 };

static bool has_prefix(const char *name)
{
    return strncmp(name, "RING_", PREFIX) == 0;
}

/* Compares names without the prefix RING_, which would make any two names similar.
 * @return the setting whose name is close to @p name, or NULL. */
static const char *nearest_setting(const char *name)
{
    const char *names[SETTINGS];
    size_t count = 0;
    for (size_t i = 0; i < SETTINGS; i++)
        if (has_prefix(table[i].name))
            names[count++] = table[i].name + PREFIX;
    const char *found = words_nearest(name + PREFIX, names, count);
    return found != NULL ? found - PREFIX : NULL;
}

/* @return the setting whose name is the first @p length characters of @p entry, or NULL. */
static const setting *find(const char *entry, size_t length)
{
    for (size_t i = 0; i < SETTINGS; i++)
        if (strncmp(table[i].name, entry, length) == 0 && table[i].name[length] == '\0')
            return &table[i];
    return NULL;
}

bool settings_unknown(const char *entry, char name[SETTINGS_NAME_MAX], const char **nearest)
{
    const size_t length = min_size(strcspn(entry, "="), SETTINGS_NAME_MAX - 1);
    if (!has_prefix(entry))
        return false;
    text_format(name, SETTINGS_NAME_MAX, "%.*s", (int)length, entry);
    if (find(name, strlen(name)) != NULL)
        return false;
    *nearest = nearest_setting(name);
    return true;
}

static void warn_unknown(const char *variable)
{
    char name[SETTINGS_NAME_MAX];
    const char *nearest;
    if (!settings_unknown(variable, name, &nearest) || strncmp(name, "RING_TEST_", 10) == 0)
        return;
    log_warn("%s is set, but libring has no such setting%s%s%s", name,
             nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
             nearest != NULL ? "?" : "");
}

/* The ranks of a host have the same variables, so only one of them warns. */
static bool is_first_here(void)
{
    const char *rank = environment("RING_LOCAL_RANK");
    if (rank == NULL)
        rank = environment("LOCAL_RANK");
    return rank == NULL || strcmp(rank, "0") == 0;
}

/* Beginnings of names that are for other readers: installations, nccl-tests, older PyTorch. */
static const char *const not_for_nccl[] = {"NCCL_VERSION", "NCCL_HOME",  "NCCL_ROOT",
                                           "NCCL_DIR",     "NCCL_LIB",   "NCCL_INCLUDE",
                                           "NCCL_TESTS_",  "NCCL_ASYNC", "NCCL_BLOCKING_WAIT"};
/* Variables of NCCL whose purpose a setting has, with values of its own. */
static const char *const similar[][2] = {
    {"NCCL_ALGO", "RING_ALGO"},
    {"NCCL_NET", "RING_TRANSPORT"},
    {"NCCL_COMM_ID", "MASTER_ADDR"},
    {"NCCL_SHM_DISABLE", "RING_TRANSPORT"},
    {"NCCL_NSOCKS_PERTHREAD", "RING_CHANNELS"},
    {"NCCL_MAX_NCHANNELS", "RING_DEVICE_BLOCKS"},
};

static bool is_for_nccl(const char *name)
{
    if (strncmp(name, "NCCL_", 5) != 0)
        return false;
    for (size_t i = 0; i < sizeof not_for_nccl / sizeof *not_for_nccl; i++)
        if (strncmp(name, not_for_nccl[i], strlen(not_for_nccl[i])) == 0)
            return false;
    for (size_t i = 0; i < SETTINGS; i++)
        if (table[i].nccl != NULL && strcmp(name, table[i].nccl) == 0)
            return false;
    return true;
}

/* Names all variables of NCCL that have no effect here in one line. */
static void warn_ignored(char *const *variables)
{
    char names[1024] = "";
    for (; *variables != NULL; variables++) {
        char name[SETTINGS_NAME_MAX];
        text_format(name, sizeof name, "%.*s", (int)strcspn(*variables, "="), *variables);
        if (!is_for_nccl(name))
            continue;
        (void)text_append(names, sizeof names, "%s%s", names[0] != '\0' ? ", " : "", name);
        for (size_t i = 0; i < sizeof similar / sizeof *similar; i++)
            if (strcmp(name, similar[i][0]) == 0)
                (void)text_append(names, sizeof names, " (see %s)", similar[i][1]);
    }
    if (names[0] != '\0')
        log_warn("variables of NCCL that have no effect in libring: %s", names);
}

static void warn_unknown_once(void)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    extern char **environ;
    if (environ == NULL || !is_first_here() || atomic_flag_test_and_set(&warned))
        return;
    for (char **variable = environ; *variable != NULL; variable++)
        warn_unknown(*variable);
    warn_ignored(environ);
}

/* Finds a setting's value and stores it. @return as setting_parse(). */
static const char *setting_take(const setting *s, settings *out, const char **value,
                                const char **source)
{
    *value = setting_value(s, source);
    return setting_parse(s, *value, out);
}

ring_status settings_read(settings *out)
{
    ring_status status = RING_OK;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < SETTINGS; i++) {
        const char *source, *value, *allowed = setting_take(&table[i], out, &value, &source);
        const bool foreign = source == table[i].nccl;
        out->foreign |= (uint64_t)foreign << i;
        if (allowed == NULL)
            continue;
        out->unfit |= (uint64_t)foreign << i;
        if (status == RING_OK && !foreign)
            status = wrong(&table[i], value, allowed);
        (void)setting_parse(&table[i], table[i].fallback, out);
    }
    out->ib.gid_from = settings_foreign_name(out, "RING_IB_GID_INDEX");
    if (status == RING_OK)
        warn_unknown_once();
    return status;
}

/* Applies one entry "NAME=VALUE" of ring_config.settings. */
static ring_status override(settings *out, const char *entry)
{
    char name[SETTINGS_NAME_MAX];
    const char *nearest = NULL;
    const size_t length = strcspn(entry, "=");
    const setting *s = find(entry, length);
    if (entry[length] != '=' || s == NULL || s->kind == SETTING_ELSEWHERE) {
        (void)settings_unknown(entry, name, &nearest);
        return fail(RING_ERR_CONFIG,
                    "ring_config.settings: expected NAME=VALUE with the name of a communicator's "
                    "setting, found \"%.100s\"%s%s%s",
                    entry, nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
                    nearest != NULL ? "?" : "");
    }
    const char *value = entry + length + 1;
    if (s->kind == SETTING_LEVEL)
        value = level_word(value);
    const char *allowed = setting_parse(s, value, out);
    out->foreign &= ~(UINT64_C(1) << (s - table));
    out->unfit &= out->foreign;
    return allowed == NULL ? RING_OK : wrong(s, value, allowed);
}

ring_status settings_override(settings *out, const char *const *entries)
{
    for (; entries != NULL && *entries != NULL; entries++)
        RING_TRY(override(out, *entries));
    out->ib.gid_from = settings_foreign_name(out, "RING_IB_GID_INDEX");
    return RING_OK;
}

/* ---- Other libraries' variables ------------------------------------------------------ */

/* Warns that the value of NCCL's variable is ignored, at most once for each setting in a
 * process. */
static void warn_unfit(const setting *s, const char *why)
{
    static _Atomic uint64_t noted;
    const uint64_t bit = UINT64_C(1) << (s - table);
    const char *value = environment(s->nccl);
    if (value != NULL && is_first_here() && (atomic_fetch_or(&noted, bit) & bit) == 0)
        log_warn("%s=%.100s is not used: %s", s->nccl, value, why);
}

const char *settings_foreign_name(const settings *s, const char *name)
{
    const setting *row = find(name, strlen(name));
    return (s->foreign >> (row - table) & 1) != 0 ? row->nccl : NULL;
}

bool settings_leave_out(const settings *s, const char *name, const char *why)
{
    if (settings_foreign_name(s, name) == NULL)
        return false;
    warn_unfit(find(name, strlen(name)), why);
    return true;
}

void settings_note_unfit(const settings *s, bool adapters, bool gpus)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        char why[128];
        settings unused;
        const char *source, *value, *name = table[i].name;
        const bool of_adapters = strncmp(name, "RING_IB_", 8) == 0 ||
                                 table[i].kind == SETTING_DISTANCE;
        const bool of_gpus = strncmp(name, "RING_DEVICE_", 12) == 0;
        if ((s->unfit >> i & 1) == 0 || (of_adapters && !adapters) || (of_gpus && !gpus))
            continue;
        const char *allowed = setting_take(&table[i], &unused, &value, &source);
        text_format(why, sizeof why, "%s wants %s", name, allowed != NULL ? allowed : "");
        warn_unfit(&table[i], why);
    }
}

/* ---- Rows ---------------------------------------------------------------------------- */

settings_row *settings_rows(size_t *count)
{
    settings_row *rows = calloc(SETTINGS, sizeof *rows);
    *count = rows != NULL ? SETTINGS : 0;
    for (size_t i = 0; i < *count; i++) {
        const setting *s = &table[i];
        settings unused;
        const char *source, *value, *allowed = setting_take(s, &unused, &value, &source);
        const bool unfit = source == s->nccl && allowed != NULL;
        rows[i] = (settings_row){.name = s->name,
                                 .nccl = s->nccl,
                                 .unit = s->unit,
                                 .help = s->help,
                                 .fallback = s->fallback};
        text_format(rows[i].value, sizeof rows[i].value, "%s", unfit ? s->fallback : value);
        text_format(rows[i].source, sizeof rows[i].source, "%s", unfit ? "default, not " : source);
        if (unfit)
            text_append(rows[i].source, sizeof rows[i].source, "%s=%.30s", source,
                        environment(s->nccl));
    }
    return rows;
}
