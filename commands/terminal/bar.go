package terminal

import "strings"

// barWidth is that of a bar without its frame.
const barWidth = 20

// Bar draws a share of a whole, from 0 to 1, with letters that a serial console shows.
func Bar(share float64) string {
	full := int(min(max(share, 0), 1)*barWidth + 0.5)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", barWidth-full) + "]"
}
