"""The sums of all accounts; together they are always zero."""

from collections import Counter
from typing import Iterable

from ledger.bookings import Booking


def balances(bookings: Iterable[Booking]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for booking in bookings:
        sums[booking.source] -= booking.cents
        sums[booking.target] += booking.cents
    return sums
