/* thread_use.c - the counts of each thread. */
#include "thread_use.h"

_Thread_local struct thread_use thread_use;
