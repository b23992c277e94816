#!/usr/bin/env bash
# Leads an election of Regent, and runs a command while it does: agent.sh ELECTION -- COMMAND [ARGUMENT...]
#
# REGENT_SERVER is the server (http://127.0.0.1:8080), REGENT_CANDIDATE the candidate's name; REGENT_INSECURE=true allows http:// to another
# machine. The command's environment has REGENT_ELECTION, REGENT_FENCING_TOKEN, REGENT_CANDIDATE_ID and REGENT_SERVER. It is stopped
# (SIGTERM, then SIGKILL) before the lease is over. Exit codes: the command's own; 2 wrong use; 4 the lease was lost; 128 + n ended by
# signal n.
#
# The rule. A leader stops by itself, at the latest at sent + waitedMs × 0.998 + expiresInMs × 0.999 − margin, where sent was read before the
# request left, on a clock that runs while the machine sleeps (/proc/uptime). Only a success that names this election, candidate and token
# extends it. LEASE_LOST and ELECTION_DELETED end it at once; after no answer, or any other, it tries again until the deadline.
#
# The token must reach the write: the service that takes the command's writes must refuse a token lower than one it has seen. If this script
# is killed or stopped, the command is not stopped in time, and only the token protects.
#
# Needs Linux, bash 4.4, curl and setsid.

set -u +a +x # the key is neither in an environment nor in a trace
declare +x key=""
declare -A reply=()
now=0 sent=0 signal=0 work="" token="" ticket="" status="" deadline=0 grace=0 patience=0 renew_at=0 why=""

