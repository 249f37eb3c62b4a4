package host

import "os"

// DeviceLine is the line of what is written to a device: what says what it is.
func DeviceLine(name, what string) Line {
	return Line{Kind: LineFile, Text: "dd of=" + Quote(name) + " # " + what}
}

// OpenDevice opens a device to be written to at offsets. When it is closed, one line stands in a
// trace for all that was written: a disk is too large to be shown.
func OpenDevice(f Files, name, what string) (File, error) {
	return openSecret(f, name, os.O_WRONLY, DeviceLine(name, what))
}
