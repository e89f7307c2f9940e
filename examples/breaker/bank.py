"""An agent whose service is available while the file `up` exists. docs/breakers.md runs it."""

import json
import os
import urllib.request

token = open("intact-data/admin-token").read().strip()
url = os.environ["INTACT_SERVER"] + "/v1/agents/bank/work"
headers = {"Content-Type": "application/json", "Authorization": "Bearer " + token}
results = []
while True:
    call = {"instance": "bank-1", "max": 4, "wait": "1s", "results": results}
    answer = urllib.request.urlopen(urllib.request.Request(url, json.dumps(call).encode(), headers))
    results = []
    for request in json.load(answer)["requests"]:
        result = {"token": request["token"]}
        if os.path.exists("up"):
            result["output"] = "paid"
        else:
            result["error"] = {"code": "away", "message": "no answer", "retryable": True, "effect": "none"}
        results.append(result)
