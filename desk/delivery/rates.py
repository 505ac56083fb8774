"""What the carrier charges, in dollars: made up, like the carrier. Amounts are integer cents."""

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal


@dataclass(frozen=True)
class Rates:
    """Dollars for each drop, each failed drop and each kilometre."""

    drop: Decimal = Decimal("6.40")
    failed: Decimal = Decimal("2.75")
    km: Decimal = Decimal("1.15")

    def cents(self, what: str, quantity: Decimal) -> int:
        """The price of so many drops, failed drops or kilometres, rounded half up to a cent."""
        exact = getattr(self, what) * quantity * 100
        return int(exact.quantize(Decimal(1), ROUND_HALF_UP))


def kilometres(metres: float) -> Decimal:
    """Metres as the carrier bills them: kilometres with one decimal, rounded half up."""
    return (Decimal(str(metres)) / 1000).quantize(Decimal("0.1"), ROUND_HALF_UP)


def dollars(cents: int) -> str:
    """1234 as "$12.34", -50 as "-$0.50"."""
    return f"{'-' if cents < 0 else ''}${abs(cents) // 100}.{abs(cents) % 100:02}"
