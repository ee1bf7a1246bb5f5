"""HTML, written so that no name of an object can become part of it.

Text is escaped unless it is `Html`, which only this package makes. What is written is the same for
the same input, byte for byte.
"""

from collections.abc import Iterable
from html import escape


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *children: "Html | str | Iterable[Html] | None", **attributes: object) -> Html:
    """An element; `class_` and the like lose the underscore, None and False are left out."""
    said = "".join(
        f" {_attribute(word)}" + ("" if value is True else f'="{escape(str(value))}"')
        for word, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{said}>{joined(*children)}</{name}>")


def empty(name: str, **attributes: object) -> Html:
    """An element of SVG without content."""
    said = "".join(
        f' {_attribute(word)}="{escape(str(value))}"'
        for word, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{said}/>")


def joined(*children: "Html | str | Iterable[Html] | None") -> Html:
    """Children one after the other, each text escaped."""
    found = []
    for child in children:
        if isinstance(child, Html):
            found.append(str(child))
        elif isinstance(child, str):
            found.append(escape(child))
        elif child is not None:
            found.extend(str(each) for each in child)
    return Html("".join(found))


def _attribute(word: str) -> str:
    """The name of an attribute: SVG's mixed case as it is, `_` for `-`."""
    return word.rstrip("_").replace("_", "-")
