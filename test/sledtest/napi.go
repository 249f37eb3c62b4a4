package sledtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
)

// A machine that moves, and the NAPI of the data centre: its record is never
// removed, and follows it, whichever sled looks first.

const (
	FirstCN     = "564d2cec-64ee-4aca-9e27-d71c02af3b6a"
	SecondCN    = "664d2cec-64ee-4aca-9e27-d71c02af3b6a"
	NAPIAddress = "10.99.99.12:80"
)

// Datacentre are two sleds with one NAPI. The simulator has one next to each, which
// are kept the same.
type Datacentre struct {
	T    *testing.T
	A, B *Operator
	napi []byte
	MAC  string // of the machine's NIC
}

func NewDatacentre(t *testing.T) *Datacentre {
	nics := func(cn string) string {
		return fmt.Sprintf("[nics]\nurl = \"http://%s\"\ncn_uuid = %q\nallow_nics_endpoint = true\n", NAPIAddress, cn)
	}
	d := &Datacentre{T: t, A: New(t, Small(), TunedConfig+nics(FirstCN)), B: New(t, Small(), OtherNetwork()+nics(SecondCN))}
	d.A.Meet(d.B)
	for _, s := range []*Operator{d.A, d.B} {
		if err := s.InitNAPI(t.Context(), sim.NAPIOptions{Address: NAPIAddress, Era: "D"}); err != nil {
			t.Fatal(err)
		}
		s.Run("bootstrap")
	}
	d.keep(d.A)
	d.A.Run("instance ensure web1 --nic over=net0")
	var web1 struct{ ID string }
	if err := json.Unmarshal([]byte(d.A.Run("instance get web1 -o json")), &web1); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(d.A.Run("vnic list -H --columns name,mac"), "\n") {
		if name, mac, _ := strings.Cut(line, "\t"); strings.HasPrefix(name, "vnic_propolis_guest") {
			d.MAC = mac
		}
	}
	body := fmt.Sprintf(`{"mac":%q,"belongs_to_type":"zone","belongs_to_uuid":%q,"owner_uuid":"930896af-bf8c-48d4-885c-6573a94b1853","network_uuid":"admin"}`, d.MAC, web1.ID)
	if status, answer, err := d.A.AskNAPI(t.Context(), "POST", "/nics", body); err != nil || status != 200 {
		t.Fatal(status, string(answer), err)
	}
	d.keep(d.A)
	d.Sync(d.A)
	d.says(FirstCN, "the machine was made")
	return d
}

// keep takes the NAPI as a sled has left it.
func (d *Datacentre) keep(s *Operator) {
	d.T.Helper()
	err := s.World().View(d.T.Context(), func(tx *world.Tx) (err error) {
		d.napi, err = json.Marshal(tx.State.NAPI)
		return err
	})
	if err != nil {
		d.T.Fatal(err)
	}
}

// Sync is a look of a sled, and what it prints of the machine's record.
func (d *Datacentre) Sync(s *Operator) (said string) {
	d.T.Helper()
	err := s.World().Update(d.T.Context(), func(tx *world.Tx) error {
		tx.State.NAPI = nil
		return json.Unmarshal(d.napi, &tx.State.NAPI)
	})
	if err != nil {
		d.T.Fatal(err)
	}
	for _, line := range strings.Split(s.Run("nics sync --recheck-after 0 -H --columns mac,verdict,result"), "\n") {
		if mac, rest, _ := strings.Cut(line, "\t"); mac == d.MAC {
			said = rest
		}
	}
	d.keep(s)
	return said
}

// says holds the record against what it should say; empty: that it is gone.
func (d *Datacentre) says(cn, when string) {
	d.T.Helper()
	var n world.NAPI
	if err := json.Unmarshal(d.napi, &n); err != nil {
		d.T.Fatal(err)
	}
	r := n.NICs[d.MAC]
	if r == nil && cn != "" || r != nil && r.CNUUID != cn {
		d.T.Fatalf("%s: the record is %+v, and should say %q", when, r, cn)
	}
}

// trails are the facts of migrations that a sled remembers.
func (s *Operator) trails() (kinds []string) {
	s.T.Helper()
	for key := range s.Ledger() {
		if kind, _, _ := strings.Cut(key, "/"); kind == "departed" || kind == "arrived" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func (d *Datacentre) Remember(source, target string) {
	d.T.Helper()
	if a, b := strings.Join(d.A.trails(), " "), strings.Join(d.B.trails(), " "); a != source || b != target {
		d.T.Errorf("the first sled remembers %q and the second %q; want %q and %q", a, b, source, target)
	}
}

func (d *Datacentre) Expect(said, want, cn string) {
	d.T.Helper()
	if said != want {
		d.T.Errorf("the sled says %q, want %q", said, cmp.Or(want, "nothing"))
	}
	d.says(cn, cmp.Or(want, "it says nothing"))
}
