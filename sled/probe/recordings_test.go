package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/illumos/disk"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
)

var update = flag.Bool("update", false, "record the simulated sleds again, and write what is read out of each recording")

// simulated are the sleds whose recordings are in testdata, by the names of the files.
func simulated() map[string]sim.Options {
	small := sim.Options{Seed: 4711, M2: 1, U2: 1, Links: 1}
	all := map[string]sim.Options{}
	for name, set := range map[string]func(*sim.Options){
		"simulated-omnios":    func(o *sim.Options) { o.Mode = world.OmniOS },
		"simulated-ramdisk":   func(o *sim.Options) { o.Mode, o.Ramdisk = world.OmniOS, true },
		"simulated-helios":    func(o *sim.Options) { o.Mode = world.Helios },
		"simulated-installed": func(o *sim.Options) { o.Mode, o.Installed = world.Helios, true },
		"simulated-smartos":   func(o *sim.Options) { o.Mode = world.SmartOS },
	} {
		o := small
		set(&o)
		all[name] = o
	}
	return all
}

// Each recording in testdata is read by the parsers, without an error, and gives what the file of
// the same name says. A recording of a real sled is put there, and is read, too.
func TestRecordings(t *testing.T) {
	if *update {
		recordSimulated(t)
	}
	files, err := filepath.Glob("testdata/*.probe")
	if err != nil || len(files) < len(simulated()) {
		t.Fatalf("%v: only %d recordings", err, len(files))
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".probe"), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			a, err := Read(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(name, ".probe")+".read", whatIsRead(t, a)+verdicts(t, a))
		})
	}
}

func golden(t *testing.T, name, now string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v: to write it, run: go test ./sled/probe -run TestRecordings -update", err)
	}
	if where, old, read := difference(Answer{Stdout: before}, Answer{Stdout: []byte(now)}); where != "" {
		t.Errorf("%s, %s: it was %q, and is %q: to take it, run: go test ./sled/probe -run TestRecordings -update", name, where, old, read)
	}
}

func recordSimulated(t *testing.T) {
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for name, options := range simulated() {
		sled := sledOf(t, options)
		if options.Mode != world.SmartOS { // where the simulated sled boots none
			do(t, sled, "zoneadm -z caprica.example install")
			do(t, sled, "zoneadm -z caprica.example boot")
		}
		a, err := Settings{Program: "test", Now: func() time.Time { return at }, Salt: []byte(name)}.Record(t.Context(), sled.Host())
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := errors.Join(a.Write(&file), os.MkdirAll("testdata", 0o755), os.WriteFile("testdata/"+name+".probe", file.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// whatIsRead is what the parsers read out of a recording, for people who compare.
func whatIsRead(t *testing.T, a Archive) string {
	var b strings.Builder
	all := answers{}
	for _, one := range a.Answers {
		if !one.Active {
			all[joined(one.Argv)] = one
		}
	}
	for _, one := range a.Answers {
		read := readerOf(one.Argv)
		if one.Active || one.Failed != "" || read == nil {
			continue
		}
		fmt.Fprintf(&b, "$ %s\n", joined(one.Argv))
		value, err := read(t.Context(), all)
		switch {
		case err == nil:
			b.WriteString(printed(t, value))
		case one.Exit == 0 && !errors.Is(err, disk.ErrNoSlots):
			t.Errorf("%s: %v", joined(one.Argv), err)
		default:
			fmt.Fprintf(&b, "exit %d: %v\n", one.Exit, err)
		}
	}
	return b.String()
}

// printed is a line for each element, or one.
func printed(t *testing.T, value any) string {
	elements := []any{value}
	if v := reflect.ValueOf(value); v.IsValid() && v.Kind() == reflect.Slice {
		elements = nil
		for i := range v.Len() {
			elements = append(elements, v.Index(i).Interface())
		}
	}
	var b strings.Builder
	for _, e := range elements {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", line)
	}
	return b.String()
}

// verdicts are those of each command on a sled that is laid out from the recording.
func verdicts(t *testing.T, a Archive) string {
	var b strings.Builder
	count := map[Verdict]int{}
	for _, c := range compared(t, a) {
		if count[c.Verdict]++; c.Verdict != ByteEqual {
			fmt.Fprintf(&b, "# %s: %s, %s: recorded %q, simulated %q\n", c.Verdict, c.Command, c.Where, c.Recorded, c.Simulated)
		}
	}
	fmt.Fprintf(&b, "# %d byte-equal, %d parse-equal, %d different\n", count[ByteEqual], count[ParseEqual], count[Different])
	return b.String()
}

// Each question has an answer in some recording of a simulated sled, so that its parser is run.
func TestRecordingsAnswerEachQuestion(t *testing.T) {
	answered := map[string]bool{}
	for name := range simulated() {
		data, err := os.ReadFile("testdata/" + name + ".probe")
		if err != nil {
			t.Fatal(err)
		}
		a, err := Read(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range Questions() {
			shape := q.Command.Shell()
			for _, each := range []string{eachZone, eachPool, eachLink, eachVNIC, eachAddress} {
				shape = strings.ReplaceAll(shape, each, word)
			}
			for _, one := range a.Answers {
				if fits(shape, joined(one.Argv)) {
					answered[q.Command.Shell()] = true
				}
			}
		}
	}
	for _, q := range Questions() {
		if !answered[q.Command.Shell()] {
			t.Errorf("no recording has %s: to record the simulated sleds again, run: go test ./sled/probe -run TestRecordings -update", q.Command.Shell())
		}
	}
}
