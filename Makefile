# darkroom - `make help` says what there is. Every variant of the build has a directory of its own under build/.
VERSION := 0.1.0
PREFIX  ?= /usr/local
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
INSTALL ?= install
ifeq ($(origin CC),default)
CC := gcc
endif
AR ?= ar

# address,undefined -> asan, thread -> tsan, undefined -> ubsan; no sanitizer -> plain, with DEBUG=1 debug
variant := $(if $(findstring address,$(SAN)),asan,$(if $(findstring thread,$(SAN)),tsan,$(if $(SAN),ubsan,$(if $(filter 1,$(DEBUG)),debug,plain))))
is_clang := $(findstring clang,$(notdir $(CC)))
B := build/$(if $(is_clang),clang-)$(variant)

OPT  ?= -O2 -g
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wwrite-strings -Wvla -Wformat=2 -Wundef -Wcast-qual $(if $(SAN),,-Wnull-dereference) \
        $(if $(filter 1,$(WERROR)),-Werror)
# gcc warns that the thread sanitizer does not see fences: ours order flags only, the queues publish the data.
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
            $(if $(is_clang),,$(if $(findstring thread,$(SAN)),-Wno-tsan))
HARDEN := $(if $(SAN),,-fstack-protector-strong -D_FORTIFY_SOURCE=2)
DARKROOM_CPPFLAGS := -D_GNU_SOURCE $(addprefix -iquote ,src stages loadgen) -isystem /usr/share/include/llhttp \
                     $(if $(or $(SAN),$(filter 1,$(DEBUG))),-DDARKROOM_DEBUG) $(CPPFLAGS)
DARKROOM_CFLAGS := -std=c11 -pthread $(OPT) $(HARDEN) $(WARN) $(SANFLAGS) $(CFLAGS)
DARKROOM_LDFLAGS := -pthread -Wl,-z,relro,-z,now $(SANFLAGS) $(LDFLAGS)
LIBS := -ljpeg -levent_core -lhwloc -lmetis -liniparser -lseccomp -lnettle -lm -lpthread $(LDLIBS)

