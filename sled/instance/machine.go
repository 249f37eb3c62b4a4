package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// A machine that was written down whole, as a spec of Propolis, is kept in
// Spec.Machine but for what sledctl has a say in: CPUs and memory stand in Spec,
// where flags may change them, and each NIC has a VNIC that sledctl makes, under
// whichever name. Spec's disks and NICs are those of the machine, in the order of
// their places on the PCI bus: by them the zone is configured, and what an
// instance has is its alone.

// checkMachine finds all that is wrong with a machine that is asked for, as it
// was written: what a server would not take, and disks that do not exist.
// Errors: *spec.InvalidError, *InputError.
func checkMachine(s Settings, w Wanted, wanted record.Spec, seen Observed) error {
	if wanted.Machine == nil {
		return nil
	}
	if n := len(wanted.Machine.Networks()); len(wanted.NICs) != n {
		return &record.InputError{Field: "nics", Value: strconv.Itoa(len(wanted.NICs)), Want: fmt.Sprintf("one for each of the spec's, %d", n)}
	}
	if w.Disks != nil {
		return &record.InputError{Field: "disks", Value: record.DiskText(w.Disks), Want: "those of its spec: another spec has others"}
	}
	if wanted.OwnCloudInit() && wanted.CloudInit != nil {
		return &record.InputError{Field: "cloud-init", Value: wanted.CloudInit.Text(), Want: "none with a spec that has a " + spec.KeyCloudInit + " itself"}
	}
	if w.Machine == nil {
		return nil
	}
	d := *w.Machine
	if wanted.CloudInit != nil { // its place is taken
		d.Spec = d.Spec.Clone()
		d.Spec.Components.AddCloudInit(strings.Repeat("AAAA", 512)) // 3 sectors, for those that come
	}
	if !d.CPUs || w.CPUs != nil {
		d.Spec.Board.CPUs = uint8(min(max(cmp.Or(wanted.CPUs, s.CPUs), 0), 255))
	}
	if !d.Memory || w.Memory != nil {
		d.Spec.Board.MemoryMiB = cmp.Or(wanted.Memory, s.Memory) >> 20
	}
	d.Spec = d.Spec.Unseal(seen.Vault.Held) // a digest of the instance's own secret stands for it, as instance get -o toml prints it
	problems := d.Place(seen.lost(d.Spec))
	if err, ok := errors.AsType[*spec.InvalidError](d.Check(layout.Server(s.Underlay, wanted.Address))); ok {
		problems = append(err.Problems, problems...)
	}
	return d.Invalid(problems)
}

// lost are the files and volumes of a machine that do not exist.
func (s Observed) lost(m spec.InstanceSpec) []spec.Problem {
	var problems []spec.Problem
	for _, key := range m.Files() {
		file := m.Components[key].(spec.FileStorage)
		disk, err := record.Disk{Path: file.Path}.Normal()
		what := ""
		if bad, ok := errors.AsType[*record.InputError](err); ok {
			what = "want " + bad.Want
		} else if want := s.lacks(disk); want != "" {
			what = "want " + want
		}
		if what != "" {
			problems = append(problems, spec.Problem{Path: spec.Path(key, "path"), What: fmt.Sprintf("%q: %s", file.Path, what)})
		}
	}
	return problems
}

// LostFiles looks for the files and volumes of a machine that are not on the sled.
func LostFiles(ctx context.Context, h host.Host, m spec.InstanceSpec) ([]spec.Problem, error) {
	disks := record.Spec{}.WithMachine(spec.Document{Spec: m}).Disks
	seen := Observed{Disks: lookAtFiles(h.Files(), disks), Inv: inventory.Look(ctx, h, inventory.Want{
		Parts: []inventory.Part{inventory.Pools, inventory.Datasets}, Roots: datasetRoots(disks),
	})}
	if err := seen.Inv.Know(inventory.Pools, inventory.Datasets); err != nil {
		return nil, err
	}
	return seen.lost(m), nil
}

// AskedMachine is the machine that an instance would be made of, if it were as wanted.
// Its VNICs are called as those of the machine that it is to be like.
func AskedMachine(underlay netip.Prefix, r record.Record, w Wanted, like spec.InstanceSpec) (spec.InstanceSpec, error) {
	r.Spec = w.apply(r.Spec)
	r.Incarnation = &record.Incarnation{Guests: make([]record.VNIC, len(r.Spec.NICs))}
	for i := range r.Incarnation.Guests {
		r.Incarnation.Guests[i].Name = "nic" + strconv.Itoa(i)
	}
	for i, key := range like.Networks() {
		if name := like.Components[key].(spec.VirtioNetwork).VNIC; i < len(r.Incarnation.Guests) {
			r.Incarnation.Guests[i].Name = name
		}
	}
	request, err := layout.RequestOf(underlay, r)
	if err != nil {
		return spec.InstanceSpec{}, err
	}
	return *request.Init.Spec, nil
}

// machineText stands for a machine in a comparison with none.
func machineText(m *spec.InstanceSpec) string {
	if m == nil {
		return "none"
	}
	return fmt.Sprintf("one of %d components", len(m.Components))
}

// ToldLaterError is a guest that runs, and is told something else at its next bring-up.
type ToldLaterError struct{ Name string }

// Error names the instance.
func (e *ToldLaterError) Error() string {
	return fmt.Sprintf("instance %q is running: its guest gets the other cloud-init data when it is brought up next", e.Name)
}

// Kind is that of what is not done now.
func (*ToldLaterError) Kind() fault.Kind { return fault.Refused }

// toldLater warns of that.
func toldLater(old, next record.Record) []error {
	is := old.Incarnation
	if is == nil || !is.Ensured || next.Incarnation == nil || next.Incarnation.PropolisID != is.PropolisID || next.Spec.CloudInit.Same(old.Spec.CloudInit) {
		return nil
	}
	return []error{&ToldLaterError{Name: next.Name}}
}
