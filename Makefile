# darkroom - `make help` lists the targets. Each variant of the build has its own directory under build/.
VERSION := 0.2.0
PREFIX  ?= /usr/local
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
INSTALL ?= install
# Debian's node-llhttp has the C files of llhttp, in llhttp/ and include/llhttp/ of this folder.
LLHTTP_PREFIX ?= /usr/share
ifeq ($(origin CC),default)
CC := gcc
endif
AR ?= ar

# address,undefined -> asan, thread -> tsan, undefined -> ubsan; no sanitizer -> plain, with DEBUG=1 debug
variant := $(if $(findstring address,$(SAN)),asan,$(if $(findstring thread,$(SAN)),tsan,$(if $(SAN),ubsan,$(if $(filter 1,$(DEBUG)),debug,plain))))
is_clang := $(findstring clang,$(notdir $(CC)))
# FUZZ=1: for libFuzzer, or with CC=afl-clang-fast for AFL++. COVERAGE=1: counts executed lines. Both need clang. ANALYZE=1: gcc looks for faults.
B := build/$(if $(FUZZ),$(if $(findstring afl,$(CC)),afl,fuzz),$(if $(COVERAGE),coverage,$(if $(ANALYZE),analyze,$(if $(is_clang),clang-)$(variant))))

OPT  ?= $(if $(SAN),-O1 -g1,-O2 -g)
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wwrite-strings -Wvla -Wformat=2 -Wundef -Wcast-qual $(if $(SAN),,-Wnull-dereference) \
        $(if $(filter 1,$(WERROR)),-Werror)
# gcc warns that the thread sanitizer does not see fences. Ours order flags only, and queues publish the data.
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
            $(if $(is_clang),,$(if $(findstring thread,$(SAN)),-Wno-tsan))
SANFLAGS += $(if $(FUZZ),-fsanitize=fuzzer-no-link) \
            $(if $(COVERAGE),-fprofile-instr-generate -fcoverage-mapping)
# gcc 12 is wrong about three things. It takes pointers in arrays of structs for leaks; the leak checker runs over all
# tests. It takes the elements of a vector for its bits. It does not follow loops that fill an array; clang-tidy does.
ANALYZER := -fanalyzer -Wno-analyzer-malloc-leak -Wno-analyzer-shift-count-overflow \
            -Wno-analyzer-use-of-uninitialized-value
SANFLAGS += $(if $(ANALYZE),$(ANALYZER))
# Flags against exploits: those that this compiler and machine know. _FORTIFY_SOURCE=3 needs gcc 12 or clang 9.
# -ftrivial-auto-var-init=zero is left out: it adds 2.6 % to the instructions of an image; the others add 0.04 %.
flags_if = $(if $(SAN),,$(shell echo 'int main(void) { return 0; }' | \
             $(CC) -O2 -Werror -include stdlib.h $1 -x c -o /dev/null - 2>/dev/null && echo '$1'))
fortify := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE
cet := $(call flags_if,-fcf-protection)
HARDEN := $(if $(SAN),,-fstack-protector-strong $(or $(call flags_if,$(fortify)=3),$(fortify)=2)) \
          $(call flags_if,-fstack-clash-protection) $(or $(cet),$(call flags_if,-mbranch-protection=standard))
# Shadow stacks need nothing of the start files, but theirs of Debian lack the note, and the linker would leave it out.
# They are not prepared for checks of indirect branches, so that note stays out.
shadow_stacks := -Wl,-z,shstk
DARKROOM_CPPFLAGS := -D_GNU_SOURCE $(addprefix -iquote ,src stages loadgen) -isystem $(LLHTTP_PREFIX)/include/llhttp \
                     $(if $(or $(SAN),$(filter 1,$(DEBUG))),-DDARKROOM_DEBUG) $(if $(FUZZ),-DDARKROOM_FUZZER) $(CPPFLAGS)
DARKROOM_CFLAGS := -std=c11 -pthread $(OPT) $(HARDEN) $(WARN) $(SANFLAGS) $(if $(COVERAGE),-mllvm -runtime-counter-relocation) \
                   $(CFLAGS)
DARKROOM_LDFLAGS := -pthread -Wl,-z,relro,-z,now $(if $(cet),$(shadow_stacks)) $(SANFLAGS) $(LDFLAGS)
LIBS := -ljpeg -levent_core -lhwloc -liniparser -lseccomp -lnettle -lxxhash -lm -lpthread $(LDLIBS)

