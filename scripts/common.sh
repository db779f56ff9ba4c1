# Shared by the scripts here; meant to be sourced. Sets `root` (the checkout) and `tools` (where setup puts
# what Debian does not have), and defines the few functions that all of them need.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
tools="${INFRARSI_TOOLS:-$root/.tools}"
case "$tools" in /*) ;; *) tools="$PWD/$tools" ;; esac

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
    say "$*"
    exit 1
}

# Puts the Python with torch first in PATH, as a user's own training environment would be.
use_venv() { export PATH="$tools/venv/bin:$PATH" VIRTUAL_ENV="$tools/venv"; }
