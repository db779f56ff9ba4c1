#!/usr/bin/env python3
"""Tests of the include-direction check: what it must refuse and what it must let pass, on small made-up trees."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import include_direction  # noqa: E402


def findings(files):
    """Runs the check over a tree given as {path: includes}; an include without '<' is written from the root."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, included in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            lines = [f"#include {name}" if name[0] in '<"' else f'#include "{name}"' for name in included]
            (root / path).write_text("#pragma once\n" + "\n".join(lines) + "\n", encoding="utf-8")
        return include_direction.check(root)


def one(source, included):
    """The findings where `source` includes `included`, which exists."""
    return findings({source: [included], included: []} if included[0] != "<" else {source: [included]})


class Refused(unittest.TestCase):
    def check(self, source, included, words):
        found = one(source, included)
        self.assertEqual(len(found), 1, found)
        self.assertIn(f"{source}:2:", found[0])
        self.assertIn(words, found[0])

    def test_higher_rank(self):
        self.check("core/verify/verdict.cpp", "core/search/controller.h", "rank 4")

    def test_equal_rank(self):
        self.check("core/search/a.cpp", "core/propose/b.h", "only lower ranks")

    def test_base_stands_alone(self):
        self.check("core/base/a.h", "core/text/b.h", "only lower ranks")

    def test_contract_does_not_know_of_measure(self):
        self.check("core/contract/a.h", "core/measure/window.h", "only lower ranks")

    def test_types_headers_are_not_for_rank_zero(self):
        self.check("core/base/a.h", "core/trial/receipt.h", "only lower ranks")

    def test_effects_of_trial(self):
        self.check("core/contract/a.cpp", "core/trial/run_trial.h", "only lower ranks")

    def test_core_and_the_program(self):
        self.check("core/report/a.cpp", "server/cli/exit_codes.h", "may not know of server/")
        self.check("core/base/a.cpp", "protocol/version.h", "may not know of protocol/")

    def test_libraries_of_the_rim(self):
        self.check("core/campaign/a.cpp", "<CLI/CLI.hpp>", "terminal")
        self.check("core/measure/a.cpp", "<boost/asio/io_context.hpp>", "socket")
        self.check("core/exec/a.cpp", "<boost/beast/http.hpp>", "socket")

    def test_protocol(self):
        self.check("protocol/a.cpp", "core/campaign/journal.h", "core/base and core/text only")
        self.check("protocol/a.cpp", "server/cli/options.h", "may not know of server/")

    def test_doubles_stay_in_tests(self):
        self.check("core/trial/a.cpp", "core/testing/fake_env.h", "tests only")
        self.check("server/main.cpp", "core/testing/fake_env.h", "tests only")

    def test_folder_without_rank(self):
        self.check("core/novel/a.cpp", "core/base/error.h", "has no rank")

    def test_leaves_use_nothing(self):
        self.check("core/text/utf8.cpp", "core/base/error.h", "is a leaf")

    def test_include_relative_to_the_file(self):
        found = findings({"core/search/a.cpp": ["b.h"], "core/search/b.h": []})
        self.assertEqual(len(found), 1)
        self.assertIn("not a path from the root", found[0])


class Allowed(unittest.TestCase):
    def check(self, source, included):
        self.assertEqual(one(source, included), [])

    def test_lower_rank_own_folder_and_libraries(self):
        self.check("core/campaign/a.cpp", "core/search/controller.h")
        self.check("core/search/a.cpp", "core/search/b.h")
        self.check("core/text/a.cpp", "core/base/error.h")
        self.check("core/base/a.cpp", "<vector>")
        self.check("core/exec/a.cpp", "<boost/asio/posix/stream_descriptor.hpp>")

    def test_types_headers(self):
        self.check("core/measure/a.h", "core/trial/receipt.h")
        self.check("core/contract/a.h", "core/trial/candidate.h")

    def test_leaves(self):
        self.check("core/base/a.cpp", "core/text/utf8.h")
        self.check("core/text/utf8.cpp", "core/text/utf8.h")

    def test_measure_follows_the_contract(self):
        self.check("core/measure/a.h", "core/contract/contract.h")

    def test_the_rim(self):
        self.check("server/cli/a.cpp", "core/campaign/journal.h")
        self.check("server/cli/a.cpp", "<CLI/CLI.hpp>")
        self.check("protocol/a.cpp", "core/text/diff.h")
        self.check("core/testing/a.cpp", "core/campaign/journal.h")


if __name__ == "__main__":
    unittest.main()
