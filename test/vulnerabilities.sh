#!/usr/bin/env bash
# Looks for known vulnerabilities in the code that Regent calls: test/vulnerabilities.sh [PACKAGE...]
# Fails if there are any. If the database cannot be reached, nothing was checked: it says so, adds a line to the file that
# REGENT_NOT_CHECKED names, and exits with 75. GOVULNDB names another database than https://vuln.go.dev.
set -euo pipefail
cd "$(dirname "$0")/.."

database=${GOVULNDB:-https://vuln.go.dev}
if ! why=$(curl --fail --silent --show-error --max-time 5 --output /dev/null "$database/index/db.json" 2>&1); then
  echo "*** NOT CHECKED for known vulnerabilities: their database cannot be reached (${why:-no reason given})." >&2
  echo "*** Run make vulns on a machine that reaches $database, or set GOVULNDB to a copy of it." >&2
  echo "known vulnerabilities: run make vulns where $database can be reached" >>"${REGENT_NOT_CHECKED:-/dev/null}"
  exit 75
fi
go tool -modfile=test/tools.mod govulncheck -db "$database" "${@:-./...}"
