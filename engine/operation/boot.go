package operation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/sledctl/sledctl/host"
)

// Boot names this boot of the sled: a random id that the first operation after
// a boot writes below the run directory, which a reboot empties. Empty means
// that no operation has run since.
func Boot(env Env) (string, error) {
	data, err := host.ReadFile(env.Host.Files(), bootFile(env))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

func bootFile(env Env) string { return path.Join(env.RunDir, "boot") }

// markBoot writes the id where there is none yet. It happens under a lock of
// its own: two first operations agree on one id.
func markBoot(ctx context.Context, env Env) error {
	files := env.Host.Files()
	if _, err := files.Stat(bootFile(env)); err == nil {
		return nil
	}
	l, err := files.Lock(ctx, LockName(env.RunDir, "boot"), host.LockExclusive)
	if err != nil {
		return err
	}
	defer l.Unlock()
	if _, err := files.Stat(bootFile(env)); err == nil {
		return nil
	}
	if err := host.WriteFile(files, bootFile(env), []byte(env.NewID()), 0o644); err != nil {
		return fmt.Errorf("mark the boot: %w", err)
	}
	return nil
}
