"""The command ``emsco``, also as ``python -m emsco``."""

import sys


def main() -> int:
    """Run the command line, if what it needs is installed."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ImportError:
        print("error: the command line needs additional packages: pip install 'emsco[cli]'", file=sys.stderr)
        return 1
    from emsco.cli.app import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
