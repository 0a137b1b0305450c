"""Reads an events.jsonl and decodes the output in it: what a script of somebody's own would do."""

import base64
import json
import sys
import time

begin = time.perf_counter()
total = 0
with open(sys.argv[1], "rb") as log:
    for line in log:
        event = json.loads(line)
        if event["type"] == "pty.output":
            total += len(base64.b64decode(event["data_b64"]))
print(json.dumps({"seconds": time.perf_counter() - begin, "bytes": total}))
