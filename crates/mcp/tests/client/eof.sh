# Ends a second after the end of its input. $1: its log.
log=$1
trap 'echo term >>"$log"' TERM
say ready
while read -r line; do :; done
sleep 1
echo eof >>"$log"
