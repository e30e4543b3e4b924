/* SPDX-License-Identifier: Apache-2.0
 * Networks cut into stages: DeepSpeed's cuts, every cut of short rows as the oracle, parts of
 * networks, and ranks in a grid. */
#include "check.h"

#include <builtin.h>
#include <errors.h>
#include <grid.h>
#include <model_part.h>
#include <random.h>
#include <stages.h>
#include <string.h>

enum { WEIGHTS_MAX = 8 };

static void expect_cuts(const char *model, const char *method, int stages, const int *want)
{
    model_spec spec;
    train_model whole;
    int starts[WEIGHTS_MAX + 1];
    assert_int_equal(model_build(&spec, model), RING_OK);
    assert_int_equal(model_plan(&whole, &spec), RING_OK);
    if (stages_cut(&whole, method, stages, starts) != RING_OK)
        fail_msg("%s", train_error());
    for (int s = 0; s <= stages; s++) {
        if (starts[s] != want[s])
            fail_msg("%s, %s: stage %d of %d begins at %d, not at %d", model, method, s, stages,
                     starts[s], want[s]);
    }
    model_destroy(&whole);
    model_spec_free(&spec);
}

/* Parameters of the layers: 200960, 0, 16448, 0, 650. */
static void cuts_are_deepspeeds(void **state)
{
    expect_cuts("mlp", "parameters", 2, (int[]){0, 2, 5});
    expect_cuts("mlp", "best", 2, (int[]){0, 2, 5});
    expect_cuts("mlp", "parameters", 3, (int[]){0, 2, 4, 5});
    expect_cuts("mlp", "uniform", 2, (int[]){0, 3, 5});
    expect_cuts("mlp", "type:linear", 3, (int[]){0, 2, 4, 5});
    expect_cuts("mlp", "type:^LIN", 1, (int[]){0, 5});
    expect_cuts("lenet5", "type:conv2d|max_pool2d", 2, (int[]){0, 3, 12});
}

