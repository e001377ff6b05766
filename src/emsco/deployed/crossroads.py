"""Sessions of designs that branch: stage 0 is that of all branches; its values say which chain a case follows."""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from emsco.data.encoding import Encoder
from emsco.deployed.cells import Cell
from emsco.deployed.session import Itinerary
from emsco.designs.branched import Branched
from emsco.scoring.rejection import RejectRule


class Crossroads(Itinerary):
    """What all sessions share of a design that branches.

    Parameters
    ----------
    branched : Branched
    ways : sequence of Itinerary
        The chain of each branch.
    encoder : Encoder
    """

    def __init__(self, branched: Branched, ways: Sequence[Itinerary], encoder: Encoder) -> None:
        self.__dict__.update(ways[0].__dict__)
        self.branch, self.n_stages = None, branched.n_stages
        self.stages = ways[0].stages[:1]
        self.columns = {name: column for way in reversed(ways) for name, column in way.columns.items()}
        self._route, self._rules, self._ways = branched.route, branched.rules, tuple(ways)
        self._read = tuple(encoder.codes[c].name for c in branched.route.columns)

    def fork(self, given: Mapping[str, Cell]) -> tuple[Itinerary, RejectRule]:
        """Return the chain of the branch that a case follows, and its rule."""
        leaning = 0
        if self._route.kind == "leaning":
            root, encoded = self.stages[0], [0.0] * self.n_encoded
            for column in root.columns:
                column.encode(given, encoded)
            leaning = root.outcome(encoded, self.errors_of(given))[1]
        branch = self._route.branch_of([given[name] for name in self._read], leaning)
        return self._ways[branch], self._rules[branch]

    def fingerprint(self, rule: RejectRule) -> str:
        """Return 16 digits that tell deployed classifiers apart, the same in every process."""
        ways = [way.fingerprint(each) for way, each in zip(self._ways, self._rules, strict=True)]
        return sha256(self._route.key + "".join(ways).encode()).hexdigest()[:16]
