"""Recently shown items of users: one window per user on a Redis server with petal's module."""

from __future__ import annotations

from collections.abc import Sequence

import redis


class Shown:
    """Remembers which items were shown to which user within the last `window_s` seconds.

    `capacity` is the number of items that are shown to a user in that time. A share of at most `fpr` of the items
    that were not shown is withheld; a shown item is never offered again within the window.
    """

    def __init__(self, client: redis.Redis, capacity: int, fpr: float = 0.01, window_s: float = 7 * 86400) -> None:
        self.client, self.window_ms = client, int(window_s * 1000)
        self.create = (fpr, capacity, "WINDOW", f"{self.window_ms}ms", "ITEMS")

    def unseen(self, user: int | str, candidates: Sequence[str]) -> list[str]:
        """Returns the candidates that were not shown, in their order. A user without a window has seen nothing."""
        if not candidates:
            return []
        seen = self.client.execute_command("BF.MEXISTS", f"shown:{user}", *candidates)
        return [item for item, was_shown in zip(candidates, seen, strict=True) if not was_shown]

    def mark(self, user: int | str, items: Sequence[str]) -> list[str]:
        """Remembers items as shown. Returns those that no other request has marked since `unseen`.

        The key of the user expires when all its items have expired.
        """
        if not items:
            return []
        key = f"shown:{user}"
        both = self.client.pipeline(transaction=False)
        both.execute_command("PETAL.SEENCREATE", key, *self.create, *items)
        both.pexpire(key, self.window_ms)
        seen = both.execute()[0]
        return [item for item, was_shown in zip(items, seen, strict=True) if not was_shown]

    def recommend(self, user: int | str, candidates: Sequence[str], slots: int) -> list[str]:
        """Returns the first candidates that may be shown, at most `slots`, and marks them as shown."""
        return self.mark(user, self.unseen(user, candidates)[:slots])
