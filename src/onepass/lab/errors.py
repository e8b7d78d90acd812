"""Errors of experiments that a user can correct; the command line prints their message without a traceback."""


class ExperimentError(ValueError):
    """Request that cannot be carried out; the message names the argument, its value and the way out."""


class DataNotFound(ExperimentError, FileNotFoundError):
    """Data set that is not on this machine and could not be downloaded; the message tells which files to provide."""
