"""`accel-rl train`: training of agents in environments, and of tabular rules on logs."""

from typing import Any

import typer
import typer.core

from accel_rl.cli import console, train_agent, train_log
from accel_rl.cli.arguments import names_file

_LOG = "log"


class _AgentsOrLog(typer.core.TyperGroup):
    """Command group by names of agents; any other first word is an argument of `log`.

    An agent of the user's own is MODULE:NAME, with the environment after it.
    """

    def resolve_command(self, ctx: object, args: list[str]) -> Any:
        """Resolve to the agent's command, in either spelling of its name, or to `log`."""
        name = args[0].replace("_", "-")
        if name in self.commands:
            return name, self.commands[name], args[1:]
        if _is_agents(args) and ":" in args[0]:
            own = typer.Typer()
            own.command(args[0], cls=train_agent.AgentCommand)(train_agent.command(args[0]))
            return args[0], typer.main.get_command(own), args[1:]
        if _is_agents(args):
            raise train_agent.no_agent(args[0])
        return _LOG, self.commands[_LOG], args


def _is_agents(words: list[str]) -> bool:
    """Return whether the first word must be an agent's name, as an environment follows it."""
    first, *rest = words
    if first.startswith("-") or names_file(first):
        return False
    return bool(rest) and not rest[0].startswith("-")


app = typer.Typer(
    cls=_AgentsOrLog,
    # Options may come before the log's name, as in other commands.
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    subcommand_metavar="AGENT ENV [section.name=value]... | ENV|DATASET.npz",
    epilog=console.examples(
        "accel-rl train dqn CartPole-v1 --replay amper-fr --seeds 16",
        "accel-rl train sac Pendulum-v1 --steps 20000 agent.hidden=[128,128]",
        "accel-rl train sarsa FrozenLake-v1 --seeds 4 --json",
        *train_log.EXAMPLES,
    ),
)


@app.callback(invoke_without_command=True)
def train(context: typer.Context) -> None:
    """Train an agent in an environment, or a tabular rule on a log, and write the run's folder.

    `train AGENT ENV` trains an agent while it acts: `train dqn --help` says more. `train ENV` and
    `train DATASET.npz` train a tabular rule on logged experience, on emulated DPUs: `train log
    --help`.
    """
    if context.invoked_subcommand is None:
        raise typer.BadParameter("say what to train: AGENT ENV, or ENV|DATASET.npz")


for _agent in train_agent.AGENTS:
    app.command(_agent, cls=train_agent.AgentCommand, epilog=train_agent.epilog(_agent))(
        train_agent.command(_agent)
    )
app.command(_LOG, epilog=console.examples(*train_log.EXAMPLES))(train_log.train_log)
