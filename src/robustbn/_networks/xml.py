"""XML without its dangers: a small tree with line numbers, no entities, nothing fetched."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from robustbn._core.advice import Advice, Setting
from robustbn._networks.parts import Family, ReadTable, refuse, show
from robustbn._networks.text import read_run
from robustbn.exceptions import MissingDependencyError, NetworkError

MAX_DEPTH = 64
LEAST_TAGS, BYTES_A_TAG = 250_000, 32  # a file may have so many tags, or one in so many bytes
BLANKS = " \t\r\n"


@dataclass(slots=True)
class Element:
    """A tag with its attributes, children and text, and the line where it begins."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    chunks: list[tuple[int, str]] = field(default_factory=list)

    def all(self, tag: str) -> list[Element]:
        """Return the children with this tag."""
        return [child for child in self.children if child.tag == tag]

    def only(self, tag: str, source: str) -> Element:
        """Return the child with this tag; refuse none, or several."""
        found = self.all(tag)
        if len(found) != 1:
            message = f"<{self.tag}> needs one <{tag}>, found {len(found)}."
            raise refuse(source, self.line, message)
        return found[0]

    @property
    def text(self) -> str:
        """The text directly inside, without outer blanks."""
        return "".join(chunk for _, chunk in self.chunks).strip(BLANKS)


class _TreeBuilder:
    """What the parser calls; keeps its own stack, so that depth costs nothing and is limited."""

    def __init__(self, source: str, most_tags: int) -> None:
        self.source = source
        self.expat: Any = None
        self.stack: list[Element] = []
        self.root: Element | None = None
        self.n_left = most_tags

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, dict(attributes), self.expat.CurrentLineNumber)
        if len(self.stack) >= MAX_DEPTH:
            raise refuse(self.source, element.line, f"tags are nested more than {MAX_DEPTH} deep.")
        self.n_left -= 1
        if self.n_left < 0:
            raise refuse(self.source, element.line, "there are more tags than any network needs.")
        if self.stack:
            self.stack[-1].children.append(element)
        else:
            self.root = element
        self.stack.append(element)

    def data(self, text: str) -> None:
        if self.stack:  # the parser hands over a stretch of text when it has reached its end
            first = self.expat.CurrentLineNumber - text.count("\n")
            self.stack[-1].chunks.append((first, text))

    def end(self, tag: str) -> None:
        self.stack.pop()

    def close(self) -> Element | None:
        return self.root


def parse_xml(data: bytes, source: str, root: str, what: str) -> Element:
    """Return the root of an XML file, which must have the tag `root`; `what` says which format."""
    try:
        from defusedxml.common import DefusedXmlException
        from defusedxml.ElementTree import DefusedXMLParser, ParseError
    except ImportError as error:
        raise MissingDependencyError(
            "Reading a network from XML needs defusedxml: pip install defusedxml"
        ) from error
    builder = _TreeBuilder(source, max(LEAST_TAGS, len(data) // BYTES_A_TAG))
    parser = DefusedXMLParser(target=builder)  # refuses entities and whatever is outside
    builder.expat = parser.parser
    builder.expat.buffer_size = 1 << 20
    try:
        parser.feed(data)
        tree: Element | None = parser.close()
    except NetworkError:
        raise
    except ParseError as error:
        line = error.position[0]
        truncated = " Is the file truncated?" if line > data.count(b"\n") else ""
        raise refuse(source, line, f"this is not well-formed XML: {error}.{truncated}") from None
    except DefusedXmlException as error:
        line = builder.expat.CurrentLineNumber
        raise refuse(
            source,
            line,
            f"the file declares XML entities or refers to other files ({error}). No network "
            "needs them, they can be used to attack a reader, and so they are refused.",
        ) from None
    except (LookupError, ValueError, TypeError) as error:  # an encoding that is not known
        line = builder.expat.CurrentLineNumber
        raise refuse(source, line, f"the XML cannot be decoded: {error}.") from None
    if tree is None or tree.tag != root:
        found = tree.tag if tree is not None else "nothing"
        raise refuse(
            source,
            tree.line if tree is not None else 1,
            Advice(f"the outermost tag of {what} is <{root}>; found {show(found)}.", _guess(found)),
        )
    return tree


def _guess(tag: str) -> Advice:
    guesses = {"smile": ("a GeNIe", "xdsl"), "BIF": ("an XMLBIF", "xmlbif")}
    if tag not in guesses:
        return Advice()
    what, name = guesses[tag]
    named = Setting("format", name, "from_format")
    return Advice(f" This is {what} file: name it .{name}, or use ", named, ".")


def read_xml_table(element: Element, node: str, source: str, family: Family) -> ReadTable:
    """Read the numbers of a tag as a table in C order."""
    shape = [len(labels) for labels in family]
    pieces: list[str] = []  # with the line breaks of the comments between them
    first = line = element.chunks[0][0] if element.chunks else element.line
    for at, chunk in element.chunks:
        pieces += ["\n" * (at - line), chunk]
        line = max(at, line) + chunk.count("\n")
    text = "".join(pieces)
    return read_run(
        text, node, prod(shape), shape[-1], source, lambda k: first + text.count("\n", 0, k)
    )
