#!/usr/bin/python3
"""The shop in Debian's Chromium, see browser.mjs; then the books of all that was ordered there, to the last unit.

Usage: browser_test.py BUILD [PATTERN]    only the tests whose names match. Pictures of the pages go to build/shop-pictures.
"""

import json
import os
import subprocess
import sys

import books
from shop_kit import ENVIRONMENT, ROOT, Shop

import browsers
import npm_modules

HERE = os.path.dirname(os.path.realpath(__file__))
HOME = f"{ROOT}/build/shop-browser"


def main():
    npm_modules.install(f"{HERE}/npm", os.path.basename(HOME))
    browsers.wait_for_turn(ROOT)
    with Shop(sys.argv[1]) as shop:
        only = [f"--test-name-pattern={sys.argv[2]}"] if len(sys.argv) > 2 else []
        accepted = f"{shop.work}/accepted.json"
        told = {"SHOP_URL": shop.url, "CONSOLE_URL": shop.console_url, "BROWSER_HOME": HOME, "PICTURES": f"{ROOT}/build/shop-pictures",
                "ACCEPTED": accepted}
        shop.reservations("1h")
        told["INTACT"], told["INTACT_ADMIN"] = shop.intact()
        told["DEFINITION"] = f"{ROOT}/examples/shop/shop.yaml"
        result = subprocess.run(["node", "--test-reporter=spec", *only, f"{HERE}/browser.mjs"], env=ENVIRONMENT | told, check=False)
        with open(accepted, encoding="utf-8") as f:
            wrong = books.Books(books.load(*shop.databases()), json.load(f)).wrong
        for sentence in wrong:
            print(sentence)
        print(f"{len(wrong)} discrepancies")
        shop.is_good = result.returncode == 0 and not wrong
    return 0 if shop.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
