"""What an exact search did."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Certificate:
    """What an exact search did.

    Attributes
    ----------
    n_designs : int
        Designs in the space.
    n_walked : int
        Designs looked at.
    n_ruled_out : int
        Designs proven to be strictly dominated, or to share the vector of one looked at.
    seconds : float
    proven : bool
        Whether every design was looked at or ruled out: the frontier is the true one.
    """

    n_designs: int
    n_walked: int
    n_ruled_out: int
    seconds: float
    proven: bool
