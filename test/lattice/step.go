package lattice

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim"
)

// step is one of those that lay out a sled: a command of the host, or a file.
type step struct {
	line string // empty: it is a file
	file string // or, with text empty and a mode, a directory whose mode is changed
	text string
	mode fs.FileMode
}

func (p step) take(ctx context.Context, s *sim.Sled) error {
	files := s.Host().Files()
	switch {
	case p.line == "" && p.text == "":
		return files.Chmod(p.file, p.mode)
	case p.line == "":
		return errors.Join(host.MkdirAll(files, path.Dir(p.file), 0o755), host.WriteFile(files, p.file, []byte(p.text), p.mode))
	}
	words := strings.Fields(p.line)
	result, err := s.Host().Run(ctx, host.Command{Program: words[0], Args: words[1:]})
	if err == nil && result.Exit != 0 {
		err = fmt.Errorf("exit %d: %s", result.Exit, result.Stderr)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.line, err)
	}
	return nil
}

// shell is the step as a line of a shell: see Row.Script.
func (p step) shell() string {
	file := `"${SLEDCTL_HOST#sim:}"/root` + p.file
	switch {
	case p.line == "" && p.text == "":
		return fmt.Sprintf("chmod %o %s", p.mode, file)
	case p.line == "":
		return fmt.Sprintf("mkdir -p %s && printf '%%s' %s > %s && chmod %o %s", path.Dir(file), host.Quote(p.text), file, p.mode, file)
	}
	words := strings.Fields(p.line)
	for i, w := range words {
		words[i] = host.Quote(w)
	}
	return "host " + strings.Join(words, " ")
}
