"""The fractional scan: the truth, the fast forms, the door. Import as `fracts.kernels`."""

if __name__ != "fracts.kernels":
    raise ImportError(
        "This folder is `fracts.kernels`; imported from the repository root it hides "
        "Hugging Face's `kernels`. Start Python elsewhere, or with `python -P`."
    )

from fracts.kernels.scan import frac_scan, frac_step

__all__ = ["frac_scan", "frac_step"]
