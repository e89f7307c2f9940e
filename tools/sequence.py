#!/usr/bin/env python3
"""Draws who says what to whom, in order, as SVG. Usage: sequence.py FILE.seq >FILE.svg

    title TEXT, desc TEXT     for those who cannot see it
    lane NAME                 from left to right
    A -> B: TEXT              a message; --> is an answer, drawn with a dashed line
"""

import re
import sys
from xml.sax.saxutils import escape

LANE, ROW, TOP, EDGE = 235, 34, 76, 70
INK, FAINT, FILL = "#24292f", "#57606a", "#cfeef5"


def read(path):
    words, lanes, messages = {}, [], []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f.read().splitlines(), 1):
            kind, _, rest = line.partition(" ")
            message = re.fullmatch(r"(\w+) (--?>) (\w+): (.+)", line)
            if kind in ("title", "desc"):
                words[kind] = rest
            elif kind == "lane":
                lanes.append(rest)
            elif message and {message[1], message[3]} <= set(lanes):
                messages.append(message.groups())
            elif line:
                sys.exit(f"{path}:{number}: not understood: {line}")
    return words, lanes, messages


def draw(words, lanes, messages):
    at = {name: EDGE + LANE * i for i, name in enumerate(lanes)}
    width, height = 2 * EDGE + LANE * (len(lanes) - 1), TOP + ROW * len(messages) + 26
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
           ' role="img" aria-labelledby="title desc" font-family="Helvetica,Arial,sans-serif">')
    yield f'<title id="title">{escape(words["title"])}</title>'
    yield f'<desc id="desc">{escape(words["desc"])}</desc>'
    yield (f'<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" orient="auto">'
           f'<path d="M0,1 L10,5 L0,9 z" fill="{INK}"/></marker></defs>')
    yield f'<rect width="{width}" height="{height}" rx="8" fill="white"/>'
    for name, x in at.items():
        yield f'<line x1="{x}" y1="50" x2="{x}" y2="{height - 12}" stroke="{FAINT}" stroke-dasharray="3 4"/>'
        yield f'<rect x="{x - 50}" y="16" width="100" height="34" rx="8" fill="{FILL}" stroke="{INK}"/>'
        yield f'<text x="{x}" y="38" font-size="14" text-anchor="middle" fill="{INK}">{escape(name)}</text>'
    for row, (sender, arrow, receiver, text) in enumerate(messages):
        a, b, y = at[sender], at[receiver], TOP + ROW * row + 14
        dashes = ' stroke-dasharray="6 4"' if arrow == "-->" else ""
        middle = a + (LANE / 2 if b > a else -LANE / 2)  # beside the lane from which it comes
        shift = -3 if b > a else 3
        yield (f'<line x1="{a}" y1="{y}" x2="{b + shift}" y2="{y}" stroke="{INK}" stroke-width="1.3"{dashes}'
               ' marker-end="url(#tip)"/>')
        yield (f'<text x="{middle}" y="{y - 6}" font-size="12" text-anchor="middle" fill="{INK}" stroke="white"'
               f' stroke-width="4" paint-order="stroke">{escape(text)}</text>')
    yield "</svg>"


print("\n".join(draw(*read(sys.argv[1]))))
