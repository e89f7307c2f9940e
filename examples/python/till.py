"""An agent in Python whose handlers are tested without a server: test_till.py."""

import intact_client

agent = intact_client.Agent("till")


@agent.action("charge")
def charge(request):
    if request.input["amount"] > 1000:
        raise intact_client.StepError("declined", "more than 1000 is not given", effect="none")
    return {"receipt": request.idempotency_key}


@agent.undo("refund")
def refund(request):
    return {"returned": request.forward["input"]["amount"]}


if __name__ == "__main__":
    agent.run()
