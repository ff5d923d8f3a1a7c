"""Format figures for people: tokens, shares, money, ages."""

from __future__ import annotations


def tokens(count: int) -> str:
    """Format a count of tokens: `950`, `1.2k`, `41k`, `1.05M`."""
    if count < 1000:
        return str(count)
    if count < 9_950:
        return f"{count / 1000:.1f}k"
    if count < 999_500:
        return f"{count / 1000:.0f}k"
    return f"{count / 1_000_000:.2f}M"


def rounded(count: int) -> int:
    """Round an estimate to two significant figures, which is all its precision."""
    return int(round(count, -max(0, len(str(count)) - 2)))


def window(count: int) -> str:
    """Format a context window, with one decimal if it is not zero: `8.2k`, `200k`."""
    thousands = count / 1000
    if 1000 <= count < 1_000_000:
        return f"{thousands:.1f}".rstrip("0").rstrip(".") + "k"
    return tokens(count)


def percent(share: float) -> str:
    """Format a percentage without decimals; a share between 0 and 1 is `<1 %`."""
    if 0 < share < 1:
        return "<1 %"
    return f"{share:.0f} %"


def cost(dollars: float | None) -> str:
    """Format a cost in US dollars; empty if it is unknown or zero."""
    if not dollars:
        return ""
    if dollars < 0.01:
        return "<$0.01"
    return f"${dollars:.2f}"


def dollars(amount: float) -> str:
    """Format an amount in US dollars, small ones with two significant digits: `$0.0042`, `$1.25`."""
    if 0 < amount < 0.01:
        return f"${amount:.2g}" if amount >= 0.0001 else "<$0.0001"
    return f"${amount:,.2f}"


def size(count: int) -> str:
    """Format a count of bytes: `0 B`, `812 B`, `4 KB`, `1.2 MB`, `500 MB`."""
    if count < 1_000:
        return f"{count} B"
    if count < 999_500:
        return f"{count / 1_000:.0f} KB"
    return f"{count / 1_000_000:.1f}".removesuffix(".0") + " MB"


def plural(count: int, one: str, many: str = "") -> str:
    """Format a count with its noun: `1 message`, `3 messages`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def age(seconds: float) -> str:
    """Format how long ago something was: `just now`, `5 min ago`, `3 h ago`, `12 days ago`."""
    minutes = seconds / 60
    if minutes < 1:
        return "just now"
    if minutes < 60:
        return f"{minutes:.0f} min ago"
    if minutes < 48 * 60:
        return f"{minutes / 60:.0f} h ago"
    return f"{minutes / 60 / 24:.0f} days ago"
