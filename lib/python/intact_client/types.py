"""What is sent and answered, for type checkers. Members that later servers add are there at run time all the same."""

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union

__all__ = ["Approval", "ApprovalPage", "Asked", "Attempt", "AuditEntry", "CarriedSignal", "Cause", "Decided", "Direction", "Fault",
           "Forward", "ItemPage", "Items", "KeptSignal", "Reason", "ReplyTo", "SentSignal", "SignalToSend", "Step", "StepState", "Submission", "Submitted",
           "SubmittedLine", "Task", "TaskPage", "TaskState", "TaskSummary", "Why", "Workflow", "WorkflowStored"]

# Members that need not be there stand in a class of their own, since NotRequired came with Python 3.11.

TaskState = Literal["pending", "processing", "processed", "compensating", "compensated", "error"]
StepState = Literal["waiting", "running", "completed", "failed", "skipped", "undoing", "undone"]
Direction = Literal["forward", "undo"]


class ReplyTo(TypedDict, total=False):
    """Who is told what becomes of a task, and of which events: a list of their names, or "all"."""

    to: str
    events: Union[None, Literal["all"], List[str]]


class _SignalRequired(TypedDict):
    id: str
    name: str


class CarriedSignal(_SignalRequired):
    """What became of a signal that a submission carries: `problem` says why it was refused."""

    status: Literal["accepted", "repeated", "refused"]
    problem: Optional[str]


class SignalToSend(_SignalRequired, total=False):
    """A signal that a submission carries."""

    data: Any


class _SubmissionRequired(TypedDict):
    workflow: str


class Submission(_SubmissionRequired, total=False):
    """A task to be. Give ids of your own: then it may be submitted twice, and is there once."""

    id: str
    version: int
    input: Any
    priority: int
    not_before: Optional[str]
    reply_to: Union[None, str, ReplyTo]
    tags: Optional[Dict[str, str]]
    paused: bool
    traceparent: str
    signals: Optional[List[SignalToSend]]


class _SubmittedRequired(TypedDict):
    id: str
    workflow: str
    version: int


class Submitted(_SubmittedRequired, total=False):
    """A task that is there, durably. One that ended and was deleted is `deleted`; `state` and `ended_at` are what is left of
    it."""

    deleted: bool
    state: TaskState
    ended_at: str
    signals: List[CarriedSignal]


class _SubmittedLineRequired(TypedDict):
    line: int
    status: int
    id: Optional[str]


class SubmittedLine(_SubmittedLineRequired, total=False):
    """What became of one of many: `status` as of HTTP, 201, 200 or that of the `problem`."""

    version: int  # of its workflow; not if it was refused
    state: Optional[TaskState]
    deleted: bool
    ended_at: str  # with `deleted`
    problem: Dict[str, Any]
    signals: List[CarriedSignal]


class Fault(TypedDict):
    """What went wrong."""

    code: str
    message: str


class Cause(TypedDict):
    """The first failure of a task; `step` is None if it was that of no step."""

    step: Optional[str]
    code: str
    message: Optional[str]


class _TaskSummaryRequired(TypedDict):
    id: str
    workflow: str
    version: int
    state: TaskState
    direction: Direction
    priority: int
    failure_count: int
    locked_by: Optional[str]
    complete_by: Optional[str]
    not_before: Optional[str]
    waiting_for: Optional[str]
    lock: Optional[str]
    lock_since: Optional[str]
    submitted_at: str
    started_at: Optional[str]
    ended_at: Optional[str]
    paused_at: Optional[str]
    closed_at: Optional[str]
    tags: Optional[Dict[str, str]]
    error: Optional["Fault"]
    cause: Optional["Cause"]


class TaskSummary(_TaskSummaryRequired, total=False):
    """A task in a list. Times are RFC 3339. `parent` and `root`: of a task that another one started."""

    parent: str
    root: str


class _AttemptRequired(TypedDict):
    attempt: int
    direction: Direction
    instance: str
    started_at: str
    ended_at: Optional[str]
    complete_by: str
    outcome: Literal["open", "completed", "failed", "timed_out", "not_sent", "late"]
    effect: Literal["none", "unknown", "happened"]


class Attempt(_AttemptRequired, total=False):
    """One hand-over of a step to an agent."""

    spared: bool
    resent: int
    key_generation: int
    round: int
    tries: int
    elsewhere: bool
    output: Any
    error: Optional[Fault]
    heartbeat_at: Optional[str]
    progress: Any
    message: Optional[str]


class _StepRequired(TypedDict):
    name: str
    state: StepState
    agent: Optional[str]
    action: Optional[str]
    failure_count: int
    in_doubt: bool
    complete_by: Optional[str]
    wait_until: Optional[str]
    input: Any
    output: Any
    error: Optional[Fault]
    attempts: List[Attempt]


class Vote(TypedDict):
    """What a person said to the question of a step."""

    by: str
    agrees: bool
    comment: Optional[str]
    at: str


class Approval(TypedDict):
    """What a step asks, of whom, and who has said what."""

    question: Optional[str]
    asking: int
    by: List[str]
    people: int
    agreed: int
    votes: List[Vote]
    asked_at: Optional[str]
    complete_by: Optional[str]
    escalates_at: Optional[str]
    escalates_to: List[str]


