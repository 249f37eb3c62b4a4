package zfs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/host"
)

// testKey is a key as package key has them, with faults.
type testKey struct {
	name       string
	secret     string
	writeFails error
	wipeFails  error
}

var _ Key = testKey{}

func (k testKey) file() string     { return "/run/" + k.name + ".key" }
func (k testKey) what() string     { return "the key of " + k.name }
func (k testKey) Location() string { return "file://" + k.file() }

func (k testKey) Around() (before, after []host.Line) {
	return []host.Line{host.SecretLine(k.file(), k.what())}, host.WipeLines(k.file())
}

func (k testKey) Lend(_ context.Context, files host.Files, use func() error) error {
	if k.writeFails != nil {
		return k.writeFails
	}
	if err := host.WriteSecret(files, k.file(), []byte(k.secret), k.what()); err != nil {
		return err
	}
	return errors.Join(use(), host.WipeSecret(files, k.file()), k.wipeFails)
}

// keyed is a fake whose commands find the key's file, or not.
type keyed struct {
	*fake
	seen []string // the program, and the key that lay there
}

// Run is part of host.Host.
func (k *keyed) Run(ctx context.Context, c host.Command) (host.Result, error) {
	if !c.ReadOnly {
		data, err := host.ReadFile(k.files, "/run/a.key")
		if err != nil {
			data = []byte("nothing")
		}
		k.seen = append(k.seen, fmt.Sprintf("%s: %s", c.Args[0], data))
	}
	return k.fake.Run(ctx, c)
}

func newKeyed(t *testing.T, datasets ...Dataset) *keyed {
	f := newFake(t, datasets...)
	if err := f.files.Mkdir("/run", 0o700); err != nil {
		t.Fatal(err)
	}
	return &keyed{fake: f}
}

