//go:build !race

package commands_test

// raced says that the race detector watches.
const raced = false
