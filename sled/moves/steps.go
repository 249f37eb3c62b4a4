package moves

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/instance/migration"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/volume"
	"github.com/sledctl/sledctl/zfs"
)

// SendVolume has the target receive a snapshot of a volume. It is done when the target says that it has that. The
// source's host is only read.
type SendVolume struct {
	Volume   volume.Record
	Instance string // its id
	To       record.Migration
	Feed     migration.Feed
	Sent     zfs.Sent
	GUID     string // of the snapshot
	Since    string // the GUID of the one that the target has; empty: none of use
	Count    func(bytes int)
	Got      *Held
}

// Verb names the step.
func (SendVolume) Verb() string { return "volume.send" }

// Undo is nil: what has been sent stays there, for the next try.
func (SendVolume) Undo() any { return nil }

// words are those of the target's sledctl.
func (s SendVolume) words() []string {
	v := s.Volume
	words := []string{
		"volume", "receive", v.Name, "--size", strconv.FormatUint(v.Size, 10), "--block-size", strconv.FormatUint(v.Block, 10),
		"--for", s.Instance, "--snapshot", s.GUID,
	}
	for _, f := range []struct {
		flag string
		is   bool
	}{{"--thin", v.Thin}, {"--protect", v.Protected}, {"--delete-with-instance", v.Follows}} {
		if f.is {
			words = append(words, f.flag)
		}
	}
	if s.Since != "" {
		words = append(words, "--since", s.Since)
	}
	return append(words, "-o", "json")
}

// Explain is the zfs send, and the command that receives it.
func (s SendVolume) Explain() []host.Line {
	c := migration.Command(s.To, s.words(), nil)
	c.From = s.Sent.Source().Line
	return []host.Line{{Kind: host.LineRemote, Text: c.Shell()}}
}

// Do sends it.
func (s SendVolume) Do(ctx context.Context, h host.Host) error {
	in, err := s.Sent.Source().Open(ctx, h)
	if err != nil {
		return err
	}
	counted := &counting{in: in, count: s.Count}
	answer, err := s.Feed(ctx, migration.Words(s.To, s.words()), counted)
	printed, err := migration.Asked(s.To, answer, err)
	if failed := in.Close(); counted.err != nil {
		return errors.Join(counted.err, failed)
	}
	if err != nil {
		return err
	}
	if json.Unmarshal(printed, s.Got) != nil || s.Got.Kind != "Volume" || s.Got.Received != s.GUID || s.Got.Path == "" {
		return migration.Foreign(s.To, answer)
	}
	return nil
}

