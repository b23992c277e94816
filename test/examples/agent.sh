#!/usr/bin/env bash
# Leads an election of Regent, and runs a command while it does: agent.sh ELECTION -- COMMAND [ARGUMENT...]
#
# REGENT_SERVER is the server (http://127.0.0.1:8080), REGENT_CANDIDATE the candidate's name (that of this host); REGENT_INSECURE=true allows http:// to another
# machine. The command's environment has REGENT_ELECTION, REGENT_FENCING_TOKEN, REGENT_CANDIDATE_ID and REGENT_SERVER. It is stopped
# (SIGTERM, then SIGKILL) before the lease is over. Exit codes: the command's own; 2 wrong use; 4 the lease was lost; 128 + n ended by
# signal n.
#
# The rule. A leader stops by itself, at the latest at sent + waitedMs × 0.998 + expiresInMs × 0.999 − margin, where sent was read before the
# request left, on a clock that runs while the machine sleeps (/proc/uptime). Only a success that names this election, candidate and token
# extends it. LEASE_LOST and ELECTION_DELETED end it at once; after no answer, or any other, it tries again until the deadline. With
# LEASE_LOST and the reason EPOCH an operator has begun a new epoch: the lease goes on under the token that the answer names, once a
# renewal with it succeeds; the command, which cannot learn a new token, is stopped then and started anew.
#
# Where the election's policy asks what a candidate is worth: REGENT_PRIORITY is a number, a greater one is better, or cksum, the checksum
# of the candidate's name less 2^31; REGENT_CAPABILITIES are names such as gpu,eu; REGENT_LOAD is a number, and a smaller one is better.
#
# If REGENT_REPORT_FILE names a file, the command reports what it does by rewriting it: a JSON object such as {"progress":412} of at most
# 2 KiB, whose counters must not fall, not even when the command is started anew. A report that is refused does not end the lease.
#
# If REGENT_APPROVAL_FILE names a file, the command asks operators for an approval by rewriting it: {"note":"the draft is ready"}, with
# "newEpoch":true for one with a new epoch. It is asked once for each text; a request that is refused does not end the lease.
#
# The token must reach the write: the service that takes the command's writes must refuse a token lower than one it has seen. If this script
# is killed or stopped, the command is not stopped in time, and only the token protects.
#
# Needs Linux, bash 4.4, curl and setsid.

set -u +a +x # the key is neither in an environment nor in a trace
declare +x key=""
declare -A reply=()
now=0 sent=0 signal=0 work="" token="" ticket="" status="" deadline=0 grace=0 patience=0 renew_at=0 why="" worth=""
report="" told="" asked="" ask_at=0 plain=0 because="" ends=0 again=""

