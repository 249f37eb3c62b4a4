package failure

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sled/instance"
)

func TestAHintIsTakenApart(t *testing.T) {
	for hint, want := range map[string][]Next{
		"": nil,
		"to list the instances, run: sledctl instance list":                                                                  {{"sledctl instance list", "to list the instances"}},
		"run: sledctl bootstrap":                                                                                             {{"sledctl bootstrap", ""}},
		"to get the privileges, run: pfexec sledctl …":                                                                       {{"pfexec sledctl …", "to get the privileges"}},
		"did you mean web1? to list the instances, run: sledctl instance list":                                               {{"", "did you mean web1?"}, {"sledctl instance list", "to list the instances"}},
		"to retry these, run the command again; for the reason, run: sledctl instance get NAME":                              {{"", "to retry these, run the command again"}, {"sledctl instance get NAME", "for the reason"}},
		"to see its disk, run: sledctl storage list; when the pool answers, run: sledctl bootstrap, then this command again": {{"sledctl storage list", "to see its disk"}, {"sledctl bootstrap", "when the pool answers"}, {"", "then this command again"}},
		"set network.control_link in /etc/x, then run: sledctl bootstrap":                                                    {{"sledctl bootstrap", "set network.control_link in /etc/x"}},
		"add --all": {{"", "add --all"}},
	} {
		if diff := cmp.Diff(want, NextOf(hint)); diff != "" {
			t.Errorf("%q:\n%s", hint, diff)
		}
	}
}

func TestADocumentHasWhatIsNextAndTheGroups(t *testing.T) {
	err := &instance.PartialError{Of: 3, Failures: []instance.Failure{{Name: "a", Err: errors.New("full")}, {Name: "b", Err: errors.New("full")}}}
	d := Of(err, time.Now())
	if diff := cmp.Diff([]groupOf{{2, "full", []string{"a", "b"}}}, d.Groups); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"sledctl instance get NAME"}, d.Next); diff != "" {
		t.Error(diff)
	}
}
