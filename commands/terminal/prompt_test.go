package terminal

import (
	"context"
	"errors"
	"io"
	"testing"
)

func TestConfirm(t *testing.T) {
	const what, question = "format disk c1t0d0", "Format c1t0d0?"
	for name, c := range map[string]struct {
		p       Pretended
		yes     bool
		refused *RefusedError
		asked   bool
	}{
		"--yes":               {Pretended{}, true, nil, false},
		"--yes on terminal":   {Pretended{Terminal: true, In: "n\n"}, true, nil, false},
		"a pipe":              {Pretended{In: "y\n"}, false, &RefusedError{What: what}, false},
		"y":                   {Pretended{Terminal: true, In: "y\n"}, false, nil, true},
		"yes":                 {Pretended{Terminal: true, In: " YES \n"}, false, nil, true},
		"n":                   {Pretended{Terminal: true, In: "n\n"}, false, &RefusedError{What: what, Asked: true}, true},
		"return":              {Pretended{Terminal: true, In: "\n"}, false, &RefusedError{What: what, Asked: true}, true},
		"end of file":         {Pretended{Terminal: true}, false, &RefusedError{What: what, Asked: true}, true},
		"something else":      {Pretended{Terminal: true, In: "yeah\n"}, false, &RefusedError{What: what, Asked: true}, true},
		"only the first line": {Pretended{Terminal: true, In: "no\nyes\n"}, false, &RefusedError{What: what, Asked: true}, true},
	} {
		s, out, stderr := Buffers(c.p)
		err := s.Confirm(t.Context(), what, question, c.yes)
		got, _ := errors.AsType[*RefusedError](err)
		if (err == nil) != (c.refused == nil) || got != nil && *got != *c.refused {
			t.Errorf("%s: got %v", name, err)
		}
		if asked := stderr.String() == question+" [y/N] "; asked != c.asked || out.Len() != 0 {
			t.Errorf("%s: stdout %q, stderr %q", name, out, stderr)
		}
	}
}

func TestConfirmNeedsBothEndsOfATerminal(t *testing.T) {
	s, _, _ := Buffers(Pretended{Terminal: true, In: "y\n"})
	s.Err.Terminal = false
	if err := s.Confirm(t.Context(), "x", "x?", false); err == nil || err.Error() != "x: needs --yes where nobody can be asked" {
		t.Errorf("got %v", err)
	}
}

func TestConfirmGivesUpWithItsContext(t *testing.T) {
	s, _, _ := Buffers(Pretended{Terminal: true})
	r, w := io.Pipe()
	defer w.Close()
	s.In.Reader = r
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Confirm(ctx, "x", "x?", false); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
