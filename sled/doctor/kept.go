package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/sledctl/sledctl/host"
)

// The last result is a file in paths.run, and not a fact of the ledger: it is there before
// there is a ledger, it needs no copy and no lock of others, and a boot, after which
// kernel, memory and links may be others, removes it.
const (
	keptName = "doctor.json"
	lockName = "doctor.lock"
)

// Keep keeps a result as the last one. Of two at once the first to write is kept.
func (s Settings) Keep(ctx context.Context, files host.Files, r Result) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := host.MkdirAll(files, s.RunDir, 0o755); err != nil {
		return fmt.Errorf("keep the result: %w", err)
	}
	held, err := files.Lock(ctx, path.Join(s.RunDir, lockName), host.TryExclusive)
	if errors.Is(err, host.ErrLocked) {
		return nil
	} else if err != nil {
		return fmt.Errorf("keep the result: %w", err)
	}
	return errors.Join(host.ReplaceFile(files, path.Join(s.RunDir, keptName), append(data, '\n'), 0o644), held.Unlock())
}

// Last is the last result since the sled booted; nil: there is none.
func Last(files host.Files, runDir string) (*Result, error) {
	data, err := host.ReadFile(files, path.Join(runDir, keptName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var r Result
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return nil, fmt.Errorf("the last result of doctor: %w", err)
	}
	return &r, nil
}
