#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How cmocka programs end: what is skipped as a whole is a skip of ctest, and nothing else is.
# test_ending.sh PROGRAM [ARGUMENT...] -- without arguments: test_util.ending_cases in all its ways;
# else the program, which must skip all of its cases.
set -u
wrong=0

# ends STATUS COMMAND...
ends()
{
    local want=$1 got
    shift
    "$@" >/dev/null 2>&1
    got=$?
    [ $got -eq "$want" ] && return
    echo "${*##*/}: exit status $got, expected $want"
    wrong=1
}

if [ $# -gt 1 ]; then
    ends 77 "$@"
else
    ends 77 "$1" skipped
    ends 0 "$1" some
    ends 1 "$1" failing
    ends 1 "$1" setup
    ends 1 "$1" failures
fi
exit $wrong
