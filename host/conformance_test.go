package host_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/test/hosttest"
)

// fileSystems are the implementations of host.Files, each empty.
var fileSystems = map[string]func(t *testing.T) host.Files{
	"dir":      func(t *testing.T) host.Files { return host.Dir(t.TempDir()) },
	"dir view": func(t *testing.T) host.Files { return view(t, host.Dir(t.TempDir())) },
	"memory":   func(*testing.T) host.Files { return hosttest.Memory() },
	"memory view": func(t *testing.T) host.Files {
		return view(t, hosttest.Memory())
	},
	"power cuts": func(*testing.T) host.Files { return hosttest.PowerCuts() },
}

func view(t *testing.T, f host.Files) host.Files {
	t.Helper()
	ok(t, f.Mkdir("/zone", 0o700))
	ok(t, f.Mkdir("/zone/root", 0o755))
	outer, err := f.In("/zone")
	ok(t, err)
	inner, err := outer.In("/root")
	ok(t, err)
	return inner
}

// conform runs a test on every implementation.
func conform(t *testing.T, test func(t *testing.T, f host.Files)) {
	t.Helper()
	for name, make := range fileSystems {
		t.Run(name, func(t *testing.T) { test(t, make(t)) })
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fails checks the kind of an error, and that it is a *fs.PathError.
func fails(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
	}
	if _, is := errors.AsType[*fs.PathError](err); !is {
		t.Errorf("%v is no *fs.PathError", err)
	}
}

func put(t *testing.T, f host.Files, name, text string) {
	t.Helper()
	file, err := f.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	ok(t, err)
	_, err = io.WriteString(file, text)
	ok(t, err)
	ok(t, file.Close())
}

func holds(t *testing.T, f host.Files, name, want string) {
	t.Helper()
	got, err := host.ReadFile(f, name)
	if err != nil {
		t.Error(err)
	} else if string(got) != want {
		t.Errorf("%s holds %q, want %q", name, got, want)
	}
}

func names(t *testing.T, f host.Files, dir string) []string {
	t.Helper()
	list, err := f.ReadDir(dir)
	ok(t, err)
	names := []string{}
	for _, info := range list {
		names = append(names, info.Name)
	}
	return names
}

func TestFilesOpen(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		_, err := f.Open("/a", os.O_RDONLY, 0)
		fails(t, err, fs.ErrNotExist)
		_, err = f.Open("/no/a", os.O_WRONLY|os.O_CREATE, 0o600)
		fails(t, err, fs.ErrNotExist)

		put(t, f, "/a", "one two")
		put(t, f, "/a", "three")
		holds(t, f, "/a", "three")
		_, err = f.Open("/a", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		fails(t, err, fs.ErrExist)
		_, err = f.Open("/a/b", os.O_RDONLY, 0)
		fails(t, err, syscall.ENOTDIR)

		ok(t, f.Mkdir("/dir", 0o755))
		_, err = f.Open("/dir", os.O_RDONLY, 0)
		fails(t, err, syscall.EISDIR)
		_, err = f.Open("/dir", os.O_WRONLY, 0)
		fails(t, err, syscall.EISDIR)
	})
}

func TestFilesAppendFlagWritesAtTheEnd(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		put(t, f, "/a", "one")
		file, err := f.Open("/a", os.O_WRONLY|os.O_APPEND, 0)
		ok(t, err)
		ok(t, f.Append("/a", []byte(" two")))
		_, err = io.WriteString(file, " three")
		ok(t, err)
		ok(t, file.Close())
		holds(t, f, "/a", "one two three")
	})
}

func TestFilesOpenFile(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		put(t, f, "/a", "hello world")
		file, err := f.Open("/a", os.O_RDWR, 0)
		ok(t, err)
		part := make([]byte, 5)
		_, err = file.ReadAt(part, 6)
		ok(t, err)
		if string(part) != "world" {
			t.Errorf("ReadAt gave %q", part)
		}
		if _, err = file.ReadAt(part, 8); err != io.EOF {
			t.Errorf("ReadAt beyond the end gave %v", err)
		}
		_, err = io.WriteString(file, "J")
		ok(t, err)
		rest, err := io.ReadAll(file)
		ok(t, err)
		if string(rest) != "ello world" {
			t.Errorf("after a write of one byte, the rest is %q", rest)
		}
		info, err := file.Stat()
		ok(t, err)
		if info.Name != "a" || info.Size != 11 || !info.Mode.IsRegular() {
			t.Errorf("Stat gave %+v", info)
		}
		ok(t, file.Sync())
		ok(t, file.Close())
		if _, err := file.Read(part); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("reading a closed file gave %v", err)
		}
		if err := file.Close(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("closing twice gave %v", err)
		}
	})
}

