# Runs a command, and ends it with all its processes as soon as standard input is
# at its end: when the starter closes its side, or dies. The command gets an empty
# gcloud configuration of its own, removed afterwards.

CLOUDSDK_CONFIG=$(mktemp -d) || exit
export CLOUDSDK_CONFIG

exec 3<&0
"$@" </dev/null 3<&- &
emulator=$!

# gcloud makes itself a group leader once it runs; until then there is no such
# group, and the one process to signal is gcloud.
signal() { kill -s "$1" -- "-$emulator" || kill -s "$1" "$emulator"; } 2>/dev/null

end() {
	signal TERM
	tries=50
	while signal 0 && [ $((tries -= 1)) -gt 0 ]; do sleep 0.1; done
	signal KILL
	rm -rf "$CLOUDSDK_CONFIG"
	kill -s KILL 0 # this shell, and what may have stayed in its own group
}

# Apart from the wait below, so that either shell does it if the other is killed.
{ read -r _ <&3; end; } &
exec 3<&-

wait "$emulator"
echo "$1 ended with status $?"
end
