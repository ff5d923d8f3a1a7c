"""A seeded random walk over the real program in a pseudo-terminal, against servers that misbehave.

    python -m tests.soak --seed 17                  one episode of 60 actions, told as it goes
    python -m tests.soak --episodes 200 --workers 2
    python -m tests.soak --turns 1500               one long session

An episode is a function of its seed: which keys are typed, and what the servers answer to their n-th
request. Only the moments at which keys and answers meet differ between two runs. A failure names its seed,
the last actions and the journal, which holds every keystroke and every fault.
"""
