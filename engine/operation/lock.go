package operation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
)

// Holder is what a lock's file says about its holder. It is for messages: flock(2)
// knows whether the lock is held.
type Holder struct {
	PID   int       `json:"pid"`
	Verb  string    `json:"verb"`
	Since time.Time `json:"since"`
	// Subject is what is locked, Name what an operator calls it; empty until it is known.
	Subject string `json:"subject,omitempty"`
	Name    string `json:"name,omitempty"`
	User    string `json:"user,omitempty"` // see By
	// Step is the verb of the step that runs, the At-th of Steps, as its last command began.
	Step  string `json:"step,omitempty"`
	At    int    `json:"at,omitempty"`
	Steps int    `json:"steps,omitempty"`
	// Group is the process group of the last command that it has started, and
	// Command its argv: it continues, and holds the lock, if PID was killed.
	Group   int    `json:"group,omitempty"`
	Command string `json:"command,omitempty"`
}

// LockName is the file that is locked for a subject.
func LockName(runDir, subject string) string {
	return path.Join(runDir, "lock", strings.ReplaceAll(subject, "/", "-"))
}

// lockSubject locks the subject. The context that it returns hands the lock to
// the host's mutating commands. The lock's file goes with it where all of them
// have ended: else one may hold it still.
func lockSubject(ctx context.Context, env Env, verb, subject string, wait bool) (context.Context, *sign, func(ended bool), error) {
	if err := host.MkdirAll(env.Host.Files(), path.Join(env.RunDir, "lock"), 0o755); err != nil {
		return nil, nil, nil, fmt.Errorf("make the directory of the locks: %w", err)
	}
	if err := markBoot(ctx, env); err != nil {
		return nil, nil, nil, err
	}
	mode := host.TryExclusive
	if wait {
		mode = host.LockExclusive
	}
	l, err := lock(ctx, env, subject, mode)
	if err != nil {
		return nil, nil, nil, err
	}
	say := &sign{lock: l, holder: Holder{PID: env.PID, User: env.By.User, Verb: verb, Since: time.Now().UTC(), Subject: subject}}
	if err := say.write(); err != nil {
		l.Unlock()
		return nil, nil, nil, err
	}
	unlock := func(ended bool) {
		say.takeDown()
		if ended {
			_ = env.Host.Files().Remove(LockName(env.RunDir, subject)) // else the next run does it
		}
		l.Unlock()
		if !ended {
			sweepLock(context.WithoutCancel(ctx), env, subject)
		}
	}
	return host.WithStart(host.WithLock(ctx, l), say.started), say, unlock, nil
}

// sweepLock removes the file of a lock that nobody holds: where a run failed, a command
// of it may go on and hold it.
func sweepLock(ctx context.Context, env Env, subject string) {
	name := LockName(env.RunDir, subject)
	if _, err := env.Host.Files().Stat(name); err != nil {
		return
	}
	if l, err := env.Host.Files().Lock(ctx, name, host.TryExclusive); err == nil {
		_ = env.Host.Files().Remove(name)
		l.Unlock()
	}
}

// Hold locks a subject for as long as its holder runs. The error is a
// *LockedError if another does.
func Hold(ctx context.Context, env Env, verb, subject string) (release func(), err error) {
	_, _, unlock, err := lockSubject(ctx, env, verb, subject, false)
	if err != nil {
		return nil, err
	}
	return func() { unlock(true) }, nil
}

// sign is what a lock's file says. A step is written with its command, or else when it has
// become long enough to be asked about.
type sign struct {
	lock   host.Lock
	mu     sync.Mutex
	holder Holder
	timer  *time.Timer // of the next writing; nil: there is none
	taken  bool        // down: the lock is given up
}

// asked is how long a step has to be for others to see it.
const asked = 100 * time.Millisecond

// takeDown ends the writing.
func (s *sign) takeDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken = true; s.timer != nil {
		s.timer.Stop()
	}
}

// late writes what was told a while ago.
func (s *sign) late() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer = nil; !s.taken {
		_ = s.write() // it is for messages
	}
}

func (s *sign) write() error {
	text, err := json.Marshal(s.holder)
	if err != nil {
		return err
	}
	return s.lock.Write(text)
}

