package main

import (
	"context"

	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/test/hosttest"
)

// counts returns how many host commands each operation runs: what a real sled takes
// for it is mostly this many times a process and what that does.
func (b bench) counts(ctx context.Context) ([]row, error) {
	s := machine{Sled: sim.New(sim.Options{Seed: 1}, hosttest.Files)}
	defer s.Close()
	if err := s.configure(); err != nil {
		return nil, err
	}
	var rows []row
	for _, line := range []struct {
		what string
		args []string
	}{
		{"bootstrap of an untouched sled, 6 disks", []string{"bootstrap"}},
		{"bootstrap again", []string{"bootstrap"}},
		{"instance ensure, one NIC", web1("web1")},
		{"instance ensure again", web1("web1")},
		{"instance list, one runs", []string{"instance", "list"}},
		{"status, one runs", []string{"status"}},
		{"instance reboot", []string{"instance", "reboot", "web1"}},
		{"instance stop", []string{"instance", "stop", "web1"}},
		{"instance start", []string{"instance", "start", "web1"}},
		{"instance delete", []string{"instance", "delete", "web1"}},
		{"reap --dry-run", []string{"reap", "--dry-run"}},
	} {
		r, err := s.run(ctx, nil, line.args...)
		if err != nil {
			return nil, err
		}
		rows = append(rows, told("host commands: "+line.what, r.counts().String()))
	}
	return rows, nil
}
