package commands_test

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	names "github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/storage"
	"github.com/sledctl/sledctl/test/sledtest"
)

// The secrets of a machine, as an earlier sledctl wrote them.
const (
	oldKey   = `{\"type\":\"volume\",\"id\":\"6f0f2f9f-7d3a-4d6e-8a55-0f5a1de3d1aa\",\"block_size\":512,\"sub_volumes\":[],\"read_only_parent\":null,\"key\":\"b2xkIHNlY3JldA==\"}`
	oldWords = "b2xkIHNlY3JldA"
	oldSpec  = `{"board":{"chipset":{"type":"i440_fx","value":{"enable_pcie":false}},"cpus":2,"memory_mb":1024},"components":{
"com1":{"type":"serial_port","component":{"num":"com1"}},
"data":{"type":"virtio_disk","component":{"backend_id":"data-backend","pci_path":{"bus":0,"device":16,"function":0}}},
"data-backend":{"type":"crucible_storage_backend","component":{"request_json":"` + oldKey + `","readonly":false}}}}`
)

// An earlier sledctl kept secrets in the ledger. The next writer leaves no byte of them
// there, nor in its history and in the files that were set aside. If it is killed, the
// one after it does the rest. The VM loses nothing.
func TestSecretsLeaveTheStateFile(t *testing.T) {
	t.Parallel()
	o := sledtest.Small()
	o.M2 = 2
	s := sledtest.New(t, o, "")
	file := filepath.Join(t.TempDir(), "web1.json")
	if err := os.WriteFile(file, []byte(oldSpec), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Run("bootstrap")
	s.Run("instance ensure web1 --spec " + file)
	s.Run("instance ensure web2")
	writeAsOld(s, "web1")
	if len(exposed(s, oldWords)) < 8 {
		t.Fatalf("two copies, their histories and what was set aside have secrets: %q", exposed(s, oldWords))
	}
	for _, line := range []string{"ledger export", "ledger show instance/", "ledger show sent/", "history", "propolis spec show web1 -o json"} {
		if out := s.Run(line); strings.Contains(out, oldWords) || !strings.Contains(out, "secret:hmac-sha256:") {
			t.Errorf("sledctl %s shows a secret, or hides that there is one", line)
		}
	}
	for n, crashed := 1, true; crashed; n++ {
		c := &sledtest.Operator{Sled: s.Clone(), T: t}
		t.Cleanup(c.Close)
		dying := host.Crash(c.Host(), n, host.CrashAfter)
		c.On(t.Context(), dying, "instance stop web2")
		dying.Wait()
		crashed = dying.Crashed() && n < 30
		c.Run("instance stop web2")
		if all := exposed(c, oldWords); len(all) > 0 {
			t.Fatalf("killed %s: secrets stand in %q", dying.Where(), all)
		}
		if crashed && n%10 != 0 {
			continue
		}
		if out := c.Run("propolis spec diff web1"); out != "" {
			t.Errorf("killed %s: web1 is another machine: %s", dying.Where(), out)
		}
		c.Run("instance stop web1")
		c.Run("instance start web1")
		c.Run("instance ensure web1 --spec " + file)
		c.Run("ledger check")
		c.Run("instance delete web1")
		if left := c.SecretFiles(); len(left) > 0 {
			t.Errorf("killed %s: %q are left", dying.Where(), left)
		}
	}
}

// writeAsOld writes the record of an instance as it was, more than once, and so
// much besides that the first goes into the history.
func writeAsOld(s *sledtest.Operator, name string) {
	s.T.Helper()
	places := ledger.Places{Lock: "/var/run/sledctl/ledger.lock", Witness: storage.Witness{Host: s.Host()}}
	for _, pool := range pools(s, "oxi_") {
		places.Locations = append(places.Locations, ledger.OnPool(strings.TrimPrefix(pool, "oxi_")))
	}
	book, _, err := ledger.Open(s.T.Context(), s.Host().Files(), places)
	if err != nil {
		s.T.Fatal(err)
	}
	old := func(view ledger.View) (facts []ledger.Fact, err error) {
		r, err := instance.Settings{}.Find(view, name)
		if err != nil || r.Secrets == "" {
			return []ledger.Fact{{Key: names.KeyHeldVNIC + "x", Value: json.RawMessage(`"` + strings.Repeat("x", 300<<10) + `"`)}}, nil
		}
		data, err := host.ReadFile(s.Host().Files(), r.Secrets)
		var kept struct{ Secrets map[string]string }
		if err != nil || json.Unmarshal(data, &kept) != nil {
			return nil, err
		}
		sent, _, err := record.LoadSent(view, r.ID)
		if err != nil {
			return nil, err
		}
		file := r.Secrets
		machine := r.Spec.Machine.Unseal(kept.Secrets)
		r.Spec.Machine, r.Secrets, sent.Spec = &machine, "", sent.Spec.Unseal(kept.Secrets)
		record, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		was, err := json.Marshal(sent)
		if err != nil {
			return nil, err
		}
		return []ledger.Fact{{Key: names.KeyInstance + r.ID, Value: record}, {Key: names.KeySent + r.ID, Value: was}}, s.Host().Files().Remove(file)
	}
	var first []ledger.Fact
	for _, decide := range []func(ledger.View) ([]ledger.Fact, error){
		func(view ledger.View) (facts []ledger.Fact, err error) { first, err = old(view); return first, err },
		func(ledger.View) ([]ledger.Fact, error) { return first, nil }, old, old, old,
		func(ledger.View) ([]ledger.Fact, error) {
			return append([]ledger.Fact{{Key: names.KeyHeldVNIC + "x"}}, first...), nil
		},
	} {
		if _, err := book.Update(s.T.Context(), decide); err != nil {
			s.T.Fatal(err)
		}
	}
	for _, copied := range s.Copies() { // what was set aside, under either name
		data, err := host.ReadFile(s.Host().Files(), copied)
		if err != nil {
			s.T.Fatal(err)
		}
		for _, name := range []string{"aside-20260101T000000Z-1.jsonl", "superseded-20260101T000000Z-1.jsonl"} {
			if err := host.WriteFile(s.Host().Files(), path.Join(path.Dir(copied), name), data, 0o600); err != nil {
				s.T.Fatal(err)
			}
		}
	}
}

// exposed are the files in the directories of the ledger that have the words.
func exposed(s *sledtest.Operator, words string) (all []string) {
	s.T.Helper()
	for _, name := range s.Copies() {
		files, err := s.Host().Files().ReadDir(path.Dir(name))
		if err != nil {
			s.T.Fatal(err)
		}
		for _, f := range files {
			file := path.Join(path.Dir(name), f.Name)
			if data, err := host.ReadFile(s.Host().Files(), file); err == nil && strings.Contains(string(data), words) {
				all = append(all, file)
			}
		}
	}
	return all
}
