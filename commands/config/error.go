package config

import (
	"fmt"

	"github.com/sledctl/sledctl/host/fault"
)

// Error is a setting that is wrong: a usage error. Several are joined.
type Error struct {
	Key     string // "network.mtu"; empty if the file as a whole is wrong
	Where   string // "/etc/sledctl/config.toml:12", "SLEDCTL_NETWORK_MTU", "default"
	Problem string
	Nearest string // of an unknown key: the one that was probably meant
}

// Error is one line: where, which key, what is wrong and what would be right.
func (e *Error) Error() string {
	text := e.Where
	if e.Key != "" {
		text += ": " + e.Key
	}
	text += ": " + e.Problem
	if e.Nearest != "" {
		text += fmt.Sprintf(": did you mean %q?", e.Nearest)
	}
	return text
}

func (*Error) Kind() fault.Kind { return fault.Usage }

// Hint says what to do.
func (*Error) Hint() string { return "correct the setting, then run the same command again" }
