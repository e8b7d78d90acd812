"""Decide and reward over HTTP: settings, join, learning loop, API (docs/service.md).

`pip install onepass[serve]`; `onepass serve --data DIR LOOP.toml ...`.
"""
