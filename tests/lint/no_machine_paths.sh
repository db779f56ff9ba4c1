#!/usr/bin/env bash
# No tracked file may name a folder of the machine that it was written on, or the host of a package registry: both
# would break, or mislead, on any other machine. Prints each place and exits with 1 if there is one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Brackets keep the patterns from matching their own lines.
patterns=(
    '/[w]ork/(main|wt|shared|scratch|repos?)'
    '/[r]oot/'
    '/[h]ome/[a-z]+/'
    '\.[p]yenv'
    '[d]eb\.debian\.org'
    '[p]ypi\.org'
    '[f]iles\.pythonhosted\.org'
    '[r]egistry\.npmjs\.org'
    '[d]ownload\.pytorch\.org'
)
joined="$(IFS='|'; echo "${patterns[*]}")"

# git grep exits with 1 where nothing matches, which is what we want, and with more where it failed.
status=0
git grep -nIE "$joined" -- . ':!LICENSE' || status=$?
case "$status" in
    0) echo "machine paths: the lines above name this machine or a registry" && exit 1 ;;
    1) echo "machine paths: none" ;;
    *) exit "$status" ;;
esac
