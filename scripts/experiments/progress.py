"""Progress and remaining time: one changing line on a terminal, and otherwise one line for each
measurement."""

import collections
import statistics
import sys
import time


def duration(seconds):
    seconds = round(seconds)
    if seconds < 100:
        return f"{seconds} s"
    if seconds < 6000:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"


def clock(seconds):
    """Returns the time of day after these seconds."""
    return time.strftime("%a %H:%M", time.localtime(time.time() + seconds))


def plan(jobs):
    """Returns a table of the runs of each part and their time, by the guesses of the jobs."""
    out = [f"{'part':12} {'rounds':>6} {'runs':>6}  time"]
    for kind in dict.fromkeys(job.kind for job in jobs):
        of_kind = [job for job in jobs if job.kind == kind]
        out.append(f"{kind:12} {len({job.round for job in of_kind}):6} {len(of_kind):6}  "
                   f"{duration(sum(job.guess_s for job in of_kind))}")
    total = sum(job.guess_s for job in jobs)
    return "\n".join([*out, f"{'all':12} {'':6} {len(jobs):6}  {duration(total)}, until "
                             f"{clock(total)} if it begins now"])


class Progress:
    def __init__(self, jobs, out=sys.stderr):
        self.left, self.count, self.done = list(jobs), len(jobs), 0
        self.times = collections.defaultdict(list)
        self.out = out

    def remaining(self):
        """Returns the remaining seconds, by the times of earlier jobs of the same kind, or by a
        guess."""
        return sum(map(self.expected, self.left))

    def expected(self, job):
        times = self.times[job.kind]
        return statistics.mean(times) if times else job.guess_s

    def _line(self, job):
        left = self.remaining()
        return f"[{self.done + 1}/{self.count}] round {job.round + 1}: {job.kind}, {job.name}"\
            f"{f', {job.workload} connections' if job.workload else ''}; "\
            f"{duration(left)} left, until {clock(left)}"

    def run(self, job):
        """Runs a job. Returns its result."""
        start = time.monotonic()
        print(("\r\033[K" if self.out.isatty() else "") + self._line(job),
              end="" if self.out.isatty() else "\n", file=self.out, flush=True)
        try:
            result = job.measure()
        finally:
            print("\r\033[K" if self.out.isatty() else "", end="", file=self.out, flush=True)
        self.times[job.kind].append(time.monotonic() - start)
        return result

    def end(self, job):
        """Notes that a job has been done; before that it may run repeatedly."""
        self.left.remove(job)
        self.done += 1
