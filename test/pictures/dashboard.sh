#!/usr/bin/env bash
# Takes the pictures of the dashboard from a server with a few elections: dashboard.sh REGENT FOLDER. It takes half a
# minute, for terms that last.
set -eu -o pipefail
regent=$(realpath "$1") folder=$(realpath "$2")
here=$(mktemp -d)
cd "$here"
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$here"' EXIT

"$regent" serve --listen 127.0.0.1:0 --store memory: >log 2>&1 &
until address=$(grep -m 1 serving log | grep -o '127\.0\.0\.1:[0-9]*'); do kill -0 $!; sleep 0.1; done
REGENT_KEY=$(head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=')
export REGENT_SERVER=http://$address REGENT_ACTOR=ann REGENT_KEY

# quiet prints what a command said if it failed.
quiet() { "$@" >out 2>&1 || { cat out >&2; exit 1; }; }
lead() { quiet "$regent" acquire "$1" --candidate "$2" --lease "$3"; }

quiet "$regent" configure planner --description "Plans the day for the billing agents" --policy '{"maxTerm":"8h"}' --lease 10m
quiet "$regent" run planner --candidate agent-2 -- sleep 11
lead planner agent-6 3s
for candidate in agent-7 agent-8 agent-9; do
  "$regent" acquire planner --candidate $candidate --wait 5m --metadata '{"host":"eu-west-3b","version":"2.14.0"}' >$candidate 2>&1 &
  sleep 1
done
"$regent" join planner node-2 --note replica >node-2 2>&1 &
quiet "$regent" ban planner --candidate agent-2 --for 24h --reason "its disk fails"

lead backups bak-1 30m
lead invoices.eu inv-4 10m
lead invoices.us inv-2 10m
lead reports rep-1 1h
lead search.index s-12 20m
lead mail mx-1 1s
quiet "$regent" pause mail --for 1h --reason "the database moves"
lead translate tr-3 1s
quiet "$regent" configure cluster --policy '{"quorum":{"electorate":["n1","n2","w"],"need":1,"grace":"1ms"}}'
lead cluster n1 1h
quiet "$regent" configure cluster --policy '{"quorum":{"electorate":["n1","n2","w"],"need":3,"grace":"1ms"}}'
quiet "$regent" configure deploy --policy '{"approval":{"every":"10h"}}'
lead deploy dep-1 1h
quiet "$regent" request-approval deploy --candidate dep-1 --token 1 --note "the migration"
for i in 1 2 3 4; do quiet "$regent" run crawler --candidate "crawl-$i" -- true; done
lead crawler crawl-5 1m
quiet curl -sSf --json '{"candidateId":"agent-7","key":"'$REGENT_KEY'","fencingToken":3,"report":{"progress":412,"eta":"20m","health":"ok"}}' \
  "$REGENT_SERVER/v1/elections/planner:renew"
quiet "$regent" checkpoint put planner --candidate agent-7 --token 3 --task "chapter 2" --file <(echo '{"done":[1,2,3],"next":4}')
sleep 2

while read -r name path height; do
  quiet chromium --headless --no-sandbox --disable-gpu --no-proxy-server --hide-scrollbars --user-data-dir="$here/chromium" \
    --virtual-time-budget=4000 --window-size="1200,$height" --screenshot="$folder/$name.png" "$REGENT_SERVER/ui/${path#-}"
done <<<"fleet - 780
election elections/planner 900"
