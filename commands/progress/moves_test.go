package progress

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
)

// A migration shows its phase, what that does, and the seconds of it and of all, on any width; no
// part of a whole, because Propolis publishes none.
func TestAMigrationShowsItsPhases(t *testing.T) {
	begin := time.Date(2026, 11, 26, 6, 44, 13, 0, time.UTC)
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	m := &Move{Name: "web12", To: "sled2", Since: begin}
	if got := m.Lines(at(0), 80); got != nil {
		t.Errorf("before the first phase: %q", got)
	}
	m.Enter(at(300), "Sync")
	if !m.Enter(at(400), "RamPush") || m.Enter(at(500), "RamPush") {
		t.Error("the same phase twice is one, and another one is new")
	}
	for width, want := range map[int][]string{
		80: {"web12 -> sled2  RamPush: memory is sent, the VM runs on                   26.0s", "  Sync 0.1s  RamPush 25.6s"},
		40: {"web12 -> sled2  RamPush            26.0s", "  Sync 0.1s  RamPush 25.6s"},
		22: {"web12  RamPush   26.0s", "  RamPush 25.6s"},
	} {
		got := m.Lines(at(26000), width)
		if width == 80 {
			got[0] = strings.Join(strings.Fields(got[0]), " ")
			want[0] = strings.Join(strings.Fields(want[0]), " ")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d columns: %s", width, diff)
		}
	}
	for _, phase := range []string{"Pause", "RamPushDirty", "Device", "RamPush"} {
		m.Enter(at(26000), phase)
	}
	for width := 20; width < 140; width++ {
		for _, line := range m.Lines(at(27000), width) {
			if ansi.StringWidth(line) > width || strings.Contains(line, "runs on") || strings.Contains(line, "%") {
				t.Errorf("%d columns: %q", width, line)
			}
		}
	}
	if got, want := m.Plain(at(27000)), "06:44:40 web12 RamPush 27.0s"; got != want {
		t.Errorf("in a log: %q, want %q", got, want)
	}
	if got, want := MoveJSON(at(27000), "instance migrate", m), `{"time":"2026-11-26T06:44:40Z","event":"phase","verb":"instance migrate","name":"web12","action":"RamPush","elapsed_ms":27000}`; got != want {
		t.Errorf("for programs: %s, want %s", got, want)
	}
}

// Several migrations have a line each, below how many there are, within the rows of the terminal.
func TestSeveralMigrationsHaveALineEach(t *testing.T) {
	now := time.Date(2026, 11, 26, 6, 44, 13, 0, time.UTC)
	var b Board
	b.Begin(now, 4)
	var moves []*Move
	for _, name := range []string{"web1", "web2", "web3"} {
		m := &Move{Name: name, To: "sled2", Since: now}
		m.Enter(now, "RamPush")
		moves = append(moves, m)
	}
	for rows := 1; rows < 8; rows++ {
		if got := b.With(moves, now, 80, rows); len(got) > rows {
			t.Errorf("%d rows: %q", rows, got)
		}
	}
	if got := strings.Join(b.With(moves, now, 80, 8), "\n"); !strings.Contains(got, "web1 -> sled2  RamPush") || !strings.Contains(got, "web3 -> sled2  RamPush") {
		t.Errorf("%s", got)
	}
}
