#!/usr/bin/python3
"""Orders that wait, by HTTP as the pages do it: for a person, for a payment, for a day, for another order of the same customer;
and the reminders that a schedule has written. In the end the books, to the last unit.

Usage: waits_test.py BUILD [TEST...]
"""

import datetime
import http.client
import json
import os
import re
import subprocess
import sys
import unittest
import urllib.parse

import books
from shop_kit import ENVIRONMENT, Shop, ask, definition, eventually

BUILD = os.path.realpath(sys.argv.pop(1))
LARGE = [{"sku": "lamp", "quantity": 10}]  # EUR 520
SMALL = [{"sku": "cup", "quantity": 2}]  # EUR 19


class WaitsTest(unittest.TestCase):
    shop = None  # one for all tests
    accepted = []

    def place(self, customer, lines, pay="now", address="1 Long Lane"):
        key = f"{self.id()}-{len(self.accepted)}"
        card = f"4242 {len(self.accepted):08} 4242"  # each has a limit
        status, answer = self.shop.order({"key": key, "lines": lines, "card": card, "address": address, "customer": customer, "pay": pay})
        self.assertEqual(status, 202, answer)
        self.accepted.append(answer["order"])
        return answer["order"]

    def order(self, id_):
        return ask(self.shop.url, f"/api/orders/{id_}")[1]

    def comes_to(self, id_, state):
        return eventually(f"{id_} is {state}", lambda: (lambda o: o if o["state"] == state else None)(self.order(id_)))

    def waits_for(self, id_, kind):
        return eventually(f"{id_} waits for {kind}", lambda: (lambda o: o if o["waits_for"] == kind else None)(self.order(id_)))

    def press(self, id_, verb):
        return ask(self.shop.url, f"/api/orders/{id_}/{verb}", {})

    def key(self, person):
        return re.fullmatch(rf".*/staff\.html#{person}:(intact_[\w-]+)", self.shop.state()["staff"][person])[1]

    def staff(self, method, path, key, body=None, **headers):
        where = urllib.parse.urlsplit(self.shop.url)
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Authorization": f"Bearer {key}", "Content-Type": "application/json"} | headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def question(self, id_, key):
        found = [one for one in self.staff("GET", "/api/approvals", key)[1]["approvals"] if one["order"] == id_]
        return found[0] if found else None

    def decide(self, id_, key, approve, comment=""):
        asked = eventually(f"{id_} is asked", lambda: self.question(id_, key))
        decision = {"step": asked["step"], "asking": asked["asking"], "approve": approve, "comment": comment}
        return self.staff("POST", f"/api/approvals/{id_}", key, decision)

    def paid(self, id_):
        _, services = self.shop.databases()
        rows = books.ask_sqlite(services["payment"], {"charges": "SELECT order_id, state FROM charge"})["charges"]
        return [row["state"] for row in rows if row["order_id"] == id_]

    def error(self, id_):
        return [item["told"]["error"] for item in self.order(id_)["news"] if item["told"].get("error")][-1]

    # ---- Approval ----

    def test_a_large_order_is_shipped_when_a_person_approves_it(self):
        id_ = self.place("Ada", LARGE)
        self.waits_for(id_, "approve")
        self.assertEqual(self.paid(id_), ["charged"])
        asked = self.question(id_, self.key("ann"))
        self.assertEqual(asked["question"], "Ship the order of Ada for EUR 520?")
        self.assertEqual((asked["about"]["lines"], asked["about"]["amount"]), (LARGE, 52000))
        self.assertEqual(self.decide(id_, self.key("ann"), True)[0], 200)
        self.comes_to(id_, "processed")
        self.assertIsNone(self.question(id_, self.key("bob")))
        self.assertEqual(self.staff("POST", f"/api/approvals/{id_}", self.key("bob"),
                                    {"step": "allow", "asking": 1, "approve": False, "comment": "too late"})[0], 409)

    def test_approved_on_the_command_line(self):
        """`intact approve`, as docs/shop.md has it."""
        id_ = self.place("Grace", LARGE)
        self.waits_for(id_, "approve")
        environment = ENVIRONMENT | {"INTACT_SERVER": self.shop.intact()[0], "INTACT_TOKEN": self.key("ann")}
        done = subprocess.run([f"{BUILD}/src/cli/intact", "approve", id_, "--comment", "a good customer"], env=environment,
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout.splitlines()[:1]), (0, ["approved: Ship the order of Grace for EUR 520?"]), done.stderr)
        self.comes_to(id_, "processed")

    def test_a_rejected_order_is_cancelled_with_the_comment_and_the_money_goes_back(self):
        id_ = self.place("Eve", LARGE)
        self.waits_for(id_, "approve")
        self.assertEqual(self.paid(id_), ["charged"])
        for comment in ("", "  "):
            status, answer = self.decide(id_, self.key("ann"), False, comment)
            self.assertEqual((status, answer["field"]), (422, "comment"))
        self.assertEqual(self.decide(id_, self.key("ann"), False, "ten lamps, on a boat?")[0], 200)
        self.comes_to(id_, "compensated")
        self.assertEqual(self.error(id_), {"code": "rejected", "message": "ten lamps, on a boat?"})
        self.assertEqual(self.paid(id_), ["refunded"])

    def test_who_may_decide(self):
        id_ = self.place("Mallory", LARGE)
        self.waits_for(id_, "approve")
        decision = {"step": "allow", "asking": 1, "approve": True, "comment": ""}
        with open(f"{self.shop.work}/shop/secrets/token-stock", encoding="ascii") as f:
            agent = f.read().strip()
        for key in ("", "intact_nobody", agent):
            self.assertIn(self.staff("GET", "/api/approvals", key)[0], (401, 403), key)
            self.assertIn(self.staff("POST", f"/api/approvals/{id_}", key, decision)[0], (401, 403), key)
        key = self.key("ann")
        self.assertEqual(self.staff("POST", f"/api/approvals/{id_}", key, decision, Origin="http://elsewhere.example")[0], 403)
        for wrong in ({}, decision | {"step": "../x"}, decision | {"step": ""}, decision | {"asking": 0}, decision | {"approve": "yes"}):
            self.assertEqual(self.staff("POST", f"/api/approvals/{id_}", key, wrong)[0], 422, wrong)
        self.assertEqual(self.staff("POST", f"/api/approvals/{id_}", key, decision | {"asking": 7})[0], 409)
        self.assertEqual(self.order(id_)["waits_for"], "approve")
        self.assertEqual(self.staff("POST", f"/api/approvals/{id_}", key, decision)[0], 200)
        self.assertEqual(self.staff("POST", f"/api/approvals/{id_}", key, decision)[0], 200)  # pressed twice
        self.comes_to(id_, "processed")

    # ---- One order of a customer at a time ----

    def test_the_second_order_of_a_customer_waits_and_says_for_which(self):
        first = self.place("Linus", SMALL, pay="later")
        self.waits_for(first, "signal")
        second = self.place(" linus ", SMALL)
        other = self.place("Lina", SMALL)
        self.waits_for(second, "lock")
        why = eventually("the console lists it", lambda: [o["why"] for o in self.shop.state()["waiting"] if o["id"] == second])[0]
        self.assertIn(f"The task waits for lock shop_order/linus, which task {first} holds", why)
        self.comes_to(other, "processed")
        self.assertEqual((self.order(second)["state"], self.paid(second)), ("pending", []))
        self.assertEqual(self.press(first, "pay")[0], 200)
        self.comes_to(first, "processed")
        self.comes_to(second, "processed")

    # ---- Reservations ----

    def test_a_reservation_ends_and_nothing_was_charged(self):
        self.shop.reservations("1s")
        self.addCleanup(self.shop.reservations, "1h")
        id_ = self.place("Late", SMALL, pay="later")
        order = self.comes_to(id_, "compensated")
        waits = self.waits(order)
        self.assertEqual([(step["name"], step["kind"]) for step in waits], [("paid", "signal")])
        self.assertRegex(waits[0]["until"], r"^20.*Z$")
        self.assertEqual(self.error(id_)["code"], "no_signal")
        self.assertEqual((self.paid(id_), self.held(id_)), ([], ["released"]))
        status, answer = self.press(id_, "pay")
        self.assertEqual((status, answer["error"]), (409, "This order does not wait for a payment any more."))

    def waits(self, order):
        """The steps that it was told to wait at; for its lines it waits as others do."""
        steps = [item["told"]["step"] for item in order["news"] if item["event"] == "waiting" and "step" in item["told"]]
        return [step for step in steps if step["kind"] != "for_each"]

    def held(self, id_):
        _, services = self.shop.databases()
        rows = books.ask_sqlite(services["stock"], {"held": "SELECT order_id, state FROM reservation"})["held"]
        return [row["state"] for row in rows if row["order_id"] == id_]

    def test_paid_later_once_however_often_it_is_pressed(self):
        id_ = self.place("Patience", SMALL, pay="later")
        self.waits_for(id_, "signal")
        self.assertEqual(self.paid(id_), [])
        for _ in range(3):
            self.assertIn(self.press(id_, "pay")[0], (200, 409))
        self.comes_to(id_, "processed")
        self.assertEqual(self.paid(id_), ["charged"])
        self.assertEqual(self.press(id_, "cancel")[0], 409)

    def test_a_day_of_payment_comes(self):
        day = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=3)
        day = day.strftime("%Y-%m-%dT%H:%M:%SZ")
        id_ = self.place("Friday", SMALL, pay=day)
        order = self.comes_to(id_, "processed")
        waits = self.waits(order)
        self.assertEqual([(w["name"], w["kind"], w["until"]) for w in waits], [("pay_day", "wait", day.replace("Z", ".000Z"))])
        self.assertEqual(self.paid(id_), ["charged"])

    def test_cancelled_before_the_day_of_payment(self):
        day = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=7)
        id_ = self.place("Fickle", SMALL, pay=day.strftime("%Y-%m-%dT18:00:00Z"))
        self.waits_for(id_, "wait")
        self.assertEqual(self.held(id_), ["reserved"])
        for origin, status in (("http://elsewhere.example", 403), (self.shop.url, 200)):
            self.assertEqual(self.staff("POST", f"/api/orders/{id_}/cancel", "", {}, Origin=origin)[0], status)
        self.comes_to(id_, "compensated")
        self.assertEqual((self.paid(id_), self.held(id_)), ([], ["released"]))

    def test_buttons_that_are_none(self):
        id_ = self.place("Nobody", SMALL)
        self.assertEqual(self.press(id_, "ship")[0], 404)
        self.assertEqual(self.press("o-00000000000000000000", "pay")[0], 409)
        self.assertEqual(self.press("o-0", "pay")[0], 404)

    # ---- Parcels ----

    def test_parcels_that_stop_are_helped_on_the_console(self):
        """Their goods can be neither packed nor unpacked. The console lists the parcels, not the order, which follows them."""
        quick = re.sub("complete_by: 5s", "complete_by: 1s", re.sub("retry: {.*}", "retry: {attempts: 1}", definition("parcel")))
        self.shop.put("workflows/shop_parcel", quick)
        self.addCleanup(self.shop.put, "workflows/shop_parcel", definition("parcel"))
        self.shop.put("agents/stock", {"breaker": {"enabled": False}})  # it would keep the attempts from being used up
        id_ = self.place("Otto", SMALL + [{"sku": "lamp", "quantity": 1}], pay="later")
        self.waits_for(id_, "signal")
        self.shop.mode("stock", "hanging")
        self.addCleanup(self.shop.mode, "stock", "ok")
        self.assertEqual(self.press(id_, "pay")[0], 200)
        self.comes_to(id_, "error")
        stopped = eventually("the console lists them", self.shop.stopped)
        self.assertLessEqual(set(stopped), {f"{id_}@parcel.0", f"{id_}@parcel.1"})
        self.shop.mode("stock", "ok")

        def goes_on():
            for parcel in self.shop.stopped():
                self.shop.operator("retry", parcel)
            return self.order(id_)["state"] == "compensated"

        eventually("it goes on", goes_on)
        self.assertEqual((self.paid(id_), set(self.held(id_))), (["refunded"], {"released"}))

    def test_lines_that_stop_are_listed_with_their_order(self):
        """Their goods cannot be put back on the shelf."""
        later = "defer: 15s, defers: 20"
        self.assertEqual(definition("shop").count(later), 2)
        quick = definition("shop").replace(f"retry: {{attempts: 5, wait: 200ms, max_wait: 2s, {later}}}", "retry: {attempts: 1}", 1)
        self.shop.put("workflows/shop_order", quick.replace("complete_by: 2m", "complete_by: 1h"))
        self.addCleanup(self.shop.reservations, "1h")
        self.shop.put("agents/stock", {"breaker": {"enabled": False}})
        id_ = self.place("Dora", SMALL + [{"sku": "lamp", "quantity": 1}], pay="later")
        self.waits_for(id_, "signal")
        self.shop.mode("stock", "failing")
        self.addCleanup(self.shop.mode, "stock", "ok")
        self.assertEqual(self.press(id_, "cancel")[0], 200)
        self.comes_to(id_, "error")
        stopped = eventually("the console lists it", lambda: [one for one in self.shop.state()["errors"] if one["id"] == id_])[0]
        self.assertIn(stopped["step"], [step["name"] for step in stopped["steps"]])
        self.assertIn("reserve.1", [step["name"] for step in stopped["steps"]])
        self.shop.mode("stock", "ok")
        self.assertTrue(self.shop.operator("retry", id_))
        self.comes_to(id_, "compensated")
        self.assertEqual((self.paid(id_), self.held(id_)), ([], ["released"] * 2))

    # ---- Reminders ----

    def test_reminders_tell_what_waits(self):
        large, later = self.place("Max", LARGE), self.place("Moritz", SMALL, pay="later")
        self.waits_for(large, "approve")
        self.waits_for(later, "signal")
        self.assertEqual(self.order(later)["reminded_at"], "")
        key = self.key("ann")
        before = len(self.staff("GET", "/api/approvals", key)[1]["reminders"])
        self.assertTrue(self.shop.console("/api/remind", {}))
        told = eventually("there is a reminder", lambda: self.staff("GET", "/api/approvals", key)[1]["reminders"][before:] and
                          self.staff("GET", "/api/approvals", key)[1]["reminders"])
        self.assertGreaterEqual(told[0]["approval"], 1)
        self.assertGreaterEqual(told[0]["payment"], 1)
        self.assertRegex(self.order(later)["reminded_at"], r"^20.*Z$")
        self.assertEqual(self.order(large)["reminded_at"], "")  # that one is for the staff
        self.assertEqual(self.staff("POST", "/api/reminders", "wrong", {"run": "x"})[0], 401)
        self.assertEqual(self.press(later, "cancel")[0], 200)
        self.assertEqual(self.decide(large, key, True)[0], 200)
        self.comes_to(later, "compensated")
        self.comes_to(large, "processed")


if __name__ == "__main__":
    with Shop(BUILD, sqlite=True) as WaitsTest.shop:
        WaitsTest.shop.reservations("1h")
        for product in ("lamp", "cup"):
            WaitsTest.shop.restock(product, 1000)
        outcome = unittest.main(verbosity=2, exit=False).result
        wrong = []
        if outcome.wasSuccessful():
            def end():
                return all(ask(WaitsTest.shop.url, f"/api/orders/{id_}")[1]["state"] in ("processed", "compensated") for id_ in WaitsTest.accepted)

            eventually("every order has ended", end)
            wrong = books.Books(books.load(*WaitsTest.shop.databases()), WaitsTest.accepted).wrong
            print(*wrong, f"{len(wrong)} discrepancies", sep="\n")
        WaitsTest.shop.is_good = outcome.wasSuccessful() and not wrong
    sys.exit(not WaitsTest.shop.is_good)
