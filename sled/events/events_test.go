package events_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/events"
)

var began = time.Date(2026, 11, 23, 6, 30, 0, 0, time.UTC)

// line is the n-th line of a ledger, with facts as KEY VALUE.
func line(n int, facts ...string) ledger.Entry {
	e := ledger.Entry{Seq: uint64(n), Epoch: 1, Time: began.Add(time.Duration(n) * time.Second)}
	for _, f := range facts {
		key, value, _ := strings.Cut(f, " ")
		e.Facts = append(e.Facts, ledger.Fact{Key: key, Value: json.RawMessage(value)})
	}
	return e
}

func intent(id, verb string, n int) string {
	return fmt.Sprintf(`intent/%s {"verb":%q,"subject":"instance/1","pid":7,"time":%q}`, id, verb, began.Add(time.Duration(n)*time.Second).Format(time.RFC3339))
}

func record(generation, cpus int, wanted string) string {
	return fmt.Sprintf(`instance/1 {"id":"1","name":"web1","wanted":%q,"spec":{"cpus":%d,"memory":4294967296,"address":"dhcp"},"generation":%d}`, wanted, cpus, generation)
}

func last(id, verb string, n int, more string) string {
	return fmt.Sprintf(`{"id":%q,"verb":%q,"subject":"instance/1","name":"web1","by":{"user":"anna","uid":5,"via":"cli"},"start":%q,"end":%[4]q,"result":"ok"%s}`,
		id, verb, began.Add(time.Duration(n)*time.Second).Format(time.RFC3339), began.Add(time.Duration(n+1)*time.Second).Format(time.RFC3339), more)
}

// The lines of a ledger become what people did: with what is different, with what
// died, and, of an earlier sledctl, that it ended.
func TestLinesBecomeEvents(t *testing.T) {
	lines := []ledger.Entry{
		line(1, record(1, 2, "running"), intent("a", "instance ensure", 1)),
		line(2, record(1, 2, "running"), "intent/a null"), // of an earlier sledctl
		line(3, record(2, 4, "running"), intent("b", "instance ensure", 3)),
		line(4, record(2, 4, "running"), "intent/b null", "last/instance/1 "+last("b", "instance ensure", 3, "")),
		line(5, record(3, 4, "stopped"), intent("c", "instance stop", 5)),
		line(6, record(4, 4, "stopped"), intent("d", "instance stop", 6)),
		line(7, record(4, 4, "stopped"), "intent/d null", "intent/c null", "last/instance/1 "+last("d", "instance stop", 6, "")),
		line(8, intent("e", "instance start", 8)),
		line(9, "last/instance/1 "+last("e", "instance start", 8, `,"left":["zone z"]`)),
		line(10, "instance/1 null", intent("f", "instance delete", 10)),
		line(11, "intent/f null", "intent/e null", "last/instance/1 null", "last/deleted "+last("f", "instance delete", 10, "")),
		line(12, intent("g", "instance ensure", 12)),
		line(13, `intent/h {"verb":"reap","subject":"sled","pid":8,"time":"2026-11-23T06:30:13Z"}`),
		line(14, `tombstone/p {"instance":"1","name":"web1","state":"failed","reason":"panicked","time":"2026-11-23T06:30:14Z"}`),
	}
	past, err := events.Of(func(yield func(ledger.Entry, error) bool) {
		for _, l := range lines {
			if !yield(l, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	alive := func(subject string) (operation.Holder, bool) { return operation.Holder{PID: 8}, subject == "sled" }
	text := func(all []events.Event) string {
		var out []string
		for _, e := range all {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s: %s", e.ID, e.Verb, e.Object.Name, e.Result, e.Text(false))))
		}
		return strings.Join(out, "\n")
	}
	got := text(past.Newest(0, func(events.Event) bool { return true }, alive))
	want := `a instance ensure web1 ended: created: 2 CPUs, 4G
b instance ensure web1 ok: cpus 2 -> 4
c instance stop web1 died:
d instance stop web1 ok:
e instance start web1 ok: left: zone z
f instance delete web1 ok: deleted
g instance ensure  died:
h reap  running:
VM failed web1 seen:`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if newest := text(past.Newest(2, func(e events.Event) bool { return e.Object.Name == "web1" }, alive)); !strings.HasPrefix(newest, "f ") || !strings.HasSuffix(newest, "seen:") {
		t.Errorf("the newest two:\n%s", newest)
	}
}

// What an instance has on the sled is called by ids, which a screen leaves out; a table for
// programs has them.
func TestWhatWasDoneToTheHostIsSaidWithoutIds(t *testing.T) {
	e := events.Event{Object: events.Object{Kind: "instance", Name: "web1"}}
	e.Result = operation.Done
	for want, changed := range map[string][]string{
		"brought up again": {"changed zone propolis_instance_1", "created propolis web1", "created 2 vnics"},
		"changed propolis, changed zone, created address v0/control, created bundle": {"changed propolis web1", "changed zone propolis_instance_1", "created address v0/control", "created bundle 20261127"},
	} {
		e.Changed = changed
		if got := e.Text(false); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := e.Text(true); got != strings.Join(changed, ", ") {
			t.Errorf("whole: %q", got)
		}
	}
}
