/* SPDX-License-Identifier: Apache-2.0
 * A DeepSpeed user's training loop in C, with the line of Python above each line.
 *
 *     ringdigits digits --train 2000 --test 500
 *     ringrun -n 2 training_loop docs/examples/mnist/deeps.json digits 2
 */
#include <ring/train.h>
#include <stdio.h>
#include <stdlib.h>

static void check(ring_status status)
{
    if (status == RING_OK)
        return;
    fprintf(stderr, "training_loop: %s: %s\n", ring_status_string(status), ring_train_error());
    exit(1);
}

static void tell(void *context, const char *text)
{
    if (ring_comm_rank(context) == 0)
        fprintf(stderr, "%s\n", text);
}

/* The mean over all ranks is in the info; loss alone is that of this rank's micro-batch. */
static void print_update(const ring_train *engine)
{
    ring_train_info info = {.size = sizeof info};
    check(ring_train_get_info(engine, &info));
    if (info.step % 10 == 0)
        printf("epoch %d, update %ld: loss %.4f, rate %.4f\n", info.epoch, info.step, info.loss,
               info.lr);
}

int main(int argc, char **argv)
{
    ring_comm *comm;
    ring_train *model_engine;
    ring_train_batch batch = RING_TRAIN_BATCH_INIT;
    const float *out;
    double loss, accuracy;
    int more;
    if (argc < 4) {
        fprintf(stderr, "usage: training_loop CONFIG DATA EPOCHS\n");
        return 2;
    }
    if (ring_comm_init_env(&comm) != RING_OK)
        return 1; /* the reason was printed */

    /* model_engine, optimizer, train_iter, lr_scheduler = deepspeed.initialize(
     *     model = model, model_parameters = model.parameters(),
     *     config = c.config_file_path, training_data = train)
     * One engine holds all four. */
    ring_train_options options = RING_TRAIN_OPTIONS_INIT;
    options.model = "mlp"; /* 784-256-64-10 */
    options.config = argv[1];
    options.data = argv[2];
    options.loss = "mse";
    options.note = tell;
    options.note_context = comm;
    check(ring_train_create(&model_engine, comm, &options));

    /* for epoch in range(c.EPOCH): */
    for (int epoch = 0; epoch < atoi(argv[3]); epoch++) {
        /* for batch_idx, (x, y) in enumerate(train_iter): */
        while (check(ring_train_next(model_engine, &batch, &more)), more) {
            /* out = model_engine(x.view(x.size(0), 28*28)) */
            check(ring_train_forward(model_engine, &batch, &out));

            /* loss = F.mse_loss(out, one_hot(y)) */
            check(ring_train_loss(model_engine, batch.labels, &loss));

            /* model_engine.backward(loss) */
            check(ring_train_backward(model_engine));

            /* model_engine.step() */
            check(ring_train_step(model_engine));

            /* lr_scheduler.step()
             * In DeepSpeed the schedule goes twice as fast with it, since the engine's step moves
             * it, too. Here it changes nothing, and the first one tells so. */
            check(ring_train_scheduler_step(model_engine));
            if (ring_comm_rank(comm) == 0)
                print_update(model_engine);
        }
    }
    check(ring_train_evaluate(model_engine, &loss, &accuracy));
    if (ring_comm_rank(comm) == 0)
        printf("test loss %.4f, accuracy %.2f\n", loss, accuracy);
    ring_train_destroy(model_engine);
    ring_comm_destroy(comm);
    return 0;
}
