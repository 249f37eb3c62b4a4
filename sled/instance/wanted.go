package instance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// Wanted is what a command asks for: a name or id, and those parts of the spec
// that it speaks of. What it leaves open stays as it is, or becomes the
// default.
type Wanted struct {
	Ref  string // NAME or UUID
	Name string // with a UUID as Ref: the name it must have
	// PropolisID is that of the VM, where it is not drawn.
	PropolisID string
	CPUs       *int
	CPUCap     *record.CPUCap // 0: none
	Memory     *uint64
	Disks      []record.Disk         // nil: not spoken of; empty: none
	Crucible   []record.CrucibleDisk // as Disks
	NICs       []record.NIC
	Address    *record.Address
	Pool       *string
	// StartOrder is not among the differences: no VM is rebuilt for it.
	StartOrder *record.StartOrder
	// CloudInit is not among the differences either.
	CloudInit record.CloudInitParts
	// CloudInitFiles are those from which an instance document says that the rest is to be read,
	// as MachineFile; of its SSH keys, those that are none are files as well.
	CloudInitFiles record.CloudInitFiles
	// Machine is the machine, written down whole: its disks and NICs are there.
	Machine *spec.Document
	Sealed  *spec.InstanceSpec // Machine with digests in the places of its secrets
	// MachineFile is where an instance document says that Machine is to be read
	// from: the reader of the document knows where that lies. Next to MachineText, it
	// is where that was read.
	MachineFile string
	// MachineText is Machine as an instance document has it, or as it was read.
	MachineText []byte
}

// Over returns w with what it leaves open taken from below: flags over a file.
// An id and a name are two things: one may come from above, the other from
// below.
func (w Wanted) Over(below Wanted) Wanted {
	id, name := w.parts()
	idBelow, nameBelow := below.parts()
	id, name = cmp.Or(id, idBelow), cmp.Or(name, nameBelow)
	if w.Ref, w.Name = id, name; id == "" {
		w.Ref, w.Name = name, ""
	}
	w.PropolisID = cmp.Or(w.PropolisID, below.PropolisID)
	if w.CPUs == nil {
		w.CPUs = below.CPUs
	}
	if w.CPUCap == nil {
		w.CPUCap = below.CPUCap
	}
	if w.Memory == nil {
		w.Memory = below.Memory
	}
	if w.Disks == nil {
		w.Disks = below.Disks
	}
	if w.Crucible == nil {
		w.Crucible = below.Crucible
	}
	if w.NICs == nil {
		w.NICs = below.NICs
	}
	if w.Address == nil {
		w.Address = below.Address
	}
	if w.Pool == nil {
		w.Pool = below.Pool
	}
	if w.StartOrder == nil {
		w.StartOrder = below.StartOrder
	}
	w.CloudInit = w.CloudInit.Over(below.CloudInit)
	if w.Machine == nil && w.MachineFile == "" && w.MachineText == nil {
		w.Machine, w.MachineFile, w.MachineText = below.Machine, below.MachineFile, below.MachineText
	}
	return w
}

// withVolumes puts the devices of volumes in the places of their names.
func (s Settings) withVolumes(view ledger.View, w Wanted) (Wanted, error) {
	disks := slices.Clone(w.Disks)
	for i, d := range disks {
		name, named := d.Named()
		if !named {
			continue
		}
		if s.Volume == nil {
			return w, &record.InputError{Field: "disk", Value: name, Want: "an absolute file name, or POOL/NAME"}
		}
		var err error
		if disks[i].Path, err = s.Volume(view, name); err != nil {
			return w, err
		}
	}
	w.Disks = disks
	return w, nil
}

// AttachRequest asks for a volume to be a disk of an instance, or to be none, from its next
// bring-up on: a VM that runs keeps the disks that it has.
type AttachRequest struct {
	Verb     string
	Ref      string // of the instance: NAME or UUID
	Volume   string // its name
	ReadOnly bool
	Detach   bool
	DryRun   bool
}

// Attach writes down what is asked for; the host is not asked. What an instance has already needs nothing.
// Errors: *DiskTakenError, *AttachError; those of Settings.Volume and of operation.Run.
func (s Settings) Attach(ctx context.Context, env operation.Env, c AttachRequest) (Result, error) {
	r, err := FindRecorded(ctx, s, env, c.Ref, c.DryRun)
	if err != nil {
		return Result{}, err
	}
	result := r
	report, err := operation.Run(ctx, env, operation.Request[struct{}]{
		Verb: c.Verb, Subject: record.Subject(r.ID), DryRun: c.DryRun,
		Look: func(context.Context, host.Host) (struct{}, error) { return struct{}{}, nil },
		Decide: func(view ledger.View, _ struct{}, at operation.Stamp) (operation.Decision, error) {
			old, err := record.Existing(view, r.ID, c.Ref)
			if err != nil {
				return operation.Decision{}, err
			}
			next, err := s.attached(view, old, c)
			if err == nil {
				err = untouched(ctx, env, view, record.Subject(r.ID), record.VolumesOf(next.NextDisks())...)
			}
			if result = old; err != nil || slices.Equal(next.NextDisks(), old.NextDisks()) {
				return operation.Decision{}, err
			}
			next.Generation, next.Updated = old.Generation+1, at.Now
			var d operation.Decision
			result = next
			d.OnSuccess, err = next.Replaces(old)
			return d, err
		},
	})
	return Result{Record: result, Report: report}, err
}

