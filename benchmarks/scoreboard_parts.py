"""Parts of the scoreboard: a training of one seed or of several."""

import dataclasses
from typing import NamedTuple

MINATAR = ("Breakout", "Asterix", "Freeway", "Seaquest", "SpaceInvaders")
# Games of the table of Rainbow's components, and steps: a fifth of the other tables', as there are
# 16 trainings of five seeds.
ABLATED, ABLATED_STEPS = ("Breakout", "Asterix"), 200_000
AGENTS = {  # of MinAtar
    "DQN": ("dqn",),
    "DQN, PER": ("dqn", "--replay", "per"),
    "DQN, AMPER-fr": ("dqn", "--replay", "amper-fr"),
    "Rainbow": ("rainbow",),
}
WITHOUT = {
    "double": "agent.double=false",
    "dueling": "agent.dueling=false",
    "C51": "agent.distributional=none",
    "noisy layers": "agent.noisy=false",
    "n-step": "replay.n_step=1",
    "PER": "replay.sampler=uniform",
}
MUJOCO = ("HalfCheetah-v5", "Hopper-v5", "Walker2d-v5")
CONTINUOUS = ("Pendulum-v1", "MountainCarContinuous-v0")
LANDER = "LunarLanderContinuous-v3"
BRAX = ("brax:ant", "brax:halfcheetah")
HOST_SEEDS = 3


@dataclasses.dataclass(frozen=True)
class Part:
    """One training; `seeds` at once, or a single one of a case whose seeds are parts."""

    family: str
    environment: str
    system: str
    command: tuple[str, ...]  # words after `accel-rl train`, or after scoreboard_sb3.py
    seed: int | None = None
    seeds: int = 1

    @property
    def name(self) -> str:
        """Name of its files."""
        words = f"{self.environment}-{self.system}".lower()
        kept = "".join(each if each.isalnum() else "-" for each in words)
        kept = "-".join(filter(None, kept.split("-")))
        return kept if self.seed is None else f"{kept}-{self.seed}"

    @property
    def rival(self) -> bool:
        """True for a training by another library."""
        return self.system.startswith("SB3")


def parts() -> list[Part]:
    """Return all parts, the quickest families first."""
    found: list[Part] = []

    def add_continuous(family: str, environment: str, seeds: int, *words: str) -> None:
        for agent in ("SAC", "TD3"):
            command = (agent.lower(), environment, "--seeds", str(seeds), *words)
            found.append(Part(family, environment, agent, command, seeds=seeds))

    def add_sb3(family: str, environment: str, agent: str, *words: str) -> None:
        for seed in range(HOST_SEEDS):
            command = (agent.lower(), environment, "--seed", str(seed), *words)
            found.append(Part(family, environment, f"SB3 {agent}", command, seed))

    for environment in CONTINUOUS:
        add_continuous("Classic control", environment, 8)
        if environment == "Pendulum-v1":
            for agent in ("SAC", "TD3"):
                add_sb3("Classic control", environment, agent, "--steps", "10000")
    add_continuous("Classic control", LANDER, 3, "--steps", "100000")
    for environment in MUJOCO:
        for agent in ("SAC", "TD3"):
            for seed in range(HOST_SEEDS):
                words = (agent.lower(), environment, "--seed", str(seed))
                found.append(Part("MuJoCo", environment, agent, words, seed))
            add_sb3("MuJoCo", environment, agent)
    for game in MINATAR:
        environment = f"{game}-MinAtar"
        for agent, words in AGENTS.items():
            name, *rest = words
            command = (name, environment, *rest, "--seeds", "5")
            found.append(Part("MinAtar", environment, agent, command, seeds=5))
    for game in ABLATED:
        environment = f"{game}-MinAtar"
        ablations = {"DQN, none of them": ("dqn",), "Rainbow, all of them": ("rainbow",)}
        for component, word in WITHOUT.items():
            ablations[f"Rainbow without {component}"] = ("rainbow", word)
        for system, (agent, *words) in ablations.items():
            command = (agent, environment, *words, "--seeds", "5", "--steps", str(ABLATED_STEPS))
            found.append(Part("Rainbow's components", environment, system, command, seeds=5))
        if game == "Breakout":
            add_sb3("Rainbow's components", environment, "DQN", "--steps", str(ABLATED_STEPS))
    for environment in BRAX:
        add_continuous("Brax", environment, 3, "--steps", "100000")
    return found


ZOO = "https://github.com/DLR-RM/rl-baselines3-zoo/blob/master/benchmark.md"
CLEANRL = "https://github.com/vwxyzjn/cleanrl/blob/master/docs/rl-algorithms/sac.md"
GYMNAX = "https://github.com/RobertTLange/gymnax/blob/main/README.md"


class Published(NamedTuple):
    """A score of others, of a page that was read; versions of environments and steps are theirs."""

    family: str
    environment: str
    agent: str
    steps: int | None  # None: the page does not say
    score: str
    source: str


def published() -> list[Published]:
    """Return published scores, by family."""
    zoo = {
        "Classic control": (
            ("Pendulum-v1", "SAC", 20_000, "-157.0"),
            ("Pendulum-v1", "TD3", 20_000, "-151.9"),
            ("MountainCarContinuous-v0", "SAC", 50_000, "94.7"),
            ("MountainCarContinuous-v0", "TD3", 300_000, "93.5"),
            ("LunarLanderContinuous-v2", "SAC", 500_000, "260.4"),
            ("LunarLanderContinuous-v2", "TD3", 300_000, "207.5"),
        ),
        "MuJoCo": (
            ("HalfCheetah-v3", "SAC", 1_000_000, "9,535"),
            ("HalfCheetah-v3", "TD3", 1_000_000, "9,656"),
            ("Hopper-v3", "SAC", 1_000_000, "2,326"),
            ("Hopper-v3", "TD3", 1_000_000, "3,606"),
            ("Walker2d-v3", "SAC", 1_000_000, "3,863"),
            ("Walker2d-v3", "TD3", 1_000_000, "4,718"),
        ),
    }
    found = [
        Published(family, environment, f"SB3 {agent}", steps, score, f"[SB3's zoo]({ZOO}), one run")
        for family, rows in zoo.items()
        for environment, agent, steps, score in rows
    ]
    source = f"[CleanRL's page]({CLEANRL}), while training"
    for environment, score in (
        ("HalfCheetah-v2", "9,635 ± 1,424"),
        ("Hopper-v2", "2,310 ± 343"),
        ("Walker2d-v2", "3,591 ± 911"),
    ):
        found.append(Published("MuJoCo", environment, "CleanRL SAC", 1_000_000, score, source))
    source = f"[gymnax's page]({GYMNAX}), one agent"
    for game, score in (
        ("Breakout", "28"),
        ("Asterix", "15"),
        ("Freeway", "58"),
        ("SpaceInvaders", "131"),
    ):
        found.append(Published("MinAtar", f"{game}-MinAtar", "PPO", None, score, source))
    return found
