package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"time"

	"github.com/sledctl/sledctl/host"
)

// How much is kept, in bytes. Of a file its end: that is where the failure is.
const (
	memberMax = 8 << 20
	totalMax  = 64 << 20
)

// askTime is how long a question to a running zone may take.
const askTime = 10 * time.Second

// collection gathers the members of a bundle. What cannot be read is a problem,
// and no failure.
type collection struct {
	members  []Member
	problems []string
	total    int64
}

func (c *collection) add(m Member) {
	if c.total+int64(len(m.data)) > totalMax {
		c.problems = append(c.problems, fmt.Sprintf("%s: left out: the bundle is full", m.Name))
		return
	}
	c.total += int64(len(m.data))
	m.Size = int64(len(m.data))
	m.Of = max(m.Of, m.Size)
	c.members = append(c.members, m)
}

func (c *collection) problem(what string, err error) {
	c.problems = append(c.problems, what+": "+err.Error())
}

// file adds a file of the global zone.
func (c *collection) file(f host.Files, name, as string) {
	m, err := end(f, name)
	if err != nil {
		c.problem(as, err)
		return
	}
	m.Name = as
	c.add(m)
}

// logDirs hold the logs of a zone: its services', Propolis among them, and the
// system's.
func logDirs() []string { return []string{"/var/svc/log", "/var/log", "/var/adm"} }

// logs adds the logs in a zone's root. It is read through a view that cannot
// leave it, and nothing but regular files is opened: a guest that got out of
// its VM may have planted others.
func (c *collection) logs(files host.Files, root string) {
	in, err := files.In(root)
	if err != nil {
		c.problem("root", err)
		return
	}
	for _, dir := range logDirs() {
		infos, err := in.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			c.problem("root"+dir, err)
			continue
		}
		for _, info := range infos {
			if !info.Mode.IsRegular() {
				continue
			}
			c.file(in, path.Join(dir, info.Name), path.Join("root", dir, info.Name))
		}
	}
}

// end reads the end of a regular file.
func end(f host.Files, name string) (Member, error) {
	data, info, err := host.Tail(f, name, memberMax)
	return Member{Time: info.Time, Of: info.Size, data: data}, err
}

// question is what a running zone is asked.
type question struct {
	name    string
	command host.Command
}

// questions are asked from the global zone where that can be done: the zone
// may be in any condition.
//
// Guess questions-from-outside: `ps -z ZONE -o …` and `svcs -z ZONE` in the global zone answer also
// while the zone's own services hang; each question is given up after 10 s.
// Check: `zone bundle create` of a zone whose svc.configd is stopped with pstop
func questions(zone string) []question {
	ask := func(name, program string, args ...string) question {
		return question{name, host.Command{Program: program, Args: args, ReadOnly: true}}
	}
	inside := func(name, program string, args ...string) question {
		q := ask(name, program, args...)
		q.command.Zone = zone
		return q
	}
	return []question{
		ask("services.txt", "svcs", "-z", zone, "-a"),
		ask("services-explained.txt", "svcs", "-z", zone, "-x"),
		ask("processes.txt", "ps", "-z", zone, "-o", "pid,ppid,stime,time,args"),
		inside("links.txt", "dladm", "show-link"),
		inside("addresses.txt", "ipadm", "show-addr"),
		inside("routes.txt", "netstat", "-rn"),
	}
}

// ask asks a running zone, everything side by side.
func (c *collection) ask(ctx context.Context, h host.Host, zone string, now time.Time) {
	all := questions(zone)
	answers := make([][]byte, len(all))
	var wg sync.WaitGroup
	for i, q := range all {
		wg.Go(func() { answers[i] = answer(ctx, h, q.command) })
	}
	wg.Wait()
	for i, q := range all {
		c.add(Member{Name: q.name, Time: now, data: answers[i]})
	}
}

// answer is what a command said, or why it did not, as a text that says which
// command it was.
func answer(ctx context.Context, h host.Host, q host.Command) []byte {
	ctx, release := context.WithTimeout(ctx, askTime)
	defer release()
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n", q.Shell())
	r, err := h.Run(ctx, q)
	if err != nil {
		fmt.Fprintf(&b, "# not answered: %v\n", err)
		return b.Bytes()
	}
	b.Write(r.Stdout[max(0, len(r.Stdout)-memberMax):])
	if len(r.Stderr) > 0 {
		fmt.Fprintf(&b, "# on standard error:\n%s", r.Stderr)
	}
	if r.Exit != 0 {
		fmt.Fprintf(&b, "# exit %d\n", r.Exit)
	}
	return b.Bytes()
}
