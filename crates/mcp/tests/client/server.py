"""An MCP server with tools that misbehave. Arguments: what to write to the error output before the first reply."""
import json
import os
import subprocess
import sys


def write(data):
    while data:
        data = data[os.write(1, data):]


def send(message, end=b"\n"):
    write(json.dumps(message).encode() + end)


def answer(request, result, end=b"\n"):
    send({"jsonrpc": "2.0", "id": request["id"], "result": result}, end)


def content(text):
    return {"content": [{"type": "text", "text": text}]}


def repeat(size):
    piece = b"x" * 65536
    for _ in range(size // len(piece)):
        write(piece)


def call(request):
    name = request["params"]["name"]
    arguments = request["params"].get("arguments") or {}
    if name == "echo":
        answer(request, content(arguments["text"]))
    elif name == "environment":
        answer(request, content(json.dumps(dict(os.environ))))
    elif name == "noise":
        write(b"Listening on port 3000\n\x1b[31mred\x1b[0m\n")
        write(b'caf\xe9 {"id":1}\n{"jsonrpc":"2.0","id":\n[1,2]\n{"level":"info","id":%d}\n' % request["id"])
        repeat(20 * 1024 * 1024)
        write(b"\n\n  \r\n")
        answer(request, content("after the noise"), b"\r\n")
    elif name == "id last":
        write(b'{"result":{"content":[{"type":"text","text":"')
        repeat(arguments["size"])
        write(b'"}]},"jsonrpc":"2.0","id":%d}\n' % request["id"])
    elif name == "id first":
        write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % request["id"])
        repeat(arguments["size"])
        write(b'"}]}}\n')
    elif name == "cut off":
        write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[\n' % request["id"])
    elif name == "no end of line":
        answer(request, content("the last words"), b"")
        sys.exit(0)
    elif name == "complain":
        sys.stderr.write("\x1b[1mcomplaint\x1b[0m\n")
        answer(request, content("complained"))
    elif name == "never":
        print("called", file=sys.stderr, flush=True)
    elif name == "never, with a child":
        subprocess.Popen(["sleep", "300"])
        print("called", file=sys.stderr, flush=True)
    elif name == "exit":
        print("no more memory", file=sys.stderr, flush=True)
        sys.exit(3)


def main():
    noise = sys.argv[1] if len(sys.argv) > 1 else ""
    for line in sys.stdin:
        request = json.loads(line)
        if noise == "lines":
            os.write(2, b"trouble ahead\n" * 80000)
        elif noise == "one line":
            os.write(2, b"trouble " * 140000)
        noise = ""
        if request["method"] == "initialize":
            answer(request, {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"},
            })
        elif request["method"] == "tools/list":
            answer(request, {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
        elif request["method"] == "tools/call":
            call(request)


main()
