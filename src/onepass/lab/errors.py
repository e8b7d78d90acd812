"""Errors of experiments that a user can correct; the command line prints their message without a traceback."""


class ExperimentError(ValueError):
    """Error in a request of the user; the message names the argument, its value and a way to correct it."""


class DataNotFound(ExperimentError, FileNotFoundError):
    """Error if a data set is not on this machine and cannot be downloaded; the message tells which files to provide."""
