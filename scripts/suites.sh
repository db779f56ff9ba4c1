# Runs test suites and keeps their results; meant to be sourced after common.sh.
#
# A suite is a command. Its output stays visible and is also kept in build/logs/<suite>.log. It has passed if it exits
# with 0, was skipped if it exits with 77 (its last line says why), else failed. The outermost script that sources this
# file prints the summary of all suites, also of those that scripts below it ran.

if [ -z "${INFRARSI_RESULTS:-}" ]; then
    mkdir -p "$root/build/logs"
    INFRARSI_RESULTS="$(mktemp "$root/build/logs/results.XXXXXX")"
    export INFRARSI_RESULTS
    owns_results=yes
else
    owns_results=no
fi

# suite NAME COMMAND...: never fails itself, so that the suites after it run too. Leaves its verdict in suite_verdict.
suite() {
    local name="$1" status=0 start note=""
    local log="$root/build/logs/${name//[^a-zA-Z0-9]/-}.log"
    shift
    start="$(date +%s)"
    printf '\n== %s\n' "$name"
    "$@" 2>&1 | tee "$log" || status="${PIPESTATUS[0]}"
    case "$status" in
        0) suite_verdict=passed ;;
        77) suite_verdict=skipped note="$(tail -n 1 "$log")" ;;
        *) suite_verdict=failed note="exit $status, see ${log#"$root"/}" ;;
    esac
    printf '%s\t%s\t%s\t%s\n' "$name" "$suite_verdict" "$(($(date +%s) - start))" "$note" >>"$INFRARSI_RESULTS"
}

# Prints the summary where this script is the outermost one. Its exit status says whether no suite failed.
finish_suites() {
    local failed
    failed="$(awk -F '\t' '$2 == "failed"' "$INFRARSI_RESULTS" | wc -l)"
    if [ $owns_results = yes ]; then
        printf '\n%-28s %-8s %8s\n' suite result seconds
        awk -F '\t' '{printf "%-28s %-8s %8d  %s\n", $1, $2, $3, $4; count[$2]++}
            END {printf "\n%d passed, %d failed, %d skipped\n", count["passed"], count["failed"], count["skipped"]}' \
            "$INFRARSI_RESULTS"
        rm -f "$INFRARSI_RESULTS"
    fi
    [ "$failed" = 0 ]
}
