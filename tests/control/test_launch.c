/* SPDX-License-Identifier: Apache-2.0
 * Which launcher started us, told from faked environments. */
#include "ranks.h"

#include "launch.h"

#include <stdlib.h>
#include <string.h>

typedef struct good_case {
    const char *variables; /* "A=1 B=2" */
    launch_info want;
} good_case;

static void set_all(const char *variables)
{
    char copy[1024];
    char *rest = copy;
    clearenv();
    text_format(copy, sizeof copy, "%s", variables);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        setenv(word, equals + 1, 1);
    }
}

#define MASTER " MASTER_ADDR=node1 MASTER_PORT=29500"
#define RINGRUN "RING_RANK=1 RING_SIZE=4 RING_LOCAL_RANK=1 RING_LAUNCHER=ringrun"
#define TORCHRUN "RANK=2 WORLD_SIZE=4 LOCAL_RANK=0"
#define OMPI "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1"
#define PMIX "PMIX_RANK=3 PMIX_NAMESPACE=job.1"
#define STEP "SLURM_PROCID=5 SLURM_NTASKS=6 SLURM_LOCALID=2 SLURM_STEP_ID=0"

static const good_case good[] = {
    {"", {0, 1, -1, "none", "", 0, false, 0, ""}},
    {"MASTER_ADDR=node1", {0, 1, -1, "none", "", 0, false, 0, ""}},
    {RINGRUN MASTER, {1, 4, 1, "ringrun", "node1", 29500, false, 0, ""}},
    {"RING_RANK=0 RING_SIZE=1", {0, 1, -1, "RING_RANK", "", 0, false, 0, ""}},
    {RINGRUN MASTER " TORCHELASTIC_USE_AGENT_STORE=True",
     {1, 4, 1, "ringrun", "node1", 29500, false, 0, ""}},
    {TORCHRUN MASTER, {2, 4, 0, "torchrun", "node1", 29500, false, 0, ""}},
    {"RANK=2 WORLD_SIZE=4" MASTER, {2, 4, -1, "torchrun", "node1", 29500, false, 0, ""}},
    {TORCHRUN MASTER " TORCHELASTIC_USE_AGENT_STORE=True",
     {2, 4, 0, "torchrun", "node1", 29500, true, 0, ""}},
    {TORCHRUN MASTER " TORCHELASTIC_USE_AGENT_STORE=False",
     {2, 4, 0, "torchrun", "node1", 29500, false, 0, ""}},
    {RINGRUN " " TORCHRUN MASTER, {1, 4, 1, "ringrun", "node1", 29500, false, 0, ""}},
    {RINGRUN " RING_LOCAL_SIZE=4 LOCAL_WORLD_SIZE=2" MASTER,
     {1, 4, 1, "ringrun", "node1", 29500, false, 4, ""}},
    {TORCHRUN " LOCAL_WORLD_SIZE=2" MASTER, {2, 4, 0, "torchrun", "node1", 29500, false, 2, ""}},
    {OMPI, {3, 8, 1, "Open MPI", "", 0, false, 0, ""}},
    {OMPI " OMPI_COMM_WORLD_LOCAL_SIZE=8", {3, 8, 1, "Open MPI", "", 0, false, 8, ""}},
    {OMPI " " PMIX, {3, 8, 1, "Open MPI", "", 0, false, 0, ""}},
    {OMPI MASTER, {3, 8, 1, "Open MPI", "node1", 29500, false, 0, ""}},
    {OMPI " MASTER_ADDR=node1 MASTER_PORT=0", {3, 8, 1, "Open MPI", "", 0, false, 0, ""}},
    {"RANK=0 WORLD_SIZE=1 MASTER_ADDR=a MASTER_PORT=http",
     {0, 1, -1, "torchrun", "", 0, false, 0, ""}},
    {OMPI " MASTER_ADDR=node1", {3, 8, 1, "Open MPI", "", 0, false, 0, ""}},
    {OMPI " WORLD_SIZE=8", {3, 8, 1, "Open MPI", "", 0, false, 0, ""}},
    {PMIX " SLURM_NTASKS=4 SLURM_LOCALID=3", {3, 4, 3, "PMIx", "", 0, false, 0, ""}},
    {"MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=2", {1, 2, -1, "MVAPICH", "", 0, false, 0, ""}},
    {"MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=2 MV2_COMM_WORLD_LOCAL_SIZE=1",
     {1, 2, -1, "MVAPICH", "", 0, false, 1, ""}},
    {"PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2",
     {1, 2, 1, "PMI", "", 0, false, 2, ""}},
    {STEP, {5, 6, 2, "Slurm", "", 0, false, 0, ""}},
    {STEP " SLURM_STEP_NUM_TASKS=8", {5, 8, 2, "Slurm", "", 0, false, 0, ""}},
    /* A batch script and an interactive allocation are no steps. */
    {"SLURM_PROCID=0 SLURM_NTASKS=6", {0, 1, -1, "none", "", 0, false, 0, ""}},
    {"SLURM_PROCID=0 SLURM_NTASKS=6 SLURM_STEP_ID=4294967291",
     {0, 1, -1, "none", "", 0, false, 0, ""}},
};

