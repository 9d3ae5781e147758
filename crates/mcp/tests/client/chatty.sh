# Says more than a pipe holds, and reads its input only then. $1: its log.
log=$1
say ready
head -c 3000000 /dev/zero
while read -r line; do :; done
echo eof >>"$log"
