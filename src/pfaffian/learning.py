"""Environments for reinforcement learning; they need the package gymnasium.

vector_environment        many copies of a machine as a vector environment of Gymnasium
"""

from pfaffian.simulate.run.environment import vector_environment as vector_environment
