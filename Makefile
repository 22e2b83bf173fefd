# Builds and installs the extension with PGXS; this file is the truth about the build.
# CMakeLists.txt reads the same sources for the IDE, clang-tidy and the unit tests.

EXTENSION = durable_timers
# The version stands in durable_timers.control alone; scripts/check-version compares the rest.
EXTVERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" durable_timers.control)

MODULE_big = durable_timers
SOURCES := $(sort $(wildcard src/*/*.cpp) src/module.cpp)
OBJS = $(SOURCES:.cpp=.o)

# The install script is the topic files of schema/, in the order of their names.
SCHEMA_SCRIPT = durable_timers--$(EXTVERSION).sql
TOPICS := $(sort $(wildcard schema/*.sql))
DATA_built = $(SCHEMA_SCRIPT)
# Ready queries for psql, beside the install script.
DATA = psql/durable_timers.psql

REGRESS = $(sort $(patsubst sql/%.sql,%,$(wildcard sql/*.sql)))
REGRESS_OPTS = --load-extension=durable_timers
ISOLATION = $(sort $(patsubst test/specs/%.spec,%,$(wildcard test/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test --outputdir=test --load-extension=durable_timers

EXTRA_CLEAN = $(SCHEMA_SCRIPT) $(SOURCES:.cpp=.d) test/results test/output_iso

# C++ has no use for the server's JIT inliner.
override with_llvm = no

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

SERVER_INCLUDES := $(shell $(PG_CONFIG) --includedir-server)
override CXXFLAGS := -std=c++20 -O2 -g -fno-strict-aliasing -fwrapv -fno-omit-frame-pointer \
	-fvisibility=hidden -fvisibility-inlines-hidden -fPIC $(CXXFLAGS_EXTRA)
WARNINGS = -Wall -Wextra -Werror -Wno-missing-field-initializers
# Ours first and with all warnings; the server's headers are system headers.
override CPPFLAGS := -Isrc -isystem $(SERVER_INCLUDES) -isystem $(SERVER_INCLUDES)/../internal -D_GNU_SOURCE
SHLIB_LINK += -luuid -lstdc++

%.o: %.cpp
	$(CXX) $(CXXFLAGS) $(WARNINGS) $(CPPFLAGS) -MMD -MP -c -o $@ $<

-include $(SOURCES:.cpp=.d)

$(SCHEMA_SCRIPT): $(TOPICS) durable_timers.control
	{ printf '%s\n' '\echo Use "create extension durable_timers" to load this file. \quit'; cat $(TOPICS); } > $@

.PHONY: check-version
check-version:
	scripts/check-version