// attached is the record with a volume more, or less.
func (s Settings) attached(view ledger.View, r record.Record, c AttachRequest) (record.Record, error) {
	if err := r.CheckKeeper(s.Asks); err != nil {
		return r, err
	}
	path, err := s.Volume(view, c.Volume)
	if err != nil {
		return r, err
	}
	d := record.Disk{Path: path, ReadOnly: c.ReadOnly}
	disks := slices.Clone(r.NextDisks())
	at := slices.IndexFunc(disks, func(has record.Disk) bool { return has.Path == path })
	switch {
	case r.VMM != nil || r.Ending != nil:
		return r, &AttachError{Name: r.Name, Why: "is the control plane's, which chooses its disks"}
	case r.Migration != nil:
		return r, &AttachError{Name: r.Name, Why: "is migrating"}
	case r.Spec.Machine != nil:
		return r, &AttachError{Name: r.Name, Why: "was made with a spec, which has its disks"}
	case c.Detach && at < 0:
		return r, nil
	case c.Detach:
		return r.WithDisks(slices.Delete(disks, at, at+1)), nil
	case at >= 0:
		disks[at] = d
	default:
		disks = append(disks, d)
	}
	other, err := record.DiskOwner(view, d)
	if err == nil && other != "" && other != r.ID {
		err = &DiskTakenError{Path: path, By: called(view, other)}
	}
	next := r.WithDisks(disks)
	if err == nil {
		spec := next.Spec
		spec.Disks = disks
		err = spec.Validate()
	}
	return next, err
}

// AttachError is an instance whose disks cannot be changed so.
type AttachError struct{ Name, Why string }

// Error says why.
func (e *AttachError) Error() string { return fmt.Sprintf("instance %q %s", e.Name, e.Why) }

func (*AttachError) Kind() fault.Kind { return fault.Refused }

// Hint says where its disks are.
func (e *AttachError) Hint() string {
	return "to see its disks, run: sledctl instance get " + e.Name + " -o json"
}

// parts are the id and the name that w speaks of.
func (w Wanted) parts() (id, name string) {
	if uuid.Validate(w.Ref) == nil {
		return w.Ref, w.Name
	}
	return "", cmp.Or(w.Name, w.Ref)
}

// named reports whether a record has the name and the Propolis id that are asked for.
func (w Wanted) named(r record.Record) bool {
	return (w.Name == "" || w.Name == r.Name) && (w.PropolisID == "" || w.PropolisID == r.Incarnation.PropolisID)
}

// validate refuses a zero that was asked for: it must not become the default.
func (w Wanted) validate() error {
	if w.PropolisID != "" {
		if id, err := uuid.Parse(w.PropolisID); err != nil || id.String() != w.PropolisID {
			return &record.InputError{Field: "propolis-id", Value: w.PropolisID, Want: "a UUID in lower case"}
		}
	}
	if w.CPUs != nil && *w.CPUs < 1 {
		return record.BadCPUs(*w.CPUs)
	}
	if w.Memory != nil && *w.Memory == 0 {
		return record.BadMemory(0)
	}
	if w.Machine != nil && w.Disks != nil {
		return &record.InputError{Field: "disks", Value: record.DiskText(w.Disks), Want: "none with a spec, which has its own"}
	}
	if slices.ContainsFunc(w.Crucible, func(d record.CrucibleDisk) bool { return d.KeyFile != "" }) { // else it would not be encrypted
		return &record.InputError{Field: "crucible key_file", Value: "a file that was not read", Want: "key, the text itself"}
	}
	if w.Machine != nil && w.Crucible != nil {
		return &record.InputError{Field: "crucible", Value: record.CrucibleText(w.Crucible), Want: "none with a spec, which has its own disks"}
	}
	return nil
}

// apply puts what is wanted over a spec. A NIC that leaves its link or MAC
// open takes those that the same position had.
func (w Wanted) apply(s record.Spec) record.Spec {
	if w.Machine != nil {
		d := *w.Machine
		if w.Sealed != nil {
			d.Spec = *w.Sealed
		}
		s = s.WithMachine(d)
	}
	if w.CPUs != nil {
		s.CPUs = *w.CPUs
	}
	if w.CPUCap != nil {
		s.CPUCap = *w.CPUCap
	}
	if w.Memory != nil {
		s.Memory = *w.Memory
	}
	if w.Disks != nil {
		s.Disks = w.Disks
	}
	if w.Crucible != nil {
		s.Crucible = record.KeepRequests(s.Crucible, w.Crucible)
	}
	if w.NICs != nil {
		had := s.NICs
		s.NICs = slices.Clone(w.NICs)
		for i := range min(len(had), len(s.NICs)) {
			if s.NICs[i].Over == "" && !s.NICs[i].OPTE {
				s.NICs[i].Over = had[i].Over
			}
			if s.NICs[i].MAC == "" && s.NICs[i].Over == had[i].Over && s.NICs[i].OPTE == had[i].OPTE {
				s.NICs[i].MAC = had[i].MAC
			}
		}
	}
	if w.Address != nil {
		s.Address = *w.Address
	}
	if w.Pool != nil && *w.Pool != "" {
		s.Pool = *w.Pool
	}
	if w.StartOrder != nil {
		s.StartOrder = *w.StartOrder
	}
	s.CloudInit = w.CloudInit.Apply(s.CloudInit)
	return s
}

