# Shakes hands, and reads its input to the end.
version='"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"fake","version":"1"}'
while read -r line; do
    if [[ $line =~ \"id\":([0-9]+) ]]; then
        printf '{"jsonrpc":"2.0","id":%s,"result":{%s}}\n' "${BASH_REMATCH[1]}" "$version"
    fi
done
