"""Run the benchmark GPCNeT and print its own table with the congestion impact factors."""

import silvan
from silvan.comparing.gpcnet import measure

if __name__ == "__main__":
    print(measure(silvan.Scenario.from_file("gpcnet.toml")))
