"""The version of this package, which is that of the library it is made for (a test compares them)."""

__version__ = "0.1.0"
