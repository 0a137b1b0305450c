"""Runs a command under `tmux -C` and takes its output out of the control protocol."""

import json
import os
import subprocess
import sys
import time

wanted = int(sys.argv[1])
name = f"bench-{os.getpid()}"
tmux = subprocess.Popen(
    ["tmux", "-L", name, "-f", "/dev/null", "-C", "new-session", sys.argv[2]],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
)


def outputs():
    for line in tmux.stdout:
        if line.startswith(b"%output "):
            data = line.split(b" ", 2)[2][:-1]
            # A byte that is not printed as itself is a backslash and three octal digits.
            yield data, len(data) - 3 * data.count(b"\\")


try:
    for data, _ in outputs():
        if b"ready" in data:
            break
    total = 0
    begin = time.perf_counter()
    tmux.stdin.write(b"send-keys Enter\n")
    tmux.stdin.flush()
    for _, size in outputs():
        total += size
        if total >= wanted:
            break
    seconds = time.perf_counter() - begin
finally:
    subprocess.run(["tmux", "-L", name, "kill-server"], stderr=subprocess.DEVNULL)
    tmux.wait()
print(json.dumps({"seconds": seconds, "bytes": total}))
