"""Compute the roads of the delivery desk: every leg between its 61 places, from centreline files or an OSRM router.

    python data/build_roads.py centrelines --vicmap vicmap-roads.csv --arterials dtp-arterials.json
    python data/build_roads.py osrm --router https://router.example.org

Reads `delivery/places.json`; writes `delivery/legs.json` (metres and seconds) and `delivery/roads.json` (shapes).
Needs the `roads` extra of this package. `data/README.md` says where the inputs come from and what the result lacks.
"""

import argparse
import csv
import json
import math
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import pyproj
import shapely

from desk.delivery import polyline

FOLDER = Path(__file__).parent / "delivery"
GRID = "EPSG:28355"  # GDA94 / MGA zone 55: metres, for snapping and for simplifying
TOLERANCE = 4.0  # metres a simplified shape may leave its road
REACH = 40.0  # metres over which the ends of the two datasets are joined by a straight line
COVERED = 30.0  # an arterial this close to a Vicmap line is the same road
WINDOW = (144.895, -37.850, 145.010, -37.778)  # degrees; arterials outside it cannot matter to any leg
PATHS = {"11", "12"}  # Vicmap classes for walking and cycling tracks
KMH = {"0": 60, "1": 30, "2": 28, "3": 24, "4": 20, "5": 16, "6": 12}  # assumed, stops at lights included
ARTERIAL_KMH = 28
NOT_FOR_VANS = ("CITYLINK", "FREEWAY", "TUNNEL", "RAMP")

Point = tuple[float, float]  # (lon, lat) degrees

_to_grid = pyproj.Transformer.from_crs("EPSG:4326", GRID, always_xy=True)
_from_grid = pyproj.Transformer.from_crs(GRID, "EPSG:4326", always_xy=True)
_globe = pyproj.Geod(ellps="GRS80")


class RoadsError(Exception):
    """Roads that cannot be computed. Its text is one sentence a person can act on."""


@dataclass(frozen=True)
class Street:
    """One centreline: its name, its points in degrees, whether both ways may be driven, assumed km/h."""

    name: str
    path: tuple[Point, ...]
    both_ways: bool
    kmh: float


@dataclass(frozen=True)
class Leg:
    """The road from one place to another: metres, seconds, points in degrees."""

    metres: float
    seconds: float
    path: tuple[Point, ...]


def read_vicmap(file: Path) -> list[Street]:
    """Drivable centrelines of a Vicmap Transport extract (CSV with WKT)."""
    with file.open(newline="", encoding="utf-8") as rows:
        return [
            Street(
                name=row["EZI_RDNAME"].title(),
                path=tuple(shapely.from_wkt(row["WKT"]).coords),
                both_ways=row["DIR_CODE"] == "B",
                kmh=KMH[row["CLASS_CODE"]],
            )
            for row in csv.DictReader(rows)
            if row["CLASS_CODE"] not in PATHS and row["FTYPE_CODE"] != "foot_bridge"
        ]


def read_arterials(file: Path) -> list[Street]:
    """Main roads of a traffic volume file (`r` name, `c` points) inside the window, freeways left out."""
    west, south, east, north = WINDOW
    return [
        Street(row["r"].title(), tuple(map(tuple, row["c"])), both_ways=True, kmh=ARTERIAL_KMH)
        for row in json.loads(file.read_text(encoding="utf-8"))
        if not any(word in row["r"] for word in NOT_FOR_VANS)
        and all(west < lon < east and south < lat < north for lon, lat in row["c"])
    ]


def flat(path: Iterable[Point]) -> shapely.LineString | shapely.Point:
    """A path in degrees as a shape on the metre grid."""
    xy = list(zip(*_to_grid.transform(*zip(*path, strict=True)), strict=True))
    return shapely.LineString(xy) if len(xy) > 1 else shapely.Point(xy[0])


def length(path: Iterable[Point]) -> float:
    """Metres along a path in degrees, on the ellipsoid."""
    return _globe.line_length(*zip(*path, strict=True))