# Sources stand at most one folder deep; llhttp comes as C files in Debian's node-llhttp.
SRC    := $(sort $(wildcard $(foreach d,src stages,$d/*.c $d/*/*.c)))
OBJ    := $(SRC:%.c=$B/%.o)
LLHTTP := $(patsubst %,$B/llhttp/%.o,api http llhttp)
TOOLS  := load dataset
PROGRAMS := darkroomd $(TOOLS:%=darkroom-%)
TESTS  := $(patsubst %.c,$B/%,$(sort $(wildcard tests/unit/*/test_*.c)))
SERVER := $B/tests/tools/answer_server
LIMIT  := $B/tests/bench/limit
PRELOADS := $B/tests/tools/power_recorder.so $B/tests/tools/faults.so

say = $(if $(filter 1,$V),,@printf '  %-5s %s\n' $(1) $@;)

.PHONY: all check bench bench-peers asan tsan ubsan clean help FORCE install install-bin install-conf install-man install-systemd install-completion \
        uninstall deb
.DELETE_ON_ERROR:
.SECONDARY:

all: $(PROGRAMS:%=$B/%) $(if $(filter build/plain,$B),$(PROGRAMS:%=build/%) $(PRELOADS))

$(PROGRAMS:%=build/%): build/%: build/plain/%
	$(call say,COPY)ln -f $< $@

$B/darkroomd: $(OBJ) $(LLHTTP) $B/flags $B/objects
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -o $@ $(OBJ) $(LLHTTP) $(LIBS)

# darkroom-NAME is made of loadgen/NAME/*.c and what it needs of darkroom's own.
tool_objects = $(patsubst %.c,$B/%.o,$(sort $(wildcard loadgen/$1/*.c)))
$(foreach t,$(TOOLS),$(eval $B/darkroom-$t: $(call tool_objects,$t)))
$(TOOLS:%=$B/darkroom-%): $B/libdarkroom.a $B/flags
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -Wl,--as-needed -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS)

$B/%.o: %.c $B/flags
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(DARKROOM_CPPFLAGS) $(EXTRA) -MMD -MP $(DARKROOM_CFLAGS) -c -o $@ $<

# The loops that paint the dataset are worth vectorising.
$B/loadgen/dataset/paint.o $B/loadgen/dataset/texture.o: private DARKROOM_CFLAGS += -O3

# Where these loops begin in the middle of 32 bytes, a picture of 10 KB costs 40 us more, an eleventh of all; and that would
# change with whatever is linked before them.
$B/stages/pixel/kernel_x86.o: private DARKROOM_CFLAGS += -falign-functions=64 -falign-loops=32

$B/llhttp/%.o: /usr/share/llhttp/%.c $B/flags
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

# Fixtures and harnesses that unit tests share.
SUPPORT := $(patsubst %.c,$B/%.o,$(sort $(wildcard tests/unit/support/*.c)))
$B/libsupport.a: $(SUPPORT)
	$(call say,AR)rm -f $@; $(AR) qcs $@ $^

# A test that includes a .c file to reach its statics takes that member's place in the archive.
$B/libdarkroom.a: $(filter-out $B/src/main.o,$(OBJ)) $(LLHTTP) $B/objects
	$(call say,AR)rm -f $@; $(AR) qcs $@ $(filter %.o,$^)
$B/tests/unit/%.o: private DARKROOM_CPPFLAGS += -iquote tests/unit
$B/tests/unit/%: $B/tests/unit/%.o $B/libsupport.a $B/libdarkroom.a
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

# What tests/load checks darkroom-load with.
$(SERVER): $(SERVER).o
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -o $@ $^

# What the daemon's work costs without a daemon.
$(LIMIT): $(LIMIT).o $B/loadgen/load/corpus.o $B/loadgen/load/request_schedule.o $B/libdarkroom.a
	$(call say,LINK)$(CC) $(DARKROOM_LDFLAGS) -o $@ $^ $(LIBS)

bench: all $(LIMIT)
	@tests/bench/bench $(BENCH)

bench-peers: all
	@scripts/setup peers
	@tests/bench/bench_peers $(BENCH)

# What tests/http loads into the daemon: it records file operations, or makes calls fail.
$(PRELOADS): $B/%.so: %.c $B/flags
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(DARKROOM_CPPFLAGS) -MMD -MP $(DARKROOM_CFLAGS) -fPIC $(DARKROOM_LDFLAGS) -shared -o $@ $<

check: $(TESTS) $(SERVER)
	@scripts/check-units $(TESTS)
asan:  ; @$(MAKE) --no-print-directory SAN=address,undefined check
tsan:  ; @$(MAKE) --no-print-directory SAN=thread check
ubsan: ; @$(MAKE) --no-print-directory SAN=undefined check

# @NAME@ in installed files becomes the path of this installation; the units are written for PREFIX=/usr.
bindir = $(PREFIX)/bin
mandir = $(PREFIX)/share/man
unitdir ?= $(if $(filter /usr,$(PREFIX)),/usr/lib,$(PREFIX)/lib)/systemd/system
completiondir ?= $(PREFIX)/share/bash-completion/completions
put = sed -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|g' -e 's|/usr/bin/|$(bindir)/|g' -e 's|/etc/darkroom/|$(SYSCONFDIR)/darkroom/|g' $1 > \
      $(DESTDIR)$2 && chmod 644 $(DESTDIR)$2

$B/man/darkroomd.ini.5: conf/darkroomd.ini.5.in scripts/keys-to-mdoc $B/darkroomd
	@mkdir -p $(@D)
	$(call say,MAN)scripts/keys-to-mdoc $B/darkroomd $< > $@

# The shipped configuration is what the table of keys generates; a unit test compares them.
conf/darkroomd.ini: FORCE $B/darkroomd
	$(call say,KEYS)$B/darkroomd --keys > $B/darkroomd.ini && cmp -s $B/darkroomd.ini $@ || cp $B/darkroomd.ini $@

install: install-bin install-conf install-man install-systemd install-completion

install-bin: $(PROGRAMS:%=$B/%)
	$(INSTALL) -d $(DESTDIR)$(bindir)
	$(INSTALL) -m 755 $^ $(DESTDIR)$(bindir)

install-conf:
	$(INSTALL) -d $(DESTDIR)$(SYSCONFDIR)/darkroom
	test -e $(DESTDIR)$(SYSCONFDIR)/darkroom/darkroomd.ini || \
	 $(INSTALL) -m 644 conf/darkroomd.ini $(DESTDIR)$(SYSCONFDIR)/darkroom/darkroomd.ini

install-man: $B/man/darkroomd.ini.5
	$(INSTALL) -d $(DESTDIR)$(mandir)/man1 $(DESTDIR)$(mandir)/man5 $(DESTDIR)$(mandir)/man8
	$(INSTALL) -m 644 $(foreach t,$(TOOLS),loadgen/$t/darkroom-$t.1) $(DESTDIR)$(mandir)/man1
	$(call put,$<,$(mandir)/man5/darkroomd.ini.5)
	$(call put,src/daemon/darkroomd.8,$(mandir)/man8/darkroomd.8)

install-systemd:
	$(INSTALL) -d $(DESTDIR)$(unitdir)
	$(call put,conf/systemd/darkroomd.service,$(unitdir)/darkroomd.service)
	$(INSTALL) -m 644 conf/systemd/darkroomd.socket $(DESTDIR)$(unitdir)/darkroomd.socket

# bash looks for a file of the command's name.
install-completion:
	$(INSTALL) -d $(DESTDIR)$(completiondir)
	$(INSTALL) -m 644 scripts/completion.bash $(DESTDIR)$(completiondir)/darkroomd
	for t in $(TOOLS); do ln -sf darkroomd $(DESTDIR)$(completiondir)/darkroom-$$t; done

# build/deb/darkroom_*.deb
deb:
	@scripts/deb

# All but the configuration and the store.
uninstall:
	rm -f $(PROGRAMS:%=$(DESTDIR)$(bindir)/%) $(TOOLS:%=$(DESTDIR)$(mandir)/man1/darkroom-%.1) \
	 $(DESTDIR)$(mandir)/man5/darkroomd.ini.5 $(DESTDIR)$(mandir)/man8/darkroomd.8 \
	 $(DESTDIR)$(unitdir)/darkroomd.service $(DESTDIR)$(unitdir)/darkroomd.socket \
	 $(DESTDIR)$(completiondir)/darkroomd $(TOOLS:%=$(DESTDIR)$(completiondir)/darkroom-%)

clean:
	rm -rf build/deb build/plain build/debug build/asan build/tsan build/ubsan build/clang-* build/darkroom*

help:
	@printf '%s\n' \
	 'make                  build build/darkroomd and its tools, build/darkroom-*' \
	 'make check            build and run the unit tests' \
	 'make asan|tsan|ubsan  the unit tests under gcc'\''s or clang'\''s sanitizers' \
	 'make bench            the daemon beside its own code without a server around it; BENCH="OPTIONS"' \
	 'make bench-peers      ... beside other servers' \
	 'make SAN=LIST         build/asan/darkroomd (address,undefined), build/tsan/darkroomd (thread), ...' \
	 'make install          programs, man pages, systemd units, bash completion; keeps a configuration that is there;' \
	 '                      DESTDIR= PREFIX=/usr/local SYSCONFDIR= unitdir= completiondir=; also install-bin, install-conf,' \
	 '                      install-man, install-systemd, install-completion' \
	 'make deb              a Debian package in build/deb, of conf/debian; needs debhelper, checked with lintian' \
	 'make uninstall        removes all of that but the configuration' \
	 'make clean            remove what was built (a store in build/store stays)' \
	 '' \
	 'Variables: CC=gcc|clang (build/clang-* beside gcc'\''s), DEBUG=1 costly assertions, WERROR=1, V=1 show commands,' \
	 '           OPT="-O2 -g", CPPFLAGS, CFLAGS, LDFLAGS, LDLIBS'

-include $(OBJ:.o=.d) $(SUPPORT:.o=.d) $(TESTS:=.d) $(SERVER:=.d) $(LIMIT:=.d) $(PRELOADS:.so=.d) $(foreach t,$(TOOLS),$(patsubst %.o,%.d,$(call tool_objects,$t)))
