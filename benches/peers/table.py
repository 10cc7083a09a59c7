"""The figures as Markdown."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from install import Peer
from measure import Figures

COLUMNS = [
    ("grants/s", lambda row: f"{row.grants_per_s:,.0f}"),
    ("scripts / grant", lambda row: number(row.scripts_per_grant)),
    ("Redis us / grant: scripts, all", lambda row: f"{row.script_us_per_grant:,.0f}, {row.server_us_per_grant:,.0f}"),
    ("client us / grant", lambda row: f"{row.client_us_per_grant:,.0f}"),
    ("hand-off ms p50 / p99 / max", lambda row: joined(row.handoff_p50, row.handoff_p99, row.handoff_max)),
    ("overtaken", lambda row: f"{row.overtaken_percent:.1f} %"),
    ("wait ms p50 / max", lambda row: joined(row.wait_p50, row.wait_max)),
    ("most at once", lambda row: str(row.most_at_once)),
]


def number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def joined(*times: Optional[float]) -> str:
    return " / ".join("-" if time is None else number(time) for time in times)


def markdown(head: dict[str, str], results: Sequence[tuple[Any, Sequence[tuple[Peer, Union[Figures, str]]]]]) -> str:
    parts = [f"Redis {head['redis']}, {head['machine']}, {head['date']}: `{head['command']}`"]
    for workload, found in results:
        parts.append(
            f"Limit {workload.limit}, {workload.waiters:,} waiters in {workload.processes} processes, "
            f"{workload.hold_ms} ms hold, {workload.grants:,} grants"
            f" (at best {1000 * workload.limit // workload.hold_ms:,}/s):"
        )
        parts.append(table(found))
    parts.append(notes([peer for peer, _ in results[0][1]] if results else []))
    return "\n\n".join(parts)


def table(found: Sequence[tuple[Peer, Union[Figures, str]]]) -> str:
    lines = ["| | " + " | ".join(name for name, _ in COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for peer, row in found:
        if isinstance(row, str):
            lines.append(f"| {peer.what} | not measured: {row} " + "|" * len(COLUMNS))
            continue
        name = peer.what if row.grants == row.asked else f"{peer.what} ({row.grants:,} of {row.asked:,} granted)"
        lines.append(f"| {name} | " + " | ".join(show(row) for _, show in COLUMNS) + " |")
    return "\n".join(lines)


def notes(peers: Sequence[Peer]) -> str:
    return "\n".join(f"- {peer.what}: {peer.notes}." for peer in peers)
