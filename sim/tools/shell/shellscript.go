package shell

import (
	"fmt"

	"mvdan.cc/sh/v3/syntax"
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
