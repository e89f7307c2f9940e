"""The workflow in trial.yaml with its agents in Python, for unittest and pytest: a month takes no time."""
import unittest
from pathlib import Path

from intact_client import Agent, StepError
from intact_client.testing import TestCase

accounts = Agent("accounts", places=4)
opened = set()


@accounts.action("open")
def open_account(request):
    opened.add(request.input["customer"])
    return {"account": request.idempotency_key}


@accounts.undo("close")
def close_account(request):
    opened.discard(request.forward["input"]["customer"])


class TrialTest(TestCase):
    definitions = [Path(__file__).with_name("trial.yaml")]
    options = {"at": "2026-01-01T09:00:00Z"}

    def test_who_pays_stays(self):
        with self.server.agent(accounts), self.server.agent("mail", {"remind": None}):
            task = self.server.submit("trial", {"customer": "ann"})
            self.server.advance("29d")
            task.signal("paid", {"amount": 20})
            task.expect("processed", within="29d")
        self.assertIn("ann", opened)

    def test_who_does_not_pay_is_closed_after_a_month(self):
        with self.server.agent(accounts), self.server.agent("mail", {"remind": None}):
            end = self.server.submit("trial", {"customer": "bob"}).expect("compensated", error="no_signal")
        self.assertEqual(end.took.days, 30)
        self.assertNotIn("bob", opened)

    def test_mail_that_is_down_for_a_while(self):
        tries = []

        def remind(request):
            tries.append(self.server.now)
            if len(tries) < 3:
                raise StepError("down", "try again", retryable=True)

        with self.server.agent(accounts), self.server.agent("mail", {"remind": remind}):
            task = self.server.submit("trial", {"customer": "eve"})
            self.server.advance("26d")
            self.assertEqual(task.get()["steps"][2]["state"], "completed")
        self.assertEqual(len(tries), 3)


if __name__ == "__main__":
    unittest.main()
