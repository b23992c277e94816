// Package python runs the tests of the Python package, leadership/client/python.
package python
