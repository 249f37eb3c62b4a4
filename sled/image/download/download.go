// Package download keeps what is being downloaded of images: a file for each, on a pool with room for it, which stays
// until the image was made of it, so that a run that was cut off or killed is continued by the next.
package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/sledctl/sledctl/engine/bundle"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/peer/web"
	"github.com/sledctl/sledctl/zfs"
)

// directory is where downloads lie in their place, and suffix how their names end.
const (
	directory = "sledctl-downloads"
	suffix    = ".part"
)

// NowhereError is a sled without a place for downloads.
type NowhereError struct{ Reasons []error }

// Error says why no place will do.
func (e *NowhereError) Error() string {
	words := []string{"no pool of a U.2 or an M.2 is imported, and image.directory is not set"}
	for i, err := range e.Reasons {
		words = append(words[:i], err.Error())
	}
	return "there is no place for downloads: " + strings.Join(words, "; ")
}

func (*NowhereError) Kind() fault.Kind { return fault.Refused }

// Hint says how to get one.
func (*NowhereError) Hint() string {
	return "set image.directory in " + naming.ConfigFile + "; or, to mount the debug datasets, run: sledctl bootstrap"
}

// places are the directories in which downloads may lie, the best first: as those of bundles, which are large, too, and
// nothing on which a VM depends. Errors: *NowhereError.
func places(ctx context.Context, h host.Host, configured string) ([]string, error) {
	var names []string
	if configured == "" {
		pools, err := zfs.Pools(ctx, h)
		if err != nil {
			return nil, err
		}
		for _, p := range pools {
			if p.Answers() {
				names = append(names, p.Name)
			}
		}
	}
	ready, err := bundle.Ready(h.Files(), bundle.Places(configured, names))
	if nowhere, is := errors.AsType[*bundle.NowhereError](err); is {
		return nil, &NowhereError{Reasons: nowhere.Reasons}
	}
	var dirs []string
	for _, p := range ready {
		dirs = append(dirs, path.Join(p.Dir, directory))
	}
	return dirs, err
}

// fileOf names the download of an address for an image: as the file is called, and by both.
func fileOf(from *url.URL, image string) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", r) {
			return r
		}
		return '_'
	}, path.Base(from.Path))
	sum := sha256.Sum256([]byte(image + " " + from.String()))
	return strings.TrimLeft(name[:min(len(name), 80)], ".") + "-" + hex.EncodeToString(sum[:4]) + suffix
}

// Find is the file for a download: where an earlier run has begun it, else in the best place. Errors: *NowhereError.
func Find(ctx context.Context, h host.Host, configured string, from *url.URL, image string) (string, error) {
	dirs, err := places(ctx, h, configured)
	if err != nil {
		return "", err
	}
	for _, dir := range dirs {
		if file := path.Join(dir, fileOf(from, image)); there(h.Files(), file) {
			return file, nil
		}
	}
	return path.Join(dirs[0], fileOf(from, image)), nil
}

func there(f host.Files, file string) bool {
	_, err := f.Stat(file)
	return err == nil
}

// File is a download that is kept.
type File struct {
	Path string
	web.Kept
	Time time.Time // of its last change
}

// List finds those in all places that are there. One that cannot be read is of no image. A sled without a place has none.
func List(ctx context.Context, h host.Host, configured string) (all []File, err error) {
	dirs, err := places(ctx, h, configured)
	if _, nowhere := errors.AsType[*NowhereError](err); nowhere {
		return nil, nil
	}
	for _, dir := range dirs {
		infos, lerr := h.Files().ReadDir(dir)
		if lerr != nil && !errors.Is(lerr, fs.ErrNotExist) {
			return nil, lerr
		}
		for _, i := range infos {
			if i.Mode.IsRegular() && strings.HasSuffix(i.Name, suffix) {
				kept, _ := web.Look(h.Files(), path.Join(dir, i.Name))
				all = append(all, File{Path: path.Join(dir, i.Name), Kept: kept, Time: i.Time})
			}
		}
	}
	return all, err
}

// Get downloads a file, or the rest of it. Errors: those of web.Download; of operation.Run.
func Get(ctx context.Context, env operation.Env, step web.Download, dryRun bool) (operation.Report, error) {
	return run(ctx, env, "image fetch", step.For, plan.Action{
		ID: step.Verb() + " " + step.File, Object: "download " + path.Base(step.From.Path), Why: "image " + strconv.Quote(step.For) + " is made of it then", Change: plan.Modify, Step: step,
	}, dryRun)
}

// Remove removes a download for an image.
func Remove(ctx context.Context, env operation.Env, verb, image, file, why string, dryRun bool) (operation.Report, error) {
	step := web.Discard{File: file}
	return run(ctx, env, verb, image, plan.Action{
		ID: step.Verb() + " " + file, Object: "download " + path.Base(file), Why: why, Change: plan.Remove, Step: step,
	}, dryRun)
}

// run does one thing to the download for an image. Its subject is not the image, since an intent about that would answer for
// what an import has left.
func run(ctx context.Context, env operation.Env, verb, image string, action plan.Action, dryRun bool) (operation.Report, error) {
	return operation.Run(ctx, env, operation.Request[struct{}]{
		Verb: verb, Subject: naming.SubjectDownload + image, DryRun: dryRun,
		Look: func(context.Context, host.Host) (none struct{}, err error) { return none, nil },
		Decide: func(ledger.View, struct{}, operation.Stamp) (operation.Decision, error) {
			return operation.Decision{Plan: plan.Plan{Policy: plan.Stop, Actions: []plan.Action{action}}}, nil
		},
	})
}
