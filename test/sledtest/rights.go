package sledtest

import (
	"strings"

	"github.com/sledctl/sledctl/sled/rights"
)

// Rights are those of the command that a line begins with; the zero Command: it has none.
func Rights(line string) (found rights.Command) {
	for _, c := range rights.Commands() {
		if strings.HasPrefix(line+" ", c.Name+" ") && len(c.Name) > len(found.Name) {
			found = c
		}
	}
	return found
}
