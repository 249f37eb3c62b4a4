package key

import (
	"strconv"

	"github.com/sledctl/sledctl/host"
)

// secretCommand asks a key command for the secret of an epoch. It is read-only,
// which it must be anyway, because the output of commands that change something
// goes through files.
func secretCommand(argv []string, epoch uint64) host.Command {
	return keyCommand(argv, strconv.FormatUint(epoch, 10))
}

// latestCommand asks a key command for the newest epoch.
func latestCommand(argv []string) host.Command { return keyCommand(argv, "latest") }

func keyCommand(argv []string, word string) host.Command {
	c := host.Command{ReadOnly: true}
	if len(argv) > 0 {
		c.Program = argv[0]
		c.Args = append(append(c.Args, argv[1:]...), word)
	}
	return c
}
