#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the place of compute-sanitizer: runs the program with launches that wait, and finds nothing.
[ "$1 $2 $3 $4 $5" = "--target-processes all --error-exitcode 9 --tool" ] || exit 2
[ "$6" != memcheck ] || [ "$7 $8" = "--report-api-errors no" ] || exit 2
[ "$6" != memcheck ] || shift 2
shift 6
FAKE_CUDA_SYNC=1 exec "$@"