# Sources are at most two folders deep.
DECODE_SRC := $(sort $(wildcard stages/jail/decode/*.c))
SRC    := $(filter-out $(DECODE_SRC),$(sort $(wildcard $(foreach d,src stages,$d/*.c $d/*/*.c $d/*/*/*.c))))
OBJ    := $(SRC:%.c=$B/%.o)
DECODE := $(DECODE_SRC:%.c=$B/%.o) $B/decode/avif_file.o
LLHTTP := $(patsubst %,$B/llhttp/%.o,api http llhttp)
TOOLS  := load dataset
PROGRAMS := darkroomd darkroom-decode $(TOOLS:%=darkroom-%)
# These replace a part of the program, but only in the tests that include them. Others may use the fixtures.
REPLACEMENTS := $(patsubst %,$B/tests/unit/support/%.o,fake_clock graph_harness perf_machine s3_memory visit_harness)
FIXTURES := $(filter-out $(REPLACEMENTS),$(patsubst %.c,$B/%.o,$(sort $(wildcard tests/unit/support/*.c))))
TESTS  := $(patsubst %.c,$B/%,$(sort $(wildcard tests/unit/*/test_*.c)))
ifeq ($(SAN),thread) # tests in these folders have no threads, except those that start some
TESTS  := $(filter-out $(patsubst %.c,$B/%,$(shell grep -LE 'pthread|\bgraph|recovery|_start' $(wildcard $(addsuffix /test_*.c,$(addprefix tests/unit/,access admission background conf conn http image layout loadgen pixel policy resource))))),$(TESTS))
endif
FUZZERS := $(patsubst %.c,$B/%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
SERVER := $B/tests/tools/answer_server
LIMIT  := $B/tests/bench/limit
SYNTHETIC := $(patsubst %,$B/tests/bench/%,costs synthetic threads)
DAMAGE := $B/tests/bench/damage
S3_PUT := $B/tests/bench/s3_put
PRELOADS := $(patsubst %,$B/tests/tools/%.so,addresses power_recorder faults slow_disk slow_encoder)
ESCAPES := $B/tests/tools/sandbox_escapes
PLANES := $B/tests/tools/planes
HOSTILE := $B/tests/tools/hostile_decode

say = $(if $(filter 1,$V),,@printf '  %-5s %s\n' $(1) $@;)

.PHONY: all build-tests check synthetic synthetic-wide world lab fuzz fuzzers coverage analyze analyze-clang analyze-objects docs asan tsan ubsan format lint layers bench bench-peers clean help FORCE uninstall deb \
        install install-bin install-conf install-man install-systemd install-completion install-doc
.DELETE_ON_ERROR:
.SECONDARY:

all: $(PROGRAMS:%=$B/%) $(if $(filter build/plain,$B),$(PROGRAMS:%=build/%) $(PRELOADS) $(ESCAPES) $(HOSTILE) $(PLANES) $(SERVER))

$(PROGRAMS:%=build/%): build/%: build/plain/%
	$(call say,COPY)ln -f $< $@

$B/darkroomd: $(OBJ) $(LLHTTP) $B/flags $B/objects
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -o $@ $(OBJ) $(LLHTTP) $(LIBS)

# It has a malloc() of its own, so it is built without sanitizers. It loads the libraries of formats itself.
without_sanitizers = $(filter-out -fsanitize=% -fno-sanitize% -fprofile-% -fcoverage-%,$1)
$(DECODE) $(HOSTILE).o: private DARKROOM_CFLAGS := $(call without_sanitizers,$(DARKROOM_CFLAGS))
$B/darkroom-decode $(HOSTILE): private DARKROOM_LDFLAGS := $(call without_sanitizers,$(DARKROOM_LDFLAGS))
# Both programs read the boxes of an AVIF.
$B/decode/avif_file.o: stages/jail/avif_file.c $B/flags
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(DARKROOM_CPPFLAGS) -MMD -MP $(DARKROOM_CFLAGS) -c -o $@ $<
$B/darkroom-decode: $(DECODE) $B/flags
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -o $@ $(DECODE) $(LDLIBS)

# darkroom-NAME consists of loadgen/NAME/*.c and members of libdarkroom.a.
tool_objects = $(patsubst %.c,$B/%.o,$(sort $(wildcard loadgen/$1/*.c)))
$(foreach t,$(TOOLS),$(eval $B/darkroom-$t: $(call tool_objects,$t)))
$(TOOLS:%=$B/darkroom-%): $B/libdarkroom.a $B/flags
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -Wl,--as-needed -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS)

$B/%.o: %.c $B/flags
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(DARKROOM_CPPFLAGS) $(EXTRA) -MMD -MP $(DARKROOM_CFLAGS) -c -o $@ $<

# The loops that paint the dataset are vectorised.
$B/loadgen/dataset/paint.o $B/loadgen/dataset/texture.o: private DARKROOM_CFLAGS += -O3

# Without alignment, loops may start within 32 bytes, depending on the code that is linked before them. A picture of 10 KB
# then costs 40 us more, 9 % of its CPU time.
$B/stages/pixel/kernel_vector.o $B/stages/pixel/mcu.o $B/stages/pixel/mcu_rows.o: private DARKROOM_CFLAGS += -falign-functions=64 -falign-loops=32

# The pages and the description of the HTTP interface are part of the program.
$B/stages/page/page_files.o: $(wildcard stages/page/*) stages/http/openapi.json

$B/llhttp/%.o: $(LLHTTP_PREFIX)/llhttp/%.c $B/flags
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(DARKROOM_CPPFLAGS) -DLLHTTP_STRICT_MODE=1 $(DARKROOM_CFLAGS) -w -c -o $@ $<

# Only files that print the version are compiled again when it changes.
printers := $B/src/base/version.o $B/loadgen/load/command_line.o $B/loadgen/dataset/dataset.o
$(printers): $B/version
$(printers): EXTRA = -DDARKROOM_VERSION='"$(file < $B/version)"'
$B/version: FORCE
	@mkdir -p $B; v=$$(git describe --tags --always --dirty 2>/dev/null); v="$(VERSION)$${v:+ ($$v)}"; \
	 echo "$$v" | cmp -s - $@ || echo "$$v" > $@
$B/flags: FORCE
	@mkdir -p $B; echo '$(CC) $(DARKROOM_CPPFLAGS) $(DARKROOM_CFLAGS) $(DARKROOM_LDFLAGS)' | cmp -s - $@ || \
	 echo '$(CC) $(DARKROOM_CPPFLAGS) $(DARKROOM_CFLAGS) $(DARKROOM_LDFLAGS)' > $@
$B/objects: FORCE
	@mkdir -p $B; echo '$(OBJ) $(LIBS)' | cmp -s - $@ || echo '$(OBJ) $(LIBS)' > $@

# A test that includes a .c file to reach its static functions replaces that member of the archive.
$B/libdarkroom.a: $(filter-out $B/src/main.o,$(OBJ)) $(LLHTTP) $B/objects
# All below the stages, for programs without images.
$B/libsched.a: $(filter-out $B/src/main.o,$(filter $B/src/%,$(OBJ))) $B/objects
$B/libdarkroom.a $B/libsched.a:
	$(call say,AR)rm -f $@; $(AR) qcs $@ $(filter %.o,$^)
$B/tests/unit/%.o: private DARKROOM_CPPFLAGS += -iquote tests/unit
# Tests run for a moment: the compiler would take longer than it saves. _FORTIFY_SOURCE needs -O1. DEBUG=1 is for debuggers.
$B/tests/unit/%.o: private DARKROOM_CFLAGS += $(if $(SAN),-O0,-O1 $(if $(DEBUG),-g1,-g0))
$B/tests/unit/%: private DARKROOM_LDFLAGS += $(if $(SAN)$(DEBUG),,-Wl,-S)
# The linker takes the fixtures that a test uses from a library.
$B/libfixtures.a: $(FIXTURES) Makefile
	$(call say,AR)rm -f $@; $(AR) qcs $@ $(filter %.o,$^)
$B/tests/unit/%: $B/tests/unit/%.o $B/libfixtures.a $B/libdarkroom.a
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) -lcmocka $(LIBS)

tests_with = $(patsubst %.c,$B/%,$(shell grep -l '"support/$1.h"' tests/unit/*/test_*.c))
$(foreach r,$(REPLACEMENTS),$(eval $(call tests_with,$(basename $(notdir $r))): $r))

# A target takes what it uses from this library before the others, so that a part of it can replace one of the program.
$B/tests/fuzz/%.o: private DARKROOM_CPPFLAGS += -iquote tests/unit
$(LIMIT).o: private DARKROOM_CPPFLAGS += -iquote tests/unit
$B/tests/fuzz/libfuzz.a: $(patsubst %,$B/%.o,$(addprefix tests/fuzz/,pattern_pool jpeg_mutator one_thread) \
                         tests/unit/support/fake_clock loadgen/load/response_reader) Makefile
	$(call say,AR)rm -f $@; $(AR) qcs $@ $(filter %.o,$^)
$B/tests/fuzz/fuzz_%: $B/tests/fuzz/fuzz_%.o $B/tests/fuzz/corpus_runner.o $B/tests/fuzz/libfuzz.a $B/libfixtures.a $B/libdarkroom.a
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) $(if $(FUZZ),-fsanitize=fuzzer) -o $@ $(filter %.o,$^) $(filter %.a,$^) -lcmocka $(LIBS)

# T is a target or "all", S the seconds for each, SEED 0 for a random one, FUZZER libfuzzer or afl, for AFL++ (Debian's
# afl++) in persistent mode.
T ?= all
S ?= 60
SEED ?= 0
FUZZER ?= libfuzzer
fuzz_folder = build/$(if $(filter afl,$(FUZZER)),afl,fuzz)/tests/fuzz
fuzzers: $(FUZZERS)
fuzz:
	@$(MAKE) --no-print-directory CC=$(if $(filter afl,$(FUZZER)),afl-clang-fast,clang) SAN=address,undefined FUZZ=1 \
	 $(if $(filter all,$T),fuzzers,$(fuzz_folder)/fuzz_$T)
	@tests/fuzz/fuzz $T $S $(SEED) $(FUZZER)

# The server that tests/load uses to check darkroom-load.
$(SERVER): $(SERVER).o $B/src/base/clock.o
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -o $@ $^

# An attacker in the daemon's sandbox.
$(ESCAPES): $(ESCAPES).o $B/libdarkroom.a
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -o $@ $^ $(LIBS)

# A decoder that somebody has taken over, for tests of the jail. It also decodes honestly.
$(HOSTILE): $(filter-out %/codec.o,$(DECODE)) $(HOSTILE).o
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -o $@ $^ $(LDLIBS)
$B/tests/unit/jail/test_jail $B/tests/unit/pixel/test_encoder_jailed: | $(HOSTILE) $B/darkroom-decode
$B/tests/unit/jail/test_jail: private LIBS += -lpng -lwebp

# Compares the jail with the same code in one process: tests/http/test_corpus.py.
$(PLANES): $(PLANES).o $(filter-out %/decode.o,$(DECODE)) $B/libdarkroom.a
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -o $@ $^ $(LIBS)

# Measures the daemon's work without a daemon.
$(LIMIT): $(LIMIT).o $B/tests/unit/support/picture_compare.o $B/loadgen/load/corpus.o $B/loadgen/load/request_schedule.o \
          $B/libdarkroom.a
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -o $@ $^ $(LIBS)

# Measure the scheduler without images, what its steps cost, and threads without a scheduler. scripts/experiment runs them.
$(SYNTHETIC): %: %.o $B/tests/bench/spin.o $B/libsched.a
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -o $@ $^ $(LIBS)
synthetic: $(SYNTHETIC)

# For rings of up to 100 stages: more than a graph of the daemon may have.
WIDE := build/wide/tests/bench/synthetic
synthetic-wide:
	@$(MAKE) --no-print-directory B=build/wide CPPFLAGS='$(CPPFLAGS) -DSTAGE_COUNT_MAX=100' $(WIDE)

# Programs in virtual time: the linker replaces what they call of libc, and what costs time in the scheduler. The processor
# does not know their stacks, so they have no shadow stacks.
world_objects := $(patsubst %,$B/tests/world/%.o,machine seam seams_descriptors seams_libc seams_sched) $B/world/src/base/coroutine.o
seams_of = $(shell sed -nE 's/^SEAM.[^,]*, ([A-Za-z0-9_]+),.*/-Wl,--wrap=\1/p' $1)
world_seams = $(call seams_of,tests/world/seams_*.c)
world_link = @mkdir -p $(@D); $(CC) $(filter-out $(shadow_stacks),$(DARKROOM_LDFLAGS)) $(world_seams) -o $@ $(filter %.o,$^) $(filter %.a,$^)
$(world_objects): private DARKROOM_CFLAGS += $(if $(findstring thread,$(SAN)),-fno-sanitize=thread -DWITH_THREAD_SANITIZER)
$B/world/synthetic: $B/tests/bench/synthetic.o $B/tests/bench/spin.o $(world_objects) $B/libsched.a Makefile
	$(call say,LINK)
	$(world_link) $(LIBS)

# Tests of the scheduler in virtual time. In the files with its protocols, others may come first at each atomic operation.
world_tests := $(addprefix $B/world/test_,graph schedule_switch stage_groups)
world_atomic := $(patsubst %.c,$B/world/%.o,$(sort $(wildcard src/sched/core/*.c)) src/base/queue.c)
$B/world/src/base/coroutine.o: $B/world/%.o: %.c $B/flags
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(DARKROOM_CPPFLAGS) -MMD -MP $(DARKROOM_CFLAGS) -c -o $@ $<
$(world_atomic): $B/world/%.o: %.c $B/flags
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(DARKROOM_CPPFLAGS) -MMD -MP $(DARKROOM_CFLAGS) -w -fsanitize=thread --param tsan-instrument-func-entry-exit=0 -c -o $@ $<
$(world_tests): $B/world/%: $B/tests/unit/sched/%.o $B/tests/unit/support/graph_harness.o $(world_atomic) $(world_objects) \
                $B/tests/world/atomics.o $B/tests/world/test_filter.o $B/tests/bench/spin.o $B/libfixtures.a $B/libdarkroom.a Makefile
	$(call say,LINK)
	$(world_link) -lcmocka $(LIBS)
# Checks the order of visits in a trace.
$B/world/orders: $B/tests/world/orders.o $B/libfixtures.a $B/libdarkroom.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -o $@ $^ -lcmocka $(LIBS)
$B/tests/world/orders.o $B/tests/world/client_acts.o: private DARKROOM_CPPFLAGS += -iquote tests/unit
# Programs that run seeds: the store on a disk in memory, nodes with an object store, and a whole daemon, with faults.
seed_objects := $(patsubst %,$B/tests/world/%.o,seam seed_seams seeds)
store_objects := $(patsubst %,$B/tests/world/%.o,clock_seams content disk disk_seams images lives promises seams_descriptors)
nodes_objects := $(patsubst %,$B/tests/world/%.o,acts bucket claims clock_seams cluster content nodes)
daemon_objects := $(patsubst %,$B/tests/world/%.o,client_acts conditions disk disk_seams exchange net page_cache whole_daemon)
seed_programs := $(addprefix $B/world/,store nodes daemon)
$B/world/store: $(store_objects)
$B/world/nodes: $(nodes_objects)
$B/world/daemon: $(daemon_objects) $(world_objects) $B/tests/bench/spin.o $B/libfixtures.a
$(seed_programs): $(seed_objects) $B/libdarkroom.a Makefile
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(filter-out $(shadow_stacks),$(DARKROOM_LDFLAGS)) $(call seams_of,$(patsubst $B/%.o,%.c,$(filter $B/tests/world/%.o,$^))) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS)
world: $B/world/synthetic $(if $(is_clang)$(SAN),,$(world_tests) $B/world/orders $(seed_programs))

# The scheduler in virtual time as a page: tests/world/lab. Headers that wasi-libc lacks are empty; wasi.h has what they declare.
lab_src := $(filter-out src/base/coroutine.c,$(wildcard src/policy/*.c src/sched/core/*.c)) tests/world/machine.c \
           $(patsubst %,src/%.c,base/clock base/json base/pool base/queue base/suggest base/text base/thread_use conf/conf_number \
           layout/cores layout/partition layout/placement telemetry/histogram telemetry/metrics_text) \
           $(patsubst %,tests/world/%.c,seam seams_descriptors seams_libc seams_sched) tests/bench/spin.c tests/bench/synthetic.c tests/world/lab/browser.c
lab_headers := link malloc pthread setjmp sys/eventfd sys/prctl sys/syscall
build/lab/lab.wasm: $(lab_src) tests/world/lab/wasi.h $(wildcard src/*/*.h src/sched/core/*.h tests/world/*.h) Makefile
	$(call say,LINK)mkdir -p build/lab/sys && touch $(lab_headers:%=build/lab/%.h)
	@clang --target=wasm32-wasi -mexec-model=reactor -O2 -std=gnu11 -w -D_GNU_SOURCE \
	   -D_WASI_EMULATED_PROCESS_CLOCKS -Dmain=__real_main -Ibuild/lab -include tests/world/lab/wasi.h $(addprefix -iquote ,src tests tests/world) \
	   $(filter-out %=main,$(world_seams)) -Wl,--wrap=fopen,--export=__stack_pointer,--allow-undefined,-z,stack-size=262144 -o $@.raw $(lab_src)
	@wasm-opt -O2 --enable-mutable-globals --enable-sign-ext --asyncify \
	   --pass-arg=asyncify-imports@lab.switch -o $@ $@.raw
build/lab.html: build/lab/lab.wasm tests/world/lab/lab.html tests/world/lab/run.js
	@base64 $< >$<.text
	@sed -e '/^@RUN@$$/{r tests/world/lab/run.js' -e 'd}' -e '/^@WASM@$$/{r $<.text' -e 'd}' tests/world/lab/lab.html >$@
lab: build/lab.html

# Measures the share of damaged files that the decoder notices: make damage FILES='...'
$(DAMAGE): $(DAMAGE).o $B/libdarkroom.a
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -o $@ $^ $(LIBS)

# What libcurl alone needs to put images: scripts/experiments/s3_cost.py.
$(S3_PUT): $(S3_PUT).o
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -o $@ $^ -lcurl

damage: $(DAMAGE)
	@$(DAMAGE) 4 $(FILES)

bench: all $(LIMIT)
	@tests/bench/bench $(BENCH)

bench-peers: all
	@scripts/setup peers
	@tests/bench/bench_peers $(BENCH)

# Libraries that tests/http loads into the daemon: they record file operations, or make calls fail.
$(PRELOADS): $B/%.so: %.c $B/flags
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(DARKROOM_CPPFLAGS) -MMD -MP $(DARKROOM_CFLAGS) -fPIC $(DARKROOM_LDFLAGS) -shared -o $@ $<

# The thread sanitizer runs the programs that start threads. It finds nothing in the others.
starts_threads = $(patsubst %.c,$B/%,$(shell grep -lE 'pthread_create|graph_start|log_start|graph_harness.h|generate.c' tests/unit/*/test_*.c))
CHECKED := $(if $(findstring thread,$(SAN)),$(starts_threads),$(TESTS) $(FUZZERS))
# TESTS_PART=2~3: every third program from the second on.
ifdef TESTS_PART
CHECKED := $(shell printf '%s\n' $(CHECKED) | sed -n '$(TESTS_PART)p')
endif
build-tests: $(CHECKED) $(SERVER)
check: layers build-tests
	@scripts/check-units $(CHECKED)
coverage: ; @scripts/coverage
asan:  ; @$(MAKE) --no-print-directory SAN=address,undefined check
tsan:  ; @$(MAKE) --no-print-directory SAN=thread check
ubsan: ; @$(MAKE) --no-print-directory SAN=undefined check

# Tools for development.
C_FILES := $(SRC) $(DECODE_SRC) $(sort $(wildcard loadgen/*/*.c tests/*/*.c tests/unit/*/*.c))
C_HEADERS := $(sort $(wildcard $(addsuffix /*.h,src/* src/*/* stages stages/* stages/*/* loadgen/* tests/* tests/unit/*)))

format:
	clang-format -i $(C_FILES) $(C_HEADERS)

lint: compile_commands.json
	@scripts/lint $(C_FILES) $(C_HEADERS)

# The analysers of gcc and of clang, over everything but tests. That of clang takes six times as long.
analyze-clang: compile_commands.json
	@scripts/lint --analyze $(C_FILES)
analyze:
	@$(MAKE) --no-print-directory CC=gcc ANALYZE=1 WERROR=1 analyze-objects
analyze-objects: $(OBJ) $(DECODE) $(foreach t,$(TOOLS),$(call tool_objects,$t))

layers:
	@scripts/check-layers

# For clangd and clang-tidy. Only files that print the version need DARKROOM_VERSION.
compile_commands.json: FORCE
	@separator='['; for file in $(C_FILES); do \
	   printf '%s\n{ "directory": "$(CURDIR)", "file": "%s", "command": "clang %s -c %s" }' "$$separator" $$file \
	     '$(DARKROOM_CPPFLAGS) -iquote tests/unit -DDARKROOM_VERSION=__FILE__ $(DARKROOM_CFLAGS)' $$file; \
	   separator=,; done > $@; printf '\n]\n' >> $@

# @NAME@ in installed files is replaced by the path of this installation. The units have the paths of PREFIX=/usr.
bindir = $(PREFIX)/bin
mandir = $(PREFIX)/share/man
unitdir ?= $(if $(filter /usr,$(PREFIX)),/usr/lib,$(PREFIX)/lib)/systemd/system
completiondir ?= $(PREFIX)/share/bash-completion/completions
put = sed -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|g' -e 's|/usr/bin/|$(bindir)/|g' -e 's|/etc/darkroom/|$(SYSCONFDIR)/darkroom/|g' $1 > \
      $(DESTDIR)$2 && chmod 644 $(DESTDIR)$2

$B/man/darkroomd.ini.5: conf/darkroomd.ini.5.in scripts/keys-to-mdoc $B/darkroomd
	@mkdir -p $(@D)
	$(call say,MAN)scripts/keys-to-mdoc $B/darkroomd $< > $@

install: install-bin install-conf install-man install-systemd install-completion install-doc

install-bin: $(PROGRAMS:%=$B/%)
	$(INSTALL) -d $(DESTDIR)$(bindir)
	$(INSTALL) -m 755 $^ $(DESTDIR)$(bindir)

# The licence, and the files that operators copy from. docdir is empty in the Debian package, which has its own way.
docdir ?= $(PREFIX)/share/doc/darkroom
examples := $(addprefix conf/,proxy container kubernetes monitoring)
install-doc:
ifneq ($(docdir),)
	$(INSTALL) -d $(DESTDIR)$(docdir) $(examples:conf/%=$(DESTDIR)$(docdir)/%)
	$(INSTALL) -m 644 LICENSE README.md conf/CHANGES.md $(DESTDIR)$(docdir)
	$(foreach e,$(examples),$(INSTALL) -m 644 $e/* $(DESTDIR)$(docdir)/$(notdir $e) &&) true
endif

install-conf:
	$(INSTALL) -d $(DESTDIR)$(SYSCONFDIR)/darkroom
	test -e $(DESTDIR)$(SYSCONFDIR)/darkroom/darkroomd.ini || \
	 $(INSTALL) -m 644 conf/darkroomd.ini $(DESTDIR)$(SYSCONFDIR)/darkroom/darkroomd.ini

# The manual for a browser, in build/docs.
pages := $(foreach t,$(TOOLS),loadgen/$t/darkroom-$t.1) $B/man/darkroomd.ini.5 stages/http/darkroom-http.7 \
         stages/storage/darkroom-scale.7 stages/store/darkroom-store.7 \
         src/sched/darkroom-scheduling.7 src/daemon/darkroomd.8 \
         stages/jail/decode/darkroom-decode.8
docs: $(pages)
	@mkdir -p build/docs
	@for p in $(pages); do sed 's|@SYSCONFDIR@|/etc|g' $$p | \
	 mandoc -T html -O style=mandoc.css,man=%N.%S.html > build/docs/$${p##*/}.html || exit 1; done
	@cp scripts/manual.css build/docs/mandoc.css
	@echo "the manual is build/docs/darkroomd.8.html"

install-man: $B/man/darkroomd.ini.5
	$(INSTALL) -d $(addprefix $(DESTDIR)$(mandir)/man,1 5 7 8)
	$(INSTALL) -m 644 $(foreach t,$(TOOLS),loadgen/$t/darkroom-$t.1) $(DESTDIR)$(mandir)/man1
	$(call put,$<,$(mandir)/man5/darkroomd.ini.5)
	$(call put,stages/http/darkroom-http.7,$(mandir)/man7/darkroom-http.7)
	$(call put,stages/storage/darkroom-scale.7,$(mandir)/man7/darkroom-scale.7)
	$(call put,stages/store/darkroom-store.7,$(mandir)/man7/darkroom-store.7)
	$(call put,src/sched/darkroom-scheduling.7,$(mandir)/man7/darkroom-scheduling.7)
	$(call put,src/daemon/darkroomd.8,$(mandir)/man8/darkroomd.8)
	$(call put,stages/jail/decode/darkroom-decode.8,$(mandir)/man8/darkroom-decode.8)

install-systemd:
	$(INSTALL) -d $(DESTDIR)$(unitdir)
	$(call put,conf/systemd/darkroomd.service,$(unitdir)/darkroomd.service)
	$(call put,conf/systemd/darkroom-check.service,$(unitdir)/darkroom-check.service)
	$(INSTALL) -m 644 conf/systemd/darkroomd.socket conf/systemd/darkroom-check.timer $(DESTDIR)$(unitdir)
	cd $(DESTDIR)$(unitdir) && for u in darkroomd.service darkroom-check.service darkroom-check.timer; do \
	  sed -f $(CURDIR)/conf/systemd/instance.sed $$u > $${u%.*}@.$${u##*.} && chmod 644 $${u%.*}@.$${u##*.} || exit; \
	done

# bash looks for a file of the command's name.
install-completion:
	$(INSTALL) -d $(DESTDIR)$(completiondir)
	$(INSTALL) -m 644 scripts/completion.bash $(DESTDIR)$(completiondir)/darkroomd
	for t in $(TOOLS); do ln -sf darkroomd $(DESTDIR)$(completiondir)/darkroom-$$t; done

# build/deb/darkroom_*.deb
deb:
	@scripts/deb

# Removes everything but the configuration and the store.
uninstall:
	rm -f $(PROGRAMS:%=$(DESTDIR)$(bindir)/%) $(TOOLS:%=$(DESTDIR)$(mandir)/man1/darkroom-%.1) \
	 $(DESTDIR)$(mandir)/man5/darkroomd.ini.5 $(DESTDIR)$(mandir)/man8/darkroomd.8 $(DESTDIR)$(mandir)/man8/darkroom-decode.8 \
	 $(DESTDIR)$(mandir)/man7/darkroom-http.7 $(DESTDIR)$(mandir)/man7/darkroom-store.7 \
	 $(DESTDIR)$(mandir)/man7/darkroom-scheduling.7 $(DESTDIR)$(mandir)/man7/darkroom-scale.7 \
	 $(addprefix $(DESTDIR)$(unitdir)/,darkroomd.service darkroomd@.service darkroomd.socket darkroom-check.service \
	 darkroom-check@.service darkroom-check.timer darkroom-check@.timer) \
	 $(DESTDIR)$(completiondir)/darkroomd $(TOOLS:%=$(DESTDIR)$(completiondir)/darkroom-%)
	$(if $(docdir),rm -rf $(DESTDIR)$(docdir))

clean:
	rm -rf build/deb build/lab build/lab.html build/plain build/debug build/asan build/tsan build/ubsan build/fuzz build/afl build/coverage build/analyze build/clang-* build/darkroom* compile_commands.json

help:
	@printf '%s\n' \
	 'make                  build build/darkroomd and the tools build/darkroom-*' \
	 'make check            build and run the unit tests' \
	 'make asan|tsan|ubsan  build and run the unit tests with a sanitizer' \
	 'make fuzz             run the fuzz targets in tests/fuzz T=all|NAME, S=seconds for each, SEED, FUZZER=libfuzzer|afl' \
	 'make coverage         measure the lines that the tests execute, into build/coverage; needs clang and llvm' \
	 'make format           apply clang-format to all C files' \
	 'make lint             check C files and scripts with clang-format, clang-tidy, cppcheck, shellcheck' \
	 'make analyze          look for faults with gcc -fanalyzer; analyze-clang: with the analyser of clang' \
	 'make layers           check that each folder includes only from folders below it' \
	 'make compile_commands.json      for clangd and clang-tidy' \
	 'make world            build programs that run in virtual time: tests/world' \
	 'make lab              build build/lab.html: the scheduler in virtual time, in a browser' \
	 'make bench            compare the daemon with its own code without a server; BENCH="OPTIONS"' \
	 'make bench-peers      compare the daemon with other servers' \
	 'make SAN=LIST         build/asan/darkroomd (address,undefined), build/tsan/darkroomd (thread), ...' \
	 'make docs             render the manual as HTML in build/docs; needs mandoc' \
	 'make install          install programs, man pages, systemd units and bash completion; keeps a configuration;' \
	 '                      DESTDIR= PREFIX=/usr/local SYSCONFDIR= unitdir= completiondir=; also install-bin, install-conf,' \
	 '                      install-man, install-systemd, install-completion, install-doc' \
	 'make deb              build a Debian package in build/deb, of conf/debian; needs debhelper, checked with lintian' \
	 'make uninstall        remove the installation, except the configuration' \
	 'make clean            remove built files, except the store in build/store' \
	 '' \
	 'Variables: CC=gcc|clang (builds into build/clang-*), DEBUG=1 costly assertions, WERROR=1, V=1 show commands,' \
	 '           OPT="-O2 -g", CPPFLAGS, CFLAGS, LDFLAGS, LDLIBS'

-include $(OBJ:.o=.d) $(DECODE:.o=.d) $(TESTS:=.d) $(FIXTURES:.o=.d) $(REPLACEMENTS:.o=.d) $(patsubst %.c,$B/%.d,$(wildcard tests/fuzz/*.c)) $(SERVER:=.d) $(LIMIT:=.d) $(SYNTHETIC:=.d) $B/tests/bench/spin.d $(world_objects:.o=.d) $(patsubst %.o,%.d,$(seed_objects) $(store_objects) $(nodes_objects) $(daemon_objects)) $(patsubst %,$B/tests/world/%.d,atomics orders test_filter) $(world_atomic:.o=.d) $(ESCAPES:=.d) $(PLANES:=.d) $(HOSTILE:=.d) $(DAMAGE:=.d) $(PRELOADS:.so=.d) $(foreach t,$(TOOLS),$(patsubst %.o,%.d,$(call tool_objects,$t)))