/* DeepSpeed's partition_uniform: equal counts, and the rest to the first stages. */
static void uniform_stages_differ_by_one_weight(void **state)
{
    static const double ones[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    for (int count = 1; count <= 12; count++) {
        for (int stages = 1; stages <= count; stages++) {
            int starts[13];
            assert_int_equal(stages_balance(ones, count, stages, starts), RING_OK);
            for (int s = 0; s < stages; s++)
                assert_int_equal(starts[s + 1] - starts[s], count / stages + (s < count % stages));
        }
    }
}

/* ---- Against all cuts ---------------------------------------------------------------------- */

typedef struct all_cuts {
    const double *weights;
    int count, stages;
    double largest, smallest;
    int starts[WEIGHTS_MAX + 1], best[WEIGHTS_MAX + 1];
} all_cuts;

static double sum_of(const all_cuts *all, int first, int end)
{
    double sum = 0.0;
    for (int i = first; i < end; i++)
        sum += all->weights[i];
    return sum;
}

/* Cuts come in the order of their last one, then of the one before: later ones replace equals. */
static void judge(all_cuts *all)
{
    double largest = 0.0, smallest = HUGE_VAL;
    for (int s = 0; s < all->stages; s++) {
        largest = fmax(largest, sum_of(all, all->starts[s], all->starts[s + 1]));
        smallest = fmin(smallest, sum_of(all, all->starts[s], all->starts[s + 1]));
    }
    if (largest > all->largest || (largest == all->largest && smallest < all->smallest))
        return;
    all->largest = largest;
    all->smallest = smallest;
    memcpy(all->best, all->starts, sizeof all->best);
}

static void try_cuts(all_cuts *all, int stage)
{
    if (stage == 0) {
        judge(all);
        return;
    }
    for (int cut = stage; cut < all->starts[stage + 1]; cut++) {
        all->starts[stage] = cut;
        try_cuts(all, stage - 1);
    }
}

static void balance_is_the_best_of_all_cuts(void **state)
{
    train_random random;
    random_seed(&random, 5);
    for (int round = 0; round < 3000; round++) {
        double weights[WEIGHTS_MAX];
        int starts[WEIGHTS_MAX + 1];
        all_cuts all = {.weights = weights, .largest = HUGE_VAL};
        all.count = 1 + (int)(random_u32(&random) % WEIGHTS_MAX);
        all.stages = 1 + (int)(random_u32(&random) % (uint32_t)all.count);
        for (int i = 0; i < all.count; i++)
            weights[i] = (double)(random_u32(&random) % 6);
        all.starts[all.stages] = all.count;
        try_cuts(&all, all.stages - 1);
        assert_int_equal(stages_balance(weights, all.count, all.stages, starts), RING_OK);
        assert_memory_equal(starts, all.best, (size_t)(all.stages + 1) * sizeof starts[0]);
    }
}

/* ---- Networks ------------------------------------------------------------------------------ */

static const op_settings four = {.outputs = 4};

/* linear a, relu, linear, add(linear, a), dropout, linear */
static model_spec residual(void)
{
    model_spec spec;
    model_spec_start(&spec, "residual", (op_shape){.dim = {4}, .dims = 1});
    model_spec_add(&spec, &op_linear, &four);
    model_spec_add(&spec, &op_relu, NULL);
    model_spec_add(&spec, &op_linear, &four);
    model_spec_add(&spec, &op_add, NULL)->inputs[1] = 0;
    model_spec_add(&spec, &op_dropout, &(op_settings){.probability = 0.5});
    model_spec_add(&spec, &op_linear, &four);
    return spec;
}

/* From before 2 and 3 the output of node 0 goes on, too. */
static void a_cut_lets_one_activation_through(void **state)
{
    static const bool may[] = {false, true, false, false, true, true};
    model_spec spec = residual();
    train_model whole;
    int starts[3];
    assert_int_equal(model_plan(&whole, &spec), RING_OK);
    for (int n = 1; n < 6; n++)
        assert_int_equal(model_may_cut(&whole, n), may[n]);
    assert_int_equal(stages_cut(&whole, "parameters", 2, starts), RING_OK);
    assert_int_equal(starts[1], 5); /* 40 and 20 parameters; 20 and 40 would be cut earlier */
    model_destroy(&whole);
    model_spec_free(&spec);
}

static void expect_refused(const model_spec *spec, const char *method, int stages,
                           const char *error)
{
    train_model whole;
    int starts[WEIGHTS_MAX + 1];
    assert_int_equal(model_plan(&whole, spec), RING_OK);
    assert_int_equal(stages_cut(&whole, method, stages, starts), RING_ERR_CONFIG);
    if (strstr(train_error(), error) == NULL)
        fail_msg("%s", train_error());
    model_destroy(&whole);
}

static void stages_that_cannot_be_are_refused(void **state)
{
    model_spec spec = residual();
    expect_refused(&spec, "parameters", 5,
                   "residual cannot be cut into 5 pipeline stages, only into 4 or fewer");
    expect_refused(&spec, "uniform", 4, "(layers 4 to 4) would have no parameters; use fewer");
    expect_refused(
        &spec, "type:embedding", 2,
        "pipeline.partition type:embedding: no layer of residual has a type that matches");
    expect_refused(&spec, "type:(", 2, "pipeline.partition type:( is not a regular expression");
    model_spec_free(&spec);
}

static void a_part_is_a_network_of_its_own(void **state)
{
    model_spec spec = residual(), part;
    train_model whole, stage;
    model_spec_add(&spec, &op_linear, &four)->tie = 5;
    assert_int_equal(model_plan(&whole, &spec), RING_OK);
    assert_int_equal(model_part_spec(&part, &spec, &whole, 4, 7), RING_OK);
    assert_int_equal(model_create(&stage, &part, 2, 1), RING_OK);
    assert_int_equal(stage.node_count, 4);
    assert_ptr_equal(stage.nodes[0].use.op, &op_received);
    assert_int_equal(stage.nodes[1].use.number, 4); /* dropout draws as in the whole */
    assert_int_equal(stage.tensors.own_count, 2);
    assert_string_equal(stage.tensors.list[0].name, "5.weight");
    assert_int_equal(stage.tensors.list[2].tie, 0);
    assert_int_equal(model_part_node(4, 6), 3);
    assert_true(stage.nodes[0].wants_grad);
    model_destroy(&stage);
    model_spec_free(&part);
    model_destroy(&whole);
    model_spec_free(&spec);
}

static void grids_are_numbered_as_deepspeeds(void **state)
{
    for (int rank = 0; rank < 6; rank++) {
        const train_grid grid = grid_place(6, rank, 3, 1);
        assert_int_equal(grid.shares, 2);
        assert_int_equal(grid.stage * 2 + grid.share, rank);
        assert_in_range(grid.share, 0, 1);
    }
    assert_int_equal(grid_place(4, 3, 1, 1).share, 3);
}

/* Hosts of any ranks side by side, against looking at each rank's share. */
static void shares_of_a_host_are_counted_once(void **state)
{
    enum { RANKS = 24 };
    static const int grids[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 3}, {4, 6}, {3, 2}};
    for (size_t g = 0; g < COUNT_OF(grids); g++) {
        for (int first = 0; first < RANKS; first++) {
            bool seen[RANKS] = {false};
            int shares = 0;
            for (int count = 1; first + count <= RANKS; count++) {
                const train_grid grid = grid_place(RANKS, first + count - 1, grids[g][0],
                                                   grids[g][1]);
                shares += !seen[grid.share];
                seen[grid.share] = true;
                assert_int_equal(grid_shares_of(&grid, first, count), shares);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_are_deepspeeds),
        cmocka_unit_test(uniform_stages_differ_by_one_weight),
        cmocka_unit_test(balance_is_the_best_of_all_cuts),
        cmocka_unit_test(a_cut_lets_one_activation_through),
        cmocka_unit_test(stages_that_cannot_be_are_refused),
        cmocka_unit_test(a_part_is_a_network_of_its_own),
        cmocka_unit_test(shares_of_a_host_are_counted_once),
        cmocka_unit_test(grids_are_numbered_as_deepspeeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