def add_street(graph: nx.DiGraph, street: Street) -> None:
    """Its edges, one for each way it may be driven. Nodes are the end points in degrees."""
    ways = [street.path, street.path[::-1]] if street.both_ways else [street.path]
    for path in ways:
        metres = length(path)
        seconds = metres / street.kmh * 3.6
        known = graph.get_edge_data(path[0], path[-1])
        if path[0] != path[-1] and (known is None or seconds < known["seconds"]):
            graph.add_edge(path[0], path[-1], metres=metres, seconds=seconds, path=path, kmh=street.kmh)


def road_graph(vicmap: list[Street], arterials: list[Street]) -> nx.DiGraph:
    """Both datasets as one network: arterials Vicmap already has are left out, ends in reach are joined.

    Returns its largest part in which every node reaches every other.
    """
    known = shapely.STRtree([flat(s.path) for s in vicmap])
    extra = [
        s
        for s in arterials
        if not len(
            known.query(flat(s.path).interpolate(0.5, normalized=True), predicate="dwithin", distance=COVERED)
        )
    ]
    graph = nx.DiGraph()
    for street in (*vicmap, *extra):
        add_street(graph, street)
    nodes = list(graph)
    points = [flat([node]) for node in nodes]
    near = shapely.STRtree(points)
    for end in sorted({node for s in extra for node in (s.path[0], s.path[-1])}):
        for i in near.query(flat([end]), predicate="dwithin", distance=REACH):
            if nodes[i] != end:
                add_street(graph, Street("", (end, nodes[i]), both_ways=True, kmh=ARTERIAL_KMH))
    return graph.subgraph(max(nx.strongly_connected_components(graph), key=len)).copy()


def place_on(graph: nx.DiGraph, at: Point) -> None:
    """Join a place to the nearest point of the nearest street, splitting that street there, both ways if it has both."""
    edges = list(graph.edges(data=True))
    lines = [flat(data["path"]) for _, _, data in edges]
    here = flat([at])
    nearest = min(range(len(lines)), key=lambda i: lines[i].distance(here))
    a, b, _ = edges[nearest]
    along = lines[nearest].project(here)
    joint = _from_grid.transform(*lines[nearest].interpolate(along).coords[0])
    for start, end in ((a, b), (b, a)):
        data = graph.get_edge_data(start, end)
        if data is None or flat(data["path"]).distance(here) > lines[nearest].distance(here) + 0.5:
            continue
        line, path = flat(data["path"]), data["path"]
        cut = line.project(here)
        before = [p for p in path if line.project(flat([p])) < cut]
        after = [p for p in path if line.project(flat([p])) > cut]
        add_street(graph, Street("", (*before, joint), both_ways=False, kmh=data["kmh"]))
        add_street(graph, Street("", (joint, *after), both_ways=False, kmh=data["kmh"]))
    add_street(graph, Street("", (at, joint), both_ways=True, kmh=KMH["5"]))


def legs_from_centrelines(
    places: dict[str, Point], vicmap: Path, arterials: Path
) -> Iterator[tuple[str, str, Leg]]:
    """The fastest way between every two places. Raises RoadsError where there is none."""
    graph = road_graph(read_vicmap(vicmap), read_arterials(arterials))
    for at in places.values():
        place_on(graph, at)
    for a, start in places.items():
        found = nx.single_source_dijkstra_path(graph, start, weight="seconds")
        for b, end in places.items():
            if a == b:
                continue
            if end not in found:
                raise RoadsError(f"No road leads from {a} to {b}: move one of them in places.json.")
            edges = [graph.edges[pair] for pair in nx.utils.pairwise(found[end])]
            path = [edges[0]["path"][0]] + [p for e in edges for p in e["path"][1:]]
            yield a, b, Leg(sum(e["metres"] for e in edges), sum(e["seconds"] for e in edges), tuple(path))


