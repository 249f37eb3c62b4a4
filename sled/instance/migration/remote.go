package migration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/secrets"
)

// Another sled's sledctl, as a migration's source speaks to it: by a command line,
// an instance document, and what it prints with -o json. An exit code alone is
// believed in nothing.

// Remote runs another sled's sledctl by these words, the program first. When ctx ends
// it is asked to end with care, and waited for. The error is one of not having
// run it at all.
type Remote func(ctx context.Context, words []string, stdin []byte) (Answer, error)

// ssh is the program that passes its arguments to a shell on the other side.
const ssh = "ssh"

// commandLine are the words that run a sledctl elsewhere with these arguments.
func commandLine(target, args []string) []string {
	line := slices.Clone(target)
	for _, a := range args {
		if path.Base(target[0]) == ssh {
			a = host.Quote(a)
		}
		line = append(line, a)
	}
	return line
}

// Answer is what another sled's sledctl printed.
type Answer struct {
	Exit           int // -1: it did not end by itself
	Stdout, Stderr []byte
}

// RemoteError is another sled's sledctl that did not do what it was to do.
type RemoteError struct {
	Peer    string // its name
	Exit    int
	Message string
	// Left is what it said that is left on its host. Said is set where it spoke at
	// all: else nothing is known of the outcome of it.
	Leftovers []string
	Said      bool
	Advice    string // its hint, for who works there
	Err       error  // why it could not be run
}

// Error names the sled that answered.
func (e *RemoteError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("%s: %v", e.Peer, e.Err)
	case !e.Said && e.Message == "" && e.Exit < 0:
		return e.Peer + ": its sledctl was killed and printed nothing"
	case !e.Said && e.Message == "":
		return fmt.Sprintf("%s: exited with %d and printed nothing", e.Peer, e.Exit)
	}
	return fmt.Sprintf("%s: %s", e.Peer, e.Message)
}

