# Ends on SIGTERM alone. $1: its log.
log=$1
trap 'echo term >>"$log"; exit 0' TERM
say ready
while :; do sleep 0.05; done
