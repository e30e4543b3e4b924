/* SPDX-License-Identifier: Apache-2.0
 * Written by make_norm_vectors.py with PyTorch 2.15.0. */
#ifndef TRAIN_NORM_VECTORS_H
#define TRAIN_NORM_VECTORS_H

/* Bytes 0 to 255, normalized: fnv1a() of 256 floats. */
static const struct {
    const char *norm;
    uint64_t hash;
} norm_vectors[] = {
    {"0.1307/0.3081", 0x982ab1b9fe87498aU},
    {"0.485/0.229", 0x1fb3762ab01e6b8eU},
    {"0.5/0.5", 0x68583d384cfeacceU},
};

#endif