func TestKeysLieThereForOneCommand(t *testing.T) {
	k := testKey{name: "a", secret: "secret"}
	for name, c := range map[string]struct {
		step interface {
			explainer
			Do(context.Context, host.Host) error
		}
		want []string
		seen []string
	}{
		"create": {
			Create{Dataset: "tank/b", Key: k, Mode: 0o700, Mountpoint: "/tank/b", Properties: []Property{{"sledctl:epoch", "3"}}},
			[]string{
				"(umask 077; cat > /run/a.key) # the key of a",
				"zfs create -o encryption=aes-256-gcm -o keyformat=raw -o keylocation=file:///run/a.key -o sledctl:epoch=3 tank/b",
				"dd if=/dev/zero of=/run/a.key conv=notrunc # one byte more than it holds", "rm -d /run/a.key",
				"chmod 0700 /tank/b",
			},
			[]string{"create: secret"},
		},
		"load": {
			LoadKey{"tank/a", k},
			[]string{
				"(umask 077; cat > /run/a.key) # the key of a", "zfs load-key -L file:///run/a.key tank/a",
				"dd if=/dev/zero of=/run/a.key conv=notrunc # one byte more than it holds", "rm -d /run/a.key",
			},
			[]string{"load-key: secret"},
		},
		"change": {
			ChangeKey{Dataset: "tank/a", Key: k, Properties: []Property{{"sledctl:epoch", "4"}}},
			[]string{
				"(umask 077; cat > /run/a.key) # the key of a",
				"zfs change-key -o keyformat=raw -o keylocation=file:///run/a.key -o sledctl:epoch=4 tank/a",
				"dd if=/dev/zero of=/run/a.key conv=notrunc # one byte more than it holds", "rm -d /run/a.key",
			},
			[]string{"change-key: secret"},
		},
		"unload": {UnloadKey{Dataset: "tank/a"}, []string{"zfs unload-key tank/a"}, []string{"unload-key: nothing"}},
	} {
		f := newKeyed(t, tankA())
		if err := host.MkdirAll(f.files, "/tank/b", 0o755); err != nil {
			t.Fatal(err)
		}
		var explained, traced []string
		for _, l := range c.step.Explain() {
			explained = append(explained, l.Text)
		}
		if diff := cmp.Diff(c.want, explained); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		h := host.Trace(f, func(e host.Event) {
			if e.Line.Mutates() {
				traced = append(traced, e.Line.Text)
			}
		})
		if err := c.step.Do(t.Context(), h); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, traced); diff != "" {
			t.Errorf("%s does not do what it explains: %s", name, diff)
		}
		if diff := cmp.Diff(c.seen, f.seen); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestStepsWithAKeyThatFail(t *testing.T) {
	k := testKey{name: "a", secret: "secret"}
	full, broken := errors.New("no space"), errors.New("cannot wipe")
	unwritten, unwiped := k, k
	unwritten.writeFails, unwiped.wipeFails = full, broken
	wrong := answer{exit: 255, stderr: "Key load error: Incorrect key provided for 'tank/a'.\n"}
	for name, c := range map[string]struct {
		step interface {
			Do(context.Context, host.Host) error
		}
		answers map[string]answer
		ran     []string // the first words
		kind    error
		left    bool
	}{
		"create, no file":   {step: Create{Dataset: "tank/b", Key: unwritten}, kind: full},
		"create, not wiped": {step: Create{Dataset: "tank/b", Key: unwiped}, ran: []string{"create", "unmount", "destroy"}, kind: broken},
		"load, no file":     {step: LoadKey{"tank/a", unwritten}, kind: full},
		"load, not wiped":   {step: LoadKey{"tank/a", unwiped}, ran: []string{"load-key", "unload-key"}, kind: broken},
		"load, wrong key":   {step: LoadKey{"tank/a", k}, answers: map[string]answer{"load-key": wrong}, ran: []string{"load-key"}, kind: ErrWrongKey},
		"load, still running": {
			step: LoadKey{"tank/a", k}, answers: map[string]answer{"load-key": {err: host.ErrStillRunning}}, ran: []string{"load-key"},
			kind: host.ErrStillRunning,
		},
		"change, no file":   {step: ChangeKey{Dataset: "tank/a", Key: unwritten}, kind: full},
		"change, not wiped": {step: ChangeKey{Dataset: "tank/a", Key: unwiped}, ran: []string{"change-key"}, kind: broken, left: true},
		"change, locked": {
			step: ChangeKey{Dataset: "tank/a", Key: k}, ran: []string{"change-key"}, kind: ErrKeyNotLoaded,
			answers: map[string]answer{"change-key": {exit: 255, stderr: "Key change error: Key must be loaded.\n"}},
		},
		"change, an old zfs": {
			step: ChangeKey{Dataset: "tank/a", Key: k}, ran: []string{"change-key"}, kind: host.ErrRefused,
			answers: map[string]answer{"change-key": {
				exit: 255, stderr: "Key change error: Only keyformat, keylocation, and pbkdf2iters may be set with this command.\n",
			}},
		},
		"change, no property of a user": {step: ChangeKey{Dataset: "tank/a", Key: k, Properties: []Property{{"quota", "1"}}}, kind: nil},
		"unload, busy": {
			step: UnloadKey{Dataset: "tank/a"}, ran: []string{"unload-key"}, kind: host.ErrBusy,
			answers: map[string]answer{"unload-key": {exit: 255, stderr: "Key unload error: 'tank/a' is busy.\n"}},
		},
	} {
		f := newKeyed(t, tankA())
		for subcommand, a := range c.answers {
			f.answer(subcommand, a)
		}
		err := c.step.Do(t.Context(), f)
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
		if _, left := errors.AsType[*host.LeftoverError](err); left != c.left {
			t.Errorf("%s: left something %v: %v", name, left, err)
		}
		var ran []string
		for _, line := range f.ran {
			ran = append(ran, strings.Fields(line)[1])
		}
		if diff := cmp.Diff(c.ran, ran); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if list, err := f.files.ReadDir("/run"); err != nil || len(list) > 0 {
			t.Errorf("%s: left %v, %v", name, list, err)
		}
		if strings.Contains(err.Error(), k.secret) {
			t.Errorf("%s tells the key: %v", name, err)
		}
	}
}

// OpenZFS sets no user properties with a key. It says so once, and what it is
// asked then leaves at no moment a dataset that says nothing of the key it has.
func TestWhereAKeyTakesNoPropertiesItIsAnnounced(t *testing.T) {
	refusal := answer{exit: 255, stderr: "Key change error: Only keyformat, keylocation, and pbkdf2iters may be set with this command.\n"}
	busy := answer{exit: 1, stderr: "cannot set property for 'tank/a': dataset is busy\n"}
	announced := []string{"set sledctl:next=4", "change-key", "set sledctl:epoch=4", "inherit sledctl:next"}
	for name, c := range map[string]struct {
		answers map[string][]answer
		want    []string
		left    bool
		fails   bool
	}{
		"all goes well":             {want: announced},
		"it cannot be announced":    {answers: map[string][]answer{"set": {busy}}, want: announced[:1], fails: true},
		"it cannot be changed":      {answers: map[string][]answer{"change-key": {refusal, {exit: 255, stderr: "no\n"}}}, want: announced[:2], fails: true},
		"what it is cannot be said": {answers: map[string][]answer{"set": {{}, busy}}, want: announced[:3], fails: true, left: true},
	} {
		f := newKeyed(t, tankA())
		for subcommand, all := range c.answers {
			f.answer(subcommand, all...)
		}
		if len(c.answers["change-key"]) == 0 {
			f.answer("change-key", refusal)
		}
		h := host.Remembering(f)
		step := ChangeKey{Dataset: "tank/a", Key: testKey{name: "a", secret: "secret"}, Properties: []Property{{"sledctl:epoch", "4"}}, Coming: []Property{{"sledctl:next", "4"}}}
		err := step.Do(t.Context(), h)
		_, left := errors.AsType[*host.LeftoverError](err)
		if (err != nil) != c.fails || left != c.left {
			t.Errorf("%s: %v, left: %v", name, err, left)
		}
		ran := func() []string {
			var all []string
			for _, line := range f.ran {
				words := strings.Fields(line)
				if words[1] == "change-key" {
					words[2] = ""
				}
				all = append(all, strings.TrimSpace(words[1]+" "+words[2]))
			}
			return all
		}
		if diff := cmp.Diff(append([]string{"change-key"}, c.want...), ran()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if c.fails {
			continue
		}
		f.ran = nil
		if err := step.Do(t.Context(), h); err != nil {
			t.Errorf("%s, again: %v", name, err)
		}
		if diff := cmp.Diff(announced, ran()); diff != "" {
			t.Errorf("%s, again: it does not remember: %s", name, diff)
		}
	}
}

func TestTheKeyThatFitsIsFound(t *testing.T) {
	wrong := answer{exit: 255, stderr: "Key load error: Incorrect key provided for 'tank/a'.\n"}
	keys := []Candidate{
		{Key: testKey{name: "a", secret: "new"}, Properties: []Property{{"sledctl:epoch", "2"}}},
		{Key: testKey{name: "a", secret: "old"}, Properties: []Property{{"sledctl:epoch", "1"}}},
	}
	for name, c := range map[string]struct {
		load  []answer
		want  []string
		wrong bool
	}{
		"the first":  {nil, []string{"load-key: new", "set: nothing", "inherit: nothing"}, false},
		"the second": {[]answer{wrong}, []string{"load-key: new", "load-key: old", "set: nothing", "inherit: nothing"}, false},
		"none":       {[]answer{wrong, wrong}, []string{"load-key: new", "load-key: old"}, true},
		"who knows":  {[]answer{{err: host.ErrStillRunning}}, []string{"load-key: new"}, false},
	} {
		f := newKeyed(t, tankA())
		f.answer("load-key", c.load...)
		err := FindKey{Dataset: "tank/a", Keys: keys, Drop: []string{"sledctl:next"}}.Do(t.Context(), f)
		if errors.Is(err, ErrWrongKey) != c.wrong || errors.Is(err, host.ErrStillRunning) != (name == "who knows") {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, f.seen); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	// What it cannot write down it does not leave unlocked.
	f := newKeyed(t, tankA())
	f.answer("set", answer{exit: 1, stderr: "cannot set property for 'tank/a': out of space\n"})
	if err := (FindKey{Dataset: "tank/a", Keys: keys}).Do(t.Context(), f); err == nil || !slices.Contains(f.seen, "unload-key: nothing") {
		t.Errorf("%v, %q", err, f.seen)
	}
}

func TestUndoOfKeys(t *testing.T) {
	k, l := testKey{name: "a"}, testKey{name: "b"}
	three, four := []Property{{"sledctl:epoch", "3"}}, []Property{{"sledctl:epoch", "4"}}
	for name, c := range map[string]struct {
		step explainer
		want any
	}{
		"loading":                {LoadKey{"tank/a", k}, UnloadKey{"tank/a", k}},
		"unloading":              {UnloadKey{"tank/a", k}, LoadKey{"tank/a", k}},
		"unloading what is lost": {UnloadKey{"tank/a", nil}, nil},
		"a change":               {ChangeKey{Dataset: "tank/a", Key: k, Properties: four, Old: l, OldProperties: three}, ChangeKey{Dataset: "tank/a", Key: l, Properties: three, Old: k, OldProperties: four}},
		"a change from nowhere":  {ChangeKey{Dataset: "tank/a", Key: k, Properties: four, Old: nil, OldProperties: nil}, nil},
	} {
		if diff := cmp.Diff(c.want, c.step.Undo(), cmp.AllowUnexported(testKey{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
