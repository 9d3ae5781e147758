# Never reads its input.
say ready
exec sleep 300
