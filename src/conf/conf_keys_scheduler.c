/*
 * conf_keys_scheduler.c - rows of the table of keys: [scheduler], [layout], [group.NAME] and
 * [stage.NAME].
 */
#include "base/check.h"
#include "conf.h"
#include "conf_keys.h"

static const struct conf_choice service_choices[] = {
	{ "auto", 0 },
	{ "exhaustive", SERVICE_EXHAUSTIVE },
	{ "gated", SERVICE_GATED },
	{ "n-gated", SERVICE_N_GATED },
	{ "time-gated", SERVICE_TIME_GATED },
	{ "cutoff", SERVICE_CUTOFF },
	{ 0 },
};
static const struct conf_choice discipline_choices[] = {
	{ "auto", CONF_DISCIPLINE_AUTO },
	{ "fcfs", CONF_DISCIPLINE_FCFS },
	{ "lcfs", CONF_DISCIPLINE_LCFS },
	{ "srpt", CONF_DISCIPLINE_SRPT },
	{ 0 },
};
static const struct conf_choice idle_choices[] = { { "wake", CONF_IDLE_WAKE },
	                                           { "backoff", CONF_IDLE_BACKOFF },
	                                           { 0 } };
static const struct conf_choice layout_choices[] = {
	{ "shared", CONF_LAYOUT_SHARED },
	{ "replicate", CONF_LAYOUT_REPLICATE },
	{ "partition", CONF_LAYOUT_PARTITION },
	{ 0 },
};
static const struct conf_choice distribution_choices[] = {
	{ "round-robin", CONF_DISTRIBUTION_ROUND_ROBIN },
	{ "least-loaded", CONF_DISTRIBUTION_LEAST_LOADED },
	{ 0 },
};
static const struct conf_choice kind_choices[] = {
	{ "auto", 0 },
	{ "shared", STAGE_SHARED },
	{ "exclusive", STAGE_EXCLUSIVE },
	{ "partitioned", STAGE_PARTITIONED },
	{ 0 },
};

