"""A day's plans beside those of a solver: how far would OR-Tools drive for the same drops?"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from desk.delivery.planning.round import DEPOT, Metres, Round, length


@dataclass(frozen=True)
class Comparison:
    """Metres of the desk's rounds and of the solver's, the way back included, and the solver's rounds."""

    desk: float
    solver: float
    rounds: dict[str, tuple[str, ...]]

    @property
    def over(self) -> float:
        """How much further the desk drives, as a share of the solver's metres."""
        return self.desk / self.solver - 1 if self.solver else 0.0


_LIMIT = 60
"""Real seconds after which the solver gives what it has; so many are needed by no machine."""


def compare(rounds: Mapping[str, Round], metres: Metres, solutions: int = 200) -> Comparison:
    """The same drops, vans and fullest round given to OR-Tools, and the best of so many solutions of its local search.

    Every round is taken to start at the depot. Counted in solutions and not in seconds the search gives the same
    answer on every machine. It is good, not proven best.
    """
    from ortools.constraint_solver import pywrapcp, routing_enums_pb2

    stops = [DEPOT, *(stop for r in rounds.values() for stop in r.drops)]
    vans = sorted(rounds)
    desk = sum(length(DEPOT, rounds[van].drops, metres) for van in vans)
    table = [[math.ceil(metres(a, b)) for b in stops] for a in stops]
    manager = pywrapcp.RoutingIndexManager(len(stops), len(vans), 0)
    model = pywrapcp.RoutingModel(manager)
    way = model.RegisterTransitMatrix(table)
    model.SetArcCostEvaluatorOfAllVehicles(way)
    one = model.RegisterUnaryTransitVector([0] + [1] * (len(stops) - 1))
    fullest = max((len(r.drops) for r in rounds.values()), default=0)
    model.AddDimension(one, 0, fullest, True, "drops")
    search = pywrapcp.DefaultRoutingSearchParameters()
    search.first_solution_strategy = routing_enums_pb2.FirstSolutionStrategy.PARALLEL_CHEAPEST_INSERTION
    search.local_search_metaheuristic = routing_enums_pb2.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
    search.solution_limit = solutions
    search.time_limit.seconds = _LIMIT
    answer = model.SolveWithParameters(search)
    found = {}
    for number, van in enumerate(vans):
        index, order = answer.Value(model.NextVar(model.Start(number))), []
        while not model.IsEnd(index):
            order.append(stops[manager.IndexToNode(index)])
            index = answer.Value(model.NextVar(index))
        found[van] = tuple(order)
    return Comparison(desk, sum(length(DEPOT, order, metres) for order in found.values()), found)
