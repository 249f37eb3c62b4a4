package zfs_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/zfs"
)

// fill writes to a volume.
func (r *rig) fill(dataset string, at int64, data string) {
	r.t.Helper()
	f, err := host.OpenDevice(r.host.Files(), "/dev/zvol/rdsk/"+dataset, "a test")
	if err == nil {
		_, err = f.WriteAt([]byte(data), at)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// holds compares a part of a volume.
func (r *rig) holds(dataset string, at int64, want string) {
	r.t.Helper()
	f, err := r.host.Files().Open("/dev/zvol/rdsk/"+dataset, os.O_RDONLY, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	got := make([]byte, len(want))
	if _, err := f.ReadAt(got, at); err != nil || string(got) != want {
		r.t.Errorf("%s has %q at %d, not %q: %v", dataset, got, at, want, err)
	}
}

// streamed is a sled with a volume, two snapshots of it, and what a zfs send of the first prints.
func streamed(t *testing.T) (*rig, []byte) {
	r := simulated(t)
	r.do(zfs.CreateVolume{Dataset: "rpool/v", Size: 4 << 20, Block: 16 << 10})
	r.fill("rpool/v", 0, "first")
	r.fill("rpool/v", 3<<20, "far away")
	r.do(zfs.Snapshot{Name: "rpool/v@s"})
	r.fill("rpool/v", 0, "later")
	r.do(zfs.Snapshot{Name: "rpool/v@t"})
	in, err := zfs.Sent{Snapshot: "rpool/v@s"}.Source().Open(t.Context(), r.host)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(in)
	if err = errors.Join(err, in.Close()); err != nil {
		t.Fatal(err)
	}
	return r, data
}

// from is a stream that is at hand.
func from(in io.Reader) zfs.Source {
	return zfs.Source{Line: "cat stream", Open: func(context.Context, host.Host) (io.ReadCloser, error) { return io.NopCloser(in), nil }}
}

// A volume that was received is as its snapshot was: size, blocks, bytes; and has no snapshot itself.
func TestAVolumeIsReceivedAsItWasSent(t *testing.T) {
	r, data := streamed(t)
	r.do(zfs.ReceiveVolume{
		Dataset: "rpool/w", Snapshot: "s", GUID: r.get("rpool/v@s").GUID, From: from(strings.NewReader(string(data))), Properties: []zfs.Property{{Name: "x:y", Value: "1"}},
	})
	is := r.get("rpool/w", "volsize", "volblocksize", "refreservation", "x:y")
	if is.Volsize != 4<<20 || is.Volblocksize != 16<<10 || is.Refreservation != 0 || is.User["x:y"].Value != "1" || is.Origin != "" {
		t.Errorf("%+v", is)
	}
	r.holds("rpool/w", 0, "first\x00")
	r.holds("rpool/w", 3<<20, "far away\x00")
	if _, err := zfs.Get(t.Context(), r.host, "rpool/w@s"); !errors.Is(err, host.ErrNotFound) {
		t.Error(err)
	}
}

// Of a stream that breaks off, that is none, that fails behind its end or that is of another snapshot, nothing is left.
func TestAStreamThatIsNotWholeLeavesNothing(t *testing.T) {
	r, data := streamed(t)
	before := r.look()
	cut := errors.New("the line is cut")
	for name, c := range map[string]struct {
		in   io.Reader
		guid string
		want error
	}{
		"breaks off":           {strings.NewReader(string(data[:len(data)/2])), "", zfs.ErrStream},
		"breaks off in a head": {strings.NewReader(string(data[:20])), "", zfs.ErrStream},
		"empty":                {strings.NewReader(""), "", zfs.ErrStream},
		"no stream":            {strings.NewReader(string(make([]byte, 1<<20))), "", zfs.ErrStream},
		"fails":                {io.MultiReader(strings.NewReader(string(data[:len(data)/2])), broken{cut}), "", cut},
		"fails at its end":     {io.MultiReader(strings.NewReader(string(data)), broken{cut}), "", cut},
		"is of another":        {strings.NewReader(string(data)), "17", host.ErrRefused},
	} {
		err := zfs.ReceiveVolume{Dataset: "rpool/w", Snapshot: "s", GUID: c.guid, From: from(c.in)}.Do(t.Context(), r.host)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if left, ok := errors.AsType[*host.LeftoverError](err); ok {
			t.Errorf("%s: %v", name, left)
		}
		if after := r.look(); len(after) != len(before) {
			t.Errorf("%s: %v", name, after)
		}
	}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// What prints the stream fails, and so does what reads it; it says which.
func TestASendThatFails(t *testing.T) {
	r, _ := streamed(t)
	err := zfs.ReceiveVolume{Dataset: "rpool/w", Snapshot: "s", From: zfs.Sent{Snapshot: "rpool/v@none"}.Source()}.Do(t.Context(), r.host)
	if !errors.Is(err, host.ErrNotFound) {
		t.Error(err)
	}
	if _, err := zfs.Get(t.Context(), r.host, "rpool/w"); !errors.Is(err, host.ErrNotFound) {
		t.Error(err)
	}
	for _, s := range []zfs.Sent{{Snapshot: "rpool/v"}, {Snapshot: "-R"}, {Token: "-n"}, {Token: "a b"}, {Snapshot: "rpool/v@s", Since: "-I"}} {
		if _, err := s.Source().Open(t.Context(), r.host); err == nil {
			t.Errorf("%+v was sent", s)
		}
	}
}

// The words of the simulated ZFS: increments, and what interrupted receives leave (zfs(8)).
func TestIncrementsAndResumedStreams(t *testing.T) {
	r, data := streamed(t)
	run := func(in []byte, exit int, args ...string) host.Result {
		t.Helper()
		c := host.Command{Program: "zfs", Args: args, ReadOnly: args[0] == "send"}
		if args[0] == "receive" && in != nil {
			c.Input, c.From = strings.NewReader(string(in)), "cat"
		}
		got, err := r.host.Run(t.Context(), c)
		if err != nil || got.Exit != exit {
			t.Fatalf("%v: exit %d, %v: %s", args, got.Exit, err, got.Stderr)
		}
		return got
	}
	says := func(got host.Result, want string) {
		t.Helper()
		if !strings.Contains(string(got.Stderr), want) {
			t.Errorf("%s: not %q", got.Stderr, want)
		}
	}
	token := func(dataset string) string {
		t.Helper()
		c := host.Command{Program: "zfs", Args: []string{"get", "-Hp", "-o", "value", "receive_resume_token", dataset}, ReadOnly: true}
		got, err := r.host.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(got.Stdout))
	}
	says(run(data[:len(data)*3/4], 1, "receive", "-s", "rpool/w"), "    zfs send -t "+token("rpool/w"))
	says(run(data, 1, "receive", "rpool/w"), "contains partially-complete state")
	if got := token("rpool/w"); got == "-" || token("rpool/v") != "-" {
		t.Errorf("tokens %q and %q", got, token("rpool/v"))
	}
	rest := run(nil, 0, "send", "-t", token("rpool/w")).Stdout
	if len(rest) >= len(data) {
		t.Errorf("the rest has %d bytes of %d", len(rest), len(data))
	}
	run(rest, 0, "receive", "-s", "rpool/w")
	r.holds("rpool/w", 0, "first\x00")
	r.holds("rpool/w", 3<<20, "far away\x00")
	if token("rpool/w") != "-" || r.get("rpool/w@s").GUID != r.get("rpool/v@s").GUID {
		t.Errorf("token %q, snapshot %+v", token("rpool/w"), r.get("rpool/w@s"))
	}
	more := run(nil, 0, "send", "-i", "@s", "rpool/v@t").Stdout
	says(run(nil, 1, "send", "-i", "@t", "rpool/v@s"), "not an earlier snapshot from the same fs")
	run(more[:len(more)-10], 1, "receive", "-s", "rpool/w")
	run(nil, 0, "receive", "-A", "rpool/w")
	says(run(nil, 1, "receive", "-A", "rpool/w"), "does not have any resumable receive state to abort")
	r.holds("rpool/w", 0, "first\x00")
	run(more, 0, "receive", "rpool/w")
	r.holds("rpool/w", 0, "later\x00")
	says(run(more, 1, "receive", "rpool/w"), "most recent snapshot of rpool/w does not\nmatch incremental source")
	says(run(more, 1, "receive", "rpool/none"), "destination 'rpool/none' does not exist")
	says(run(data, 1, "receive", "rpool/w"), "destination 'rpool/w' exists\nmust specify -F to overwrite it")
	run(nil, 0, "destroy", "rpool/w@t")
	says(run(more, 1, "receive", "rpool/w"), "destination rpool/w has been modified\nsince most recent snapshot")
	run(nil, 0, "rollback", "rpool/w@s")
	run(more, 0, "receive", "rpool/w")
	r.holds("rpool/w", 0, "later\x00")
	run(data[:len(data)*3/4], 1, "receive", "-s", "rpool/x")
	kept := token("rpool/x")
	run(nil, 0, "destroy", "rpool/v@s")
	says(run(nil, 255, "send", "-t", kept), "'rpool/v@s' used in the initial send no longer exists")
	run(nil, 0, "destroy", "rpool/x")
	says(run(nil, 255, "send", "-t", "1-2-3-4"), "resume token is corrupt")
}

// A volume that was received becomes as a later snapshot is, by what has changed. What is not whole, or of another
// snapshot, leaves it as it was, and so does what another program has written to it.
func TestAVolumeFollowsTheOneThatItWasReceivedFrom(t *testing.T) {
	r, data := streamed(t)
	s, later := r.get("rpool/v@s").GUID, r.get("rpool/v@t").GUID
	r.do(zfs.ReceiveVolume{Dataset: "rpool/w", Snapshot: "s", GUID: s, Keep: true, From: from(strings.NewReader(string(data)))})
	changes := zfs.ReceiveChanges{
		Dataset: "rpool/w", Since: "s", SinceGUID: s, Snapshot: "t", GUID: later, From: zfs.Sent{Snapshot: "rpool/v@t", Since: "rpool/v@s"}.Source(),
	}
	for name, c := range map[string]struct {
		change func(*zfs.ReceiveChanges)
		want   error
	}{
		"torn":      {func(c *zfs.ReceiveChanges) { c.From = from(strings.NewReader(string(data[:len(data)/2]))) }, nil},
		"another":   {func(c *zfs.ReceiveChanges) { c.GUID = "1" }, nil},
		"not since": {func(c *zfs.ReceiveChanges) { c.Since = "none" }, host.ErrNotFound},
	} {
		bad := changes
		c.change(&bad)
		if err := bad.Do(t.Context(), r.host); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		r.holds("rpool/w", 0, "first\x00")
		if is := r.get("rpool/w@s").GUID; is != s {
			t.Errorf("%s: it has the snapshot %s", name, is)
		}
	}
	r.do(changes)
	r.holds("rpool/w", 0, "later\x00")
	r.holds("rpool/w", 3<<20, "far away\x00")
	if _, err := zfs.Get(t.Context(), r.host, "rpool/w@s"); !errors.Is(err, host.ErrNotFound) {
		t.Error(err)
	}
	r.fill("rpool/w", 0, "other")
	r.do(zfs.Snapshot{Name: "rpool/v@u"})
	changes.Since, changes.SinceGUID, changes.Snapshot, changes.GUID = "t", later, "u", ""
	changes.From = zfs.Sent{Snapshot: "rpool/v@u", Since: "rpool/v@t"}.Source()
	if err := changes.Do(t.Context(), r.host); !errors.Is(err, host.ErrRefused) {
		t.Error(err)
	}
	r.holds("rpool/w", 0, "other\x00")
}
