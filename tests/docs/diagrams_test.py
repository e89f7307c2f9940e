#!/usr/bin/env python3
"""Are the pictures of docs/img those of the state tables? Every state, every edge and what is said of it, in both directions;
where Graphviz puts them does not matter. And can every picture be read: by eye on any background, and without seeing it?

Usage: diagrams_test.py ROOT STATES
"""

import glob
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

ROOT, STATES = sys.argv[1:3]
SVG = "{http://www.w3.org/2000/svg}"
GROUNDS = "white", "#22272e"  # of diagrams, and of a terminal (tools/screen.py)


def words(text):
    return " ".join(text.split())


def of_table(kind):
    dot = subprocess.run([STATES, kind], check=True, capture_output=True, text=True).stdout
    states = set(re.findall(r"(?m)^ +(\w+) \[fillcolor", dot))
    edges = {(a, b, words(label.replace("\\n", " ")), "dashed" in rest)
             for a, b, label, rest in re.findall(r'(?m)^ +(\w+) -> (\w+) \[label="([^"]*)"(.*)\];$', dot)}
    assert len(states) >= 6 and len(edges) == dot.count("->"), dot
    return states, edges


def of_picture(path):
    states, edges = set(), set()
    for group in xml.parse(path).iter(SVG + "g"):
        text = words(" ".join(t.text for t in group.iter(SVG + "text")))
        title = group.findtext(SVG + "title")
        if group.get("class") == "node":
            assert text == title, f"{path}: {title} is drawn as {text}"
            states.add(text)
        elif group.get("class") == "edge":
            dashed = any(p.get("stroke-dasharray") for p in group.iter(SVG + "path"))
            edges.add((*title.split("->"), text, dashed))
    return states, edges


def compare(kind):
    path = f"{ROOT}/docs/img/{kind}.svg"
    mistakes = []
    for what, table, picture in zip(("state", "edge"), of_table(kind), of_picture(path)):
        mistakes += [f"{path}: the table has the {what} {x}, the picture has not" for x in table - picture]
        mistakes += [f"{path}: the picture has the {what} {x}, the table has not" for x in picture - table]
    return mistakes


def readable(path):
    """It has a background of its own, a title and a description."""
    root = xml.parse(path).getroot()
    ground = any(s.get("fill") in GROUNDS for s in root.iter() if s.tag in (SVG + "rect", SVG + "polygon"))
    told = {root.get("role") == "img", bool(root.findtext(SVG + "title")), len(root.findtext(SVG + "desc") or "") > 40}
    return [] if ground and told == {True} else [f"{path}: it lacks a background, role, title or desc"]


def same_as_source(path):
    """Of a picture that needs no Graphviz: is it drawn from the source beside it?"""
    with open(path.replace(".seq", ".svg"), encoding="utf-8") as f:
        drawn = subprocess.run([sys.executable, f"{ROOT}/tools/sequence.py", path], check=True, capture_output=True, text=True)
        return [] if f.read() == drawn.stdout else [f"{path}: the picture is not drawn from it"]


def texts_of_dot(path):
    """Of a picture that has a .dot beside it: does it say the same?"""
    with open(path, encoding="utf-8") as f:
        source = re.findall(r'label="([^"]*)"', re.sub(r"//.*", "", f.read()))
    told = {words(part) for label in source for part in label.split("\\n")} - {""}
    drawn = {words(t.text) for t in xml.parse(path.replace(".dot", ".svg")).iter(SVG + "text")}
    return [] if told == drawn else [f"{path}: the picture is not drawn from it: {told ^ drawn}"]


def main():
    mistakes = compare("task") + compare("step")
    pictures = glob.glob(f"{ROOT}/docs/img/*.svg")
    assert len(pictures) >= 4
    for path in pictures:
        mistakes += readable(path)
    for path in glob.glob(f"{ROOT}/docs/img/*.seq"):
        mistakes += same_as_source(path)
    for path in glob.glob(f"{ROOT}/docs/img/*.dot"):
        mistakes += texts_of_dot(path)
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    if mistakes:
        print("tools/diagrams draws them anew", file=sys.stderr)
    sys.exit(1 if mistakes else 0)


main()
