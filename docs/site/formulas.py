"""Formulas in docstrings, made into literal blocks, and signs of formulas that reStructuredText would take for markup.

Napoleon reads the numpydoc sections; this runs before it.
"""

import inspect
import re

CODE = re.compile(r"(``[^`]+``|`[^`]+`)")
PAGE = re.compile(r"\bdocs/([\w/]+)\.md")
SIGNS = re.compile(r"[*|\\]|_(?=\W|$)")
FIELDS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns")


def escape(line):
    """Put a backslash before signs that mean something in reStructuredText, outside code, and link pages of `docs/`."""
    pieces = CODE.split(line)
    texts = (piece if i % 2 else SIGNS.sub(r"\\\g<0>", piece) for i, piece in enumerate(pieces))
    return PAGE.sub(r":doc:`/\1`", "".join(texts))


def with_literal_blocks(lines):
    """Escape text, and mark tables and indented blocks outside of field lists as literal blocks."""
    found, section, literal, in_example = [], "", False, False
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if following and not following.strip("-") and line.strip():
            section = line.strip()
        blank = not (found and found[-1].strip())
        in_example = line.startswith(">>>") or (in_example and bool(line.strip()))
        is_block = (line.startswith("    ") and section not in FIELDS) or line.startswith("|")
        if is_block and not literal and (blank or line.startswith("|")):
            found += ["::", ""]
            literal = True
        elif line.strip() and not is_block:
            literal = False
        if literal or in_example:
            found.append(f"    {line}" if literal and line.strip() else line)
        elif section in FIELDS and not line.startswith("    "):
            found.append(line)  # names and types, which Napoleon escapes
        else:
            found.append(escape(line))
    return found


def process(app, what, name, obj, options, lines):
    lines[:] = with_literal_blocks(lines)


def describe_call(app, what, name, obj, options, signature, returned):
    """Give a class the signature of its `__init__`, whatever its metaclass does."""
    if what == "class" and "__init__" in dir(obj) and not issubclass(obj, tuple | BaseException):
        try:
            found = inspect.signature(obj.__init__)
        except ValueError:
            return signature, returned
        parameters = [p.replace(annotation=inspect.Parameter.empty) for p in list(found.parameters.values())[1:]]
        if [p.kind for p in parameters] != [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]:
            return str(inspect.Signature(parameters)), None
    return signature, returned


def setup(app):
    app.connect("autodoc-process-signature", describe_call)
    app.connect("autodoc-process-docstring", process, priority=400)
    return {"parallel_read_safe": True}
