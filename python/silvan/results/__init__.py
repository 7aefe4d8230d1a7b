"""Results of runs: tables, measures, receive rates, traces, analyses of single kinds of traffic."""
