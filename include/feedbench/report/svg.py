"""A matplotlib figure as an SVG that can stand inside a page: small, same bytes every time, coloured by the page.

matplotlib draws with one reserved colour a role; here each is replaced by the page's CSS variable of that role,
so that one picture is legible in light, dark and print.
"""

import io
import re
import xml.etree.ElementTree as ElementTree

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"

SERIES_COLOURS = 8
_SERIES = (f"series-{number}" for number in range(1, SERIES_COLOURS + 1))
ROLES = ("ink", "muted", "grid", "band", "model", "wait", "input", "rest", "on-bar", *_SERIES)
COLOUR = {role: f"#0000{place:02x}" for place, role in enumerate(ROLES, start=0x10)}
"""The reserved colours: near black, and far from any colour that matplotlib would mix by itself."""
_ROLE = {colour: role for role, colour in COLOUR.items()}
_RESERVED = re.compile("|".join(_ROLE))
_FONT = re.compile(r"\s*font-family:[^;]*;?")
_REFERENCE = re.compile(r"(?:^|(?<=url\())#([\w-]+)(?=\)|$)")

STYLE = {
    "svg.fonttype": "none",  # text stays text: small, searchable, in the page's own font
    "text.parse_math": False,  # a name with dollar signs is a name
    "font.size": 12,
    "text.color": COLOUR["ink"],
    "axes.edgecolor": COLOUR["muted"],
    "axes.labelcolor": COLOUR["ink"],
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "figure.facecolor": "none",
    "grid.color": COLOUR["grid"],
    "grid.linewidth": 1,
    "xtick.color": COLOUR["muted"],
    "ytick.color": COLOUR["muted"],
    "xtick.labelcolor": COLOUR["ink"],
    "ytick.labelcolor": COLOUR["ink"],
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.borderpad": 0,
    "legend.borderaxespad": 0,
    "legend.handlelength": 1.2,
    "legend.handleheight": 0.9,
    "legend.columnspacing": 1.6,
}


def inline_svg(figure: Figure, anchor: str, title: str, alternative: str) -> str:
    """The figure as one `<svg role="img">` element; `anchor` keeps its ids apart from those of other pictures."""
    file = io.StringIO()
    FigureCanvasSVG(figure).print_svg(file, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    root = ElementTree.fromstring(file.getvalue())
    _drop(root, "metadata", "style")
    _rename_ids(root, anchor)
    for node in root.iter():
        if "style" in node.attrib:
            node.set("style", _page_style(node.attrib["style"]))
    _describe(root, anchor, title, alternative)
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    return ElementTree.tostring(root, encoding="unicode")


def _drop(root: ElementTree.Element, *tags: str) -> None:
    """Without metadata, and without the style element, which would hold for the whole page."""
    for parent in list(root.iter()):
        for child in [child for tag in tags for child in parent.findall(f"{{{_SVG}}}{tag}")]:
            parent.remove(child)


def _rename_ids(root: ElementTree.Element, anchor: str) -> None:
    """Only ids that something refers to stay, each with the picture's anchor before it."""
    values = (value for node in root.iter() for key, value in node.attrib.items() if key != "id")
    referred = {name for value in values for name in _REFERENCE.findall(value)}
    for node in root.iter():
        for key, value in list(node.attrib.items()):
            if key != "id":
                node.set(key, _REFERENCE.sub(rf"#{anchor}-\1", value))
            elif value in referred:
                node.set(key, f"{anchor}-{value}")
            else:
                del node.attrib[key]


def _page_style(style: str) -> str:
    """The page's colours for the reserved ones, and the page's font."""
    style = _FONT.sub("", style)
    return _RESERVED.sub(lambda match: f"var(--{_ROLE[match[0]]})", style)


def _describe(root: ElementTree.Element, anchor: str, title: str, alternative: str) -> None:
    for size in ("width", "height"):
        del root.attrib[size]
    root.set("role", "img")
    root.set("aria-labelledby", f"{anchor}-title {anchor}-description")
    for place, (tag, name, text) in enumerate((("title", "title", title), ("desc", "description", alternative))):
        node = ElementTree.Element(f"{{{_SVG}}}{tag}", {"id": f"{anchor}-{name}"})
        node.text = text
        root.insert(place, node)
