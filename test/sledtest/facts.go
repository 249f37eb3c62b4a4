package sledtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/naming"
)

func (s *Operator) RemoveLedger(n int) {
	if err := s.Host().Files().Remove(s.LedgerNames()[n]); err != nil {
		s.T.Fatal(err)
	}
}

// LoseLedger takes every copy of the ledger away.
func (s *Operator) LoseLedger() {
	s.T.Helper()
	for _, name := range s.Copies() {
		if err := s.Host().Files().Remove(name); err != nil {
			s.T.Fatal(err)
		}
	}
}

// Ledger is what the ledger holds, as its lines say it; nil if there is none. It is
// without what the last operations were: that differs after every change. An instance
// that is gone has none.
func (s *Operator) Ledger() map[string]string {
	s.T.Helper()
	facts := s.Facts()
	maps.DeleteFunc(facts, func(key, _ string) bool {
		of, last := strings.CutPrefix(key, naming.KeyLast)
		_, there := facts[of]
		return last && (there || !strings.HasPrefix(of, naming.KeyInstance) && !strings.HasPrefix(of, naming.KeyVolume))
	})
	return facts
}

// Facts is all that the ledger holds; nil if there is none.
func (s *Operator) Facts() map[string]string {
	s.T.Helper()
	for _, name := range s.Copies() {
		data, err := host.ReadFile(s.Host().Files(), name)
		if err == nil {
			return FactsOf(s.T, data)
		}
	}
	return nil
}

// Copies are the names that copies of the ledger have, or would have.
func (s *Operator) Copies() (names []string) {
	if s.Laid != nil && s.Laid.Ledger() != "" {
		return []string{s.Laid.Ledger() + "/ledger.jsonl"}
	}
	pools, _ := s.Host().Files().ReadDir("/pool/int")
	for _, p := range pools {
		names = append(names, path.Join("/pool/int", p.Name, "config/sledctl/ledger.jsonl"))
	}
	return names
}

// FactsOf reads the lines of a ledger; one that is torn counts for nothing.
func FactsOf(t testing.TB, data []byte) map[string]string {
	t.Helper()
	facts := map[string]string{}
	for line := range strings.Lines(string(data)) {
		var l struct {
			Facts []struct {
				Key   string
				Value json.RawMessage
			}
		}
		if !strings.HasSuffix(line, "\n") || json.Unmarshal([]byte(line), &l) != nil {
			continue
		}
		for _, f := range l.Facts {
			if facts[f.Key] = string(f.Value); facts[f.Key] == "null" || strings.HasPrefix(f.Key, "agent/") || strings.HasPrefix(f.Key, "tombstone/") {
				delete(facts, f.Key) // what an agent keeps for a day is nobody else's business
			}
		}
	}
	return facts
}

// Instance is what the tests read of an instance.
type Instance struct {
	Name, State, Wanted, Address string
	CPUs                         int
	Protected                    bool
	PropolisID                   string `json:"propolis_id"`
	Zone                         string
	VNICs                        []struct{ Name, MAC string }
}

// SecretFiles are the files in which secrets of machines lie.
func (s *Operator) SecretFiles() (names []string) {
	s.T.Helper()
	dirs := []string{}
	pools, _ := s.Host().Files().ReadDir("/pool/ext")
	for _, p := range pools {
		dirs = append(dirs, path.Join("/pool/ext", p.Name, "crypt/sledctl"))
	}
	for _, name := range s.Copies() {
		dirs = append(dirs, path.Join(path.Dir(name), "sledctl-secrets"))
	}
	for _, dir := range dirs {
		files, _ := s.Host().Files().ReadDir(dir)
		for _, f := range files {
			names = append(names, path.Join(dir, f.Name))
		}
	}
	return names
}

// SecretKey is that of an epoch: bytes that occur nowhere by chance.
func SecretKey(epoch int) []byte { return bytes.Repeat([]byte{0xc3, 0x5a, 0x77, byte(epoch)}, 8) }

// Secrets writes the file with the secrets of epochs 0 to latest.
func (s *Operator) Secrets(latest int) {
	s.T.Helper()
	text := ""
	for epoch := range latest + 1 {
		text += fmt.Sprintf("%d %x\n", epoch, SecretKey(epoch))
	}
	s.SecretFile(text)
}

func (s *Operator) SecretFile(text string) {
	s.T.Helper()
	files := s.Host().Files()
	if err := files.Remove("/secrets"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.T.Fatal(err)
	}
	if err := host.WriteFile(files, "/secrets", []byte(text), 0o600); err != nil {
		s.T.Fatal(err)
	}
}
