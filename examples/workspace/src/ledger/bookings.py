"""A booking moves an amount, in cents, from one account to another."""

import csv
from typing import Iterator, NamedTuple


class Booking(NamedTuple):
    source: str
    target: str
    cents: int


def read_bookings(path: str) -> Iterator[Booking]:
    with open(path, newline="") as file:
        for source, target, cents in csv.reader(file):
            yield Booking(source, target, int(cents))