def legs_from_router(
    places: dict[str, Point], router: str, answers: Path, pause: float = 1.0
) -> Iterator[tuple[str, str, Leg]]:
    """What an OSRM router answers for every two places, one request in `pause` seconds.

    Each answer is a line of the file `answers`, so that a run that was stopped goes on where it was. A place that was
    moved since is asked for again.
    Raises RoadsError when the router refuses or knows no way.
    """
    have: dict[tuple[str, str], dict[str, Any]] = {}
    if answers.exists():
        for line in answers.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue  # the line a stopped run was writing
            ends = [list(places.get(row[end], ())) for end in ("from", "to")]
            if row.get("ends") == ends:
                have[row["from"], row["to"]] = row
    with answers.open("a", encoding="utf-8") as out:
        if answers.stat().st_size:
            out.write("\n")
        for a, b in ((a, b) for a in places for b in places if a != b):
            if (a, b) not in have:
                time.sleep(pause)
                ends = [places[a], places[b]]
                have[a, b] = {"from": a, "to": b, "ends": ends, **ask_router(router, *ends)}
                out.write(json.dumps(have[a, b]) + "\n")
                out.flush()
            row = have[a, b]
            yield a, b, Leg(row["metres"], row["seconds"], tuple(map(tuple, row["path"])))


def ask_router(router: str, a: Point, b: Point) -> dict[str, Any]:
    """One route of an OSRM router: metres, seconds, path."""
    pair = ";".join(f"{lon},{lat}" for lon, lat in (a, b))
    url = f"{router.rstrip('/')}/route/v1/driving/{pair}?overview=full&geometries=geojson"
    request = urllib.request.Request(url, headers={"User-Agent": "laser-desk build_roads"})
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            route = json.load(reply)["routes"][0]
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise RoadsError(
            f"The router did not answer with a route ({error}): run again to go on from here."
        ) from error
    return {
        "metres": route["distance"],
        "seconds": route["duration"],
        "path": route["geometry"]["coordinates"],
    }


def simplified(path: tuple[Point, ...]) -> list[Point]:
    """Douglas-Peucker on the metre grid."""
    line = flat(path).simplify(TOLERANCE)
    return list(zip(*_from_grid.transform(*line.coords.xy), strict=True))


def write(legs: Iterable[tuple[str, str, Leg]], places: dict[str, Point], source: str, folder: Path) -> None:
    """The two files. Rows and columns are the places in their order; a place to itself is 0 and an empty shape."""
    names = list(places)
    at = {name: i for i, name in enumerate(names)}
    metres = [[0.0] * len(names) for _ in names]
    seconds = [[0] * len(names) for _ in names]
    shapes = [[""] * len(names) for _ in names]
    for a, b, leg in legs:
        i, j = at[a], at[b]
        metres[i][j] = math.ceil(leg.metres * 10) / 10
        seconds[i][j] = round(leg.seconds)
        shapes[i][j] = polyline.encode(simplified(leg.path))
    small = {"source": source, "places": names, "metres": metres, "seconds": seconds}
    large = {"source": source, "places": names, "shapes": shapes}
    for name, content in (("legs.json", small), ("roads.json", large)):
        text = json.dumps(content, separators=(",", ":")).replace("],[", "],\n[")
        (folder / name).write_text(text + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where places.json is and the results go")
    ways = parser.add_subparsers(dest="way", required=True)
    lines = ways.add_parser("centrelines", help="compute the legs from two centreline files")
    lines.add_argument("--vicmap", type=Path, required=True, help="Vicmap Transport roads, CSV with WKT")
    lines.add_argument("--arterials", type=Path, required=True, help="traffic volume segments, JSON")
    router = ways.add_parser("osrm", help="ask an OSRM router for each leg")
    router.add_argument("--router", required=True, help="its address, such as http://127.0.0.1:5000")
    router.add_argument("--pause", type=float, default=1.0, help="seconds between two requests")
    given = parser.parse_args(arguments)
    stored = json.loads((given.folder / "places.json").read_text(encoding="utf-8"))
    places = {p["id"]: (p["lon"], p["lat"]) for p in stored}
    try:
        if given.way == "centrelines":
            source = "© State of Victoria (Department of Transport and Planning), CC BY 4.0, modified"
            legs = legs_from_centrelines(places, given.vicmap, given.arterials)
        else:
            source = "© OpenStreetMap contributors, ODbL; routes by OSRM"
            legs = legs_from_router(places, given.router, given.folder / "osrm-answers.jsonl", given.pause)
        write(legs, places, source, given.folder)
    except (RoadsError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
