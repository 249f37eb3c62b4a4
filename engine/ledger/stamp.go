package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"

	"github.com/sledctl/sledctl/engine/ledger/format"
	"github.com/sledctl/sledctl/host"
)

// stamp is what this boot has seen. It lies on the RAM disk next to the lock: what
// it says ends with the boot, as what nobody else may have changed meanwhile. It
// is evidence and a saving, never a condition. The file has a line for each; the last
// whole one counts, so that a writer that is killed leaves the one before.
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
	// Searched are the files next to the copies in which Purge found nothing. They are
	// never written again, so that later processes need not read them.
	Searched []string `json:"searched,omitempty"`
	// Clean is the last of the lines in which Purge found nothing. What a line says and what
	// is before it follows from its hash.
	Clean *Head `json:"clean,omitempty"`

	more bool // another line may follow it in its file
}

const (
	stampName = "ledger.seen"
	// externals is where the pools of U.2 disks are mounted.
	externals = "/pool/ext"
	// maxStamps is how much of the file is read.
	maxStamps = 64 << 10
	// fullStamps is how long the file is before a new one is begun.
	fullStamps = 16 << 10
)

func (l *Ledger) stampFile() string { return path.Join(path.Dir(l.places.Lock), stampName) }

// stamped is this boot's stamp; nil where there is none, or none to be read.
func (l *Ledger) stamped() *stamp {
	data, err := host.ReadAtMost(l.files, l.stampFile(), maxStamps)
	if err != nil {
		return nil
	}
	lines, part := cutLast(data)
	for len(lines) > 0 {
		before, last := cutLast(lines[:len(lines)-1])
		s := stamp{more: len(part) == 0 && len(data) < fullStamps}
		if json.Unmarshal(last, &s) == nil && s.Ledger != "" {
			return &s
		}
		lines, part = before, last
	}
	return nil
}

// lastStamp is this boot's stamp as this process has seen it last: what was searched
// stays so.
func (l *Ledger) lastStamp() *stamp {
	l.mu.Lock()
	sure := l.sure
	l.mu.Unlock()
	if sure != nil {
		return sure.stamp
	}
	return l.stamped()
}

// cutLast separates what follows the last newline.
func cutLast(data []byte) (before, last []byte) {
	i := bytes.LastIndexByte(data, '\n') + 1
	return data[:i], data[i:]
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
				names = append(names, root+"/"+at.Name+" "+strconv.FormatUint(at.Device, 10))
			}
		}
	}
	return names
}

// putStamp writes the stamp. Readers of one moment may be several: where a new file is begun,
// one of them does it.
func (l *Ledger) putStamp(next stamp, before *stamp, alone bool) error {
	data, err := json.Marshal(next)
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if before != nil && before.more {
		err := l.files.Append(l.stampFile(), data)
		before.more = err == nil // else there may be a part of the line
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
	_, err = out.Write(data)
	if err = errors.Join(err, out.Close()); err == nil {
		err = l.files.Rename(temporary, l.stampFile())
	}
	if err != nil {
		_ = l.files.Remove(temporary)
	}
	return err
}

// equal says that there is nothing to write. What was searched is written along with what
// else is new.
func (s *stamp) equal(other stamp) bool {
	return s.Ledger == other.Ledger && s.N == other.N && s.Epoch == other.Epoch && s.Seq == other.Seq && s.Hash == other.Hash &&
		s.Agreed == other.Agreed && s.Marks == other.Marks && slices.Equal(s.Disks, other.Disks)
}

// unstamp takes out that the witness agreed, before the members are changed.
// Otherwise the stamp would vouch for the epoch that ends, should the new one's
// line be lost.
func (l *Ledger) unstamp() error {
	l.mu.Lock()
	l.sure = nil
	l.mu.Unlock()
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

// searchedBefore is what this process has searched, or else what the stamp says: files, and
// the lines of this ledger up to one.
func (l *Ledger) searchedBefore(s *stamp) (files []string, clean *Head) {
	l.mu.Lock()
	defer l.mu.Unlock()
	files, clean = l.searched, l.clean
	if files == nil && s != nil {
		files = s.Searched
	}
	if clean == nil && s != nil {
		clean = s.Clean
	}
	return files, clean
}

// restamp says what was acknowledged, or is shown for sure. Who cannot write it
// leaves an older one, which is true as well.
func (l *Ledger) restamp(p *survey, alone bool) {
	head, e := p.best.text.Head(), p.evidence
	files, clean := l.searchedBefore(e.stamp)
	next := stamp{
		Ledger: p.best.text.Ledger, N: p.epoch.N, Epoch: p.epoch.ID, Seq: head.Seq, Hash: head.Hash,
		Agreed: e.agreed, Marks: e.marks, Disks: e.disks, Searched: files, Clean: clean,
	}
	if e.stamp != nil && e.stamp.equal(next) {
		return
	}
	if l.putStamp(next, e.stamp, alone) == nil {
		next.more = true
		e.stamp = &next
	}
}
