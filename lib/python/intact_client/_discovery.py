"""Whom to call: the nodes of an installation, as those that answer know them. No input or output here."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional, Set

from ._http import is_server

NODES_MAX = 320
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


class _Listed:
    def __init__(self, url: Optional[str], works: bool) -> None:
        self.url, self.works = url, works


def _read(url: str, answer: Mapping[str, Any]) -> Dict[str, _Listed]:
    """By name. A list that came by https is not followed to http."""
    found: Dict[str, _Listed] = {}
    nodes = answer.get("nodes")
    for node in nodes[:NODES_MAX] if isinstance(nodes, list) else []:
        name = node.get("node") if isinstance(node, dict) else None
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            continue
        at = node.get("url")
        address = at.rstrip("/") if isinstance(at, str) and len(at) <= 300 and is_server(at) else None
        if address and url.startswith("https:") and not address.startswith("https:"):
            address = None
        roles = node.get("roles")
        works = (node.get("alive", True) is True and node.get("draining") is not True
                 and (not isinstance(roles, list) or "scheduler" in roles))
        found[name] = _Listed(address, works)
    return found


class Discovery:
    """Fed with answers to GET /v1/nodes; `wanted` says what to call."""

    def __init__(self, seeds: List[str]) -> None:
        self.seeds = list(seeds)
        self.listed: Dict[str, _Listed] = {}
        self.answered: Set[str] = set()  # addresses
        self.name_at: Dict[str, str] = {}  # who answers at an address
        self.gates: Dict[str, str] = {}  # a proxy: another node answered there before
        self.strangers: Dict[str, str] = {}  # listed, and somebody else answers there

    def hear(self, url: str, answer: Optional[Mapping[str, Any]]) -> None:
        """What came from an address; None: an answer, but no list."""
        self.answered.add(url)
        fresh = _read(url, answer) if answer else {}
        name = answer.get("self") if answer else None
        name = name if isinstance(name, str) and _NAME.fullmatch(name) else ""
        if url in self.seeds:
            before = self.name_at.get(url, "")
            if before and name and before != name and before in self.listed and self.listed[before].works:
                self.gates[url] = before
        elif name != self._name_of(url):
            self.strangers[url] = name
            return  # nor is its list believed
        self.strangers.pop(url, None)
        if name:
            self.name_at[url] = name
        if fresh:
            self.listed = fresh
            # It may have been its node that was given another name.
            self.gates = {u: n for u, n in self.gates.items() if n in fresh and fresh[n].works}

    def lose(self, url: str) -> None:
        """It cannot be reached."""
        self.answered.discard(url)

    def _name_of(self, url: str) -> str:
        return next((name for name, n in self.listed.items() if n.url == url), "")

    def to_ask(self) -> List[str]:
        """Those to be asked next: all seeds, and the nodes that are to be called and have not yet said who they are."""
        return self.seeds + [url for url in self._by_url() if url not in self.answered or url in self.strangers]

    def _by_url(self) -> List[str]:
        """Addresses of nodes that no seed stands for."""
        stood = {self.name_at.get(s) for s in self.seeds if s in self.answered and s not in self.gates}
        urls = [n.url for name, n in self.listed.items() if n.works and name not in stood and n.url]
        return [u for u in dict.fromkeys(urls) if u not in self.seeds]

    def wanted(self) -> List[str]:
        """The addresses to work for; none: nobody has answered, go on as before."""
        wanted, taken = [], set()
        for seed in self.seeds:
            name = self.name_at.get(seed, "")
            if seed not in self.answered or seed in self.gates or (name and name in taken):
                continue
            if name and name in self.listed and not self.listed[name].works:
                continue
            wanted.append(seed)
            taken.add(name)
        wanted += [u for u in self._by_url() if u in self.answered and u not in self.strangers]
        if wanted:
            return wanted
        gates = [s for s in self.seeds if s in self.gates and s in self.answered]
        return gates[:1] or [s for s in self.seeds if s in self.answered]
