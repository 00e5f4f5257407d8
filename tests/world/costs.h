/*
 * costs.h - what the machine and the scheduler do costs this CPU time. The only place with costs:
 * virtual time advances by them in machine_pay().
 *
 * Measured on two cores by `scripts/experiment --parts simulation`, whose raw results have them as
 * well. WORLD=NAME=NS sets others. The program prints what it has spent on each with report=1.
 */
#ifndef DARKROOM_TESTS_WORLD_COSTS_H
#define DARKROOM_TESTS_WORLD_COSTS_H

/* X(name, ns, meaning) */
#define MACHINE_COSTS(X)                                                            \
	X(clock, 30, "clock_gettime()")                                             \
	X(thread_clock, 690, "clock_gettime() of the thread's CPU time")            \
	X(visit, 100, "a visit, beside what it calls: the rest of a hand-over")     \
	X(urgent, 5, "looking for urgent events, for each stage")                   \
	X(ready, 18, "looking for stages with work, for each stage")                \
	X(push, 7, "an event onto a queue or a stack")                              \
	X(pop, 9, "an event from a queue")                                          \
	X(look, 106, "looking for any work")                                        \
	X(scan, 2.7, "looking for work to steal, for each worker")                  \
	X(fence, 5, "a step of the protocol of sleeping")                           \
	X(mutex, 9, "locking a mutex")                                              \
	X(syscall, 400, "read, write or poll of an eventfd, and other short calls") \
	X(nap, 34000, "nanosleep(): a half before it, and a half after it")         \
	X(wake_send, 6000, "waking another thread, for the one that does it")       \
	X(wake, 10000, "the time until a woken thread runs on a CPU that was idle") \
	X(doze_send, 31000, "wake_send, if the CPU was idle for longer than doze")  \
	X(doze_wake, 75000, "the same for wake")                                    \
	X(away, 10, "of each us of a busy CPU, for the kernel and the host")        \
	X(context, 3000, "from one thread to another on a CPU")                     \
	X(line, 240, "a cache line from another core; 0: no core waits for one")    \
	X(line_local, 3, "an atomic operation on such a line that is here already") \
	X(near, 0, "an event that another core of the node had: an assumption")     \
	X(far, 0, "the same of another node, with a memory or cache of its own")

#endif
