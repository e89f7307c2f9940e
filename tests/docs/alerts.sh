#!/usr/bin/env bash
# The alerts that we offer: does Prometheus take them, do they come when they should, are all of them tested, is what
# they look at among the metrics, and does docs/operations.md say of each what to do? Usage: alerts.sh ROOT
set -eu
export LC_ALL=C # ranges of letters
root=$1
promtool=$("$root/tools/promtool")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$root/docs/alerts.yml" "$root/tests/docs/alerts_test.yml" "$work"

"$promtool" check rules "$work/alerts.yml"
"$promtool" test rules "$work/alerts_test.yml"
for alert in $(sed -n 's/.*- alert: //p' "$work/alerts.yml"); do
    [ "$(grep -c "alertname: $alert\b" "$work/alerts_test.yml")" -ge 2 ] || { echo "$alert has no test" >&2; exit 1; }
    grep -q "^| \`$alert\`" "$root/docs/operations.md" || { echo "operations.md does not tell of $alert" >&2; exit 1; }
done
for metric in $(grep -oE '(intact|process)_[a-z_]+[a-z]' "$work/alerts.yml" | sed 's/_bucket$//' | sort -u); do
    grep -q "^| \`$metric\`" "$root/docs/metrics.md" || { echo "there is no metric $metric" >&2; exit 1; }
done