static void every_launcher_is_recognised(void **state)
{
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        launch_info got;
        const launch_info *want = &good[i].want;
        set_all(good[i].variables);
        if (launch_detect(&got) != RING_OK)
            stop_test("%s: %s\n", good[i].variables, fail_text());
        if (got.rank != want->rank || got.size != want->size ||
            got.local_rank != want->local_rank || got.port != want->port ||
            got.agent_holds_port != want->agent_holds_port || got.local_size != want->local_size ||
            strcmp(got.launcher, want->launcher) != 0 || strcmp(got.address, want->address) != 0)
            stop_test("%s: got rank %d of %d, local %d of %d, %s, %s:%d, agent %d\n",
                      good[i].variables, got.rank, got.size, got.local_rank, got.local_size,
                      got.launcher, got.address, got.port, got.agent_holds_port);
    }
}

static void jobs_are_told_apart(void **state)
{
    static const char *const jobs[][2] = {
        {RINGRUN MASTER, ""},
        {RINGRUN MASTER " RING_JOB_ID=a1 SLURM_JOB_ID=7", "a1"},
        {TORCHRUN MASTER " TORCHELASTIC_RUN_ID=r", "r"},
        {TORCHRUN MASTER " TORCHELASTIC_RUN_ID=r RING_JOB_ID=mine", "mine"},
        {OMPI " PMIX_NAMESPACE=prterun-7", "prterun-7"},
        {OMPI " PMIX_NAMESPACE=5 OMPI_MCA_ess_base_jobid=6", "5 6"},
        {STEP " SLURM_JOB_ID=77", "77 0"},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        launch_info got;
        set_all(jobs[i][0]);
        assert_int_equal(launch_detect(&got), RING_OK);
        assert_string_equal(got.job, jobs[i][1]);
    }
}

static const char *const bad[][3] = {
    {"RING_RANK=1", "RING_RANK", "RING_SIZE"},
    {"RING_SIZE=2", "RING_SIZE", "RING_RANK"},
    {"RANK=0" MASTER, "RANK", "WORLD_SIZE"},
    {"WORLD_SIZE=2" MASTER, "WORLD_SIZE", "RANK"},
    {"RANK=0 WORLD_SIZE=2", "RANK", "MASTER_ADDR"},
    {"RANK=0 WORLD_SIZE=2 MASTER_ADDR=a", "RANK", "MASTER_PORT"},
    {"RING_RANK=0 RING_SIZE=2 MASTER_PORT=1", "RING_RANK", "MASTER_ADDR"},
    {"RANK=2 WORLD_SIZE=2" MASTER, "RANK=2", "WORLD_SIZE"},
    {"RANK=-1 WORLD_SIZE=2" MASTER, "RANK=-1", "whole number"},
    {"RANK=x WORLD_SIZE=2" MASTER, "RANK=x", "whole number"},
    {"RANK=1 WORLD_SIZE=2x" MASTER, "WORLD_SIZE=2x", "whole number"},
    {"RANK=0 WORLD_SIZE=0" MASTER, "WORLD_SIZE=0", "whole number"},
    {"RANK=0 WORLD_SIZE=99999999999" MASTER, "WORLD_SIZE=99999999999", "whole number"},
    {"RANK=0 WORLD_SIZE=2 LOCAL_RANK=a" MASTER, "LOCAL_RANK=a", "whole number"},
    {"RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=0" MASTER, "LOCAL_WORLD_SIZE=0", "whole number"},
    {"RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=70000", "MASTER_PORT=70000", "65535"},
    {"RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=http", "MASTER_PORT=http", "65535"},
    {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=4",
     "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK=1", "PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID=9 SLURM_NTASKS=6 SLURM_STEP_ID=0", "SLURM_PROCID=9", "SLURM_NTASKS"},
};

static void contradictions_name_the_variables(void **state)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        launch_info got;
        set_all(bad[i][0]);
        const ring_status status = launch_detect(&got);
        if (status != RING_ERR_CONFIG || strstr(fail_text(), bad[i][1]) == NULL ||
            strstr(fail_text(), bad[i][2]) == NULL)
            stop_test("%s: status %d, %s\n", bad[i][0], (int)status, fail_text());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_launcher_is_recognised),
        cmocka_unit_test(jobs_are_told_apart),
        cmocka_unit_test(contradictions_name_the_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
