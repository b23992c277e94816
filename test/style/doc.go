// Package style tests properties of the source text: the imports of each package, how wide comments
// and prose are, and what pages quote. make check runs it, and the short form of the tests does
// not: it looks at every file, so that no result of it could be taken from the test cache.
package style
