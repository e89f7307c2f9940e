#!/bin/sh
# The exec agent is right, as far as a command can be that keeps no record. Usage: exec_test.sh RIGHT_TEST INTACT
folder=$(mktemp -d "${TMPDIR:-/tmp}/intact-exec.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cat >"$folder/print.sh" <<'END'
#!/bin/sh
mkdir -p "$LETTERS"
jq -r .input.text >"$LETTERS/$INTACT_TASK" || exit 75
echo "{\"file\": \"$INTACT_TASK\"}"
END
chmod +x "$folder/print.sh"
cat >"$folder/commands.yaml" <<END
intact_exec: 1
agents:
  press:
    instance: press-1
    places: 4
    directory: $folder
    environment: {LETTERS: {from: LETTERS}}
    actions:
      print:
        command: [$folder/print.sh]
END
"$1" "$2" --action print --input '{"text": "hello"}' \
    --effects "mkdir -p \$LETTERS && ls \$LETTERS | wc -l" -- "$2" agent exec --config "$folder/commands.yaml"
