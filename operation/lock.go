package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host"
)

// Holder is what a lock's file says of its holder. It is for messages: whether
// the lock is held, flock(2) knows.
type Holder struct {
	PID   int       `json:"pid"`
	Verb  string    `json:"verb"`
	Since time.Time `json:"since"`
}

// LockName is the file that is locked for a subject.
func LockName(runDir, subject string) string {
	return path.Join(runDir, "lock", strings.ReplaceAll(subject, "/", "-"))
}

// lockSubject locks the subject. The context that it returns hands the lock to
// the host's mutating commands.
func lockSubject(ctx context.Context, env Env, verb, subject string, wait bool) (context.Context, func(), error) {
	if err := host.MkdirAll(env.Host.Files(), path.Join(env.RunDir, "lock"), 0o755); err != nil {
		return nil, nil, fmt.Errorf("make the directory of the locks: %w", err)
	}
	if err := markBoot(ctx, env); err != nil {
		return nil, nil, err
	}
	mode := host.TryExclusive
	if wait {
		mode = host.LockExclusive
	}
	l, err := lock(ctx, env, subject, mode)
	if err != nil {
		return nil, nil, err
	}
	say, err := json.Marshal(Holder{PID: env.PID, Verb: verb, Since: time.Now().UTC()})
	if err == nil {
		err = l.Write(say)
	}
	if err != nil {
		l.Unlock()
		return nil, nil, err
	}
	return host.WithLock(ctx, l), func() { l.Unlock() }, nil
}

func lock(ctx context.Context, env Env, subject string, mode host.LockMode) (host.Lock, error) {
	name := LockName(env.RunDir, subject)
	l, err := env.Host.Files().Lock(ctx, name, mode)
	switch {
	case errors.Is(err, host.ErrLocked):
		return nil, &LockedError{Subject: subject, Holder: holderOf(env.Host.Files(), name)}
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", subject, err)
	}
	return l, nil
}

func holderOf(files host.Files, name string) Holder {
	var h Holder
	if data, err := host.ReadFile(files, name); err == nil {
		_ = json.Unmarshal(data, &h) // a message without a name is better than none
	}
	return h
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