class Asked(Approval):
    """What waits for a decision: which step of which task asks, and whether this token's person may decide."""

    task: str
    step: str
    workflow: str
    version: int
    waits_for_you: bool


class ApprovalPage(TypedDict):
    """A page of what waits; `next` is the cursor of the page after it."""

    approvals: List[Asked]
    next: Optional[str]


class Decided(TypedDict):
    """A decision that is durable, and how many agree of how many who have to."""

    task: str
    step: str
    person: str
    agrees: bool
    at: str
    agreed: int
    people: int


class Child(TypedDict):
    """A task that a step started, as its parent knows it. `asked`: what it was asked last."""

    id: str
    state: Literal["running", "error", "stands", "turned", "stuck", "processed", "compensated"]
    asked: Optional[Literal["stop", "undo", "close"]]


class Items(TypedDict):
    """How many items of a step with `for_each` are where. `count`: the length of the list, 0 before the step begins.
    `to_undo`: what an undo would reach, or has still to reach. `at_work`: those that are tried or wait for their next
    try, and failed ones that an operator can retry."""

    count: int
    begun: int
    completed: int
    failed: int
    skipped: int
    undone: int
    in_doubt: int
    to_undo: int
    at_work: List["Step"]


class Step(_StepRequired, total=False):
    """A step of a task, or an item of one. `item`: the number of an item, from 0 on; its name is that of the step with
    the number, as `pack.3`. `items`: of a step with `for_each`. `resume`: what the latest attempt left for the next.
    `kind` and `begun_at`: of a step that waits, which has no agent. `round` and `repeat_until`: of a repeated step.
    `signals`: the names of the signals that it waits for. `approval`: what it asks people. `workflow` and `child`: of a
    step that starts a task of its own."""

    item: int
    items: Items
    kind: Literal["wait", "signal", "approve", "task", "for_each"]
    signals: List[str]
    approval: Approval
    workflow: str
    child: Optional[Child]
    begun_at: Optional[str]
    round: int
    repeat_until: Optional[str]
    on_undo: bool
    resume: Any
    key_generation: int
    supplied: bool
    resolved: int


class ItemPage(TypedDict):
    """A page of the items of a step, by their numbers; `next` is the cursor of the page after it."""

    step: str
    count: int
    items: List[Step]
    next: Optional[str]


class _AuditEntryRequired(TypedDict):
    at: str
    actor: str
    verb: str
    task: Optional[str]
    step: Optional[str]
    reason: Optional[str]
    detail: Optional[Dict[str, Any]]


class AuditEntry(_AuditEntryRequired, total=False):
    """What somebody did. From which address it was asked for is told by the audit alone, and not by the record of a task."""

    address: Optional[str]
    forwarded_for: Optional[str]


class KeptSignal(TypedDict):
    """A signal that no step has taken."""

    id: str
    name: str
    at: str


class SentSignal(KeptSignal):
    """A signal that is durable. `id`: its key."""

    task: str


class _TaskRequired(TaskSummary):

    input: Any
    output: Any
    traceparent: Optional[str]
    owner: Optional[str]
    closed_reason: Optional[str]
    steps: List[Step]
    operations: List[AuditEntry]


class Task(_TaskRequired, total=False):
    """The whole record of a task. `signals`: those that no step has taken, if any were sent. `carried_signals`: only as
    the answer to a submission. `parent_step`: whose child it is. `family`: the versions of its descendants' workflows."""

    parent_step: str
    family: Dict[str, int]
    signals: List[KeptSignal]
    carried_signals: List[CarriedSignal]


class TaskPage(TypedDict):
    """A page of a list; `next` is the cursor of the page after it."""

    tasks: List[TaskSummary]
    next: Optional[str]


class Reason(TypedDict):
    """One thing that a task waits for. `text`: what is so; `moves`: what would move it."""

    kind: str
    step: Optional[str]
    agent: Optional[str]
    since: Optional[str]
    until: Optional[str]
    text: str
    moves: str


class Why(TypedDict):
    """Why a task is where it is; the most important reason first."""

    task: str
    state: TaskState
    direction: Direction
    summary: str
    since: Optional[str]
    reasons: List[Reason]
    messages: List[Dict[str, Any]]
    more_messages: bool
    alerts: List[Dict[str, Any]]


class _WorkflowRequired(TypedDict):
    name: str
    version: int
    steps: int
    format: Literal["json", "yaml"]


class Workflow(_WorkflowRequired, total=False):
    """A version of a workflow, with its definition as it was stored: JSON as `definition`, YAML as `text`."""

    definition: Dict[str, Any]
    text: str


class WorkflowStored(TypedDict):
    """The version that a stored definition has, and what is odd about it."""

    name: str
    version: int
    warnings: List[Dict[str, Any]]


class Forward(TypedDict):
    """In a request to undo: the step that is to be undone. `output` is None if there was none, or if it is not known."""

    idempotency_key: str
    input: Any
    output: Any
    attempts: int
    in_doubt: bool
