"""``python -m sardonyx``: the command line."""

from sardonyx.cli.main import main

if __name__ == "__main__":
    main()
