"""Run the benchmark GPCNeT and print its own table with the congestion impact factors."""

import silvan
from silvan.results import gpcnet

if __name__ == "__main__":
    print(gpcnet.measure(silvan.Scenario.from_file("gpcnet.toml")))
