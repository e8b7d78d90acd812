"""Examples end with an empty line, which doctest wants and a reader does not."""

import re

EXAMPLE = re.compile(r"^(```pycon\n.*?)\n+(```)$", re.M | re.S)


def read(app, name, source):
    source[0] = EXAMPLE.sub(r"\1\n\2", source[0])


def setup(app):
    app.connect("source-read", read)
    return {"parallel_read_safe": True}
