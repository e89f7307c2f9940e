#!/bin/sh
# `intact agent check` finds nothing wrong with an agent. Usage: right_test.sh INTACT WORD...
# FOLDER, at the beginning of a word, stands for a folder that is new and is removed at the end. $FOLDER is the same for the
# command of --effects, and $LETTERS a folder in it.
# A check mostly waits. So four go on at once, each with an agent of its own and a part of the scenarios; the rules are
# judged in all of them.
export LC_ALL=C # ranges of letters
intact=$1
shift
parts=4
folder=$(mktemp -d "${TMPDIR:-/tmp}/intact-right.XXXXXX")
trap 'rm -rf "$folder"' EXIT

# The words that choose the scenarios of a part.
chosen() {
    "$intact" agent check --list --json | jq -r --argjson part "$1" --argjson parts "$parts" '
        .scenarios | to_entries[]
        | select(.key % $parts == $part or .value.name == ("completes", "form", "holding", "instance", "bearer"))
        | "--only", .value.name'
}

# The scenarios of one part. Usage: part NUMBER WORD...
part() {
    number=$1
    shift
    own=$folder/$number
    mkdir "$own"
    count=$#
    while [ "$count" -gt 0 ]; do # each word to the end, with its folder
        word=$1
        shift
        case $word in FOLDER*) word=$own${word#FOLDER} ;; esac
        set -- "$@" "$word"
        count=$((count - 1))
    done
    # shellcheck disable=SC2046 # a list of words
    set -- $(chosen "$number") "$@"
    FOLDER=$own LETTERS=$own/letters PYTHONDONTWRITEBYTECODE=1 "$intact" agent check --patience 4m --junit "$own/junit.xml" "$@"
    status=$?
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$own/junit.xml" || status=1
    return $status
}

pids=
for number in $(seq 0 $((parts - 1))); do
    part "$number" "$@" >"$folder/$number.log" 2>&1 &
    pids="$pids $!"
done
status=0
for pid in $pids; do
    wait "$pid" || status=1
done
cat "$folder"/*.log
# Optional for agents of others, and not for ours.
if grep '^skipped *another-installation' "$folder"/*.log >&2; then
    status=1
fi
played=$(sed -n 's/^\(ok\|wrong\|skipped\) *\([a-z0-9-]*\).*/\2/p' "$folder"/*.log | sort -u | wc -l)
there=$("$intact" agent check --list --json | jq '.scenarios | length')
if [ "$played" != "$there" ]; then
    echo "of $there scenarios $played were played" >&2
    status=1
fi
exit $status
