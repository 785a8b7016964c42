"""`python -m dpmpn`: the command line."""

from dpmpn.cli.main import run

if __name__ == "__main__":
    run()
