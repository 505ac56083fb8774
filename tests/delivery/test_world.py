"""The delivery desk's places and roads, and the script that computes them."""

import importlib.util
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise, permutations
from pathlib import Path
from typing import ClassVar

import pytest

from desk.delivery import polyline
from desk.delivery.roads import DATA, DEPOT, Roads, load_legs, load_places, straight_metres

PLACES = load_places()
LEGS = load_legs()
ROADS = Roads()
PAIRS = list(permutations(PLACES, 2))


@pytest.fixture(scope="module")
def build_roads():
    spec = importlib.util.spec_from_file_location("build_roads", DATA.parent / "build_roads.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_depot_and_sixty_customers():
    depot, *stops = PLACES.values()
    assert (depot.id, depot.suburb) == (DEPOT, "West Melbourne")
    assert len(stops) == 60
    for distinct in ("id", "customer", "name"):
        assert len({getattr(stop, distinct) for stop in stops}) == 60
    assert len({(stop.lon, stop.lat) for stop in stops}) == 60


def test_every_place_reaches_every_other_and_no_leg_beats_the_straight_line():
    assert LEGS.places == tuple(PLACES)
    assert len(PAIRS) == 3660
    for a, b in PAIRS:
        assert LEGS.metres(a, b) >= straight_metres(PLACES[a], PLACES[b]) * 0.999
        assert LEGS.seconds(a, b) > 0
    assert all(LEGS.metres(place, place) == 0 for place in PLACES)


def test_there_and_back_are_different_roads():
    differ = [abs(LEGS.metres(a, b) - LEGS.metres(b, a)) > 100 for a, b in PAIRS]
    assert sum(differ) > len(PAIRS) / 10


def test_what_routing_loads_is_small():
    assert (DATA / "legs.json").stat().st_size < 60_000


def test_every_leg_has_a_shape_from_end_to_end_of_the_right_length():
    for a, b in PAIRS:
        path = ROADS.path(a, b)
        for end, place in ((path[0], PLACES[a]), (path[-1], PLACES[b])):
            assert end == pytest.approx((place.lon, place.lat), abs=2e-5)
    for a, b in PAIRS[::37]:
        steps = [
            straight_metres(*(type(PLACES[a])("", "", "", "", "", *point) for point in pair))
            for pair in pairwise(ROADS.path(a, b))
        ]
        assert sum(steps) == pytest.approx(LEGS.metres(a, b), rel=0.03, abs=10)


def test_a_van_moves_along_the_shape():
    a, b = DEPOT, "s-60"
    assert ROADS.point(a, b, 0) == pytest.approx(ROADS.path(a, b)[0])
    assert ROADS.point(a, b, 1) == pytest.approx(ROADS.path(a, b)[-1])
    west, south = ROADS.point(a, b, 0.5)
    assert 144.9 < west < 145.02 and -37.86 < south < -37.77


def test_polylines_survive_the_trip():
    known = [(-120.2, 38.5), (-120.95, 40.7), (-126.453, 43.252)]
    assert polyline.encode(known) == "_p~iF~ps|U_ulLnnqC_mqNvxq`@"
    assert polyline.decode(polyline.encode(known)) == known


def test_every_place_is_on_a_street_and_the_streets_are_attributed():
    assert "State of Victoria" in ROADS.attribution and "CC BY 4.0" in ROADS.attribution
    assert all(place.street and place.suburb for place in PLACES.values())


def write_streets(folder: Path) -> list[str]:
    """A one-way street east, a two-way loop back, and a main road that ends 20 m from the loop."""
    street = "LINESTRING (144.950 -37.810, 144.955 -37.810)"
    back = "LINESTRING (144.955 -37.810, 144.955 -37.812, 144.950 -37.812, 144.950 -37.810)"
    header = "WKT,EZI_RDNAME,DIR_CODE,CLASS_CODE,FTYPE_CODE"
    rows = [f'"{street}",ONE WAY STREET,F,5,road', f'"{back}",BACK STREET,B,3,road']
    rows.append('"LINESTRING (144.950 -37.810, 144.951 -37.811)",TRACK,B,11,road')
    (folder / "vicmap.csv").write_text("\n".join([header, *rows]))
    main = [{"r": "MAIN ROAD", "v": 1, "h": 1, "c": [[144.9552, -37.810], [144.960, -37.810]]}]
    (folder / "arterials.json").write_text(json.dumps(main))
    return ["--vicmap", str(folder / "vicmap.csv"), "--arterials", str(folder / "arterials.json")]


def write_places(folder: Path, **places: tuple[float, float]) -> None:
    rows = [{"id": name, "lon": lon, "lat": lat} for name, (lon, lat) in places.items()]
    (folder / "places.json").write_text(json.dumps(rows))


def test_the_script_obeys_one_way_streets_and_joins_the_two_sources(tmp_path, build_roads):
    write_places(tmp_path, a=(144.951, -37.81), b=(144.954, -37.81), c=(144.960, -37.81))
    assert build_roads.main(["--folder", str(tmp_path), "centrelines", *write_streets(tmp_path)]) == 0
    legs = json.loads((tmp_path / "legs.json").read_text())
    there, back = legs["metres"][0][1], legs["metres"][1][0]
    assert there == pytest.approx(264, abs=2)
    assert back == pytest.approx(2 * 440 + 2 * 222 - 264, abs=5)
    assert legs["metres"][1][2] == pytest.approx(528, abs=5)


def test_the_script_says_which_place_cannot_be_reached(tmp_path, build_roads, capsys):
    write_places(tmp_path, a=(144.951, -37.81), b=(144.954, -37.81))
    wrong = ["--vicmap", str(tmp_path / "none.csv"), "--arterials", str(tmp_path / "none.json")]
    assert build_roads.main(["--folder", str(tmp_path), "centrelines", *wrong]) == 1
    assert "none.csv" in capsys.readouterr().err


@pytest.fixture
def router():
    """An OSRM router that answers `budget` requests and then refuses."""

    class Router(BaseHTTPRequestHandler):
        asked: ClassVar[list[str]] = []
        budget = 1_000

        def do_GET(self):
            self.asked.append(self.path)
            if len(self.asked) > type(self).budget:
                self.send_error(429)
                return
            ends = self.path.split("/driving/")[1].split("?")[0].split(";")
            path = [[float(x) for x in end.split(",")] for end in ends]
            route = {"distance": 1000.04, "duration": 61.2, "geometry": {"coordinates": path}}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"routes": [route]}).encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Router)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield Router, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_asking_a_router_goes_on_where_it_stopped(tmp_path, build_roads, router, capsys):
    handler, address = router
    write_places(tmp_path, a=(144.951, -37.81), b=(144.954, -37.81), c=(144.96, -37.81))
    run = ["--folder", str(tmp_path), "osrm", "--router", address, "--pause", "0"]
    handler.budget = 4
    assert build_roads.main(run) == 1
    assert "run again" in capsys.readouterr().err
    with (tmp_path / "osrm-answers.jsonl").open("a") as answers:
        answers.write('{"from": "half a li')
    handler.budget = 1_000
    assert build_roads.main(run) == 0
    assert len(handler.asked) == 4 + 1 + 2
    legs = json.loads((tmp_path / "legs.json").read_text())
    assert legs["metres"][0] == [0.0, 1000.1, 1000.1] and legs["seconds"][1][0] == 61
    assert "OpenStreetMap" in legs["source"]
    write_places(tmp_path, a=(144.951, -37.81), b=(144.954, -37.81), c=(144.97, -37.81))
    assert build_roads.main(run) == 0
    assert len(handler.asked) == 7 + 4 and all("144.97" in asked for asked in handler.asked[7:])
