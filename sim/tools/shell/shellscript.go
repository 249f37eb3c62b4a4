package shell

import (
	"fmt"
	"path"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/sledctl/sledctl/sim/tools/cli"
)

// prepare takes out of a script what would leave this goroutine or this
// program: a command in the background becomes one that is not waited for, and
// a process substitution, which needs a named pipe, is refused.
func (s *shell) prepare(file *syntax.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var refused error
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.ProcSubst:
			refused = fmt.Errorf("%s: process substitution is not simulated", n.Pos())
		case *syntax.Stmt:
			if n.Background || n.Coprocess {
				s.behind = append(s.behind, span{n.Pos().Offset(), n.End().Offset()})
				n.Background, n.Coprocess = false, false
			}
		}
		return true
	})
	return refused
}

// span is a part of a script, by the offsets of its first and last character.
type span struct{ from, to uint }

func (s *shell) inBackground(pos syntax.Pos) bool {
	for _, b := range s.behind {
		if pos.IsValid() && b.from <= pos.Offset() && pos.Offset() <= b.to {
			return true
		}
	}
	return false
}

// output collects what side-by-side commands print.
type output struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// ReadsInput tells whether a command reads its standard input: the others must
// leave it to those that follow them.
func ReadsInput(c cli.Call) bool {
	switch path.Base(c.Tool) {
	case "cat":
		return len(c.Args) == 0 || c.Args[len(c.Args)-1] == "-"
	case "opteadm":
		return len(c.Args) > 0 && c.Args[0] == "set-fw-rules"
	case "zonecfg", "svccfg":
		return len(c.Args) <= 2 || c.Args[len(c.Args)-1] == "-"
	case "zfs":
		return len(c.Args) > 0 && (c.Args[0] == "load-key" || c.Args[0] == "create" || c.Args[0] == "receive" || c.Args[0] == "change-key")
	case "zpool":
		return len(c.Args) > 0 && c.Args[0] == "create"
	}
	return false
}
