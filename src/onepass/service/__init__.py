"""HTTP service for decisions and rewards, with settings, joins, a learning loop and an API (docs/service.md).

Install it with `pip install onepass[serve]`, and start it with `onepass serve --data DIR LOOP.toml ...`.
"""
