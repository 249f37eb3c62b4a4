package doctor

import (
	"errors"
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/propolis/packaging"
)

func TestTheServer(t *testing.T) {
	settings := Settings{Server: Server{Program: packaging.Program{File: "/p/server"}, Bootrom: "/p/rom", CheckBootrom: func(_ string, size int64) error {
		if size == 1 {
			return errors.New("is 1 byte")
		}
		return nil
	}}}
	seen := func(change func(*Seen)) Seen {
		s := Seen{Settings: settings, Kernel: system.ParseKernel("omnios-r151058-1")}
		change(&s)
		return s
	}
	failed := &host.CommandError{Command: host.Command{Program: "ctrun"}, Result: host.Result{Exit: 123, Stderr: []byte("ld.so.1: fatal")}}
	judgeAll(t, map[string]judged{
		"runs":            {"server", seen(func(s *Seen) { s.Server.Version = "propolis-server 0.1.0" }), OK, "/p/server is propolis-server 0.1.0"},
		"does not run":    {"server", seen(func(s *Seen) { s.Server.Failed = failed }), Fail, "/p/server does not run: ctrun: ld.so.1: fatal; install propolis-server as docs/install.md says"},
		"libraries":       {"server-libraries", seen(func(*Seen) {}), OK, "found"},
		"no library":      {"server-libraries", seen(func(s *Seen) { s.Server.Libraries.Absent = []string{"a.so.1", "b.so.1"} }), Fail, "not found: a.so.1, b.so.1; install the package of the library, or set propolis.library_path, then run: pkg search a.so.1"},
		"no linker":       {"server-libraries", seen(func(s *Seen) { s.Server.Failed = failed }), Warn, "not known"},
		"published":       {"server-build", seen(func(s *Seen) { s.Build = packaging.OmicronBuild }), OK, "254 CPUs"},
		"own":             {"server-build", seen(func(s *Seen) { s.Build = packaging.DevelopmentBuild }), OK, "32 CPUs"},
		"another program": {"server-build", seen(func(s *Seen) { s.Build = packaging.UnknownBuild }), Warn, "/p/server does not say"},
		"a bootrom":       {"bootrom", seen(func(s *Seen) { s.Bootrom = 4096 }), OK, "/p/rom"},
		"no bootrom":      {"bootrom", seen(func(s *Seen) { s.Bootrom = -1 }), Fail, "there is no /p/rom; set propolis.bootrom"},
		"half a bootrom":  {"bootrom", seen(func(s *Seen) { s.Bootrom = 1 }), Fail, "is 1 byte"},
		"in an image":     {"bootrom", Seen{Settings: Settings{Image: true}, Bootrom: -1}, OK, "in the image"},
		"without VMs":     {"server", Seen{Kernel: system.ParseKernel("joyent_20240111T000000Z"), Server: Program{Failed: failed}}, OK, "no VMs"},
	})
}
