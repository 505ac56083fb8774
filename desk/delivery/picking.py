"""Which agent gets a step: the copy that has it already, else a living one that was sent the fewest. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence


class Picker:
    """Counts and holders, folded from the log and kept up as steps are sent."""

    def __init__(self, started: Iterable[tuple[str, str, str, int]] = ()) -> None:
        """`started`: (incident, step, agent, how often), as the log has it; a step begun again was sent once."""
        self.sent: Counter[str] = Counter()
        self.holder: dict[tuple[str, str], str] = {}
        for incident, step, agent, _ in started:
            self.sent[agent] += 1
            self.holder[incident, step] = agent

    def pick(self, incident: str, step: str, agents: Sequence[str], alive: Collection[str]) -> int | None:
        """The index of the agent to send this step to; None when there is none to choose from.

        A repeat goes to the copy that has the step, so that it waits behind the original and is answered from the
        saved result. Dead copies are passed over while another lives; when all are dead, whoever replaces one
        takes the work.
        """
        if not agents:
            return None
        living = [agent for agent in agents if agent in alive] or list(agents)
        holder = self.holder.get((incident, step))
        chosen = holder if holder in living else min(living, key=lambda agent: self.sent[agent])
        if chosen != holder:
            self.sent[chosen] += 1
            self.holder[incident, step] = chosen
        return agents.index(chosen)
