"""What a user of the experiments can put right: said in one sentence, never in a traceback."""


class ExperimentError(ValueError):
    """A request that cannot be carried out; the message names the argument, its value and the way out."""


class DataNotFound(ExperimentError, FileNotFoundError):
    """A data set that is neither on this machine nor could be downloaded; the message says where to put which file."""
