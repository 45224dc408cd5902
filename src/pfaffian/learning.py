"""Machines for reinforcement learning; needs the package gymnasium.

vector_environment        many machines of one kind, as Gymnasium's vector environments
"""

from pfaffian.simulate.environment import vector_environment as vector_environment
