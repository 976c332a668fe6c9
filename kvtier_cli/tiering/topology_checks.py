"""What is odd in a topology that is otherwise right: settings under which requests give up, tiers that keep nothing."""

from __future__ import annotations

from kvtier_cli.tiering.topology import AnyTopology
from kvtier_cli.wording import shown


def topology_warnings(topology: AnyTopology) -> list[str]:
    """One line each. A replay looks a prefix up again at most `replay.max_wait_steps` times, and a tier that takes
    more (its retries, then at least one step for the promotion) is waited for in vain."""
    found = list(topology.warnings)
    limit = topology.replay.max_wait_steps
    if topology.primary.capacity == 0:
        found.append("the primary has capacity 0: it stores nothing, and nothing can be promoted into it")
    for tier in topology.tiers:
        name = shown(tier.name)
        if tier.capacity == 0:
            found.append(f"tier {name} has capacity 0: it keeps nothing")
        if tier.lookup_retry and tier.lookup_retry >= limit:
            # With as many retries as waits the last look is answered: too late for a promotion, but not for a miss.
            whose = "with a cold block" if tier.lookup_retry > limit else "that finds a block there"
            found.append(
                f"tier {name}: lookup_retry {tier.lookup_retry} is not below replay.max_wait_steps {limit}: every "
                f"request {whose} gives up"
            )
        elif (steps := tier.lookup_retry + max(tier.load_latency, 1)) > limit:
            found.append(
                f"tier {name}: a block found there takes {steps} step{'' if steps == 1 else 's'} to load, more than "
                f"replay.max_wait_steps {limit}: requests that wait for one give up"
            )
    return found
