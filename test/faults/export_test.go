package faults

// InOrder is for tests.
var InOrder = inOrder
