#!/usr/bin/env bash
# A handler for agent.sh: puts letters into a box, a folder, and takes them back. The idempotency key is the
# name of the letter: however often it is asked for, there is one. Usage: LETTERS=FOLDER letters.sh <REQUEST
set -eu
box=${LETTERS:-letters}
request=$(cat)
letter=$box/$(jq -r '.forward.idempotency_key // .idempotency_key | gsub("/"; "=")' <<<"$request")
mkdir -p "$box"
sync "$box/.." # a new name is on the disk when its folder is

case $(jq -r .action <<<"$request") in
write)
    text=$(jq -r .input.text <<<"$request")
    if [ -z "$text" ]; then
        echo "there is nothing to write" >&2
        exit 1
    fi
    echo "$text" >"$box/.new-$$"
    sync "$box/.new-$$"
    ln "$box/.new-$$" "$letter" 2>/dev/null || [ -e "$letter" ] # it was written before
    rm "$box/.new-$$"
    sync "$box"
    jq -nc --arg letter "$letter" '{letter: $letter}'
    ;;
take-back)
    rm -f "$letter"
    sync "$box"
    ;;
*)
    echo "there is no such action" >&2
    exit 1
    ;;
esac
