//go:build !race

package sledtest

// Raced says that the race detector watches.
const Raced = false
