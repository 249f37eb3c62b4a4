package image

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/image"
	"github.com/sledctl/sledctl/peer/web"
)

// What ended a download keeps its kind, and says how to continue: after its own hint, where it has one.
func TestWhatIsKeptOfADownload(t *testing.T) {
	const again = "to continue, run the same command again"
	for name, c := range map[string]struct {
		err  error
		kind fault.Kind
		hint string
	}{
		"broken off":      {&web.CutError{URL: "u", Err: errors.New("EOF")}, fault.Failed, again},
		"a silent server": {&web.StalledError{URL: "u"}, fault.Deadline, again},
		"^C":              {context.Canceled, fault.Interrupted, again},
		"time is up":      {context.DeadlineExceeded, fault.Deadline, again},
		"a full disk":     {&web.FullError{File: "/d/f", Err: errors.New("ENOSPC")}, fault.Refused, "set image.directory"},
		"a full pool":     {&NoRoomError{Name: "x", Pool: "tank"}, fault.Refused, "to see what can be removed"},
		"a name in use":   {&ExistsError{}, fault.Conflict, "to replace it"},
	} {
		err := &KeptError{Err: c.err, File: "/d/f", Length: 9}
		if fault.Of(err) != c.kind || !strings.HasPrefix(err.Hint(), c.hint) || !strings.Contains(err.Hint(), "the same command") || !strings.Contains(err.Error(), "9 bytes are kept in /d/f") {
			t.Errorf("%s: %v of kind %v: %s", name, err, fault.Of(err), err.Hint())
		}
	}
}

// What can never become the image is removed; all else is kept.
func TestWhatIsWorthless(t *testing.T) {
	for err, want := range map[error]bool{
		&DigestError{}: true, errors.Join(&image.Refused{}): true,
		&NoRoomError{}: false, &ExistsError{}: false, context.Canceled: false, errors.New("EIO"): false,
	} {
		if got := worthless(err); got != want {
			t.Errorf("%T: %v", err, got)
		}
	}
}