// Difference is one field in which the wanted spec differs from what is there.
type Difference struct {
	Field  string `json:"field"`
	Is     string `json:"is"`
	Wanted string `json:"wanted"`
}

// ConflictError is an instance that exists and differs.
type ConflictError struct {
	Name        string
	Differences []Difference
	Recreate    bool // --recreate would do
}

// Error shows every field with both values.
func (e *ConflictError) Error() string {
	var parts []string
	for _, d := range e.Differences {
		parts = append(parts, fmt.Sprintf("%s is %s, wanted %s", d.Field, d.Is, d.Wanted))
	}
	return fmt.Sprintf("instance %q exists and differs: %s", e.Name, strings.Join(parts, "; "))
}

func (*ConflictError) Kind() fault.Kind { return fault.Conflict }

// differences compares two specs field by field.
func differences(is, wanted record.Spec) []Difference {
	var all []Difference
	compare := func(field, a, b string) {
		if a != b {
			all = append(all, Difference{Field: field, Is: a, Wanted: b})
		}
	}
	compare("cpus", strconv.Itoa(is.CPUs), strconv.Itoa(wanted.CPUs))
	compare("cpu-cap", is.CPUCap.String(), wanted.CPUCap.String())
	compare("memory", record.SizeText(is.Memory), record.SizeText(wanted.Memory))
	if is.Machine == nil || wanted.Machine == nil {
		compare("spec", machineText(is.Machine), machineText(wanted.Machine))
		compare("disks", record.DiskText(is.Disks), record.DiskText(wanted.Disks))
	} else {
		machine := spec.Compare(*is.Machine, *wanted.Machine)
		for _, d := range machine {
			compare(d.Path, cmp.Or(d.Sent, "absent"), cmp.Or(d.Got, "absent"))
		}
		if len(machine) == 0 { // else they are the machine's
			compare("disks", record.DiskText(is.Disks), record.DiskText(wanted.Disks))
		}
	}
	compare("crucible", record.CrucibleText(is.Crucible), record.CrucibleText(wanted.Crucible))
	compare("nics", record.NicText(is.NICs), record.NicText(wanted.NICs))
	compare("address", is.Address.String(), wanted.Address.String())
	compare("pool", is.Pool, wanted.Pool)
	return all
}

// NameTakenError is a name that another instance has.
type NameTakenError struct{ Name, ID, Owner string }

// Error names both.
func (e *NameTakenError) Error() string {
	return fmt.Sprintf("the name %q is used by instance %s", e.Name, e.Owner)
}

func (*NameTakenError) Kind() fault.Kind { return fault.Conflict }

// identityOf is the id and name that w asks for; a name in use elsewhere is
// refused.
func identityOf(namespace uuid.UUID, view ledger.View, w Wanted) (id, name string, err error) {
	if w.Ref == "" {
		return "", "", &record.InputError{Field: "instance", Value: "", Want: "a name or a UUID"}
	}
	if id, err = record.Resolve(namespace, view, w.Ref); err != nil {
		return "", "", err
	}
	name = w.Name
	if name == "" && uuid.Validate(w.Ref) != nil {
		name = w.Ref
	}
	if name == "" {
		r, known, err := record.Load(view, id)
		if err != nil || known {
			return id, r.Name, err
		}
		name = "vm-" + id
	} else if err := record.ValidateName(name); err != nil {
		return "", "", err
	}
	if other := record.Owner(view, naming.KeyName+name); other != "" && other != id {
		return "", "", &NameTakenError{Name: name, ID: id, Owner: other}
	}
	return id, name, nil
}

// withSealed is what is wanted with digests in the places of the secrets, which it
// gives too.
func (w Wanted) withSealed(key []byte) (Wanted, map[string]string) {
	secrets := map[string]string{}
	if len(key) == 0 {
		return w, secrets
	}
	if w.Machine != nil {
		var sealed spec.InstanceSpec
		sealed, secrets = w.Machine.Spec.Seal(key)
		w.Sealed = &sealed
	}
	w.CloudInit = w.CloudInit.Seal(key, secrets)
	w.Crucible = record.SealCrucible(w.Crucible, key, secrets)
	return w, secrets
}

// secret reports whether it has secrets in the open, or makes some: a volume for cloud-init is one, and what opens a volume in a Crucible another.
func (w Wanted) secret() bool {
	return w.Machine != nil && w.Machine.Spec.Open() || w.CloudInit.Any() || len(w.Crucible) > 0
}
