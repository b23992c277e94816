"""guard() in SQL transactions."""

import re
import sqlite3
import sys
import types
import unittest

from regent_client import InvalidArgument, RecordCorrupt, TokenStale, guard
from regent_client.fence import schema

MAX = 2**53 - 1


class Translated:
    """A cursor of a driver with another paramstyle, over SQLite."""

    def __init__(self, cursor, pattern):
        self._cursor, self._pattern, self.connection = cursor, pattern, cursor.connection

    def execute(self, statement, parameters):
        names = []
        text = re.sub(self._pattern, lambda m: names.append(m[1] if m.groups() else None) or "?", statement)
        if isinstance(parameters, dict):
            parameters = tuple(parameters[name] for name in names)
        assert len(names) == len(parameters), (statement, parameters)
        self._cursor.execute(text, parameters)

    def fetchone(self):
        return self._cursor.fetchone()

    @property
    def rowcount(self):
        return self._cursor.rowcount


STYLES = {"qmark": r"\?", "numeric": r":\d", "format": "%s", "named": r":(\w+)", "pyformat": r"%\((\w+)\)s"}


class Guard(unittest.TestCase):
    def setUp(self):
        self.db = sqlite3.connect(":memory:")
        self.addCleanup(self.db.close)
        self.cursor = self.db.cursor()
        self.cursor.execute(schema())
        self.db.commit()

    def check(self, token, election="planner", resource="jobs", **more):
        try:
            guard(self.cursor, election, token, resource=resource, **more)
            self.db.commit()
        except BaseException:
            self.db.rollback()
            raise

    def test_the_mark_of_each_resource_only_rises(self):
        for resource, election, token, want in (
            ("jobs", "planner", 33, None),
            ("jobs", "planner", 33, None),  # a leader makes many writes
            ("jobs", "planner", 34, None),
            ("jobs", "planner", 33, TokenStale),
            ("jobs", "backup", 99, InvalidArgument),
            ("jobs", "backup", 1, InvalidArgument),
            ("jobs", "planner", 34, None),  # a refused check leaves no trace
            ('it\'s; another "one" %s ? :1', "planner", 1, None),
            ("jobs", "planner", MAX, None),
            ("jobs", "planner", MAX - 1, TokenStale),
        ):
            with self.subTest((resource, election, token)):
                if want is None:
                    self.check(token, election, resource)
                    continue
                with self.assertRaises(want) as caught:
                    self.check(token, election, resource)
                if want is TokenStale:
                    self.assertGreater(caught.exception.problem["fencingToken"], token)

    def test_rows_of_any_form_are_read(self):
        self.check(33)

        def a_dict(cursor, row):
            return {column[0]: value for column, value in zip(cursor.description, row)}

        for rows, text in ((a_dict, str), (sqlite3.Row, str), (None, bytes), (a_dict, bytes)):
            with self.subTest(rows=rows, text=text):
                self.db.row_factory, self.db.text_factory = rows, text
                self.cursor = self.db.cursor()
                with self.assertRaises(TokenStale):
                    self.check(32)

    def test_every_paramstyle_says_the_same(self):
        plain = self.cursor
        for token, (style, pattern) in enumerate(STYLES.items(), 33):
            with self.subTest(style):
                self.cursor = Translated(plain, pattern)
                self.check(token, paramstyle=style)
                with self.assertRaises(TokenStale):
                    self.check(token - 1, paramstyle=style)

    def test_the_paramstyle_is_that_of_the_drivers_package(self):
        driver = types.ModuleType("a_driver")
        driver.paramstyle = "format"
        sys.modules["a_driver"] = driver
        self.addCleanup(sys.modules.pop, "a_driver")
        kind = type("Cursor", (Translated,), {"__module__": "a_driver.inner.cursor"})
        own = type("Own", (kind,), {"__module__": __name__})
        self.cursor = own(self.cursor, STYLES["format"])
        self.check(33)
        with self.assertRaises(TokenStale):
            self.check(32)

    def test_a_cursor_of_an_unknown_driver_needs_a_paramstyle(self):
        plain = self.cursor
        self.cursor = Translated(plain, r"\?")
        for more in ({}, {"paramstyle": "oracle"}):
            with self.subTest(more), self.assertRaisesRegex(InvalidArgument, "paramstyle"):
                self.check(33, **more)

    def test_a_rolled_back_check_leaves_no_mark(self):
        guard(self.cursor, "planner", 34, resource="jobs")
        self.db.rollback()
        self.check(33)

    def test_the_resource_is_the_election_unless_it_is_named(self):
        self.check(34, resource=None)
        self.check(33, resource="jobs")
        self.assertEqual(self.cursor.execute("SELECT * FROM regent_fence ORDER BY 1").fetchall(), [("jobs", "planner", 33), ("planner", "planner", 34)])

    def test_outside_of_a_transaction_is_refused(self):
        self.db.isolation_level = None
        with self.assertRaisesRegex(InvalidArgument, "transaction"):
            guard(self.cursor, "planner", 33)
        self.cursor.execute("BEGIN")
        guard(self.cursor, "planner", 33)
        self.cursor.execute("COMMIT")

    def test_what_is_no_mark_is_refused_before_anything_is_sent(self):
        sent = []
        self.db.set_trace_callback(sent.append)
        for election, token, resource in (
            ("", 1, "jobs"), ("Planner!", 1, "jobs"), (None, 1, "jobs"), ("planner", 0, "jobs"), ("planner", -1, "jobs"),
            ("planner", MAX + 1, "jobs"), ("planner", True, "jobs"), ("planner", "33", "jobs"), ("planner", 1, ""), ("planner", 1, b"jobs"),
        ):
            with self.subTest((election, token, resource)), self.assertRaises(InvalidArgument):
                guard(self.cursor, election, token, resource=resource)
        self.assertEqual(sent, [])

    def test_a_tables_name_is_nothing_but_a_name(self):
        for name in ("marks", "_m", "ops.marks", "select", "x" * 63):
            self.assertIn('"' + name.replace(".", '"."') + '"', schema(name))
        for name in ("", "Marks", "1st", "a b", 'a"b', "a;drop table b", "a.b.c", ".a", "a.", "a-b", "märks", "marks\n", "x" * 64):
            with self.subTest(name), self.assertRaises(InvalidArgument):
                schema(name)
        self.cursor.execute(schema("select"))
        self.check(33, table="select")
        with self.assertRaises(TokenStale):
            self.check(32, table="select")

    def test_a_row_that_guard_did_not_write_is_corrupt(self):
        self.cursor.execute('CREATE TABLE other (resource TEXT PRIMARY KEY, election TEXT, fencing_token BIGINT)')
        for election, mark in ((None, 1), ("planner", None), ("planner", "many"), ("planner", MAX + 1), ("Not a name", 7)):
            self.cursor.execute("INSERT OR REPLACE INTO other VALUES ('jobs', ?, ?)", (election, mark))
            self.db.commit()
            with self.subTest((election, mark)), self.assertRaises(RecordCorrupt):
                self.check(33, table="other")

    def test_a_driver_that_does_not_count_is_refused(self):
        kind = type("Blind", (Translated,), {"rowcount": -1})
        self.cursor = kind(self.cursor, STYLES["qmark"])
        with self.assertRaisesRegex(InvalidArgument, "rowcount"):
            self.check(33, paramstyle="qmark")