func TestFilesOpenFileKnowsItsDirection(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		put(t, f, "/a", "x")
		in, err := f.Open("/a", os.O_RDONLY, 0)
		ok(t, err)
		defer in.Close()
		_, err = in.Write([]byte("y"))
		fails(t, err, syscall.EBADF)
		out, err := f.Open("/a", os.O_WRONLY, 0)
		ok(t, err)
		defer out.Close()
		_, err = out.Read(make([]byte, 1))
		fails(t, err, syscall.EBADF)
	})
}

func TestFilesOpenFileOutlivesItsName(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		put(t, f, "/a", "old")
		file, err := f.Open("/a", os.O_RDONLY, 0)
		ok(t, err)
		defer file.Close()
		put(t, f, "/b", "new")
		ok(t, f.Rename("/b", "/a"))
		ok(t, f.Remove("/a"))
		got, err := io.ReadAll(file)
		ok(t, err)
		if string(got) != "old" {
			t.Errorf("the open file holds %q", got)
		}
	})
}

func TestFilesAppend(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		fails(t, f.Append("/a", []byte("x")), fs.ErrNotExist)
		put(t, f, "/a", "one\n")
		ok(t, f.Append("/a", []byte("two\n")))
		holds(t, f, "/a", "one\ntwo\n")
		ok(t, f.Mkdir("/dir", 0o755))
		fails(t, f.Append("/dir", []byte("x")), syscall.EISDIR)
	})
}

func TestFilesRename(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		fails(t, f.Rename("/a", "/b"), fs.ErrNotExist)
		put(t, f, "/a", "a")
		put(t, f, "/b", "b")
		fails(t, f.Rename("/a", "/no/a"), fs.ErrNotExist)
		ok(t, f.Rename("/a", "/a"))
		ok(t, f.Rename("/a", "/b"))
		holds(t, f, "/b", "a")
		_, err := f.Stat("/a")
		fails(t, err, fs.ErrNotExist)

		ok(t, f.Mkdir("/dir", 0o755))
		ok(t, f.Mkdir("/other", 0o755))
		fails(t, f.Rename("/b", "/dir"), fs.ErrExist)
		fails(t, f.Rename("/other", "/dir"), fs.ErrExist)
		fails(t, f.Rename("/dir", "/b"), syscall.ENOTDIR)
		fails(t, f.Rename("/dir", "/dir/sub"), syscall.EINVAL)
		ok(t, f.Rename("/b", "/dir/b"))
		ok(t, f.Rename("/dir", "/moved"))
		holds(t, f, "/moved/b", "a")
	})
}

func TestFilesRemove(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		fails(t, f.Remove("/a"), fs.ErrNotExist)
		ok(t, f.Mkdir("/dir", 0o755))
		put(t, f, "/dir/a", "")
		fails(t, f.Remove("/dir"), syscall.ENOTEMPTY)
		ok(t, f.Remove("/dir/a"))
		ok(t, f.Remove("/dir"))
		if got := names(t, f, "/"); len(got) != 0 {
			t.Errorf("left: %v", got)
		}
	})
}

func TestFilesMkdir(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		fails(t, f.Mkdir("/no/a", 0o755), fs.ErrNotExist)
		ok(t, f.Mkdir("/a", 0o777))
		fails(t, f.Mkdir("/a", 0o755), fs.ErrExist)
		info, err := f.Stat("/a")
		ok(t, err)
		if info.Mode != fs.ModeDir|0o777 {
			t.Errorf("mode is %v: the umask must not apply", info.Mode)
		}
		ok(t, host.MkdirAll(f, "/a/b/c", 0o700))
		ok(t, host.MkdirAll(f, "/a/b/c", 0o700))
		put(t, f, "/file", "")
		fails(t, host.MkdirAll(f, "/file", 0o700), fs.ErrExist)
		fails(t, host.MkdirAll(f, "/file/a", 0o700), syscall.ENOTDIR)
	})
}

func TestFilesModes(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		file, err := f.Open("/a", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		ok(t, err)
		ok(t, file.Close())
		info, err := f.Stat("/a")
		ok(t, err)
		if info.Mode != 0o666 {
			t.Errorf("mode is %v: the umask must not apply", info.Mode)
		}
		ok(t, f.Chmod("/a", 0o400))
		info, err = f.Stat("/a")
		ok(t, err)
		if info.Mode != 0o400 {
			t.Errorf("after Chmod mode is %v", info.Mode)
		}
		fails(t, f.Chmod("/b", 0o400), fs.ErrNotExist)
	})
}

func TestFilesReadDirIsSorted(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		for _, name := range []string{"/c", "/a", "/b"} {
			put(t, f, name, name)
		}
		ok(t, f.Mkdir("/dir", 0o755))
		if got := names(t, f, "/"); !slices.Equal(got, []string{"a", "b", "c", "dir"}) {
			t.Errorf("got %v", got)
		}
		list, err := f.ReadDir("/")
		ok(t, err)
		for _, info := range list {
			stat, err := f.Stat("/" + info.Name)
			ok(t, err)
			if stat != info {
				t.Errorf("ReadDir says %+v, Stat %+v", info, stat)
			}
		}
		_, err = f.ReadDir("/a")
		fails(t, err, syscall.ENOTDIR)
		_, err = f.ReadDir("/no")
		fails(t, err, fs.ErrNotExist)
	})
}

