# Ends on SIGKILL alone. $1: its log.
log=$1
trap 'echo term >>"$log"' TERM
say ready
while :; do sleep 0.05; done
