"""JSON schema of configuration files, for editors."""

from accel_rl.experiment import catalogue
from accel_rl.experiment.configuration import ADAPTER
from accel_rl.experiment.layers import SHARE
from accel_rl.io.values import Json


def schema() -> dict[str, Json]:
    """Return the JSON schema of configuration files, with the settings of all agents and samplers.

    Numbers of steps may be shares of `training.steps`, such as "10%". Names that the command line
    gives are optional.
    """
    found = ADAPTER.json_schema()
    sections = found["$defs"]
    agents = {name: catalogue.describe_agent(name) for name in catalogue.AGENTS}
    samplers = {name: catalogue.describe_sampler(name) for name in catalogue.SAMPLERS}
    _name_options(sections["AgentConfig"], "name", agents)
    _name_options(sections["ReplayConfig"], "sampler", samplers)
    for section in sections.values():
        section.pop("required", None)
        for each in section.get("anyOf", [section]):
            each["properties"] = {
                name: _or_share(value) for name, value in each["properties"].items()
            }
    found.pop("required")
    return found


def _name_options(
    section: dict[str, Json], name: str, options: dict[str, dict[str, catalogue.Setting]]
) -> None:
    """Replace a section's `options` by one alternative for each agent or sampler."""
    own = section.pop("properties")
    del own["options"]
    section.pop("additionalProperties")
    section["anyOf"] = [
        {
            "properties": {
                **own,
                name: {"enum": sorted({each, each.replace("_", "-")})},
                **catalogue.model(each, settings).model_json_schema()["properties"],
            },
            "additionalProperties": False,
        }
        for each, settings in options.items()
    ]


def _or_share(value: dict[str, Json]) -> dict[str, Json]:
    """Allow a share of the steps in place of a number."""
    if value.get("type") not in ("integer", "number"):
        return value
    kind = {"type": value.pop("type")}
    return {**value, "anyOf": [kind, {"type": "string", "pattern": f"^{SHARE.pattern}$"}]}
