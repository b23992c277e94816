// Package browser tries in a real browser what a page of another site can do to a Regent on the
// same machine. It is skipped if there is no Chromium, or fails if REGENT_REQUIRE_EMULATORS is 1.
package browser
