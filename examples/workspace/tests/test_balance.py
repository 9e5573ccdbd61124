from ledger.balance import balances
from ledger.bookings import Booking


def test_sums_are_zero_together():
    assert sum(balances([Booking("cash", "rent", 70000)]).values()) == 0
