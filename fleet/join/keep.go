package join

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"
)

// At is the directory of a sled that has joined, by the name of its kubeconfig; false: no join has written that.
func At(file string) (dir string, joined bool) {
	dir = filepath.Dir(file)
	_, err := Certificate(dir)
	return dir, filepath.Base(file) == Kubeconfig && err == nil
}

// How long a renewal may take, and how long after one that failed the next one is tried.
const (
	patience = time.Minute
	again    = 10 * time.Minute
)

// Keep renews the certificate of a sled that has joined when two thirds of its time are over, until ctx ends. What fails is
// reported to log, and tried again.
func Keep(ctx context.Context, dir string, log *slog.Logger) {
	for {
		wait := again
		c, err := Certificate(dir)
		if err == nil {
			wait = max(0, time.Until(due(c)))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if err == nil {
			err = renew(ctx, dir)
		}
		if err == nil {
			log.Info("the certificate is renewed", "dir", dir)
			continue
		}
		log.Error("the certificate is not renewed", "dir", dir, "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(again):
		}
	}
}

func renew(ctx context.Context, dir string) error {
	ctx, done := context.WithTimeout(ctx, patience)
	defer done()
	return Renew(ctx, dir)
}
