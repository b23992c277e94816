import json
import unittest
from pathlib import Path

from regent_client import statement

TABLE = Path(__file__).parents[3] / "statement" / "testdata" / "statements.json"

try:
    import cryptography  # noqa: F401
except ImportError:
    cryptography = None


class Statements(unittest.TestCase):
    def setUp(self) -> None:
        self.table = json.loads(TABLE.read_text())

    @unittest.skipUnless(cryptography, "the package cryptography is not installed")
    def test_the_table_that_all_verifiers_share(self) -> None:
        keys = statement.Keys(self.table["keys"])
        for row in self.table["rows"]:
            with self.subTest(row["name"]):
                said = ""
                try:
                    claims = keys.verify(row["statement"], now=row["nowMs"] / 1000, election=row.get("election", ""), token=row.get("token", 0))
                    self.assertEqual((claims["fencingToken"], claims["sub"], claims["election"][:7]), (34, "agent-1", "reports"))
                except statement.BadStatement as error:
                    said = str(error)
                self.assertEqual(said.split(":")[0], row["want"], said)

    @unittest.skipIf(cryptography, "the package cryptography is installed")
    def test_the_missing_package_is_named(self) -> None:
        with self.assertRaisesRegex(ImportError, r"regent-client\[statements\]"):
            statement.Keys(self.table["keys"])
