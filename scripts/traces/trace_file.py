"""Reads a trace of visits: the format of src/telemetry/trace_format.h."""

import json
import struct
from dataclasses import dataclass, field

MAGIC, VERSION, ORDER = b"DRTRACE\n", 1, 0x01020304
HEADER = "8s4I2Q"
RECORD = "3Q3I2H6B2x"
SCHEDULE = "4BI16B24x"
VISIT, CALL, SCHEDULED, ORDERED, LOST, TICK, END = range(1, 8)
INTERRUPTING, STOLEN, SOURCE, ONE = 1, 2, 4, 8


class Malformed(Exception):
    """A file that is not a trace, or not one of this version."""


@dataclass(slots=True)
class Record:
    """Times are in ns. A call is within a visit of the same worker."""
    begin: int
    wall: int
    cpu: int
    schedule: int
    events: int
    queued: int
    core: int
    cells: int
    type: int
    group: int
    worker: int
    stage: int
    queue: int
    flags: int

    @property
    def end(self):
        return self.begin + self.wall


@dataclass
class Schedule:
    """The schedule of a worker, from a record on."""
    begin: int
    number: int
    policy: str
    polled: list  # stages that the policy visits, by position
    stages: list  # with those that are called directly
    domain: int
    pass_through: set


@dataclass
class Order:
    """A visit order that a policy has computed, and the rates that it was made from, by
    position."""
    begin: int
    number: int
    positions: list
    arrival: list
    service: list


@dataclass
class Trace:
    """All records of a file. workers: (group, index) -> what that worker has recorded, in its
    order: Record, Schedule, Order, or the number of records that are lost there."""
    stages: list
    groups: list
    policies: list
    begin: int
    begin_unix: int
    end: int = 0
    is_complete: bool = False
    lost: int = 0
    workers: dict = field(default_factory=dict)

    def name(self, worker):
        return f"{self.groups[worker[0]]}/{worker[1]}"

    def main_group(self):
        """Returns the group whose visits matter: thread-per-connection has only I/O threads."""
        used = {self.groups[group] for group, _ in self.workers}
        return "main" if "main" in used else "io"

    def records(self, kind=VISIT, begin=0, end=float("inf")):
        """Returns the visits, or calls, that began between two times, in the order in which they
        began."""
        found = [item for items in self.workers.values() for item in items
                 if isinstance(item, Record) and item.type == kind and begin <= item.begin < end]
        return sorted(found, key=lambda record: record.begin)


def read(path):
    with open(path, "rb") as file:
        return parse(file.read())


def parse(data):
    size = struct.calcsize("=" + HEADER)
    if len(data) < size or data[:8] != MAGIC:
        raise Malformed("not a trace of darkroomd")
    sign = next((sign for sign in "<>" if struct.unpack_from(sign + "I", data, 8)[0] == ORDER), "")
    if not sign:
        raise Malformed("the byte order is damaged")
    _, _, version, record, names, begin, begin_unix = struct.unpack_from(sign + HEADER, data)
    if (version, record) != (VERSION, struct.calcsize("=" + RECORD)):
        raise Malformed(f"version {version}, records of {record} bytes: expected version {VERSION}")
    try:
        trace = Trace(**json.loads(data[size:size + names]), begin=begin, begin_unix=begin_unix)
    except (ValueError, TypeError) as error:
        raise Malformed(f"the names are damaged: {error}") from error
    _parse_records(trace, data[size + names:], sign)
    return trace


def _parse_records(trace, data, sign):
    unpack = struct.Struct(sign + RECORD).iter_unpack
    cell = struct.calcsize("=" + RECORD)
    rows = unpack(data[:len(data) - len(data) % cell])
    for i, row in (both := enumerate(rows)):
        record = Record(*row)
        content = data[(i + 1) * cell:(i + 1 + record.cells) * cell]
        if len(content) < record.cells * cell:
            break
        for _ in range(record.cells):
            next(both)
        _add(trace, record, content, sign)
    if not trace.end:
        trace.end = max((record.end for record in trace.records()), default=trace.begin)


def _add(trace, record, content, sign):
    items = trace.workers.setdefault((record.group, record.worker), []) if record.group else []
    if record.type in (VISIT, CALL):
        items.append(record)
    elif record.type == SCHEDULED:
        policy, polled, count, domain, through, *stages = struct.unpack(sign + SCHEDULE, content)
        items.append(Schedule(record.begin, record.schedule, trace.policies[policy],
                              stages[:polled], stages[:count], domain,
                              {i for i in range(32) if through >> i & 1}))
    elif record.type == ORDERED:
        table = -(-record.events // 8) * 8
        rates = struct.unpack_from(f"{sign}{2 * record.queued}d", content, table)
        items.append(Order(record.begin, record.schedule, list(content[:record.events]),
                           list(rates[::2]), list(rates[1::2])))
    elif record.type == LOST:
        trace.lost += record.events
        items.append(record.events)
    elif record.type == END:
        trace.end, trace.is_complete = record.begin, True