static const struct conf_key rows[] = {
	{
		CONF_KEY(scheduler, policy, policy),
		.type = CONF_TYPE_POLICY,
		.min = 1,
		.default_value = "drain",
		.is_live = true,
		.help = "How threads and stages come together. With drain, a core begins one image at a\n"
			"time and finishes it, because its caches hold the pixels. Idle cores take work\n"
			"from others.",
	},
	{
		CONF_KEY(scheduler, threads, threads),
		.type = CONF_TYPE_AUTO,
		.min = 1,
		.max = CONF_THREADS_MAX,
		.default_value = "auto",
		.is_live = true,
		.help = "Threads that work on images. auto: one per core that the process may use, by\n"
			"affinity and by the CPU quota of its cgroup.",
	},
	{
		CONF_KEY(scheduler, spin, spin_us),
		.type = CONF_TYPE_US,
		.max = 10000,
		.default_value = "10us",
		.is_live = true,
		.help = "How long a thread without work keeps polling before it sleeps. 10us are about\n"
			"the cost of sleeping and of being woken, so neither is wasted for long.",
	},
	{
		CONF_KEY(scheduler, service, service),
		.type = CONF_TYPE_CHOICE,
		.choices = service_choices,
		.default_value = "auto",
		.is_live = true,
		.help = "How long a visit to a stage lasts:\n"
			"  exhaustive  until its queue is empty\n"
			"  gated       the events that waited when the visit began\n"
			"  n-gated     at most service_events of those\n"
			"  time-gated  for service_time; the current event is finished\n"
			"  cutoff      as gated, but a decode that takes longer than cutoff is parked\n"
			"auto: exhaustive. With policy drain one event in the stage where images begin.",
	},
	{
		CONF_KEY(scheduler, service_events, service_events),
		.type = CONF_TYPE_NUMBER,
		.min = 1,
		.max = 1000000,
		.default_value = "16",
		.is_live = true,
		.help = "With service = n-gated: events of a visit.",
	},
	{
		CONF_KEY(scheduler, service_time, service_time_us),
		.type = CONF_TYPE_US,
		.min = 1,
		.max = 10000000,
		.default_value = "5ms",
		.is_live = true,
		.help = "With service = time-gated: length of a visit.",
	},
	{
		CONF_KEY(scheduler, cutoff, cutoff_us),
		.type = CONF_TYPE_US,
		.min = 1,
		.max = 10000000,
		.default_value = "5ms",
		.is_live = true,
		.help = "With service = cutoff: a decode that takes longer is parked and continues at a\n"
			"later visit.",
	},
	{
		CONF_KEY(scheduler, discipline, discipline),
		.type = CONF_TYPE_CHOICE,
		.choices = discipline_choices,
		.default_value = "auto",
		.is_live = true,
		.help = "Which event of a stage is next:\n"
			"  fcfs  the oldest\n"
			"  lcfs  the youngest on the thread's own stack, which receives what the thread\n"
			"        itself sends, then the oldest of the others; the oldest first every\n"
			"        32nd time, so that no event starves\n"
			"  srpt  the smallest rest of work, see age; it also interrupts larger events\n"
			"auto: fcfs. With policy drain srpt where images begin, and lcfs after that.",
	},
	{
		CONF_KEY(scheduler, age, age_ms),
		.type = CONF_TYPE_MS,
		.min = 1,
		.max = CONF_MS_PER_HOUR,
		.default_value = "10ms",
		.is_live = true,
		.help = "With discipline = srpt: head start of small events. The event with the highest\n"
			"(time waited + age) / size is next. So an event that is n times as large as\n"
			"others waits at most n * age longer, and none starves.",
	},
	{
		CONF_KEY(scheduler, idle, idle),
		.type = CONF_TYPE_CHOICE,
		.choices = idle_choices,
		.default_value = "wake",
		.is_live = true,
		.help = "How threads without work sleep. wake: until work arrives. backoff: for 1, 2, 4,\n"
			"... 64 ms without being woken, for comparison.",
	},
	{
		CONF_KEY(scheduler, resource_aware, resource_aware),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "yes",
		.is_live = true,
		.help = "Whether threads serve the stages that release memory first, and those that take\n"
			"it last, while nine tenths of limits.memory_budget are in use or an image waits\n"
			"for memory (Capriccio, 2003, section 4). What a stage takes is learned; GET\n"
			"/stats has it. Not in the pools of seda and in the threads of connections of\n"
			"thread-per-connection, which the kernel orders.",
	},
	{
		CONF_KEY(scheduler, dynamic, dynamic),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.is_live = true,
		.help = "With policy = seda: whether controllers change sizes of pools and batches once\n"
			"a second (Welsh's dissertation on SEDA, 5.4). log.level = debug reports every\n"
			"change, and GET /stats the current sizes.\n"
			"Pools: a stage with more than 100 waiting events gets another thread, up to its\n"
			"threads_max. After 5 seconds in which one of them had nothing to do, a thread\n"
			"goes, down to the stage's threads. If a long queue is served 20 % slower than\n"
			"before, the pool returns to its best size, less 0 to 4 threads at random.\n"
			"Batches: the events that a thread takes from its queue at a time. They shrink\n"
			"from 16 to 1 as long as at most 10 % of the throughput is lost, and grow until it\n"
			"is regained. Only for stages whose service is auto.",
	},
	{
		CONF_KEY(scheduler, counters, counters),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.is_live = true,
		.help = "Whether cycles, instructions, read misses of the caches, page faults, context\n"
			"switches and CPU time are counted for each stage. GET /stats has what this\n"
			"machine offers, and the log names what is missing. Virtual machines often have\n"
			"no counters of the processor. The cost is one or two system calls per event.\n"
			"With server.sandbox = auto it must be on at startup: otherwise the sandbox\n"
			"does not allow its system calls.",
	},
	{
		CONF_KEY(layout, mode, mode),
		.type = CONF_TYPE_CHOICE,
		.choices = layout_choices,
		.default_value = "shared",
		.help = "Which cores visit which stages, under any policy:\n"
			"  shared     every core visits every stage\n"
			"  replicate  there are several copies of the stage graph. Each has its own\n"
			"             cores, which share caches, and works on whole requests. Threads\n"
			"             for connections and for the disk serve all replicas\n"
			"  partition  the stages are divided into parts. Each has as many cores as its\n"
			"             work needs, and few events pass between parts (METIS)\n"
			"Policy thread-per-connection needs shared. With seda every replica has a pool\n"
			"for each stage, and every part the pools of its stages. See darkroomd\n"
			"--topology for the place of each thread, and GET /stats for the load.",
	},
	{
		CONF_KEY(layout, replicas, replicas),
		.type = CONF_TYPE_NUMBER,
		.min = 1,
		.max = CONF_THREADS_MAX,
		.default_value = "2",
		.help = "With mode = replicate: number of replicas, at most one per thread\n"
			"(scheduler.threads). With seda the pools of all replicas have at most 64\n"
			"threads together. Each replica has queues for all images in flight.",
	},
	{
		CONF_KEY(layout, distribution, distribution),
		.type = CONF_TYPE_CHOICE,
		.choices = distribution_choices,
		.default_value = "least-loaded",
		.is_live = true,
		.help = "With mode = replicate: the replica of a request. round-robin: each in turn.\n"
			"least-loaded: the one with the fewest bytes of images in flight.",
	},
	{
		CONF_KEY(layout, steal, steal),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.is_live = true,
		.help = "With mode = replicate: whether threads without work serve other replicas.",
	},
	{
		CONF_KEY(layout, parts, parts),
		.type = CONF_TYPE_NUMBER,
		.min = 1,
		.max = STAGE_COUNT_MAX,
		.default_value = "2",
		.is_live = true,
		.help = "With mode = partition: number of parts, at most one per thread and one per\n"
			"stage that has a queue.",
	},
	{
		CONF_KEY(layout, profile, profile),
		.type = CONF_TYPE_PATH,
		.default_value = "",
		.help = "With mode = partition: file with the costs of the stages, written by darkroomd\n"
			"--profile FILE in a run with the usual load, or by scripts/partition. Required\n"
			"unless online = yes.",
	},
	{
		CONF_KEY(layout, online, online),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.is_live = true,
		.help = "With mode = partition: whether the parts change while the daemon runs. The load\n"
			"is measured every online_interval. The parts change if the heaviest had more\n"
			"than online_imbalance per cent more work per core than the average, twice in a\n"
			"row, and if other parts would be better by at least a tenth. Without a profile\n"
			"the first parts are a guess.",
	},
	{
		CONF_KEY(layout, online_interval, online_interval_ms),
		.type = CONF_TYPE_MS,
		.min = 100,
		.max = CONF_MS_PER_HOUR,
		.default_value = "5s",
		.is_live = true,
		.help = "Time between two measurements of the load.",
	},
	{
		CONF_KEY(layout, online_imbalance, online_imbalance),
		.type = CONF_TYPE_NUMBER,
		.max = 1000,
		.default_value = "20",
		.is_live = true,
		.help = "Imbalance that is tolerated, in per cent.",
	},
	{
		CONF_KEY_OF(group, stages, stages),
		.type = CONF_TYPE_TEXT,
		.default_value = "",
		.is_live = true,
		.help = "Its stages, separated by spaces. Each is in one group at most. At least one has\n"
			"a queue.",
	},
	{
		CONF_KEY_OF(group, policy, policy),
		.type = CONF_TYPE_POLICY,
		.min = 1,
		.default_value = "drain",
		.is_live = true,
		.help = "As scheduler.policy, for the stages of the group. thread-per-connection is only\n"
			"possible if there is no other group.",
	},
	{
		CONF_KEY_OF(group, threads, threads),
		.type = CONF_TYPE_AUTO,
		.min = 1,
		.max = CONF_THREADS_MAX,
		.default_value = "auto",
		.is_live = true,
		.help = "As scheduler.threads, for the stages of the group. With policy seda each stage\n"
			"has its stage.NAME.threads instead. All groups have at most 64 threads\n"
			"together. Threads are bound to cores if all together have a core each.",
	},
	{
		CONF_KEY_OF(stage, threads, threads),
		.type = CONF_TYPE_AUTO,
		.min = 1,
		.max = CONF_THREADS_MAX,
		.default_value = "auto",
		.is_live = true,
		.help = "Threads of its own. For accept_read: event loops (auto: one per four cores).\n"
			"For disk_write: threads that may wait for the disk. With policy seda: for every\n"
			"stage that has a queue (auto: 2), in each replica.",
	},
	{
		CONF_KEY_OF(stage, threads_max, threads_max),
		.type = CONF_TYPE_NUMBER,
		.min = 1,
		.max = CONF_THREADS_MAX,
		.default_value = "20",
		.is_live = true,
		.help = "With policy seda and dynamic = yes: the largest size of the stage's pool.",
	},
	{
		CONF_KEY_OF(stage, kind, kind),
		.type = CONF_TYPE_CHOICE,
		.choices = kind_choices,
		.default_value = "auto",
		.help = "How many threads may serve it at the same time. shared: any number. exclusive:\n"
			"one, the others skip it. partitioned: each thread has an event loop and a\n"
			"listener of its own (accept_read only). auto: as its code says.",
	},
	{
		CONF_KEY_OF(stage, pass_through, pass_through),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no_auto,
		.default_value = "auto",
		.is_live = true,
		.help = "Whether the stage before it calls it directly, without a queue. auto: as its\n"
			"code says.",
	},
	{
		CONF_KEY_OF(stage, service, service),
		.type = CONF_TYPE_CHOICE,
		.choices = service_choices,
		.default_value = "auto",
		.is_live = true,
		.help = "As scheduler.service, for this stage. auto: as scheduler.service says.",
	},
	{
		CONF_KEY_OF(stage, discipline, discipline),
		.type = CONF_TYPE_CHOICE,
		.choices = discipline_choices,
		.default_value = "auto",
		.is_live = true,
		.help = "As scheduler.discipline, for this stage. auto: as scheduler.discipline says.",
	},
	{
		CONF_KEY_OF(stage, threshold_events, threshold_events),
		.type = CONF_TYPE_NUMBER,
		.max = 1000000,
		.default_value = "0",
		.is_live = true,
		.help = "With more waiting events, a visit to another stage is interrupted for this one.\n"
			"0: never.",
	},
	{
		CONF_KEY_OF(stage, threshold_interval, threshold_interval_us),
		.type = CONF_TYPE_US,
		.max = 60000000,
		.default_value = "0",
		.is_live = true,
		.help = "If events wait and the stage was not visited for this time, a visit to another\n"
			"stage is interrupted for this one. 0: never.",
	},
	{
		CONF_KEY_OF(stage, queue_max, queue_max),
		.type = CONF_TYPE_NUMBER,
		.max = 1000000,
		.default_value = "0",
		.is_live = true,
		.help = "While this many events wait for the stage, it has enough: uploads are made in\n"
			"the cheaper ways of overload.degrade, and when all are in, they are refused or\n"
			"wait, as overload.when_full says. 0: no limit.",
	},
	{
		CONF_KEY_OF(stage, rate_max, rate_max),
		.type = CONF_TYPE_NUMBER,
		.max = 1000000,
		.default_value = "0",
		.is_live = true,
		.help = "The same while its events come faster than this number per second. 0: no limit.",
	},
};

const struct conf_key_list conf_keys_scheduler = { rows, COUNT_OF(rows) };
