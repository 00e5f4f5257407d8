"""Two servers without any overhead, which know what no real server knows. Both may change between
requests at any time, and a request uses at most one core. SRPT has the least mean response time on one
core. On several cores, and for a percentile of the slowdown, neither is a bound."""

import heapq


def srpt(due, work, cores):
    """Returns when each request ends if the cores serve those with the least remaining work, and
    may change between them at any time."""
    ends, waiting, running, now = [0.0] * len(due), [], [], 0.0
    arrivals = sorted(range(len(due)), key=lambda i: due[i])
    place = 0
    while place < len(arrivals) or running:
        first_end = now + min(running)[0] if running else float("inf")
        until = min(first_end, due[arrivals[place]] if place < len(arrivals) else first_end)
        running = [(left - (until - now), i) for left, i in running]
        now = until
        if until == first_end:
            done = min(running)
            running.remove(done)
            ends[done[1]] = now
        else:
            i = arrivals[place]
            place += 1
            running.append((work[i], i))
            if len(running) > cores:
                most = max(running)
                running.remove(most)
                heapq.heappush(waiting, most)
        while waiting and len(running) < cores:
            running.append(heapq.heappop(waiting))
    return ends


def processor_sharing(due, work, cores):
    """Returns when each request ends if the cores are divided equally, at most one for each
    request. All get the same from now on, so they end in the order of share + work."""
    ends, running, now, share = [0.0] * len(due), [], 0.0, 0.0
    arrivals = sorted(range(len(due)), key=lambda i: due[i])
    place = 0
    while place < len(arrivals) or running:
        speed = min(1, cores / len(running)) if running else 0
        first_end = now + (running[0][0] - share) / speed if running else float("inf")
        until = min(first_end, due[arrivals[place]] if place < len(arrivals) else first_end)
        if until == first_end:
            share = running[0][0]
            ends[heapq.heappop(running)[1]] = until
        else:
            share += (until - now) * speed
            heapq.heappush(running, (share + work[arrivals[place]], arrivals[place]))
            place += 1
        now = until
    return ends


ORACLES = {"oracle SRPT": srpt, "processor sharing": processor_sharing}
