"""``python -m dynabandit`` is the command line too."""

from dynabandit.cli import main

if __name__ == "__main__":
    main()
