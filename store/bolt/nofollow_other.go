//go:build !unix

package bolt

const noFollow = 0
