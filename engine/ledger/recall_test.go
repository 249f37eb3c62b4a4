package ledger

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
)

// large is a ledger with two copies whose index is worth keeping, and is kept.
func large(t *testing.T) (*sled, map[string]string) {
	t.Helper()
	s := created(t, 2, false)
	l := s.open(t)
	want := map[string]string{}
	for n := 0; len(s.content(t, s.disks[0])) < worthKeeping+1000; n++ {
		key := fmt.Sprintf("k%03d", n)
		want[key] = fmt.Sprintf(`"%01000d"`, n)
		set(t, l, fact(key, want[key]))
	}
	must(t)(s.reopened(t).Read(t.Context()))
	if _, err := s.Stat("/run/" + indexName); err != nil {
		t.Fatal(err)
	}
	return s, want
}

func TestTheIndexOfALargeCopyServesTheNextProcess(t *testing.T) {
	s, want := large(t)
	l := s.reopened(t)
	if diff := cmp.Diff(want, all(must(t)(l.Read(t.Context())))); diff != "" {
		t.Fatal(diff)
	}
	for _, c := range l.seen {
		if size := len(c.text.Data()); size-c.text.Kept() > size/8 {
			t.Errorf("of %d bytes %d were recalled", size, c.text.Kept())
		}
	}
}

// Nobody is refused, and nothing else is read, because of what lies there.
func TestWhateverLiesWhereTheIndexIsKeptChangesNothing(t *testing.T) {
	s, want := large(t)
	name := "/run/" + indexName
	old := must2(host.ReadFile(s, name))
	set(t, s.reopened(t), fact("later", "1"))
	want["later"] = "1"
	torn := bytes.Clone(old)
	torn[len(torn)/2] ^= 1
	for what, data := range map[string][]byte{"old": old, "torn": old[:len(old)/2], "damaged": torn, "empty": {}, "no index": []byte("sledctl")} {
		s.put(t, name, data)
		if diff := cmp.Diff(want, all(must(t)(s.reopened(t).Read(t.Context())))); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	try(t, s.Remove(name))
	if diff := cmp.Diff(want, all(must(t)(s.reopened(t).Read(t.Context())))); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Stat(name); err != nil {
		t.Errorf("it is not kept again: %v", err)
	}
}

// A copy that rots in the middle, or is set back, is found as if no index had been kept.
func TestACopyThatRotsIsFoundThoughItsIndexIsKept(t *testing.T) {
	s, _ := large(t)
	each(s, func(d *disk) {
		data := s.content(t, d)
		data[len(data)/2] ^= 1
		s.put(t, d.at.File(), data)
	})
	if got := shown(t, s); !strings.Contains(got, "does not match its hash") {
		t.Errorf("a flipped bit: %s", got)
	}
	s, _ = large(t)
	each(s, func(d *disk) { s.rewind(t, d, 1) })
	if got := shown(t, s); got != "refused: rewound" {
		t.Errorf("set back: %s", got)
	}
}
