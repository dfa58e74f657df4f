"""Print the table of docs/rested-arms.md: the mean regret on rested arms and on one restless environment."""

import dynabandit as db

POLICIES = [
    "raw-ucb",
    "fewa",
    "w-swa",
    "r-ed-ucb",
    db.policy("r-ed-ucb", sigma=0.01),
    "aff-ots",
    "aff-dts2",
    "ucb",
    "sw-ucb",
]
ENVIRONMENTS = ("rested-rotting", "rested-drops", "rested-rising", "rotting")
ARMS, HORIZON, REPLICATIONS, SEED = 10, 10_000, 200, 1


def main() -> None:
    columns = {}
    for name in ENVIRONMENTS:
        environment = db.environment(name, arms=ARMS)
        columns[name] = db.compare(
            POLICIES, environment, horizon=HORIZON, replications=REPLICATIONS, seed=SEED, times=1
        )
        print(name, {label: round(float(run.total_regret.mean())) for label, run in columns[name].items()}, flush=True)
    print("| policy | " + " | ".join(f"`{name}`" for name in ENVIRONMENTS) + " |")
    print("|---|" + "--:|" * len(ENVIRONMENTS))
    for label in columns["rotting"]:
        cells = []
        for runs in columns.values():
            regret = runs[label].total_regret
            cells.append(f"{regret.mean():.0f} ± {1.96 * regret.std(ddof=1) / len(regret) ** 0.5:.0f}")
        print(f"| `{label}` | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
