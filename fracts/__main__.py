"""`python -m fracts`: the library from the command line."""

from fracts.baselines.needed import needed

if __name__ == "__main__":
    needed("click", "python -m fracts", "search")
    from fracts.commands import main

    main(prog_name="python -m fracts")
