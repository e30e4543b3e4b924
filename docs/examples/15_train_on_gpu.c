/* SPDX-License-Identifier: Apache-2.0
 * Trains the MLP on GPU 0 if it can be used, else on the CPU; a note says why a GPU is not used.
 *
 *     ringdigits digits --train 2000 --test 500
 *     train_on_gpu docs/examples/mnist/adam.json digits 100 */
#include <ring/train.h>
#include <stdio.h>
#include <stdlib.h>

static void check(ring_status status)
{
    if (status == RING_OK)
        return;
    fprintf(stderr, "train_on_gpu: %s: %s\n", ring_status_string(status), ring_train_error());
    exit(1);
}

static void tell(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "%s\n", text);
}

int main(int argc, char **argv)
{
    ring_comm *comm;
    ring_train *engine;
    double loss = 0.0, accuracy;
    if (argc < 4) {
        fprintf(stderr, "usage: train_on_gpu CONFIG DATA UPDATES\n");
        return 2;
    }
    if (ring_comm_init_env(&comm) != RING_OK)
        return 1; /* the reason was printed */

    ring_train_options options = RING_TRAIN_OPTIONS_INIT;
    options.model = "mlp"; /* 784-256-64-10 */
    options.config = argv[1];
    options.data = argv[2];
    options.loss = "cross_entropy";
    options.device = "auto"; /* "cuda": it fails if there is no GPU that can be used */
    options.note = tell;
    check(ring_train_create(&engine, comm, &options));

    /* Samples, losses and outputs are in memory of the host, wherever the network is computed. */
    for (int update = 0; update < atoi(argv[3]); update++)
        check(ring_train_train_batch(engine, &loss));
    check(ring_train_evaluate(engine, NULL, &accuracy));
    printf("loss %.4f, test accuracy %.2f\n", loss, accuracy);
    ring_train_destroy(engine);
    ring_comm_destroy(comm);
    return 0;
}
