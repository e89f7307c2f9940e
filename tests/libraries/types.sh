#!/usr/bin/env bash
# The types of the TypeScript package, as the compiler finds them for modules of each kind; and its examples.
# Usage: types.sh ROOT
set -eu
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$root/lib/typescript/try" "$work/app" >/dev/null
cd "$work/app"
built=$root/build/typescript
check() {
    "$built/node_modules/.bin/tsc" --strict --noEmit --target es2022 --types node --typeRoots "$built/node_modules/@types" "$@" || {
        echo "tsc $* fails" >&2
        exit 1
    }
}
cp types.ts types.mts
cp types.ts types.cts
cp "$root"/examples/typescript/*.mts .
cp testing_types.ts testing_types.mts
check --module nodenext ./*.mts types.cts
check --module preserve types.ts testing_types.ts
check --module commonjs --moduleResolution node10 types.ts
