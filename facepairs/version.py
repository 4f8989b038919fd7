"""The version of the package, in a module that imports nothing: any layer may record it."""

__version__ = "0.3.0.dev0"
