#!/usr/bin/env python3
"""Writes docs/python_api.md from the docstrings of python/cistern_ps.

    scripts/python_api.py            writes the page
    scripts/python_api.py --check    changes nothing; exits with 1 if the page is not what the docstrings say, or if
                                     something public has no docstring

Members whose docstring says "for this package" are left out.
"""

import ast
import pathlib
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE, PAGE = ROOT / "python" / "cistern_ps", ROOT / "docs" / "python_api.md"

# The page's sections: a heading, and the file with its public names (None: all).
SECTIONS = [
    ("cistern_ps", "fleet.py", ["connect", "local", "Fleet", "Commit"]),
    ("cistern_ps", "table.py", ["Table"]),
    ("cistern_ps", "rules.py", None),
    ("cistern_ps", "jobs.py", None),
    ("cistern_ps", "errors.py", ["Error", "UsageError", "UnreachableError", "DataError", "CheckpointError",
                                 "Interrupted"]),
    ("cistern_ps.data", "data.py", None),
    ("cistern_ps.torch", "torch/embedding.py", ["EmbeddingBag", "Embedding", "pad_rows", "RowOptimizer", "clip_grad_norm_"]),
    ("cistern_ps.torch", "torch/session.py", ["Session"]),
    ("cistern_ps.torch", "torch/loader.py", ["IterableDataSet"]),
    ("cistern_ps.rows", "rows.py", None),
    ("cistern_ps.model", "model.py", ["Model"]),
    ("cistern_ps.hugectr", "hugectr/settings.py", None),
    ("cistern_ps.hugectr", "hugectr/training.py", None),
    ("cistern_ps.hugectr", "hugectr/expansion.py", ["EmbeddingTableConfig", "EmbeddingCollectionConfig"]),
    ("cistern_ps.hugectr", "hugectr/session.py", None),
    ("cistern_ps.hugectr.tools", "hugectr/tools.py", None),
    ("cistern_ps.serve", "serve.py", None),
    ("cistern_ps.servers", "servers.py", None),
    ("cistern_ps.metrics", "metrics.py", None),
    ("cistern_ps.plots", "plots.py", None),
]


def signature(node):
    """The parameters of a function as they are written, without self."""
    arguments = ast.unparse(node.args)
    return "(" + arguments.removeprefix("self, ").removeprefix("self") + ")"


def is_property(node):
    return any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)


def is_setter(node):
    return any(isinstance(d, ast.Attribute) and d.attr == "setter" for d in node.decorator_list)


def docstring(node, name, missing):
    text = ast.get_docstring(node)
    if text is None:
        missing.append(name)
    return text or ""


def members(node, name, missing):
    """The lines of a class's public methods."""
    for child in node.body:
        if not isinstance(child, ast.FunctionDef) or child.name.startswith("_") or is_setter(child):
            continue
        if "for this package" in (ast.get_docstring(child) or ""):
            continue
        shown = child.name if is_property(child) else child.name + signature(child)
        yield f"- `{shown}`"
        yield ""
        yield textwrap.indent(docstring(child, f"{name}.{child.name}", missing), "    ")
        yield ""


def entry(node, module, missing):
    name = f"{module}.{node.name}"
    init = next((c for c in node.body if isinstance(c, ast.FunctionDef) and c.name == "__init__"), None) \
        if isinstance(node, ast.ClassDef) else None
    shown = signature(node) if isinstance(node, ast.FunctionDef) else signature(init) if init else ""
    yield f"### `{node.name}{shown}`"
    yield ""
    yield docstring(node, name, missing)
    yield ""
    if isinstance(node, ast.ClassDef):
        yield from members(node, name, missing)


def page():
    """(the text of the page, what has no docstring)."""
    lines = ["# Python: functions and classes", "",
             "Written by scripts/python_api.py from the docstrings; [python.md](python.md) is the manual.", ""]
    missing, last = [], None
    for module, file, names in SECTIONS:
        tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
        if module != last:
            lines += [f"## {module}", "", ast.get_docstring(tree) if module != "cistern_ps" else "", ""]
            last = module
        for node in tree.body:
            is_public = isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_")
            if is_public and (names is None or node.name in names):
                lines += entry(node, module, missing)
    text = "\n".join(line.rstrip() for line in "\n".join(lines).splitlines())
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text.rstrip() + "\n", missing


def main():
    text, missing = page()
    for name in missing:
        print(f"python_api: {name} has no docstring", file=sys.stderr)
    if sys.argv[1:] == ["--check"]:
        is_current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        if not is_current:
            print("python_api: docs/python_api.md is not current: run scripts/python_api.py", file=sys.stderr)
        return 1 if missing or not is_current else 0
    PAGE.write_text(text, encoding="utf-8")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
