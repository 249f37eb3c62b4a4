package main

// exceptions is what is over a limit today, with its figure.
func exceptions() map[string]int { return map[string]int{} }