func (*RemoteError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives the cause.
func (e *RemoteError) Unwrap() error { return e.Err }

// RehearsalError is another sled that has said, when it was asked for a dry run, that it could not do what it was to do.
// Nothing is changed anywhere.
type RehearsalError struct{ *RemoteError }

// Rehearsed is an error of a dry run.
func Rehearsed(err error) error {
	if refused, is := errors.AsType[*RemoteError](err); is && refused.Said {
		return &RehearsalError{refused}
	}
	return err
}

// Kind is that of the other sled's own error.
func (e *RehearsalError) Kind() fault.Kind {
	switch e.Exit {
	case exitConflict:
		return fault.Conflict
	case exitRefused:
		return fault.Refused
	}
	return fault.Failed
}

// Unwrap gives what the other sled said.
func (e *RehearsalError) Unwrap() error { return e.RemoteError }

// Hint is what the other sled's sledctl would have its operator do.
func (e *RehearsalError) Hint() string {
	if e.Advice == "" {
		return ""
	}
	return "to repair it there, on " + e.Peer + ": " + e.Advice
}

// clean says that it told its end, and left nothing, or was never begun.
func (e *RemoteError) clean() bool {
	return e.Err != nil && e.Exit < 0 || e.Said && len(e.Leftovers) == 0 && e.Exit != exitLocked
}

// Exit codes of a sledctl: it does not know what it was asked for, what is there differs from that, another one is at work,
// something must be so first.
const (
	exitMissing  = 4
	exitConflict = 5
	exitLocked   = 6
	exitRefused  = 8
)

// refusalOf reads what a sledctl that failed has said: its last line, in JSON.
func refusalOf(peer string, a Answer, err error) *RemoteError {
	e := &RemoteError{Peer: peer, Exit: a.Exit, Err: err}
	lines := strings.Split(strings.TrimSpace(string(a.Stderr)), "\n")
	e.Message = lines[len(lines)-1]
	var told struct {
		Kind    string   `json:"kind"`
		Exit    int      `json:"exit"`
		Message string   `json:"message"`
		Left    []string `json:"left"`
		Hint    string   `json:"hint"`
	}
	if json.Unmarshal([]byte(e.Message), &told) == nil && told.Kind == "Error" && told.Exit == a.Exit && told.Left != nil {
		e.Message, e.Leftovers, e.Advice, e.Said = told.Message, told.Left, told.Hint, true
	}
	return e
}

// errForeign is an answer that no sledctl gives to what it was asked.
var errForeign = errors.New("what it printed is not the instance that was asked for")

// arrivalOf reads what a sledctl that succeeded has said: the instance, arrived by
// the migration.
func arrivalOf(a Answer, id, migration string) error {
	var told struct {
		Kind      string `json:"kind"`
		ID        string `json:"id"`
		State     string `json:"state"`
		Migration *struct {
			ID    string `json:"id"`
			State string `json:"state"`
		} `json:"migration"`
	}
	d := json.NewDecoder(bytes.NewReader(a.Stdout))
	if err := d.Decode(&told); err != nil {
		return fmt.Errorf("%w: %w", errForeign, err)
	}
	if d.More() || told.Kind != "Instance" || told.ID != id || told.State == "" || told.Migration == nil {
		return errForeign
	}
	if told.Migration.ID != migration || told.Migration.State != record.Arrived {
		return fmt.Errorf("%w: its migration is %s, %s", errForeign, told.Migration.ID, told.Migration.State)
	}
	return nil
}

// planned reports whether a sledctl has told what it would do.
func planned(a Answer) error {
	var told struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(a.Stdout, &told); err != nil || told.Kind != "ActionList" {
		return errForeign
	}
	return nil
}

// Document describes an instance to another sled: what it is, without what is this
// sled's own. A link is left to the other sled where it is this one's default.
func Document(guestLink string, underlay netip.Prefix, r record.Record) ([]byte, error) {
	type nic struct {
		Over    string   `json:"over,omitempty"`
		MAC     string   `json:"mac"`
		VLAN    int      `json:"vlan,omitempty"`
		AllowIP []string `json:"allow_ip,omitempty"`
		MaxBW   int      `json:"max_bw,omitempty"`
		OPTE    bool     `json:"opte,omitempty"`
		record.Port
	}
	type cloudInit struct {
		Hostname      string   `json:"hostname,omitempty"`
		SSHKeys       []string `json:"ssh_keys,omitempty"`
		UserData      string   `json:"user_data,omitempty"`
		NetworkConfig string   `json:"network_config,omitempty"`
	}
	d := struct {
		ID      string          `json:"id"`
		Name    string          `json:"name"`
		CPUs    int             `json:"cpus"`
		CPUCap  record.CPUCap   `json:"cpu_cap,omitempty"`
		Memory  uint64          `json:"memory"`
		Disks   []record.Disk   `json:"disks,omitempty"`
		NICs    []nic           `json:"nics"`
		Machine json.RawMessage `json:"spec,omitempty"`

		Crucible   []crucibleDisk    `json:"crucible,omitempty"`
		StartOrder record.StartOrder `json:"start_order,omitempty"`
		CloudInit  *cloudInit        `json:"cloud_init,omitempty"`
	}{ID: r.ID, Name: r.Name, CPUs: r.Spec.CPUs, CPUCap: r.Spec.CPUCap, Memory: r.Spec.Memory, NICs: []nic{}, StartOrder: r.Spec.StartOrder}
	if c := r.Spec.CloudInit; c != nil {
		d.CloudInit = &cloudInit{c.Hostname, c.SSHKeys, c.UserData, c.NetworkConfig}
	}
	for _, n := range r.Spec.NICs {
		if n.Over == guestLink {
			n.Over = ""
		}
		d.NICs = append(d.NICs, nic(n))
	}
	if r.Spec.Machine == nil {
		d.Disks, d.Crucible = r.Spec.Disks, crucibleDisks(r.Spec.Crucible)
	} else {
		bare := r
		bare.Spec.CloudInit = nil // it is not of the spec
		request, err := layout.RequestOf(underlay, bare)
		if err == nil {
			d.Machine, err = json.Marshal(request.Init.Spec)
		}
		if err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(d)
	return b.Bytes(), err
}

// CompleteDocument returns the document of a record with its secrets, for the sled that
// takes the VM.
func CompleteDocument(guestLink string, underlay netip.Prefix, files host.Files, r record.Record) ([]byte, error) {
	r, err := secrets.Unsealed(files, r)
	if err != nil {
		return nil, err
	}
	return Document(guestLink, underlay, r)
}
