"""An agent in Python that copies pages, and continues where an earlier attempt stopped. docs/python.md runs it.

Its service fails now and then, and so does its first attempt.
"""

import random

import intact_client

agent = intact_client.Agent("copier", instance="copier-1")


def copy_page(number):
    if random.random() < 0.2:
        raise ConnectionError("the service is away")


@agent.action("copy")
def copy(request):
    done = request.resume["done"] if request.resume else 0
    while done < request.input["pages"]:
        request.call(lambda: copy_page(done), intact_client.Retry(first=0.01, most=1.0))
        done += 1
        request.heartbeat({"done": done}, "copying", resume={"done": done})
        if done == 5 and request.attempt == 1:
            raise intact_client.StepError("power", "somebody pulled the plug", True, "unknown", resume={"done": done})
    return {"pages": done, "by_attempt": request.attempt}


agent.run()
