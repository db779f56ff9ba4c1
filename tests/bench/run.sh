#!/usr/bin/env bash
# Builds the optimised program and prints the figures of DESIGN §12 that exist, and those of the simulated job, one
# JSON line each:
#
#   {"figure": what, "value": number, "unit": unit, "goal": "< 100" or null}
#
# tests/bench/run.sh [FIGURE...] prints only those whose names contain one of the words. Each is the median of several
# runs on this machine as it is now. The start and init are wall time, so a busy machine makes them worse; what only
# computes is CPU time. A goal that is missed is no error.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
"$root/scripts/build" release --target infrarsi_bench
exec "$root/build/release/tests/bench/infrarsi_bench" "$root/build/release/infrarsi" "$@"
