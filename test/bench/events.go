package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/illumos/naming"
)

// events measures how long it takes to read what is kept of 10,000 lines of the ledger
// and its history, and to print the newest.
func (b bench) events(ctx context.Context) ([]row, error) {
	const n, lines, instances = 15, 10000, 40
	s, err := inMemory(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.know(ctx, instances); err != nil {
		return nil, err
	}
	if err := s.operate(ctx, lines/2, instances); err != nil {
		return nil, err
	}
	history, err := s.run(ctx, nil, "history", "-H", "--columns", "seq")
	if err != nil {
		return nil, err
	}
	seqs := map[string]bool{}
	for seq := range strings.Lines(history.out) {
		seqs[seq] = true
	}
	var own times
	for range n {
		r, err := s.run(ctx, nil, "events", "-H")
		if err != nil {
			return nil, err
		}
		if got := strings.Count(r.out, "\n"); got != 50 {
			return nil, fmt.Errorf("%d events are printed, want 50", got)
		}
		own = append(own, r.own())
	}
	return []row{timed("events after 10,000 lines of the ledger: own time", 60*time.Millisecond, own.median(), fmt.Sprintf("(n=%d, %d lines kept)", n, len(seqs)))}, nil
}

// operate writes what n operations on some instances, one after the other, write: an
// intent, and the line that closes it.
func (s machine) operate(ctx context.Context, n, instances int) error {
	files := s.Host().Files()
	book, _, err := ledger.Open(ctx, files, ledger.Places{Lock: "/var/run/sledctl/ledger.lock", Locations: ledger.Find(files, "")})
	if err != nil {
		return err
	}
	began := time.Now().Add(-time.Duration(n) * time.Second).UTC()
	for i := range n {
		r := stopped(i % instances)
		id, at := naming.InstanceID([16]byte{}, fmt.Sprint("operation ", i)).String(), began.Add(time.Duration(i)*time.Second)
		by := operation.By{User: "root", Via: operation.ViaCommand}
		intent, err := json.Marshal(operation.Intent{Verb: "instance ensure", Subject: naming.KeyInstance + r.ID, PID: 4711, By: &by, Time: at})
		if err != nil {
			return err
		}
		last, err := json.Marshal(operation.Last{
			ID: id, Verb: "instance ensure", Subject: naming.KeyInstance + r.ID, Name: r.Name, By: by, Argv: []string{"instance", "ensure", r.Name},
			Start: at, End: at.Add(4 * time.Second), Result: operation.Done, Changed: []string{"created 3 datasets"},
		})
		if err != nil {
			return err
		}
		for _, line := range [][]ledger.Fact{
			{{Key: naming.KeyIntent + id, Value: intent}},
			{{Key: naming.KeyIntent + id}, {Key: naming.KeyLast + naming.KeyInstance + r.ID, Value: last}},
		} {
			if _, err := book.Update(ctx, func(ledger.View) ([]ledger.Fact, error) { return line, nil }); err != nil {
				return err
			}
		}
	}
	return nil
}
