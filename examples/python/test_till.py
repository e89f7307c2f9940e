"""Tests of the handlers of till.py. docs/python.md runs them."""

import unittest

from intact_client import Request, StepError
from till import charge, refund


class TillTest(unittest.TestCase):
    def test_charge(self):
        request = Request.for_test({"amount": 20}, task="o-1", step="pay")
        self.assertEqual(charge(request), {"receipt": "o-1/pay"})

    def test_too_much_is_declined(self):
        with self.assertRaises(StepError) as raised:
            charge(Request.for_test({"amount": 2000}))
        self.assertEqual((raised.exception.code, raised.exception.effect), ("declined", "none"))

    def test_refund(self):
        request = Request.for_test(forward={"input": {"amount": 20}, "in_doubt": True})
        self.assertEqual(refund(request), {"returned": 20})