// note takes how far the holder has come.
func (s *sign) note(e Event) {
	if e.Kind != plan.Started {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holder.Name, s.holder.Step, s.holder.At, s.holder.Steps = e.Name, e.Action.Step.Verb(), e.Step, e.Steps
	if s.timer == nil {
		s.timer = time.AfterFunc(asked, s.late)
	}
}

func (s *sign) started(group int, c host.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holder.Group = group
	s.holder.Command, _, _ = strings.Cut(c.Shell(), "\n") // without its input
	_ = s.write()                                         // it is for messages
}

func lock(ctx context.Context, env Env, subject string, mode host.LockMode) (host.Lock, error) {
	name := LockName(env.RunDir, subject)
	l, err := env.Host.Files().Lock(ctx, name, mode)
	if mode == host.TryExclusive && errors.Is(err, host.ErrLocked) {
		l, err = behindLookers(ctx, env, name)
	}
	switch {
	case errors.Is(err, host.ErrLocked):
		return nil, LockedBy(subject, holderOf(env.Host.Files(), name))
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", subject, err)
	}
	return l, nil
}

// glimpse is how long those who only ask whether a lock is held may have it.
const glimpse = time.Second

// behindLookers takes a lock that others share for the moment in which they ask
// whether it is held (Alive): they are no run. One that a run holds is
// host.ErrLocked.
func behindLookers(ctx context.Context, env Env, name string) (host.Lock, error) {
	l, err := env.Host.Files().Lock(ctx, name, host.TryShared)
	if err != nil {
		return nil, err
	}
	l.Unlock()
	short, cancel := context.WithTimeout(ctx, glimpse)
	defer cancel()
	l, err = env.Host.Files().Lock(short, name, host.LockExclusive)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, host.ErrLocked // a run was quicker
	}
	return l, err
}

func holderOf(files host.Files, name string) Holder {
	var h Holder
	if data, err := host.ReadFile(files, name); err == nil {
		_ = json.Unmarshal(data, &h) // a message without a name is better than none
	}
	return h
}

// await waits until nobody holds a subject, and says for whom.
func await(ctx context.Context, env Env, locked *LockedError) error {
	env.warn(fmt.Errorf("waiting: %w", locked))
	if env.Awaits != nil {
		defer follow(env, locked)()
	}
	l, err := env.Host.Files().Lock(ctx, LockName(env.RunDir, locked.Subject), host.LockShared)
	if err != nil {
		return fmt.Errorf("wait for %s: %w", locked.Subject, err)
	}
	l.Unlock()
	return nil
}

// watched is how often the file of a lock is read that is waited for.
const watched = 250 * time.Millisecond

// follow tells whenever the run that holds a lock has come to another step, until what it
// returns is called.
func follow(env Env, locked *LockedError) (end func()) {
	ticker, done := time.NewTicker(watched), make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		last := locked.Holder
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			h := holderOf(env.Host.Files(), LockName(env.RunDir, locked.Subject))
			if h.PID > 0 && (h.PID != last.PID || h.At != last.At || h.Step != last.Step) {
				last = h
				h.Name = cmp.Or(h.Name, locked.Holder.Name) // it has just begun
				env.Awaits(LockedBy(locked.Subject, h))
			}
		}
	})
	return func() { ticker.Stop(); close(done); ended.Wait() }
}

// Alive says whether a run holds the subject's lock, and who.
func Alive(ctx context.Context, env Env, subject string) (Holder, bool) {
	name := LockName(env.RunDir, subject)
	if _, err := env.Host.Files().Stat(name); err != nil {
		return Holder{}, false
	}
	l, err := env.Host.Files().Lock(ctx, name, host.TryShared)
	if err != nil {
		return holderOf(env.Host.Files(), name), errors.Is(err, host.ErrLocked)
	}
	l.Unlock()
	return Holder{}, false
}

// AtWork lists who holds which lock of the sled, in the order of their subjects. It
// reads the files of the locks, and waits for none of them.
func AtWork(ctx context.Context, env Env) ([]Holder, error) {
	files, err := env.Host.Files().ReadDir(path.Join(env.RunDir, "lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Holder
	for _, f := range files {
		if f.Name == "boot" {
			continue // it is held for the moment in which a boot gets its id
		}
		if h, alive := Alive(ctx, env, f.Name); alive && h.PID > 0 {
			h.Subject = cmp.Or(h.Subject, f.Name)
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b Holder) int { return strings.Compare(a.Subject, b.Subject) })
	return all, nil
}
