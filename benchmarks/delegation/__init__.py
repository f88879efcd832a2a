"""How well a learner of rules does in a seeded, made-up world of agents and people who answer."""