// counting counts what is read, and remembers how reading has failed.
type counting struct {
	in    io.Reader
	count func(bytes int)
	err   error
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if c.count(n); err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

// Hand is the step that has the target put a stopped instance on record, and start it once that is known here. It is
// done when the target says that the instance has arrived.
type Hand struct {
	Name, ID string
	To       record.Migration
	From     string
	Wanted   string
	Protect  bool
	Known    bool   // the target has it on record
	Document []byte // without secrets; for Explain
	Complete func(host.Files) ([]byte, error)
	Run      migration.Remote
	Told     func(there []byte)
}

// Verb names the step.
func (Hand) Verb() string { return "instance.hand" }

// Limit is none here: the target has its own.
func (Hand) Limit() (most time.Duration, waits bool) { return 0, true }

// Undo is nil: what the target has, it says itself.
func (Hand) Undo() any { return nil }

// expect are the words that put it on record.
func (s Hand) expect() []string {
	words := []string{"instance", "ensure", "-f", "-", "--offline", "--migrate-from", s.From, "--migration-id", s.To.ID}
	if s.Wanted != record.WantedRunning {
		words = append(words, "--stopped")
	}
	if s.Protect {
		words = append(words, "--protect")
	}
	return append(words, "-o", "json")
}

// admit are the words that start it.
func (s Hand) admit() []string {
	return []string{"instance", "ensure", s.ID, "--offline", "--migration-id", s.To.ID, "-o", "json"}
}

// Explain is both commands.
func (s Hand) Explain() (lines []host.Line) {
	if !s.Known {
		lines = append(lines, host.Line{Kind: host.LineRemote, Text: migration.Command(s.To, s.expect(), s.Document).Shell()})
	}
	return append(lines, host.Line{Kind: host.LineRemote, Text: migration.Command(s.To, s.admit(), nil).Shell()})
}

// Do hands it over.
func (s Hand) Do(ctx context.Context, h host.Host) error {
	if !s.Known {
		if err := s.tell(ctx, h); err != nil {
			return err
		}
	}
	answer, err := s.Run(ctx, migration.Words(s.To, s.admit()), nil)
	printed, err := migration.Asked(s.To, answer, err)
	if err != nil {
		return err
	}
	if migration.HasArrivedBy(printed, s.ID, s.To.ID) != nil {
		return migration.Foreign(s.To, answer)
	}
	s.Told(printed)
	return nil
}

// tell has the target put it on record.
func (s Hand) tell(ctx context.Context, h host.Host) error {
	document, err := s.Complete(h.Files())
	if err != nil {
		return err
	}
	answer, err := s.Run(ctx, migration.Words(s.To, s.expect()), document)
	printed, err := migration.Asked(s.To, answer, err)
	if err != nil {
		return err
	}
	if !expects(printed, s.ID, s.To.ID) {
		return migration.Foreign(s.To, answer)
	}
	return nil
}

// expects reports whether a sledctl has printed the instance, arriving or arrived by the migration.
func expects(printed []byte, id, by string) bool {
	var told struct {
		Kind      string `json:"kind"`
		ID        string `json:"id"`
		Migration *struct {
			ID string `json:"id"`
		} `json:"migration"`
	}
	return json.Unmarshal(printed, &told) == nil && told.Kind == "Instance" && told.ID == id && told.Migration != nil && told.Migration.ID == by
}

// there is the instance as the target gets it: with its volumes as they are called there.
func (m *moving) there(r record.Record) record.Record {
	r.Spec.Disks = slices.Clone(r.NextDisks())
	for i, d := range r.Spec.Disks {
		dataset, _ := d.Volume()
		if at := m.paths[dataset]; at != "" {
			r.Spec.Disks[i].Path = at
		}
	}
	return r
}

// handing is the step that hands an instance over.
func (m *moving) handing(r record.Record, to record.Migration) (Hand, error) {
	there := m.there(r)
	document, err := migration.Document(m.Instances.GuestLink, m.Instances.Underlay, there)
	return Hand{
		Name: r.Name, ID: r.ID, To: to, From: m.From, Wanted: r.Wanted, Protect: r.Protected, Document: document, Run: m.Run,
		Complete: func(files host.Files) ([]byte, error) {
			return migration.CompleteDocument(m.Instances.GuestLink, m.Instances.Underlay, files, there)
		},
		Told: func(printed []byte) { m.done.There = printed },
	}, err
}

// hand is the operation that hands the instance over, and writes down that it has departed.
func (m *moving) hand(ctx context.Context, known bool) error {
	m.tell("starting it there")
	report, err := operation.Run(ctx, m.env, operation.Request[struct{}]{
		Verb: m.Verb, Subject: record.Subject(m.done.Record.ID),
		Look: func(context.Context, host.Host) (struct{}, error) { return struct{}{}, nil },
		Decide: func(view ledger.View, _ struct{}, at operation.Stamp) (d operation.Decision, err error) {
			old, err := record.Existing(view, m.done.Record.ID, m.Ref)
			if err != nil || !old.Migration.Departs() || old.Migration.Departed {
				return d, err
			}
			step, err := m.handing(old, *old.Migration)
			if step.Known = known; err != nil {
				return d, err
			}
			next, gone := old, *old.Migration
			gone.Departed = true
			next.Migration, next.Generation, next.Updated = &gone, old.Generation+1, at.Now
			m.done.Record = next
			d.Plan = plan.Plan{Policy: plan.Stop, Actions: []plan.Action{m.handAction(step)}}
			d.Intent.Changes = []operation.Object{{Kind: "instance", Name: old.Name, Identity: old.ID}}
			d.OnSuccess, err = next.Replaces(old)
			return d, err
		},
	})
	m.done.Reports = append(m.done.Reports, report)
	return err
}

func (m *moving) handAction(s Hand) plan.Action {
	return plan.Action{ID: s.Verb() + " " + s.Name, Object: "instance " + s.Name, Why: "to " + s.To.Sled(), Change: plan.Modify, Step: s}
}
