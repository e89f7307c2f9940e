#!/bin/sh
# `intact agent check` finds nothing wrong with an agent. Usage: right_test.sh INTACT WORD...
# FOLDER, in a word or in LETTERS, stands for a folder that is new and is removed at the end.
intact=$1
shift
folder=$(mktemp -d "${TMPDIR:-/tmp}/intact-right.XXXXXX")
trap 'rm -rf "$folder"' EXIT
count=$#
while [ "$count" -gt 0 ]; do # each word to the end, with its folder
    word=$1
    shift
    case $word in FOLDER*) word=$folder${word#FOLDER} ;; esac
    set -- "$@" "$word"
    count=$((count - 1))
done
LETTERS=$folder/letters PYTHONDONTWRITEBYTECODE=1 "$intact" agent check --patience 4m --junit "$folder/junit.xml" "$@"
status=$?
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$folder/junit.xml" || status=1
exit $status