say() { (echo "agent.sh: $*" >&2 &); } # in the background: a stopped reader must not hold the leader up
fail() { say "$*" && exit 2; }
now() { local uptime && read -r uptime _ </proc/uptime && now=$((10#${uptime/./} * 10)); }
nap() { sleep "$1"; } # seconds; a read with a time limit would go by the wall clock, which may be set back meanwhile
random() { head -c "$1" /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n'; }
willing() { ((signal == 0)); }
leading() { now && ((now < deadline - grace)) && kill -0 "$work" 2>/dev/null && willing; }

settle() { # ARGUMENT...: reads the command line and the environment
  local LC_ALL=C tool
  [[ $# -ge 3 && $2 == -- ]] || fail "usage: agent.sh ELECTION -- COMMAND [ARGUMENT...]; REGENT_SERVER and REGENT_CANDIDATE are settings"
  election=$1 server=${REGENT_SERVER:-http://127.0.0.1:8080}
  [[ $election =~ ^[a-z0-9]([a-z0-9._-]{0,126}[a-z0-9])?$ ]] ||
    fail "'$election' is no election; a name is 1 to 128 of a-z 0-9 . _ - and begins and ends with a letter or a digit"
  [[ $server =~ ^https?://[A-Za-z0-9._-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$ || $server =~ ^https?://\[[0-9A-Fa-f:]+\](:[0-9]+)?/?$ ]] ||
    fail "'$server' is no server; set REGENT_SERVER to an address such as http://127.0.0.1:8080"
  [[ $server =~ ^(https:|http://(127\.[0-9.]+|localhost|\[::1\])(:|/|$)) || ${REGENT_INSECURE:-} == true ]] ||
    fail "'$server' is on another machine, and over http:// the key can be read on the way; use https://, or set REGENT_INSECURE=true"
  candidate=${REGENT_CANDIDATE:-$(name)}
  [[ $candidate =~ ^[A-Za-z0-9._@:-]{1,128}$ ]] ||
    fail "'$candidate' is no candidate; set REGENT_CANDIDATE to 1 to 128 of A-Z a-z 0-9 . _ @ : -, or leave it out"
  for tool in curl setsid base64 sleep "$3"; do
    type -P "$tool" >/dev/null || fail "'$tool' is no command that can be run; install it, or name another after --"
  done
  weigh
  now || fail "there is no /proc/uptime; use regent run, or the Python client"
  server=${server%/}
}

name() { # prints the name of this host's candidate, the same after a restart, so that orders against it hold
  local host=$HOSTNAME instance="" stable=1
  [[ ! ${host,,} =~ ^(localhost)?(\.|$) ]] || stable=0
  if [[ -n ${CLOUD_RUN_JOB:-} ]]; then
    host=$CLOUD_RUN_JOB-${CLOUD_RUN_TASK_INDEX:-} stable=1
  elif [[ -n ${K_SERVICE:-} ]]; then # on Cloud Run every host is called localhost
    instance=$(curl -qfs --noproxy '*' --max-time 1 -H 'Metadata-Flavor: Google' \
      "http://${GCE_METADATA_HOST:-metadata.google.internal}/computeMetadata/v1/instance/id")
    host=$K_SERVICE.${instance:(-12)} stable=1
    [[ $instance =~ ^[0-9A-Za-z]{12,}$ ]] || host=$K_SERVICE stable=0
  fi
  ((stable)) || host=${host:-agent}.$(random 9)
  host=${host//[^A-Za-z0-9._@:-]/-}
  ((${#host} <= 128)) || host=${host:0:111}.$(printf %s "$host" | sha256sum | head -c 16)
  ((stable)) || say "this host has no name of its own: the candidate is $host now, and another one next time; orders against it do not hold then: set REGENT_CANDIDATE"
  printf %s "$host"
}

weigh() { # sets worth to the members of an acquire that say what the candidate is worth
  local priority=${REGENT_PRIORITY:-} names=${REGENT_CAPABILITIES:-} load=${REGENT_LOAD:-}
  if [[ $priority == cksum ]]; then
    priority=$(printf %s "$candidate" | cksum) || fail "there is no cksum; set REGENT_PRIORITY to a number"
    priority=$((${priority%% *} - 2147483648))
  fi
  [[ $priority =~ ^(-?(0|[1-9][0-9]{0,9}))?$ ]] || fail "'$priority' is no priority; set REGENT_PRIORITY to an integer, or to cksum"
  [[ $names =~ ^([A-Za-z0-9._@:-]{1,64}(,[A-Za-z0-9._@:-]{1,64})*)?$ ]] ||
    fail "'$names' are no capabilities; set REGENT_CAPABILITIES to names such as gpu,eu"
  [[ $load =~ ^(0|[1-9][0-9]{0,9})?$ ]] || fail "'$load' is no load; set REGENT_LOAD to an integer, 0 or more"
  worth=${priority:+,\"priority\":$priority}${load:+,\"load\":$load}
  [[ -z $names ]] || worth+=",\"capabilities\":[\"${names//,/\",\"}\"]"
}

ask() { # QUESTION VERB MILLISECONDS MEMBERS: sends a request; sets sent, status and reply. Gives up when the answer to the question is no, and a leader when it has to stop.
  local answer body curl out in seconds part text="" code=142 limit=$3
  now && sent=$now
  [[ $1 != leading ]] || ((limit < deadline - grace - now)) || limit=$((deadline - grace > now ? deadline - grace - now : 1))
  printf -v seconds '%d.%03d' $((limit / 1000)) $((limit % 1000))
  coproc CURL { exec curl -qs --max-time "$seconds" -H 'Content-Type: application/json' -w '\n%{http_code}' --data-binary @- \
    "$server/v1/elections/$election:$2"; } 2>/dev/null
  curl=$CURL_PID out=${CURL[0]} in=${CURL[1]} # while curl waits for its body: bash forgets them when it ends
  exec {answer}<&"$out" {body}>&"$in"
  exec {out}<&- {in}>&-
  printf '{"candidateId":"%s","key":"%s"%s}' "$candidate" "$key" "$4" >&"$body"
  exec {body}>&-
  while ((code > 128 && ${#text} <= 16384)) && "$1"; do # until the end of the answer; a read that has waited in vain says 142
    IFS= read -rd '' -n 16385 -t 0.1 -u "$answer" part
    code=$? text+=$part
  done
  ((code <= 128)) || kill "$curl" 2>/dev/null # closing the connection ends the wait
  exec {answer}<&-
  ((${#text} <= 16384)) || text="" # no reply is that long, and to look at it could take longer than the lease
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
  because=${reply[endsBecause]:-} because=${because//\"/} ends=${reply[endsInMs]:-0}
  [[ $because =~ ^[A-Za-z]+$ && $ends =~ ^(0|[1-9][0-9]{0,15})$ ]] || because=""
  grace=$((expires / 10)) patience=$((expires < 2400 ? 300 : expires < 80000 ? expires / 8 : 10000))
  now && renew_at=$((now + renew * (90 + RANDOM % 11) / 100))
  ((now < deadline - grace))
}

campaign() { # waits until it leads; the same key keeps the place in the queue, and finds a grant whose reply was lost
  local tries=0 retry_at
  while willing; do
    ask willing acquire 40000 ",\"wait\":\"30s\"$worth"
    token=${reply[fencingToken]:-}
    take && return
    willing || break # it has asked no further
    case "$status ${reply[code]:-}" in
      *'"ELECTION_DELETED"' | *'"NOT_ELIGIBLE"') fail "$why" ;;
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

near() { ((ends <= grace * 10 + 9)); } # whether the lease ends with its term

read_text() { # FILE: sets text to what the command has written there; empty if there is no such file
  text=""
  [[ -n $1 && -f $1 ]] || return
  { IFS= read -rd '' -n 2050 text <"$1"; } 2>/dev/null
}

request_approval() { # asks operators, if the command has written a new request; tries again if that was not answered
  local text status why
  local -A reply=()
  ((now >= ask_at)) || return
  read_text "${REGENT_APPROVAL_FILE:-}"
  [[ $text != "$asked" && $text =~ ^[[:space:]]*\{(.*)\}[[:space:]]*$ ]] || return
  asked=$text
  ask leading requestApproval "$patience" ",\"fencingToken\":$token,${BASH_REMATCH[1]}"
  case $status in
    200) say "operators are asked for an approval" ;;
    0* | 5* | 408 | 429 | "") asked="" ask_at=$((now + 1000)) ;;
    *) say "the request in $REGENT_APPROVAL_FILE is refused: $why" ;;
  esac
}

next_report() { # sets report, for the next renewal: what is new, with every third, or with each while the term is about to end without progress
  local text
  report=""
  ((plain == 0)) || { [[ $because == stuck ]] && near; } || return
  read_text "${REGENT_REPORT_FILE:-}"
  [[ $text != "$told" && $text =~ ^[[:space:]]*\{.*\}[[:space:]]*$ ]] || return
  report=$text
  ((${#text} <= 2048)) || { report="" told=$text && say "the report in $REGENT_REPORT_FILE is ignored: it has more than 2 KiB"; }
}

reported() { # notes that the renewal with the report, or without, was answered; a report that was refused is not sent again
  ((plain = plain > 0 ? plain - 1 : 0))
  [[ -z $report ]] || told=$report plain=2
}

notice() { # says that the end of the term has changed; that of a leader that could be stuck moves with each report, and is no news until it is near
  local new=$because
  [[ $new != stuck ]] || near || new=""
  why="no renewal was answered in time"
  [[ $new != "$noticed" ]] || return
  noticed=$new
  if [[ -n $new ]]; then say "the term of $election ends in $((ends / 1000)) s: $new"; else say "the term of $election goes on"; fi
}

epoch() { # whether the refusal says that the lease goes on under a later token; sets later
  later=${reply[fencingToken]:-}
  [[ "$status ${reply[code]:-} ${reply[reason]:-} ${reply[state]:-} ${reply[election]:-} ${reply[leaderId]:-}" == \
    "409 \"LEASE_LOST\" \"EPOCH\" \"held\" \"$election\" \"$candidate\"" && $later =~ ^[1-9][0-9]{0,15}$ ]] && ((later > token))
}

keep() { # renews until the lease is lost, a new epoch has begun (which sets again), the command ends, or a signal comes
  local failed=0 noticed="" old=$token later
  while leading; do
    if ((now < renew_at)); then
      request_approval
      nap 0.1
      continue
    fi
    report=""
    ((failed)) || next_report # after a failure the lease comes first
    ask leading renew "$patience" ",\"fencingToken\":$token$ticket${report:+,\"report\":$report}"
    leading || return
    if take; then
      failed=0
      reported
      notice
      ((token == old)) || again=yes
      [[ -z $again ]] || return
      continue
    fi
    if epoch; then # the old deadline counts until the new token has succeeded
      token=$later ticket="" renew_at=$now
      continue
    fi
    [[ $status != 409 || ! ${reply[code]:-} =~ ^\"(LEASE_LOST|ELECTION_DELETED)\"$ ]] || return
    if [[ $status == 400 && -n $report ]]; then
      say "the report is refused, and the lease renewed without it: $why"
      reported
      failed=1 renew_at=$now
      continue
    fi
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
    ask true release "$patience" ",\"fencingToken\":$token${outcome:+,\"outcome\":$outcome}"
    if [[ $status == 200 && ${reply[leaderId]:-} == "\"$candidate\"" && ${reply[fencingToken]:-} =~ ^[1-9][0-9]{0,15}$ ]] &&
      ((reply[fencingToken] > token)); then
      token=${reply[fencingToken]} # of a new epoch that it has not heard of; that of another incarnation is refused
      continue
    fi
    [[ ! $status =~ ^(200|409)$ ]] || return
    [[ $status != 400 ]] || outcome="" # an older server knows none
    nap 0.1
  done
  say "could not release $election; the lease ends by itself"
}

settle "$@" && shift 2
key=$(random 32)
# From here on nothing is substituted by the output of a command: in bash 5.2 a signal that comes meanwhile gets lost.
trap 'signal=143' TERM
trap 'signal=130' INT
trap 'signal=129' HUP
campaign
trap 'now; stop' EXIT
begin() { # starts the command; what an earlier one has left in the files is not its own
  local text
  read_text "${REGENT_APPROVAL_FILE:-}"
  asked=$text
  read_text "${REGENT_REPORT_FILE:-}"
  told=$text
  (
    trap - INT QUIT # which are ignored in what runs in the background
    export REGENT_ELECTION=$election REGENT_FENCING_TOKEN=$token REGENT_CANDIDATE_ID=$candidate REGENT_SERVER=$server
    exec setsid "$@"
  ) <&0 &
  work=$!
  say "leads $election as $candidate with fencing token $token"
}
again=yes
while [[ -n $again ]]; do # once, and anew in each new epoch
  begin "$@"
  again=""
  keep
  kill -0 "$work" 2>/dev/null || ended=yes
  stop
  wait "$work" 2>/dev/null
  code=$? work=""
  [[ -z ${ended:-} ]] && willing && now && ((now < deadline - grace)) || again=""
done
if [[ -z ${ended:-} ]] && willing; then
  [[ $status != 200 || -z $because ]] || ! near || why="its term has ended: $because"
  say "the lease is lost, and the command stopped: $why"
  exit 4
fi
outcome='"done"'
((code == 0)) || outcome="\"failed\",\"note\":\"exit status $code\""
willing || outcome='"stopped"'
release
exit $((signal ? signal : code))
