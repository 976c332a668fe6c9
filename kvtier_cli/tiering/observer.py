"""What one may hear of the manager's decisions. Explanations, logs and displays are observers; no observer, no cost."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from kvtier_cli.tiering.filters import TierFilter
from kvtier_cli.tiering.jobs import JobResult, TransferJob
from kvtier_cli.tiering.model import BlockKey, LookupResult, Verdict


class Observer:
    """Override what you want to hear; every call comes after the decision has taken effect.

    Only what is overridden is called, and costs: a manager that nobody asks for single lookups still promotes runs of
    blocks at once, with the same decisions. Tiers are named (the primary `cpu`); a request is known by its id. The
    sequences handed over are the manager's own: read them at once, keep copies, change nothing.
    """

    def on_request(self, req_id: Hashable, load_filter: TierFilter) -> None:
        """A request has arrived."""

    def on_lookup(
        self,
        req_id: Hashable,
        key: BlockKey,
        result: LookupResult,
        verdicts: Sequence[Verdict],
        *,
        promotion: str | None,
        denied: str | None,
        evicted: Sequence[BlockKey],
    ) -> None:
        """One block was looked up. `verdicts` has one entry a secondary tier; `promotion` names the tier from which
        a promotion was started, `denied` the tier that hit while the primary could give no slot, `evicted` what the
        promotion evicted."""

    def on_promoted(self, req_id: Hashable, tier: str, keys: Sequence[BlockKey]) -> None:
        """Promotions of `keys` from `tier` were started; they wait for the step's end."""

    def on_evicted(self, req_id: Hashable, tier: str, keys: Sequence[BlockKey]) -> None:
        """`keys` were evicted from `tier` to make room for blocks of the request. A tier of one's own is heard only
        if it calls its `tell_evicted`."""

    def on_stored(self, req_id: Hashable, keys: Sequence[BlockKey], evicted: Sequence[BlockKey]) -> None:
        """A store took slots for `keys` and evicted `evicted` for it."""

    def on_refused(self, req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        """A store of `keys`, all of them absent, was refused."""

    def on_loaded(self, req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        """Ready blocks are being loaded."""

    def on_job_submitted(self, job: TransferJob) -> None:
        """A promotion or a cascade is on its way."""

    def on_job_finished(self, result: JobResult) -> None:
        """A poll has reported the end of a job."""

    def on_request_finished(self, req_id: Hashable) -> None:
        """The request is finished for the primary; stores of it may still be on their way."""

    def on_tier_finished(self, tier: str, req_id: Hashable) -> None:
        """A secondary tier was told that the request is over."""

    def on_step(self) -> None:
        """A step has ended."""

    def on_reset(self) -> None:
        """The primary was emptied."""

    def hook(self, name: str) -> Callable[..., None] | None:
        """The method of that name if it is overridden, else None."""
        method: Callable[..., None] = getattr(self, name)
        return None if getattr(type(self), name) is getattr(Observer, name) else method


class ObserverGroup(Observer):
    """Several observers, each told in turn."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)

    def hook(self, name: str) -> Callable[..., None] | None:
        hooks = [hook for observer in self._observers if (hook := observer.hook(name)) is not None]
        if len(hooks) < 2:
            return hooks[0] if hooks else None

        def tell(*args: Any, **kwargs: Any) -> None:
            for hook in hooks:
                hook(*args, **kwargs)

        return tell


class Hooks:
    """An observer's overridden methods, each under its name without `on_`; None where nobody listens."""

    __slots__ = (
        "evicted",
        "job_finished",
        "job_submitted",
        "loaded",
        "lookup",
        "promoted",
        "refused",
        "request",
        "request_finished",
        "reset",
        "step",
        "stored",
        "tier_finished",
    )

    evicted: Callable[..., None] | None
    job_finished: Callable[..., None] | None
    job_submitted: Callable[..., None] | None
    loaded: Callable[..., None] | None
    lookup: Callable[..., None] | None
    promoted: Callable[..., None] | None
    refused: Callable[..., None] | None
    request: Callable[..., None] | None
    request_finished: Callable[..., None] | None
    reset: Callable[..., None] | None
    step: Callable[..., None] | None
    stored: Callable[..., None] | None
    tier_finished: Callable[..., None] | None

    def __init__(self, observer: Observer | None) -> None:
        self.listen(observer)

    def listen(self, observer: Observer | None) -> None:
        """Listen for `observer` from now on, in the place of whoever listened before."""
        for name in self.__slots__:
            setattr(self, name, None if observer is None else observer.hook(f"on_{name}"))
