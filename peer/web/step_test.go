package web

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/peer/exchange/exchangetest"
	"github.com/sledctl/sledctl/test/hosttest"
	"github.com/sledctl/sledctl/test/steptest"
)

const disk, kept = "what a disk holds, byte by byte", "/data/sledctl-downloads/disk.part"

// sled has files, and reaches a server of one file, in the version that is named, and breaks off where it is told to.
type sled struct {
	exchangetest.Line
	files   host.Files
	version string
	cut     int // 0: never
	ranges  []string
}

func newSled() *sled {
	s := &sled{files: hosttest.Memory(), version: `"v1"`}
	s.Line = exchangetest.Line{Serve: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ranges = append(s.ranges, r.Header.Get("Range"))
		w.Header().Set("ETag", s.version)
		if s.cut > 0 {
			w = &cutting{w, s.cut}
		}
		http.ServeContent(w, r, "disk", time.Time{}, strings.NewReader(disk))
	})}
	return s
}

func (s *sled) Files() host.Files { return s.files }

type cutting struct {
	http.ResponseWriter
	after int
}

func (c *cutting) Write(p []byte) (int, error) {
	_, _ = c.ResponseWriter.Write(p[:min(c.after, len(p))])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

func content(t *testing.T, f host.Files) string {
	t.Helper()
	k, in, done, err := Open(f, kept)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	defer done.Close()
	text, err := io.ReadAll(in)
	if err != nil || k.Length != int64(len(text)) {
		t.Fatalf("%+v, %v", k, err)
	}
	return string(text)
}

func TestSteps(t *testing.T) {
	step := Download{From: parse(t, "http://h/disk"), For: "debian", File: kept}
	steptest.Conform(t, steptest.Case{Step: step, Sled: func(t *testing.T) steptest.Sled {
		s := newSled()
		return steptest.Sled{Host: s, State: func() any { return content(t, s.files) }}
	}}, steptest.Case{Step: Discard{File: kept}, Sled: func(t *testing.T) steptest.Sled {
		s := newSled()
		if err := step.Do(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return steptest.Sled{Host: s, State: func() any { return content(t, s.files) }}
	}})
}

// What has come stays, and only the rest of it is asked for. What is of another version, of another address, or no download
// counts for nothing.
func TestADownloadIsContinued(t *testing.T) {
	first := Download{From: parse(t, "http://h/disk"), For: "debian", File: kept}
	for name, c := range map[string]struct {
		then func(s *sled, next *Download)
		from string // the range that is asked for
	}{
		"the rest":        {func(*sled, *Download) {}, "bytes=10-"},
		"another version": {func(s *sled, _ *Download) { s.version = `"v2"` }, "bytes=10-"},
		"another address": {func(_ *sled, next *Download) { next.From = parse(t, "http://h/disk?2") }, ""},
		"gone":            {func(s *sled, _ *Download) { _ = s.files.Remove(kept) }, ""},
		"killed at its head": {func(s *sled, _ *Download) {
			_ = s.files.Remove(kept)
			write(t, s.files, "{")
		}, ""},
		"something else": {func(s *sled, _ *Download) {
			_ = s.files.Remove(kept)
			write(t, s.files, strings.Repeat("x", 2*headSize))
		}, ""},
	} {
		s := newSled()
		s.cut = 10
		err := first.Do(t.Context(), s)
		if e, cut := errors.AsType[*CutError](err); !cut || e.At != 10 || e.Of != int64(len(disk)) || content(t, s.files) != disk[:10] {
			t.Fatalf("%s: %v, %q", name, err, content(t, s.files))
		}
		next := first
		var last [2]int64
		next.Progress = func(done, of int64) { last = [2]int64{done, of} }
		c.then(s, &next)
		s.cut = 0
		if err := next.Do(t.Context(), s); err != nil || content(t, s.files) != disk || s.ranges[1] != c.from {
			t.Errorf("%s: %v, %q, asked for %q", name, err, content(t, s.files), s.ranges)
		}
		k, err := Look(s.files, kept)
		if err != nil || !k.Whole() || k.For != "debian" || k.URL != next.From.String() || k.Validator != s.version || last != [2]int64{k.Total, k.Total} {
			t.Errorf("%s: %+v, %v, %v", name, k, err, last)
		}
		if info, err := s.files.Stat(kept); err != nil || info.Mode.Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode, err)
		}
		if err := next.Do(t.Context(), s); err != nil || content(t, s.files) != disk {
			t.Errorf("%s, again: %v", name, err)
		}
	}
}

func write(t *testing.T, f host.Files, text string) {
	t.Helper()
	if err := host.WriteFile(f, kept, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// full are files on a file system on which so many bytes fit.
type full struct {
	host.Files
	room int
}

func (f *full) Open(name string, flag int, perm fs.FileMode) (host.File, error) {
	file, err := f.Files.Open(name, flag, perm)
	if err != nil || flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return file, err
	}
	return &fullFile{file, f}, nil
}

type fullFile struct {
	host.File
	of *full
}

func (f *fullFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p[:min(len(p), f.of.room)])
	f.of.room -= n
	if err == nil && n < len(p) {
		err = &fs.PathError{Op: "write", Path: kept, Err: syscall.ENOSPC}
	}
	return n, err
}

// A full file system is said to be one, and the download continues when there is room.
func TestAFullFileSystem(t *testing.T) {
	step := Download{From: parse(t, "http://h/disk"), For: "debian", File: kept}
	for room, want := range map[int]string{0: "", 10: "", headSize + 10: disk[:10]} {
		s := newSled()
		f := &full{s.files, room}
		s.files = f
		err := step.Do(t.Context(), s)
		if e, is := errors.AsType[*FullError](err); !is || e.Hint() == "" || fault.Of(err) != fault.Refused {
			t.Errorf("room for %d: %v", room, err)
		}
		f.room = 1 << 20
		if room >= headSize && content(t, s.files) != want {
			t.Errorf("room for %d: %q", room, content(t, s.files))
		}
		if err := step.Do(t.Context(), s); err != nil || content(t, s.files) != disk {
			t.Errorf("room for %d, then for all: %v", room, err)
		}
	}
}

// An address that is too long to be kept is refused.
func TestALongAddress(t *testing.T) {
	step := Download{From: parse(t, "http://h/disk?"+strings.Repeat("x", headSize)), For: "debian", File: kept}
	s := newSled()
	if err := step.Do(t.Context(), s); fault.Of(err) != fault.Refused || strings.Contains(err.Error(), "xxx") || content(t, s.files) != "" {
		t.Errorf("%v, %q", err, content(t, s.files))
	}
}
