"""The version of the package: here because a bundle records it, and bundles import support only."""

__version__ = "0.2.0"
