package main

import "strings"

// indented makes lines a block of code.
func indented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if line != "" {
			line = "    " + line
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

// unindented removes the spaces that all lines begin with.
func unindented(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	common := -1
	for _, line := range lines {
		spaces := len(line) - len(strings.TrimLeft(line, " "))
		if strings.TrimSpace(line) != "" && (common < 0 || spaces < common) {
			common = spaces
		}
	}
	for i, line := range lines {
		lines[i] = line[min(max(common, 0), len(line)):]
	}
	return strings.Join(lines, "\n")
}
