# Tells its id, and never reads its input.
say $$
while :; do sleep 0.05; done
