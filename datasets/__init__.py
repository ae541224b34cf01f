"""Small series to try things on. Import as `fracts.datasets`."""

if __name__ != "fracts.datasets":
    raise ImportError(
        "This folder is `fracts.datasets`; imported from the repository root it hides "
        "Hugging Face's `datasets`. Start Python elsewhere, or with `python -P`."
    )
