#!/usr/bin/env python3
"""Checks the documents: every relative link leads to a file, and to a heading in it; README.md links to docs/README.md,
and that to every document of docs/; docs/http-api.md tells of the same types of problems as docs/openapi.yaml; and nothing of the project is
installed by its name alone, since no registry has it.

Usage: links_test.py ROOT
"""

import glob
import os
import re
import sys

root = os.path.realpath(sys.argv[1])
mistakes = []


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def prose(path):
    """The text without blocks and code, in which a bracket is only a bracket."""
    text = re.sub(r"(?ms)^```.*?^```", "", read(path))
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path):
    """As they are made of headings: small letters, no punctuation, - for a space."""
    text = re.sub(r"(?ms)^```.*?^```", "", read(path))
    headings = re.findall(r"(?m)^#+ (.*)$", text)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def check_links(path):
    """Complains of broken ones; the documents that it leads to."""
    leads_to = set()
    for picture in re.findall(r'(?:src|srcset)="([^"]+)"', prose(path)):
        if not re.match(r"[a-z]+:", picture) and not os.path.exists(os.path.join(os.path.dirname(path), picture)):
            mistakes.append(f"{os.path.relpath(path, root)}: there is no picture {picture}")
    for link in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        if not os.path.exists(target):
            mistakes.append(f"{os.path.relpath(path, root)}: there is no {link}")
        elif anchor and target.endswith(".md") and anchor not in anchors(target):
            mistakes.append(f"{os.path.relpath(path, root)}: {link}: there is no such heading")
        leads_to.add(target)
    return leads_to


def check_reached(documents):
    reached, todo = set(), [f"{root}/README.md"]
    while todo:
        path = todo.pop()
        if path in reached or not path.endswith(".md") or not os.path.exists(path):
            continue
        reached.add(path)
        todo += check_links(path)
    for path in sorted(set(documents) - reached):
        mistakes.append(f"{os.path.relpath(path, root)}: no link leads there from README.md")
        check_links(path)
    page_map = f"{root}/docs/README.md"
    if page_map not in check_links(f"{root}/README.md"):
        mistakes.append("README.md: it has no link to docs/README.md")
    for path in sorted(set(documents) - {page_map} - check_links(page_map)):
        mistakes.append(f"{os.path.relpath(path, root)}: docs/README.md has no link to it")


def check_problems():
    guide, openapi = f"{root}/docs/http-api.md", f"{root}/docs/openapi.yaml"
    rows = re.findall(r"(?m)^\| (`[a-z-]+`(?:, `[a-z-]+`)*) \| [45]\d\d", read(guide))
    told = set(re.findall("[a-z-]+", " ".join(rows)))
    if len(told) < 10:
        mistakes.append("docs/http-api.md: its table of problems is not found")
    if not os.path.exists(openapi):
        return
    listed = set(re.findall(r"urn:intact:problem:([a-z-]+)", read(openapi)))
    for name in sorted(listed - told):
        mistakes.append(f"docs/http-api.md: its table of problems lacks {name}, which is in openapi.yaml")
    for name in sorted(told - listed):
        mistakes.append(f"docs/openapi.yaml: it lacks the problem {name}, of which http-api.md tells")


def check_installs():
    command = re.compile(r"\b(?:pip3?|pipx|uv|npm|yarn|pnpm|apt|apt-get) (?:install|i|add)\b([^`\n]*)")
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "lib/*/*.md"):
        for path in glob.glob(f"{root}/{pattern}", recursive=True):
            for what in " ".join(command.findall(read(path))).split():
                if "intact" in what and "/" not in what:
                    mistakes.append(f"{os.path.relpath(path, root)}: \"{what}\" is installed from a registry: say the file or folder")


check_reached(glob.glob(f"{root}/docs/**/*.md", recursive=True))
check_problems()
check_installs()
for mistake in mistakes:
    print(mistake, file=sys.stderr)
sys.exit(1 if mistakes else 0)
