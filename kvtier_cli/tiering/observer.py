"""What one may hear of the manager's decisions. Explanations, logs and displays are observers; no observer, no cost."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from kvtier_cli.tiering.filters import TierFilter
from kvtier_cli.tiering.model import BlockKey, JobResult, LookupResult, TransferJob, Verdict


class Observer:
    """Override what you want to hear; every call comes after the decision has taken effect.

    Tiers are named; a request is known by its id. The sequences handed over are the manager's own: read them at
    once, keep copies, change nothing.
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


class ObserverGroup(Observer):
    """Several observers, each told in turn."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)
        for name in vars(Observer):
            if name.startswith("on_"):
                setattr(self, name, self._teller(name))

    def _teller(self, name: str):  # type: ignore[no-untyped-def]
        heard = [
            getattr(observer, name)
            for observer in self._observers
            if getattr(type(observer), name) is not getattr(Observer, name)
        ]

        def tell(*args: object, **kwargs: object) -> None:
            for hear in heard:
                hear(*args, **kwargs)

        return tell
