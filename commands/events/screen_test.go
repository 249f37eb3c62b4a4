package events

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/events"
)

var update = flag.Bool("update", false, "rewrite the screens in testdata")

// past are events of all results.
func past() []events.Event {
	const pool = "oxp_6eb758c7-ee2e-4e47-ae36-2884c421fb31"
	at := time.Date(2026, 11, 23, 6, 26, 57, 0, time.UTC)
	event := func(minutes int, took time.Duration, who, verb, name string, result operation.Result) events.Event {
		start := at.Add(time.Duration(minutes) * time.Minute)
		return events.Event{
			Object: events.Object{Kind: "instance", Name: name},
			Last: operation.Last{
				ID: fmt.Sprintf("%08x-6c9b-4dd0-9b5c-2d3f5a0a9e10", 0x9e43b037+minutes), Verb: verb, Name: name, Start: start, End: start.Add(took),
				By: operation.By{User: who, Via: operation.ViaCommand}, Result: result,
			},
		}
	}
	made := event(0, 100*time.Millisecond, "root", "instance ensure", "db01", operation.Done)
	made.Changed = []string{"zone propolis_instance_71d2bf82", "VNIC vnic_propolis0", "VNIC vnic_propolis_guest0", "dataset of the zone on " + pool}
	ended := event(2, 0, "", "VM failed", "web06", events.Seen)
	ended.ID, ended.By, ended.Error = "", operation.By{}, "Propolis panicked"
	moved := event(4, 50400*time.Millisecond, "root", "instance migrate", "web12", operation.Done)
	moved.To = "sled2"
	failed := event(6, 300*time.Millisecond, "root", "instance ensure", "ci3", operation.Failed)
	failed.Exit, failed.Error = 1, "zone.clone: zoneadm clone exited with 1: cannot create a snapshot of "+pool+"/crypt/zone/propolis_base_6eb758c7_1: out of space"
	died := event(7, 0, "anna", "instance ensure", "web02", events.Died)
	died.By.From, died.End = "pts/3", time.Time{}
	gone := event(24*60, 12*time.Second, "root", "instance delete", "web02", operation.Done)
	gone.Gone = true
	running := event(24*60+1, 0, "root", "base ensure", pool, events.Running)
	running.PID, running.End = 23669, time.Time{}
	return []events.Event{made, ended, moved, failed, died, gone, running}
}

func plain(_ terminal.Style, text string) string { return text }

func drawn(width int) string {
	return screen{width: width, style: plain, zone: time.UTC, now: time.Date(2026, 11, 24, 7, 0, 0, 0, time.UTC)}.text(past())
}

// Events are as in testdata, at 80 columns and at 140. The id is the last column.
func TestScreens(t *testing.T) {
	for _, width := range []int{80, 140} {
		file, text := filepath.Join("testdata", fmt.Sprintf("events-%d.txt", width)), drawn(width)
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if diff := cmp.Diff(string(want), text); diff != "" || err != nil {
			t.Error(diff, err)
		}
	}
}

// No line is wider than the terminal, and no word of an error or id is lost.
func TestAScreenFits(t *testing.T) {
	for width := 60; width <= 160; width++ {
		text := drawn(width)
		for line := range strings.Lines(text) {
			if ansi.StringWidth(strings.TrimSuffix(line, "\n")) > width {
				t.Errorf("%d columns: %q", width, line)
			}
		}
		words := strings.Join(strings.Fields(text), " ")
		for _, want := range []string{"oxp_6eb758c7/crypt/zone/propolis_base_6eb758c7_1: out of space", "FAILED 1", "running (pid 23669)", "moved to sled2"} {
			if !strings.Contains(strings.ReplaceAll(words, " ", ""), strings.ReplaceAll(want, " ", "")) {
				t.Errorf("%d columns: no %q in\n%s", width, want, text)
			}
		}
		if width >= wide && !strings.Contains(text, "9e43b037\n") {
			t.Errorf("%d columns: the id is not last:\n%s", width, text)
		}
	}
}
