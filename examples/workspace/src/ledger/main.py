"""Reads a list of bookings and prints the balance of each account."""

import sys

from ledger.balance import balances
from ledger.bookings import read_bookings


def main(path: str) -> None:
    for account, amount in sorted(balances(read_bookings(path)).items()):
        print(f"{account:20} {amount / 100:10.2f}")


if __name__ == "__main__":
    main(sys.argv[1])
