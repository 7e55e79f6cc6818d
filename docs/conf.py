"""The site, built by `make site` into out/site. Every warning, a dead link among them, ends the build."""

from importlib import metadata
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

import palpo

project = "Palpo"
copyright = "the Palpo authors, MIT licence"
release = metadata.version("palpo")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
exclude_patterns = ["pictures"]
html_theme = "furo"
html_title = "Palpo"
html_show_sphinx = False
html_copy_source = False
nitpicky = True
# a scene's specification has a page of its own, scenes.md
nitpick_ignore_regex = [("py:.*", r"(?!palpo\.).*"), ("py:class", r"palpo\.config\..*")]
default_role = "code"
autodoc_typehints = "description"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
autodoc_member_order = "bysource"

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "EQUATIONS": "equations",
    "CONTRIBUTING": "contributing",
    "CHANGELOG": "changelog",
    "README": "index",
}


def _link_root_pages(app: Sphinx, doctree: Any) -> None:
    """A link to a page at the root leads to its place on the site; to another file, it is text."""
    for node in list(doctree.findall(pending_xref)):
        target = str(node.get("reftarget", "")).removeprefix(f"{ROOT}/").rpartition("../")[2]
        page = PAGES.get(target.removesuffix(".md"))
        if page is not None:
            node.update_all_atts(
                {"refdomain": "std", "reftype": "doc", "reftarget": f"/{page}"}, replace=True
            )
        elif (ROOT / target).is_file() and ROOT / "docs" not in (ROOT / target).parents:
            node.replace_self(node.children)


def _by_public_name(app: Sphinx, env: Any, node: pending_xref, text: nodes.Element) -> Any:
    """A type of ours leads to the name that one imports, wherever it is defined."""
    name = str(node.get("reftarget", "")).rpartition(".")[2]
    if node.get("refdomain") != "py" or name not in palpo.__all__:
        return None
    where, python = node["refdoc"], env.get_domain("py")
    return python.resolve_xref(env, where, app.builder, "class", f"palpo.{name}", node, text)


def setup(app: Sphinx) -> None:
    app.connect("missing-reference", _by_public_name)
    app.connect("doctree-read", _link_root_pages)
