"""What the console asks Intact, and tells it: the HTTP API, at whichever node answers."""

import json
import urllib.error
import urllib.request

# What the environment says of proxies is not meant for this machine.
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Refused(Exception):
    """Intact has answered, and will not do it."""

    def __init__(self, status, problem):
        super().__init__(problem.get("detail") or problem.get("title") or f"status {status}")
        self.status, self.problem = status, problem


class Away(Exception):
    """Nobody answers."""


class Api:
    def __init__(self, urls, token):
        self.urls, self.token = urls, token  # by the names of nodes

    def ask(self, path, method="GET", body=None, node=None, content_type="application/json"):
        """The first node that answers, or that one."""
        why = "there is no node"
        for name in [node] if node else list(self.urls):
            try:
                return self.call(self.urls[name] + path, method, body, content_type)
            except Refused as refused:
                if refused.status != 503:
                    raise
                why = str(refused)
            except (OSError, ValueError) as error:
                why = str(error)
        raise Away(f"Intact does not answer: {why}")

    def call(self, url, method, body, content_type):
        data = None if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Authorization": "Bearer " + self.token, "Content-Type": content_type}, method=method)
        try:
            with opener.open(request, timeout=5) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            text = error.read()
            problem = json.loads(text) if text.startswith(b"{") else {"detail": text.decode(errors="replace")[:200]}
            raise Refused(error.code, problem) from None

    def answers(self, node, path):
        try:
            with opener.open(self.urls[node] + path, timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False
