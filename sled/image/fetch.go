package image

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"

	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/image"
	"github.com/sledctl/sledctl/peer/web"
	"github.com/sledctl/sledctl/sled/image/checksum"
	"github.com/sledctl/sledctl/sled/image/download"
)

// FetchWant is the image that is asked for by its address.
type FetchWant struct {
	Name, Pool string
	From       *url.URL
	Digest     checksum.Digest // that the file must have; empty: any
	Client     web.Client
	Directory  string                      // for downloads; empty: see package download
	Progress   func() func(done, of int64) // for each of what takes its time; may be nil
}

// KeptError is a run that ended before an image was made of its download. What has come stays.
type KeptError struct {
	Err    error
	File   string
	Length int64
}

// Error says how much is kept, and where.
func (e *KeptError) Error() string {
	return fmt.Sprintf("%v; %d bytes are kept in %s", e.Err, e.Length, e.File)
}

func (*KeptError) Kind() fault.Kind { return fault.Failed }

// Unwrap gives what ended it.
func (e *KeptError) Unwrap() error { return e.Err }

// Hint says how to continue, behind what the cause has to say.
func (e *KeptError) Hint() string {
	const keep = "to continue, run the same command again; to remove what has come, run: sledctl image prune"
	_, cut := errors.AsType[*web.CutError](e.Err)
	_, stalled := errors.AsType[*web.StalledError](e.Err)
	var hinted interface{ Hint() string }
	if cut || stalled || !errors.As(e.Err, &hinted) || hinted.Hint() == "" {
		return keep
	}
	return hinted.Hint() + "; then run the same command again: it continues"
}

// Fetch makes an image of a file that a web server has, as Import does of one that is here. One of the name that is known to
// be of the same file needs no download. What is no disk, or has another digest, is removed again; after any other failure, what has come
// is kept (*KeptError). Errors: those of web.Download, Open and Import.
func Fetch(ctx context.Context, env operation.Env, want FetchWant, pools []string, dryRun bool) (Status, []operation.Report, error) {
	if err := ValidateName(want.Name); err != nil {
		return Status{}, nil, err
	}
	if want.Pool != "" && !slices.Contains(pools, want.Pool) {
		return Status{}, nil, &NoPoolError{Pool: want.Pool, Pools: pools}
	}
	made, ready, err := want.made(ctx, env, dryRun)
	if err != nil || ready {
		return made, nil, err
	}
	file, err := download.Find(ctx, env.Host, want.Directory, want.From, want.Name)
	if err != nil {
		return made, nil, err
	}
	step := web.Download{From: want.From, For: want.Name, File: file, Client: want.Client, Progress: want.progress()}
	report, err := download.Get(ctx, env, step, dryRun)
	reports := []operation.Report{report}
	if err != nil || dryRun {
		return made, reports, keeps(env.Host, file, err)
	}
	made, report, err = want.take(ctx, env, file, pools)
	reports = append(reports, report)
	if err != nil && !worthless(err) {
		return made, reports, keeps(env.Host, file, err)
	}
	// Also when it was interrupted: nobody could use what is left.
	report, gone := download.Remove(context.WithoutCancel(ctx), env, "image fetch", want.Name, file, "the image was made of it, or cannot be", false)
	if _, busy := errors.AsType[*operation.LockedError](gone); busy {
		gone = nil // another run has it now
	}
	return made, append(reports, report), errors.Join(err, gone)
}

// made is the image of the name, if it is there and of the digest.
func (want FetchWant) made(ctx context.Context, env operation.Env, dryRun bool) (s Status, ready bool, err error) {
	view, err := operation.Decided(ctx, env, dryRun)
	if err != nil || want.Digest.SHA256() == "" {
		return s, false, err
	}
	is, there, err := Find(view, want.Name)
	if err != nil || !there {
		return s, false, err
	}
	asked := Want{Pool: want.Pool, Source: Source{SHA256: want.Digest.SHA256()}}
	if !asked.same(is) {
		return s, false, &ExistsError{Record: is}
	}
	inv, err := look(ctx, env.Host)
	if err != nil {
		return s, false, err
	}
	s = StatusOf(is, inv)
	return s, s.State == Ready && !lost(is, inv), nil
}

func (want FetchWant) progress() func(done, of int64) {
	if want.Progress == nil {
		return nil
	}
	return want.Progress()
}

// take imports what was downloaded.
func (want FetchWant) take(ctx context.Context, env operation.Env, file string, pools []string) (made Status, report operation.Report, err error) {
	_, in, done, err := web.Open(env.Host.Files(), file)
	if err != nil {
		return made, report, err
	}
	defer func() { err = errors.Join(err, done.Close()) }()
	called := path.Base(want.From.Path)
	if want.Digest != "" && want.Digest.SHA256() == "" {
		is, err := want.Digest.Of(&interruptible{ctx, in})
		if err == nil && is != want.Digest {
			err = &DigestError{File: called, Is: string(is), Want: string(want.Digest)}
		}
		if err != nil {
			return made, report, err
		}
	}
	source, err := Open(ctx, called, in, in.Size(), want.Digest.SHA256())
	if err != nil {
		return made, report, err
	}
	return Import(ctx, env, Want{Name: want.Name, Pool: want.Pool, Source: source, Progress: want.progress()}, pools, false)
}

// worthless says whether what was downloaded can never become the image.
func worthless(err error) bool {
	_, other := errors.AsType[*DigestError](err)
	_, none := errors.AsType[*image.Refused](err)
	return other || none
}

// keeps adds to an error what is kept; nothing, where nothing is.
func keeps(h host.Host, file string, err error) error {
	if err == nil {
		return nil
	}
	k, failed := web.Look(h.Files(), file)
	if failed != nil || k.Length == 0 {
		return err
	}
	return &KeptError{Err: err, File: file, Length: k.Length}
}

// PruneDownloads removes what is left of downloads that have not become images, but for those that a run is at work on. It names the
// files that it has removed, or would.
func PruneDownloads(ctx context.Context, env operation.Env, directory string, dryRun bool) (names []string, reports []operation.Report, err error) {
	all, err := download.List(ctx, env.Host, directory)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range all {
		name := f.For
		if ValidateName(name) != nil {
			name = "unknown"
		}
		report, err := download.Remove(ctx, env, "image prune", name, f.Path, "of image "+name+", which was not made of it", dryRun)
		if _, busy := errors.AsType[*operation.LockedError](err); busy {
			continue
		}
		reports = append(reports, report)
		if err != nil {
			return names, reports, err
		}
		names = append(names, path.Base(f.Path))
	}
	return names, reports, nil
}
