# Thin: every target calls a script in scripts/, and every step is skipped or quick when its work is done.

.DEFAULT_GOAL := help
.PHONY: help demo test setup build release asan tsan lint format clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: release  ## set up, build, and make a real PyTorch job faster
	@scripts/demo

test: setup  ## set up, build, and run every test
	@scripts/run-tests

setup:  ## install what is missing
	@scripts/setup

build: setup  ## unoptimised build in build/dev
	@scripts/build dev

release: setup  ## optimised build in build/release
	@scripts/build release

asan: setup  ## unit tests under the address and undefined-behaviour sanitizers
	@scripts/run-tests asan

tsan: setup  ## unit tests under the thread sanitizer
	@scripts/run-tests tsan

lint: build  ## formatting and clang-tidy
	@scripts/lint

format:  ## format all C++ sources
	@scripts/lint --fix

clean:  ## remove build/ (what setup installed stays)
	rm -rf build
