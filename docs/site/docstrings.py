"""Docstrings as they are written here, made into reStructuredText.

Sentences; `argument: what it is`, more lines indented; formulas and tables, indented or with bars; examples.
"""

import inspect
import re

ARGUMENT = re.compile(r"^(\*{0,2}[A-Za-z_]\w*(?:(?:, | \([^)]*\), | and )\*{0,2}[A-Za-z_]\w*)*(?: \([^)]*\))?): (.*)$")
SENTENCE = re.compile(r"[.:]\s*$")  # where one ends, what follows is no more of the argument, unless it is indented
SPANS = re.compile(r"(``[^`]+``|`[^`]+`|\*\w(?:[\w ]*\w)?\*)")  # code, and *emphasis*
SPECIAL = re.compile(r"([*|\\]|_(?=\W|$)|`)")


def plain(text):
    """Text in which only spans of code mean anything but themselves."""
    pieces = SPANS.split(text)
    for i, piece in enumerate(pieces):
        if i % 2 and piece.startswith("`"):
            code = piece.strip("`")
            pieces[i] = f"`{code}`" if re.fullmatch(r"[A-Za-z_][\w.]*", code) else f"``{code}``"
        elif not i % 2:
            pieces[i] = SPECIAL.sub(r"\\\1", piece)
    return "".join(pieces)


def joined(words):
    """Spans of code may run over a line's end: paragraphs are one line."""
    return plain(" ".join(word.strip() for word in words))


def paragraphs(lines):
    """Runs of lines without an empty one between them."""
    run = []
    for line in [*lines, ""]:
        if line.strip():
            run.append(line)
        elif run:
            yield run
            run = []


def entries(argument, words, known):
    """An argument as an entry of a list; known: names of all of them, one of which may begin in the midst of a line."""
    text, at = " ".join(word.strip() for word in words), 0
    if known:
        names = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
        for begun in re.finditer(rf"[.;] ((?:{names})(?:(?:, | and )(?:{names}))*): ", text):
            yield from [f"- **{argument}**: {plain(text[at : begun.start()])}.", ""]
            argument, at = plain(begun[1]), begun.end()
    yield from [f"- **{argument}**: {plain(text[at:])}", ""]


def as_text(run, known=()):
    """One paragraph: sentences, and arguments as a list of definitions."""
    found, words = [], []

    def close():
        nonlocal words
        if words:
            found.extend([joined(words), ""])
        words = []

    argument = None
    for line in run:
        start = None if line.startswith(" ") else ARGUMENT.match(line)
        if start:
            close()
            if argument:
                found.extend(entries(*argument, known))
            argument = (plain(start[1]), [start[2]])
        elif argument and (line.startswith(" ") or not SENTENCE.search(argument[1][-1])):
            argument[1].append(line)
        else:
            if argument:
                found.extend(entries(*argument, known))
                argument = None
            words.append(line)
    close()
    if argument:
        found.extend(entries(*argument, known))
    return found


def restructured(lines, known=()):
    """The lines of a docstring as reStructuredText; known: names of arguments."""
    out = []
    for run in paragraphs(lines):
        first = run[0].lstrip()
        if first.startswith(">>>"):
            out += [".. code-block:: pycon", "", *(f"   {line}" for line in run), ""]
        elif first.startswith("|") or (run[0].startswith("    ") and all(line.startswith("    ") for line in run)):
            out += ["::", "", *(f"    {line}" for line in run), ""]
        else:
            out += as_text(run, known)
    return out


def arguments(obj):
    """Names of what it is called with."""
    try:
        return [name for name in inspect.signature(obj).parameters if name != "self"]
    except (TypeError, ValueError):
        return []


def process(app, what, name, obj, options, lines):
    lines[:] = restructured(lines, arguments(obj))


def called(app, what, name, obj, options, signature, returned):
    """A class is called as its `__init__` is, whatever its metaclass does."""
    if what == "class" and "__init__" in dir(obj) and not issubclass(obj, tuple | BaseException):
        try:
            found = inspect.signature(obj.__init__)
        except ValueError:
            return signature, returned
        asked = [p.replace(annotation=inspect.Parameter.empty) for p in list(found.parameters.values())[1:]]
        if [p.kind for p in asked] != [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]:
            return str(inspect.Signature(asked)), None
    return signature, returned


def setup(app):
    app.connect("autodoc-process-signature", called)
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}
