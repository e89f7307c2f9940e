"""Intact for Python: agents that take and undo effects, and clients that submit tasks.

Standard library only. `Agent` is described in intact_client.agent, `Client` in intact_client.client, records by which
effects happen once in intact_client.barrier.
"""

from .agent import Agent, Handler
from .client import Client
from .errors import AnotherInstallation, Busy, IntactError, Problem, StepError, TooLate, Unreachable, WaitTimeout
from .request import Request
from .retry import Again, Retry

__version__ = "0.1.0"
__all__ = ["Again", "Agent", "AnotherInstallation", "Busy", "Client", "Handler", "IntactError", "Problem", "Request", "Retry",
           "StepError", "TooLate", "Unreachable", "WaitTimeout", "__version__"]
