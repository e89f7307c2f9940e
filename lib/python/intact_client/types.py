"""What the server answers, for type checkers. Members that come later are there at run time all the same."""

from typing import Any, Dict, List, Optional, TypedDict

__all__ = ["Attempt", "Step", "Submission", "Submitted", "SubmittedLine", "Task", "TaskPage", "TaskSummary", "Workflow"]


class _SubmissionRequired(TypedDict):
    workflow: str


class Submission(_SubmissionRequired, total=False):
    """A task to be. Give ids of your own: then it may be submitted twice, and is there once."""

    id: str
    version: int
    input: Any
    priority: int
    not_before: str
    reply_to: str
    tags: Dict[str, str]
    traceparent: str


class _SubmittedRequired(TypedDict):
    id: str
    workflow: str
    version: int


class Submitted(_SubmittedRequired, total=False):
    """A task that is there, durably. One that ended and was deleted is `deleted`; `state` and `ended_at` are what is left of
    it."""

    deleted: bool
    state: str
    ended_at: Optional[str]


class SubmittedLine(TypedDict, total=False):
    """What became of one of many: `status` as of HTTP, 201, 200 or that of the `problem`."""

    line: int
    status: int
    id: Optional[str]
    state: Optional[str]
    problem: Dict[str, Any]


class TaskSummary(TypedDict, total=False):
    """A task in a list."""

    id: str
    workflow: str
    version: int
    state: str
    direction: str
    priority: int
    failure_count: int
    locked_by: Optional[str]
    complete_by: Optional[str]
    not_before: Optional[str]
    waiting_for: Optional[str]
    submitted_at: str
    started_at: Optional[str]
    ended_at: Optional[str]
    tags: Optional[Dict[str, str]]


class Attempt(TypedDict, total=False):
    """One hand-over of a step to an agent."""

    attempt: int
    direction: str
    instance: str
    started_at: str
    ended_at: Optional[str]
    complete_by: str
    outcome: str
    effect: str
    tries: int
    output: Any
    error: Optional[Dict[str, Any]]
    heartbeat_at: Optional[str]
    progress: Any
    message: Optional[str]


class Step(TypedDict, total=False):
    """A step of a task."""

    name: str
    state: str
    agent: str
    action: str
    failure_count: int
    in_doubt: bool
    complete_by: Optional[str]
    wait_until: Optional[str]
    input: Any
    output: Any
    error: Optional[Dict[str, Any]]
    resume: Any
    attempts: List[Attempt]


class Task(TaskSummary, total=False):
    """The whole record of a task."""

    input: Any
    output: Any
    error: Optional[Dict[str, Any]]
    steps: List[Step]
    operations: List[Dict[str, Any]]


class TaskPage(TypedDict):
    """A page of a list; `next` is the cursor of the page after it."""

    tasks: List[TaskSummary]
    next: Optional[str]


class Workflow(TypedDict, total=False):
    """A version of a workflow."""

    name: str
    version: int
    definition: Dict[str, Any]
    text: str
    warnings: List[Dict[str, Any]]
