package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
)

// stamp is what this boot has seen. It lies on the RAM disk next to the lock: what
// it says ends with the boot, as what nobody else may have changed meanwhile. It
// is evidence and a saving, never a condition.
type stamp struct {
	Ledger string `json:"ledger"`
	N      uint64 `json:"n"`
	Epoch  string `json:"epoch"`
	Seq    uint64 `json:"seq"` // of the last line that was acknowledged, or shown for sure
	Hash   string `json:"hash"`
	// Agreed says that the witness was heard with these disks, and knows nothing
	// against that epoch. Marks is how many pools said so.
	Agreed bool     `json:"agreed"`
	Marks  int      `json:"marks"`
	Disks  []string `json:"disks"`
}

const (
	stampName = "ledger.seen"
	// externals is where the pools of U.2 disks are mounted.
	externals = "/pool/ext"
	// maxStamp is how much of a stamp is read.
	maxStamp = 64 << 10
)

func (l *Ledger) stampFile() string { return path.Join(path.Dir(l.places.Lock), stampName) }

// stamped is this boot's stamp; nil where there is none, or none to be read.
func (l *Ledger) stamped() *stamp {
	data, err := host.ReadAtMost(l.files, l.stampFile(), maxStamp)
	var s stamp
	if err != nil || json.Unmarshal(data, &s) != nil || s.Ledger == "" {
		return nil
	}
	return &s
}

// vouches says whether the witness need not be asked again about an epoch.
func (s *stamp) vouches(e Epoch, disks []string) bool {
	return s != nil && s.Agreed && s.N == e.N && s.Epoch == e.ID && slices.Equal(s.Disks, disks)
}

// heldBy says whether t has the stamp's line, or had it before a rewrite.
func (s *stamp) heldBy(t *format.Text) bool {
	if _, here := t.HashAt(s.Seq); here || s.Seq > t.Base.Seq {
		return t.Holds(Head{Seq: s.Seq, Hash: s.Hash})
	}
	return true
}

// disks names the pools that are mounted. One that comes, goes or returns changes
// that: each mount has a device number of its own.
func (l *Ledger) disks() []string {
	names := []string{}
	for _, root := range []string{pools, externals} {
		below, err := l.files.ReadDir(root)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			names = append(names, fmt.Sprintf("%s: %v", root, err)) // nothing is known of them
		}
		for _, at := range below {
			if at.Mode.IsDir() {
				names = append(names, fmt.Sprintf("%s %d", path.Join(root, at.Name), at.Device))
			}
		}
	}
	return names
}

// putStamp writes the stamp, if it says anything new. Readers of one moment may be
// several: one of them does it.
func (l *Ledger) putStamp(next stamp, before *stamp, alone bool) error {
	if before != nil && before.equal(next) {
		return nil
	}
	data, err := json.Marshal(next)
	if err != nil {
		return err
	}
	temporary, how := host.Temporary(l.stampFile()), os.O_EXCL
	if alone { // a reader that was killed may have left it
		how = os.O_TRUNC
	}
	out, err := l.files.Open(temporary, os.O_WRONLY|os.O_CREATE|how, fileMode)
	if err != nil {
		return err
	}
	_, err = out.Write(append(data, '\n'))
	if err = errors.Join(err, out.Close()); err == nil {
		err = l.files.Rename(temporary, l.stampFile())
	}
	if err != nil {
		_ = l.files.Remove(temporary)
	}
	return err
}

func (s *stamp) equal(other stamp) bool {
	return s.Ledger == other.Ledger && s.N == other.N && s.Epoch == other.Epoch && s.Seq == other.Seq && s.Hash == other.Hash &&
		s.Agreed == other.Agreed && s.Marks == other.Marks && slices.Equal(s.Disks, other.Disks)
}

// unstamp takes out that the witness agreed, before the members are changed.
// Otherwise the stamp would vouch for the epoch that ends, should the new one's
// line be lost.
func (l *Ledger) unstamp() error {
	s := l.stamped()
	if s == nil || !s.Agreed {
		return nil
	}
	next := *s
	next.Agreed = false
	return l.putStamp(next, s, true)
}

// forgetStamp removes it: what it has seen is given up.
func (l *Ledger) forgetStamp() error {
	err := l.files.Remove(l.stampFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// restamp says what was acknowledged, or is shown for sure. Who cannot write it
// leaves an older one, which is true as well.
func (l *Ledger) restamp(p *survey, alone bool) {
	head, e := p.best.text.Head(), p.evidence
	next := stamp{
		Ledger: p.best.text.Ledger, N: p.epoch.N, Epoch: p.epoch.ID, Seq: head.Seq, Hash: head.Hash,
		Agreed: e.agreed, Marks: e.marks, Disks: e.disks,
	}
	if l.putStamp(next, e.stamp, alone) == nil {
		e.stamp = &next
	}
}
