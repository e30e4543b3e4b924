/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the launcher of this process, the rank and the number of ranks in the environment. A table
 * has one row per launcher, and the first complete row wins. If only half of a launcher's variables
 * are set, and no other row is complete, that is an error.
 */
#include "launch.h"
#include "id_exchange.h"
#include "numbers.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { RANKS_MAX = 1 << 20 };

typedef struct launcher {
    const char *name, *rank, *sizes[2], *local, *local_size;
    bool needs_address; /* there is no other way to find rank 0 */
    const char *mark;   /* a variable that must be set, too; or NULL */
    bool (*applies)(void);
    const char *jobs[2]; /* variables that distinguish jobs, equal on all ranks */
} launcher;

static const char *variable(const char *name)
{
    const char *value = name != NULL ? getenv(name) : NULL;
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* @return true in a numbered step. A batch script has Slurm's variables, too, but is not a rank. */
static bool in_slurm_step(void)
{
    const char *step = variable("SLURM_STEP_ID");
    if (step == NULL)
        step = variable("SLURM_STEPID");
    return step != NULL && strtoul(step, NULL, 10) < 0xfffffff0ul;
}

static const launcher launchers[] = {
    {.name = "ringrun",
     .rank = "RING_RANK",
     .sizes = {"RING_SIZE"},
     .local = "RING_LOCAL_RANK",
     .local_size = "RING_LOCAL_SIZE",
     .needs_address = true},
    {.name = "torchrun",
     .rank = "RANK",
     .sizes = {"WORLD_SIZE"},
     .local = "LOCAL_RANK",
     .local_size = "LOCAL_WORLD_SIZE",
     .needs_address = true,
     .jobs = {"TORCHELASTIC_RUN_ID"}},
    /* Open MPI sets PMIx' variables as well, but only its own variables have the size. */
    {.name = "Open MPI",
     .rank = "OMPI_COMM_WORLD_RANK",
     .sizes = {"OMPI_COMM_WORLD_SIZE"},
     .local = "OMPI_COMM_WORLD_LOCAL_RANK",
     .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .jobs = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {.name = "PMIx",
     .rank = "PMIX_RANK",
     .sizes = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     .local = "SLURM_LOCALID",
     .mark = "PMIX_NAMESPACE",
     .jobs = {"PMIX_NAMESPACE"}},
    {.name = "MVAPICH",
     .rank = "MV2_COMM_WORLD_RANK",
     .sizes = {"MV2_COMM_WORLD_SIZE"},
     .local = "MV2_COMM_WORLD_LOCAL_RANK",
     .local_size = "MV2_COMM_WORLD_LOCAL_SIZE",
     .jobs = {"MPISPAWN_MPIRUN_ID"}},
    {.name = "PMI",
     .rank = "PMI_RANK",
     .sizes = {"PMI_SIZE"},
     .local = "MPI_LOCALRANKID",
     .local_size = "MPI_LOCALNRANKS",
     .jobs = {"PMI_JOBID"}},
    {.name = "Slurm",
     .rank = "SLURM_PROCID",
     .sizes = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     .local = "SLURM_LOCALID",
     .applies = in_slurm_step,
     .jobs = {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

static ring_status number(const char *name, int least, int most, int *out)
{
    long long value;
    const char *text = variable(name);
    if (!number_whole(text, least, most, &value))
        return fail(RING_ERR_CONFIG, "%s=%.60s: want a whole number from %d to %d", name, text,
                    least, most);
    *out = (int)value;
    return RING_OK;
}

static const char *size_variable(const launcher *l)
{
    return variable(l->sizes[0]) != NULL ? l->sizes[0] : l->sizes[1];
}

static bool mentioned(const launcher *l)
{
    if ((l->mark != NULL && variable(l->mark) == NULL) || (l->applies != NULL && !l->applies()))
        return false;
    return variable(l->rank) != NULL || (l->mark == NULL && variable(size_variable(l)) != NULL);
}

static bool complete(const launcher *l)
{
    return variable(l->rank) != NULL && (variable(size_variable(l)) != NULL || l->mark != NULL);
}

/* ---- Where rank 0 is ------------------------------------------------------------- */

static ring_status read_address(const launcher *l, launch_info *out)
{
    const char *address = variable("MASTER_ADDR"), *port = variable("MASTER_PORT");
    const bool needs_address = l->needs_address && out->size > 1;
    if (address == NULL || port == NULL) {
        if ((address != NULL) != (port != NULL))
            log_info("MASTER_ADDR and MASTER_PORT are used only when both are set");
        if (!needs_address)
            return RING_OK;
        return fail(
            RING_ERR_CONFIG,
            "%s is set, but %s is not: set MASTER_ADDR and MASTER_PORT to the address where "
            "rank 0 listens, e.g. 127.0.0.1 and 29500",
            l->rank, address == NULL ? "MASTER_ADDR" : "MASTER_PORT");
    }
    const bool fits = strlen(address) < sizeof out->address;
    const ring_status status = fits ? number("MASTER_PORT", 1, 65535, &out->port)
                                    : fail(RING_ERR_CONFIG,
                                           "MASTER_ADDR is longer than %zu characters",
                                           sizeof out->address - 1);
    if (status != RING_OK && !needs_address)
        log_warn("%s; it is ignored", fail_text());
    if (status != RING_OK)
        return needs_address ? status : RING_OK;
    text_format(out->address, sizeof out->address, "%s", address);
    const char *agent = variable("TORCHELASTIC_USE_AGENT_STORE");
    out->agent_holds_port = strcmp(l->rank, "RANK") == 0 && agent != NULL &&
                            strcasecmp(agent, "True") == 0;
    return RING_OK;
}

/* ---- Rank and size --------------------------------------------------------------- */

static ring_status read_job(const launcher *l, launch_info *out)
{
    const char *own = variable("RING_JOB_ID");
    const char *first = own != NULL ? own : variable(l->jobs[0]);
    const char *second = own != NULL ? NULL : variable(l->jobs[1]);
    if (text_format(out->job, sizeof out->job, "%s%s%s", first != NULL ? first : "",
                    second != NULL ? " " : "", second != NULL ? second : ""))
        return RING_OK;
    return fail(RING_ERR_CONFIG, "%s is too long", own != NULL ? "RING_JOB_ID" : l->jobs[0]);
}

static ring_status read_launcher(const launcher *l, launch_info *out)
{
    RING_TRY(read_job(l, out));
    RING_TRY(number(l->rank, 0, RANKS_MAX - 1, &out->rank));
    RING_TRY(variable(size_variable(l)) != NULL ? number(size_variable(l), 1, RANKS_MAX, &out->size)
                                                : exchange_pmix_size(&out->size));
    if (out->rank >= out->size)
        return fail(RING_ERR_CONFIG, "%s=%d, but there are only %d rank%s (%s), numbered from 0",
                    l->rank, out->rank, out->size, plural(out->size), size_variable(l));
    if (variable(l->local) != NULL)
        RING_TRY(number(l->local, 0, RANKS_MAX - 1, &out->local_rank));
    if (variable(l->local_size) != NULL)
        RING_TRY(number(l->local_size, 1, RANKS_MAX, &out->local_size));
    const char *by_hand = l == launchers ? variable("RING_LAUNCHER") : l->name;
    text_format(out->launcher, sizeof out->launcher, "%s", by_hand != NULL ? by_hand : "RING_RANK");
    return read_address(l, out);
}

ring_status launch_detect(launch_info *launch)
{
    const launcher *half = NULL;
    *launch = (launch_info){.size = 1, .local_rank = -1, .launcher = "none"};
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const launcher *l = &launchers[i];
        if (!mentioned(l))
            continue;
        if (complete(l))
            return read_launcher(l, launch);
        if (half == NULL)
            half = l;
    }
    if (half == NULL)
        return RING_OK;
    const bool has_rank = variable(half->rank) != NULL;
    return fail(RING_ERR_CONFIG, "%s is set, but %s is not: set both, or neither for one rank",
                has_rank ? half->rank : size_variable(half),
                has_rank ? half->sizes[0] : half->rank);
}

static bool equals(const char *name, int value)
{
    const char *text = variable(name);
    return text != NULL && strtol(text, NULL, 10) == value;
}

bool launch_on_one_host(const launch_info *launch)
{
    return launch->local_size == launch->size || equals("SLURM_STEP_NUM_NODES", 1) ||
           equals("SLURM_NNODES", 1);
}
