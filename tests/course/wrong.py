"""What is typically answered wrong: the check must give its hint to it. By exercise, as in desk/course/exercises.py."""

from collections.abc import Mapping
from typing import Any

WRONG: Mapping[str, Any] = {
    "0.1": (3, 3),
    "0.2": "red",
    "1.1": "resolver",
    "1.2": True,
    "2.1": 1,
    "2.2": 1,
    "3.1": 4,
    "3.2": 2,
    "4.1": 2,
    "5.1": 4,
    "5.2": "view",
    "6.1": 4,
    "6.2": 2,
    "7.1": 3,
    "7.2": 1,
    "8.1": 2,
    "8.2": "customer",
    "9.1": False,
    "9.2": 2,
    "10.1": "second",
    "11.1": 2,
    "11.2": 3,
    "12.1": "views",
    "13.1": "parcels",
    "14.1": (2, 1),
    "14.2": [(2, 1), (1, 1), (2, 2), (1, 1)],
    "14.3": False,
    "15.1": "t-4",
    "15.2": (True, False),
}
