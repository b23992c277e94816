// Package dashboard has the tests that drive the dashboard in Chromium, on a real process and on a
// server within the test. It is a module of its own, because the driver of the browser is large.
package dashboard
