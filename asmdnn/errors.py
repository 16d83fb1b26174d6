"""The errors that users see.  Every message is one sentence: the field, its value, and the way out."""


class AsmdnnError(Exception):
    """Base class of everything that asmdnn raises on purpose."""


class InvalidArguments(AsmdnnError, ValueError):
    """An argument is wrong whatever the machine: the message names the field and what it must be."""


class Unimplemented(AsmdnnError, NotImplementedError):
    """The request is meaningful, but no implementation takes it here: the message lists each one's reason."""
