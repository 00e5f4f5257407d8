"""The trace events of Chrome and Perfetto (https://ui.perfetto.dev), as JSON: "Trace Event Format",
complete events. Times are in microseconds."""

import json

import trace_file


def _event(trace, record, thread):
    wall = max(record.wall, 1)
    args = {"core": record.core, "schedule": record.schedule}
    if record.type == trace_file.VISIT:
        args.update(events=record.events, queued=record.queued, cpu_us=record.cpu / 1000,
                    queue=record.queue)
    return {"name": trace.stages[record.stage],
            "cat": "visit" if record.type == trace_file.VISIT else "call", "ph": "X",
            "ts": (record.begin - trace.begin) / 1000, "dur": wall / 1000, "pid": 1, "tid": thread,
            "args": args}


def _instant(trace, item, thread):
    if isinstance(item, trace_file.Schedule):
        args = {"policy": item.policy, "number": item.number,
                "polled": [trace.stages[i] for i in item.polled]}
        name = f"schedule {item.number}: {item.policy}"
    else:
        args = {"order": item.positions, "service_per_s": item.service,
                "arrival_per_s": item.arrival}
        name = "new visit order"
    return {"name": name, "cat": "schedule", "ph": "i", "s": "t", "pid": 1, "tid": thread,
            "ts": (item.begin - trace.begin) / 1000, "args": args}


def write(trace, begin, end, empty, out):
    """Writes visits and calls between two times in ns. empty: also visits that found nothing."""
    events = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "darkroomd"}}]
    for thread, (key, items) in enumerate(sorted(trace.workers.items()), 1):
        events.append({"name": "thread_name", "ph": "M", "pid": 1, "tid": thread,
                       "args": {"name": trace.name(key)}})
        events.append({"name": "thread_sort_index", "ph": "M", "pid": 1, "tid": thread,
                       "args": {"sort_index": thread}})
        for item in items:
            if isinstance(item, int) or not begin <= item.begin < end:
                continue
            if not isinstance(item, trace_file.Record):
                events.append(_instant(trace, item, thread))
            elif item.events or empty:
                events.append(_event(trace, item, thread))
    json.dump({"displayTimeUnit": "ms", "traceEvents": events}, out)
    out.write("\n")