say() { (echo "agent.sh: $*" >&2 &); } # in the background: a stopped reader must not hold the leader up
fail() { say "$*" && exit 2; }
now() { local uptime && read -r uptime _ </proc/uptime && now=$((10#${uptime/./} * 10)); }
nap() { IFS= read -rt "$1" -u "$never"; } # seconds, without a process
random() { head -c "$1" /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n'; }
willing() { ((signal == 0)); }
leading() { now && ((now < deadline - grace)) && kill -0 "$work" 2>/dev/null && willing; }

settle() { # ARGUMENT...: reads the command line and the environment
  local LC_ALL=C host=${K_REVISION:-$HOSTNAME} tool # on Cloud Run every host is called localhost
  [[ $# -ge 3 && $2 == -- ]] || fail "usage: agent.sh ELECTION -- COMMAND [ARGUMENT...]; REGENT_SERVER and REGENT_CANDIDATE are settings"
  election=$1 server=${REGENT_SERVER:-http://127.0.0.1:8080}
  [[ $election =~ ^[a-z0-9]([a-z0-9._-]{0,126}[a-z0-9])?$ ]] ||
    fail "'$election' is no election; a name is 1 to 128 of a-z 0-9 . _ - and begins and ends with a letter or a digit"
  [[ $server =~ ^https?://[A-Za-z0-9._-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$ || $server =~ ^https?://\[[0-9A-Fa-f:]+\](:[0-9]+)?/?$ ]] ||
    fail "'$server' is no server; set REGENT_SERVER to an address such as http://127.0.0.1:8080"
  [[ $server =~ ^(https:|http://(127\.[0-9.]+|localhost|\[::1\])(:|/|$)) || ${REGENT_INSECURE:-} == true ]] ||
    fail "'$server' is on another machine, and over http:// the key can be read on the way; use https://, or set REGENT_INSECURE=true"
  candidate=${host//[^A-Za-z0-9._@:-]/-}
  candidate=${REGENT_CANDIDATE:-${candidate:0:100}-$(random 9)}
  [[ $candidate =~ ^[A-Za-z0-9._@:-]{1,128}$ ]] ||
    fail "'$candidate' is no candidate; set REGENT_CANDIDATE to 1 to 128 of A-Z a-z 0-9 . _ @ : -, or leave it out"
  for tool in curl setsid base64 "$3"; do
    type -P "$tool" >/dev/null || fail "'$tool' is no command that can be run; install it, or name another after --"
  done
  now || fail "there is no /proc/uptime; use agent.py"
  server=${server%/}
}

ask() { # QUESTION VERB MILLISECONDS MEMBERS: sends a request; sets sent, status and reply. Gives up when the answer to the question is no.
  local answer body curl out in seconds part text="" code=142
  printf -v seconds '%d.%03d' $(($3 / 1000)) $(($3 % 1000))
  now && sent=$now
  coproc CURL { exec curl -qs --max-time "$seconds" -H 'Content-Type: application/json' -w '\n%{http_code}' --data-binary @- \
    "$server/v1/elections/$election:$2"; } 2>/dev/null
  curl=$CURL_PID out=${CURL[0]} in=${CURL[1]} # while curl waits for its body: bash forgets them when it ends
  exec {answer}<&"$out" {body}>&"$in"
  exec {out}<&- {in}>&-
  printf '{"candidateId":"%s","key":"%s"%s}' "$candidate" "$key" "$4" >&"$body"
  exec {body}>&-
  while ((code > 128)) && "$1"; do # until the end of the answer; a read that has waited in vain says 142
    IFS= read -rd '' -t 0.1 -u "$answer" part
    code=$? text+=$part
  done
  ((code <= 128)) || kill "$curl" 2>/dev/null # closing the connection ends the wait
  exec {answer}<&-
  status=${text##*$'\n'}
  members "${text%$'\n'*}"
  why=${reply[detail]:-the answer of $server is $status}
  why=${why//[\\\"]/}
  [[ $status =~ ^[1-9] ]] || why="$server does not answer"
}

members() { # JSON: sets reply to the members of the outermost object, as they are written; what stands in an inner one, such as metadata, is not ours
  local rest=$1 word name="" depth=0 token='^[[:space:]]*("([^"\\]|\\.)*"|[][{}:,]|[^][{}:,"[:space:]]+)(.*)$'
  reply=()
  while [[ $rest =~ $token ]]; do
    word=${BASH_REMATCH[1]} rest=${BASH_REMATCH[3]}
    case $word in
      "{" | "[") ((depth++)) ;;
      "}" | "]") ((depth--)) ;;
      ",") name="" ;;
      ":") ;;
      *)
        ((depth == 1)) || continue
        if [[ -z $name ]]; then name=${word//\"/}; else reply["$name"]=$word; fi
        ;;
    esac
  done
  ((depth == 0)) || reply=() # it was cut short
}

take() { # moves the deadline, if the reply is a success and ours, and is not too late
  local name expires=${reply[expiresInMs]:-} renew=${reply[renewInMs]:-} waited=${reply[waitedMs]:-0}
  [[ "$status ${reply[election]:-} ${reply[leaderId]:-} ${reply[fencingToken]:-}" == "200 \"$election\" \"$candidate\" $token" ]] || return
  for name in "$token" "$expires" "$renew" "$waited"; do [[ $name =~ ^(0|[1-9][0-9]{0,15})$ ]] || return; done
  deadline=$((sent + waited * 998 / 1000 + expires * 999 / 1000 - (expires < 10000 ? expires / 10 : 1000)))
  ticket="" # for the next renewal: sent back as it is, if it is one
  [[ ! ${reply[ticket]:-} =~ ^\"[A-Za-z0-9_-]+\"$ || ${#reply[ticket]} -gt 1026 ]] || ticket=",\"ticket\":${reply[ticket]}"
  grace=$((expires / 10)) patience=$((expires < 2400 ? 300 : expires < 80000 ? expires / 8 : 10000))
  now && renew_at=$((now + renew * (90 + RANDOM % 11) / 100))
  ((now < deadline - grace))
}

campaign() { # waits until it leads; the same key keeps the place in the queue, and finds a grant whose reply was lost
  local tries=0 retry_at
  while willing; do
    ask willing acquire 40000 ',"wait":"30s"'
    token=${reply[fencingToken]:-}
    take && return
    case "$status ${reply[code]:-}" in
      *'"ELECTION_DELETED"') fail "$why" ;;
      408* | 409* | 429*) ;;
      4*) fail "$why" ;;
    esac
    now
    ((tries = now - sent < 30000 ? tries + 1 : 0)) # no pause after a call that took long
    ((tries != 1)) || say "waits to lead $election: $why"
    retry_at=$((tries ? now + (tries < 6 ? 50 << tries : 3000) * (50 + RANDOM % 51) / 100 : now)) # a place in the queue is kept for 5 s
    while now && ((now < retry_at)) && willing; do nap 0.05; done
  done
  exit "$signal"
}

keep() { # renews until the lease is lost, the command ends, or a signal comes
  local failed=0
  while leading; do
    if ((now < renew_at)); then
      nap 0.1
      continue
    fi
    ask leading renew "$patience" ",\"fencingToken\":$token$ticket"
    leading || return
    take && failed=0 why="no renewal was answered in time" && continue
    [[ $status != 409 || ! ${reply[code]:-} =~ ^\"(LEASE_LOST|ELECTION_DELETED)\"$ ]] || return
    [[ $status != 400 ]] || ticket="" # a server of an older version refuses it
    ((failed++)) || say "could not renew token $token, and tries again until the deadline: $why"
    renew_at=$((now + grace * (50 + RANDOM % 51) / 200))
  done
}

alive() { # whether anything of the command's group runs; dead processes stay in the group until they are waited for, so their state is read
  local stat
  kill -0 "$work" && return
  kill -0 -- "-$work" || return
  for stat in /proc/[0-9]*/stat; do
    read -r stat <"$stat" && [[ ${stat##*) } =~ ^[^ZX]\ [0-9]+\ "$work"\  ]] && return
  done
  false
} 2>/dev/null

stop() { # returns when nothing of the command's group runs
  local how=TERM kill_at=$((now + grace < deadline ? now + grace : deadline))
  while [[ -n $work ]] && alive; do
    kill -s "$how" -- "-$work" || kill -s "$how" "$work" # before setsid there is no group
    nap 0.01
    now && how=$((now < kill_at ? 0 : 9))
  done 2>/dev/null
}

release() { # only ever after stop; asks until it is answered, for 5 s and within the lease
  local end=$((now + 5000 < deadline ? now + 5000 : deadline))
  while now && ((now < end)); do
    ask true release "$patience" ",\"fencingToken\":$token"
    [[ ! $status =~ ^(200|409)$ ]] || return
    nap 0.1
  done
  say "could not release $election; the lease ends by itself"
}

settle "$@" && shift 2
key=$(random 32)
exec {never}<> <(:)
# From here on nothing is substituted by the output of a command: in bash 5.2 a signal that comes meanwhile gets lost.
trap 'signal=143' TERM
trap 'signal=130' INT
trap 'signal=129' HUP
campaign
trap 'now; stop' EXIT
(
  trap - INT QUIT # which are ignored in what runs in the background
  exec {never}>&-
  export REGENT_ELECTION=$election REGENT_FENCING_TOKEN=$token REGENT_CANDIDATE_ID=$candidate REGENT_SERVER=$server
  exec setsid "$@"
) <&0 &
work=$!
say "leads $election as $candidate with fencing token $token"
keep
kill -0 "$work" 2>/dev/null || ended=yes
stop
wait "$work" 2>/dev/null
code=$? work=""
if [[ -z ${ended:-} ]] && willing; then
  say "the lease is lost, and the command stopped: $why"
  exit 4
fi
release
exit $((signal ? signal : code))
