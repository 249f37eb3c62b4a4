// Package nics is sledctl nics.
package nics

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/peer/napi"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/nicsync"
)

// New is the command nics.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("nics", "Compare and repair the NIC records in Triton's NAPI", `
The sled knows which VMs and NICs are on it. Triton's networking API (NAPI) keeps a record of each NIC, and the NIC's address is taken as
long as the record exists. If they disagree, the sled is right (RFD 58). docs/nics.md describes the repairs.`)
	cmd.AddCommand(newList(env), newSync(env))
	return cmd
}

// Flags are those of how NAPI may be asked.
type Flags struct{ allow, withoutEtag bool }

func (f *Flags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.allow, "allow-nics-endpoint", false, "use GET /nics if there is no /search/nics (nics.allow_nics_endpoint)")
	flags.BoolVar(&f.withoutEtag, "without-etag", false, "remove records without conditional requests (nics.without_etag)")
}

// asks is how often a question is repeated that fails.
const asks = 3

// Settings are what nicsync takes from the configuration.
func Settings(e *cli.Env, f Flags) (nicsync.Settings, error) {
	c, err := e.Config()
	if err != nil {
		return nicsync.Settings{}, err
	}
	if c.NICs.URL == "" {
		return nicsync.Settings{}, &failure.RefusedError{Err: errors.New("nics.url is not set: no NAPI is known"), Advice: "set nics.url and nics.cn_uuid in " + naming.ConfigFile}
	}
	server, err := napi.ParseServer(c.NICs.URL)
	if err != nil {
		return nicsync.Settings{}, &cli.UsageError{Text: "nics.url: " + err.Error()}
	}
	return nicsync.Settings{
		Owner: nicsync.Owner{CN: strings.ToLower(c.NICs.CNUUID), Admin: strings.ToLower(c.NICs.AdminUUID)}, Server: server, Names: cli.Prefixes(c),
		AllowNICs: c.NICs.AllowNICsEndpoint || f.allow, WithoutEtag: c.NICs.WithoutEtag || f.withoutEtag,
		LockFile: napi.LockFile(c.NICs.LockFile), Recorded: recordedVMs,
		Again: func(n int, err error) (time.Duration, bool) {
			wait := napi.Backoff(n, rand.Float64)
			if n >= asks {
				return 0, false
			}
			e.Progress.Warn(fmt.Errorf("%w; asked again in %s", err, terminal.Elapsed(wait)))
			return wait, true
		},
	}, nil
}

// recordedVMs are the instances of the ledger: one that is stopped has no
// zone, and exists all the same; one that has departed is somewhere else.
func recordedVMs(view ledger.View) ([]nicsync.VM, error) {
	arrived, aerr := migration.HasArrived(view)
	departed, derr := migration.HasDeparted(view)
	if err := errors.Join(aerr, derr); err != nil {
		return nil, err
	}
	var vms []nicsync.VM
	for r, err := range record.Records(view) {
		if err != nil {
			return nil, err
		}
		vm := recordedVM(r)
		if at := slices.IndexFunc(arrived, func(t migration.Handover) bool { return t.Instance == r.ID }); at >= 0 {
			vm.Arrived, vm.Handover = "came by migration "+arrived[at].Migration, arrived[at].Fact
		}
		vms = append(vms, vm)
	}
	return append(vms, departedVMs(departed)...), nil
}

// recordedVM is as much of an instance as matters here. Its texts are copies: one
// of them would keep all of the record's.
func recordedVM(r record.Record) nicsync.VM {
	id := func(s string) string { return strings.Clone(strings.ToLower(s)) }
	vm := nicsync.VM{Name: strings.Clone(r.Name), IDs: []string{id(r.ID)}}
	if r.Incarnation == nil && len(r.Leaving) == 0 && r.Wanted == record.WantedStopped {
		vm.State = napi.StateStopped
	}
	if _, state, peer, _ := r.Migrating(); peer != "" {
		vm.Moving = "it is " + state + ", of a migration with " + peer
	}
	add := func(v record.VNIC) {
		if v.MAC != "" && !slices.ContainsFunc(vm.NICs, func(n nicsync.NIC) bool { return n.MAC == v.MAC }) {
			vm.NICs = append(vm.NICs, nicsync.NIC{MAC: strings.Clone(v.MAC), Link: strings.Clone(v.Name)})
		}
	}
	for _, incarnation := range r.Incarnations() {
		vm.IDs = append(vm.IDs, id(incarnation.PropolisID))
		add(incarnation.Control)
		for _, v := range incarnation.Guests {
			add(v)
		}
	}
	add(record.VNIC{MAC: r.Control})
	for _, n := range r.Spec.NICs {
		add(record.VNIC{MAC: n.MAC})
	}
	return vm
}

// departedVMs are those that have gone to another sled, where their records have
// not been seen to follow them.
func departedVMs(handovers []migration.Handover) []nicsync.VM {
	vms := make([]nicsync.VM, 0, len(handovers))
	for _, t := range handovers {
		vm := nicsync.VM{Name: t.Name, IDs: []string{strings.ToLower(t.Instance)}, Stayed: []string{t.Control}, Handover: t.Fact}
		vm.Departed = "went to " + cmp.Or(t.Peer, "another sled") + " by migration " + t.Migration
		for _, id := range t.VMs {
			vm.IDs = append(vm.IDs, strings.ToLower(id))
		}
		for _, mac := range t.MACs {
			vm.NICs = append(vm.NICs, nicsync.NIC{MAC: mac})
		}
		vms = append(vms, vm)
	}
	return vms
}

// shownNIC is a finding, and the result of acting on it.
type shownNIC struct {
	MAC         string            `json:"mac"`
	VM          string            `json:"vm"`    // that has it here; empty: none
	Link        string            `json:"link"`  // or where the MAC was found
	State       string            `json:"state"` // of the VM
	Verdict     nicsync.Verdict   `json:"verdict"`
	Reason      string            `json:"reason"`
	Result      string            `json:"result"`            // empty: nothing is to be done
	Record      *shownRecord      `json:"record,omitempty"`  // nil: NAPI has none
	Changes     map[string]string `json:"changes,omitempty"` // what the record should say
	RecordState string            `json:"-"`
}

// shownRecord is what NAPI says.
type shownRecord struct {
	BelongsToType string    `json:"belongs_to_type"`
	BelongsToUUID string    `json:"belongs_to_uuid"`
	OwnerUUID     string    `json:"owner_uuid"`
	CNUUID        string    `json:"cn_uuid,omitempty"`
	State         string    `json:"state"`
	IP            string    `json:"ip,omitempty"`
	NetworkUUID   string    `json:"network_uuid,omitempty"`
	Modified      time.Time `json:"modified,omitzero"`
	Etag          string    `json:"etag,omitempty"`
}

func showNICs(findings []nicsync.Finding, results map[string]string) []shownNIC {
	shown := make([]shownNIC, 0, len(findings))
	for _, f := range findings {
		s := shownNIC{MAC: f.MAC, VM: f.VM, Link: f.Link, State: f.State, Verdict: f.Verdict, Reason: f.Reason, Result: results[f.MAC]}
		if r := f.Record; r != nil {
			s.RecordState = r.State
			s.Record = &shownRecord{
				BelongsToType: r.BelongsToType, BelongsToUUID: r.BelongsToUUID, OwnerUUID: r.OwnerUUID, CNUUID: r.CNUUID, State: r.State,
				IP: r.IP, NetworkUUID: r.NetworkUUID, Modified: r.Modified, Etag: r.Etag,
			}
		}
		for field, value := range map[string]string{
			"cn_uuid": f.Change.CNUUID, "state": f.Change.State, "belongs_to_type": f.Change.BelongsToType, "belongs_to_uuid": f.Change.BelongsToUUID,
		} {
			if value == "" {
				continue
			}
			if s.Changes == nil {
				s.Changes = map[string]string{}
			}
			s.Changes[field] = value
		}
		shown = append(shown, s)
	}
	return shown
}

func (s shownNIC) ip() string {
	if s.Record == nil {
		return ""
	}
	return s.Record.IP
}

func list(results bool) terminal.List[shownNIC] {
	type column = terminal.Column[shownNIC]
	style := func(s shownNIC) terminal.Style {
		switch s.Verdict {
		case nicsync.Leaked, nicsync.Conflict:
			return terminal.Bad
		case nicsync.NeedsCN, nicsync.Arrived, nicsync.Departed, nicsync.Stuck, nicsync.WrongState, nicsync.Unclaimed, nicsync.Migrating:
			return terminal.Warn
		}
		return terminal.Plain
	}
	columns := []column{
		{Name: "mac", Value: func(s shownNIC) string { return s.MAC }},
		{Name: "vm", Value: func(s shownNIC) string { return s.VM }},
		{Name: "link", Value: func(s shownNIC) string { return s.Link }},
		{Name: "record", Value: func(s shownNIC) string { return s.RecordState }},
		{Name: "verdict", Value: func(s shownNIC) string { return string(s.Verdict) }, Style: style},
	}
	if results {
		columns = append(columns, column{Name: "result", Value: func(s shownNIC) string { return s.Result }})
	}
	columns = append(columns,
		column{Name: "reason", Value: func(s shownNIC) string { return s.Reason }, Note: true},
		column{Name: "ip", Value: shownNIC.ip, Extra: true},
	)
	return terminal.List[shownNIC]{
		Kind: "NIC", Name: func(s shownNIC) string { return s.MAC }, Columns: columns,
		Tall: &terminal.Tall[shownNIC]{
			Head:   func(s shownNIC) string { return strings.TrimSpace(s.MAC + " " + s.VM) },
			Detail: func(s shownNIC) string { return string(s.Verdict) + cli.Prefixed(", ", s.Result) + ": " + s.Reason },
			Style:  style,
		},
	}
}
