#!/usr/bin/env python3
"""`intact agent check` finds what is wrong, by the scenario that is about it; and what is right it finds right.

Usage: wrong_test.py INTACT [FAULT...]      SHARD=1/2 in the environment: only the first half of the faults
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

INTACT = os.path.realpath(sys.argv[1])
AGENT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "wrong.py")

# Of each fault the scenarios that have to find it, and part of what they say; None: that is not looked at, since the
# scenario ends when its patience does.
FAULTS = {
    "holds-for-ever": {"many": False, "holding": "calls after that"},
    "circles": {"idle": "calls without"},
    "no-holding": {"holding": "a call without"},
    "new-instance": {"killed": False, "instance": "and before that"},
    "many-names": {"instance": "and before that"},
    "no-bearer": {"bearer": "with none"},
    "other-type": {"form": "text/plain"},
    "other-name": {"form": None},
    "bad-max": {"form": None},
    "both": {"form": "2 of them"},
    "strict": {"unknown-members": "ended with status 4"},
    "impatient": {"parked": "went away after"},
    "silent-unknown": {"no-such-action": "neither hold"},
    "hopeful": {"no-such-action": "no-such-action"},
    "silent-stop": {"beat-stop": None},
    "drops-cut": {"result-cut": "no answer had an outcome"},
    "drops-503": {"result-503": "no answer had an outcome"},
    "drops-500": {"result-500": "no answer had an outcome"},
    "drops-garbage": {"result-garbage": "no answer had an outcome"},
    "drops-truncated": {"result-truncated": "no answer had an outcome"},
    "trusts-200": {"no-outcome": "no answer had an outcome"},
    "resends-late": {"late": "more times"},
    "resends-unknown": {"unknown-outcome": "more times"},
    "drops-422": {"unreadable": "neither hold"},
    "stuck-422": {"unreadable": None},
    "no-retry-after": {"retry-after": "it came after", "retry-after-429": "it came after"},
    "hammers": {"backoff": "calls within"},
    "quits-when-away": {"server-restart": "ended with status 3"},
    "answers-late": {"deadline-passed": "token", "deadline-slow": "token", "deadline-begun": "token"},
    "from-receipt": {"deadline-sent": "token"},
    "no-waited": {"deadline-waited": "3 times none"},
    "by-clock": {"clocks": "neither hold"},
    "nothing-held": {"holding-answered": "calls for work without", "holding-at-work": "calls for work without"},
    "no-answers-held": {"holding-answered": "calls for work without"},
    "no-work-held": {"holding-at-work": "calls for work without"},
    "effect-first": {"effect-killed": "one effect"},
    "record-first": {"effect-killed": "one effect"},
    "no-lock": {"undo-races": "after its undo", "undo-at-work": "after its undo"},
    "again": {"same-key": "first", "count-once": "first"},
    "in-memory": {"record-killed": "first", "undo-killed": "output"},
    "by-task": {"count-steps": "as after the first"},
    "by-step": {"count-anew": "as under the first"},
    "undo-twice": {"undo": "first", "count-undo": "after one undo"},
    "no-tombstone": {"undo-first": "output"},
    "undo-of-nothing": {"undo-first": "undone"},
    "forward-again": {"forward-after-undo": "output"},
    "remembers-tokens": {"killed": "neither hold"},
    "quits": {"sigterm": "while a result had no outcome"},
    "never-ends": {"sigterm": None},
    "bad-end": {"sigterm": "status 5"},
    "fetches-on": {"sigterm": "calls that ask for work"},
    "quiet-refused": {"refused": "none"},
    "ends-well-refused": {"refused": "status 0"},
    "goes-over": {"another-installation": "with the id of that one"},
    "half-named": {"another-installation": "with none"},
    "quiet-other": {"another-installation": "words on standard error"},
    "ends-well-other": {"another-installation": "status 0"},
    "drops-421": {"another-installation": "neither hold"},
    "loses": {"many": "neither hold"},
    "stranger": {"nodes-found": "to the other one"},
    "one-node": {"nodes-found": None},
    "holds-by-node": {"nodes-holding": None},
    "loyal": {"nodes-gone": None},
    "takes-repeats": {"repeat-in-work": "begun once more", "nodes-same": "begun once more"},
    "mangles": {"echo": "for "},
    "no-effect": {"fail": "for "},
    "over-max": {"places": "when it had"},
    "serial": {"places": None},
    "no-beats": {"beats": None},
    "frozen": {"beats": None},
    "quits-beats": {"beats-lost": None},
    "deaf": {"beat-stop": None},
    "no-beat-deadline": {"beat-deadline": None},
    "no-acknowledgement": {"beat-acknowledged": "gave the request up"},
    "no-tries": {"tries": "output"},
    "no-resume": {"resume": "half"},
    "forgets-resume": {"resume": "half"},
    "keeps-place": {"elsewhere": None},
}
RULES = "form", "holding", "instance", "bearer"


def check(fault, scenarios, patience):
    """The verdicts by name, and the exit status."""
    with tempfile.TemporaryDirectory(prefix="intact-wrong-") as folder:
        only = [word for name in scenarios for word in ("--only", name)]
        done = subprocess.run([INTACT, "agent", "check", "--json", "--patience", patience, *only, "--", sys.executable, AGENT,
                               folder, fault], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise AssertionError(f"{fault}: {done.returncode} {done.stderr}")
        verdicts = json.loads(done.stdout)
        return {v["name"]: v for v in verdicts["scenarios"]}, done.returncode


def try_fault(fault):
    """What is not as it should be; None: nothing."""
    expected = FAULTS[fault]
    is_slow = None in expected.values()
    verdicts, status = check(fault, expected, "15s" if is_slow else "4m")
    if status != 1:
        return f"{fault}: status {status}"
    for name, words in expected.items():
        v = verdicts[name]
        if words is not False and v["end"] != "wrong":
            return f"{fault}: {name} is {v['end']} {v.get('reason', '')}"
        if words and words not in v["seen"] + v["expected"]:
            return f"{fault}: {name} says {v['seen']}, and not {words}"
    return None


def find(fault):
    """A fault that shows in times alone may hide on a busy machine for a while."""
    for _ in range(20 if fault in ("hammers", "circles") else 1):
        story = try_fault(fault)
        if not story:
            break
    return story


def main():
    asked = sys.argv[2:] or list(FAULTS)
    part, parts = map(int, os.environ.get("SHARD", "1/1").split("/"))
    asked = asked[part - 1::parts]
    found = set().union(*FAULTS.values())
    listed = json.loads(subprocess.run([INTACT, "agent", "check", "--list", "--json"], capture_output=True, text=True,
                                       check=True).stdout)["scenarios"]
    untried = {s["name"] for s in listed} - found - {"completes", "pieces", "stop", "repeat"}
    with ThreadPoolExecutor(3) as pool:
        bad = [b for b in pool.map(find, asked) if b]
    bad += [f"no fault is found by {name}" for name in sorted(untried)]
    print("\n".join(bad or [f"{len(asked)} faults found"]))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
