"""`python -m onepass` is the command `onepass`; `python -m onepass compile` needs none of the extras."""

import sys

if __name__ == "__main__":
    if sys.argv[1:2] == ["compile"] and "--help" not in sys.argv:
        from onepass.precompile import main as compile_all

        raise SystemExit(compile_all(sys.argv[2:]))
    from onepass.cli import main

    main()