func TestFilesStat(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		put(t, f, "/a", "12345")
		before, err := f.Stat("/a")
		ok(t, err)
		if before.Name != "a" || before.Size != 5 || time.Since(before.Time).Abs() > time.Minute {
			t.Errorf("got %+v", before)
		}
		put(t, f, "/b", "")
		ok(t, f.Rename("/b", "/a"))
		after, err := f.Stat("/a")
		ok(t, err)
		if before.Inode == after.Inode || before.Device != after.Device {
			t.Errorf("a renamed file over it: %+v, then %+v", before, after)
		}
		top, err := f.Stat("/")
		ok(t, err)
		if !top.Mode.IsDir() || top.Name != "/" {
			t.Errorf("the top is %+v", top)
		}
		_, err = f.Stat("/no")
		fails(t, err, fs.ErrNotExist)
	})
}

func TestFilesFlush(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		put(t, f, "/a", "x")
		ok(t, f.Sync("/a"))
		ok(t, f.SyncDir("/"))
		fails(t, f.SyncDir("/a"), syscall.ENOTDIR)
		fails(t, f.Sync("/"), syscall.EISDIR)
		fails(t, f.Sync("/b"), fs.ErrNotExist)
	})
}

func TestFilesNamesStayBelowTheTop(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		put(t, f, "/a", "x")
		holds(t, f, "/../../a", "x")
		holds(t, f, "a", "x")
		holds(t, f, "//./a", "x")
	})
}

func TestFilesIn(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		_, err := f.In("/dir")
		fails(t, err, fs.ErrNotExist)
		ok(t, host.MkdirAll(f, "/dir/etc", 0o755))
		in, err := f.In("/dir")
		ok(t, err)
		put(t, in, "/etc/hosts", "x")
		holds(t, f, "/dir/etc/hosts", "x")
		put(t, f, "/secret", "x")
		_, err = in.Stat("/../secret")
		fails(t, err, fs.ErrNotExist)
		if e, _ := errors.AsType[*fs.PathError](err); e != nil && !bytes.HasSuffix([]byte(e.Path), []byte("/dir/secret")) {
			t.Errorf("the error names %s, want the name from the top", e.Path)
		}
		put(t, f, "/file", "x")
		_, err = f.In("/file")
		fails(t, err, syscall.ENOTDIR)
	})
}

func TestFilesInFollowsTheName(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		ok(t, host.MkdirAll(f, "/dir", 0o755))
		in, err := f.In("/dir")
		ok(t, err)
		ok(t, f.Rename("/dir", "/old"))
		_, err = in.Stat("/a")
		fails(t, err, fs.ErrNotExist)
		ok(t, f.Mkdir("/dir", 0o755))
		put(t, f, "/dir/a", "new")
		holds(t, in, "/a", "new")
	})
}

func TestWriteFile(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		ok(t, host.WriteFile(f, "/a", []byte("one"), 0o644))
		ok(t, host.WriteFile(f, "/a", []byte("two"), 0o600))
		holds(t, f, "/a", "two")
		info, err := f.Stat("/a")
		ok(t, err)
		if info.Mode != 0o600 {
			t.Errorf("mode is %v", info.Mode)
		}
		put(t, f, host.Temporary("/a"), "what a killed writer left, longer than the next")
		ok(t, host.WriteFile(f, "/a", []byte("three"), 0o600))
		holds(t, f, "/a", "three")
		if got := names(t, f, "/"); !slices.Equal(got, []string{"a"}) {
			t.Errorf("left: %v", got)
		}
		fails(t, host.WriteFile(f, "/no/a", nil, 0o600), fs.ErrNotExist)
		ok(t, f.Mkdir("/dir", 0o755))
		fails(t, host.WriteFile(f, "/dir", []byte("x"), 0o600), fs.ErrExist)
		if got := names(t, f, "/"); !slices.Equal(got, []string{"a", "dir"}) {
			t.Errorf("left by a failure: %v", got)
		}
	})
}

func TestCopyFile(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		put(t, f, "/a", "one")
		ok(t, f.Mkdir("/dir", 0o755))
		put(t, f, "/dir/b", "what was there")
		ok(t, host.CopyFile(f, "/a", "/dir/b", 0o600))
		holds(t, f, "/dir/b", "one")
		holds(t, f, "/a", "one")
		info, err := f.Stat("/dir/b")
		ok(t, err)
		if info.Mode != 0o600 {
			t.Errorf("mode is %v", info.Mode)
		}
		fails(t, host.CopyFile(f, "/no", "/dir/b", 0o600), fs.ErrNotExist)
		holds(t, f, "/dir/b", "one")
	})
}
