"""A client that submits a task for each line of standard input, its id, and prints what became of it as JSON. A line
"signal TASK NAME KEY DATA" sends a signal."""

import json
import sys

import intact_client

client = intact_client.Client(timeout=20)
for line in sys.stdin:
    try:
        if line.startswith("signal "):
            _, task, name, key, data = line.split(maxsplit=4)
            told = dict(client.signal(task, name, json.loads(data), key))
        else:
            told = {"id": client.submit("w", {}, id=line.strip())["id"], "installation": client.installation}
    except intact_client.IntactError as e:
        told = {"error": type(e).__name__, "message": str(e)}
    print(json.dumps(told), flush=True)
