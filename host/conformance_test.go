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
	"github.com/sledctl/sledctl/test/hosttest/expect"
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
	expect.OK(t, f.Mkdir("/zone", 0o700))
	expect.OK(t, f.Mkdir("/zone/root", 0o755))
	outer, err := f.In("/zone")
	expect.OK(t, err)
	inner, err := outer.In("/root")
	expect.OK(t, err)
	return inner
}

// conform runs a test on every implementation.
func conform(t *testing.T, test func(t *testing.T, f host.Files)) {
	t.Helper()
	for name, make := range fileSystems {
		t.Run(name, func(t *testing.T) { test(t, make(t)) })
	}
}

func names(t *testing.T, f host.Files, dir string) []string {
	t.Helper()
	list, err := f.ReadDir(dir)
	expect.OK(t, err)
	names := []string{}
	for _, info := range list {
		names = append(names, info.Name)
	}
	return names
}

func TestFilesOpen(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		_, err := f.Open("/a", os.O_RDONLY, 0)
		expect.Fails(t, err, fs.ErrNotExist)
		_, err = f.Open("/no/a", os.O_WRONLY|os.O_CREATE, 0o600)
		expect.Fails(t, err, fs.ErrNotExist)

		expect.Put(t, f, "/a", "one two")
		expect.Put(t, f, "/a", "three")
		expect.Holds(t, f, "/a", "three")
		_, err = f.Open("/a", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		expect.Fails(t, err, fs.ErrExist)
		_, err = f.Open("/a/b", os.O_RDONLY, 0)
		expect.Fails(t, err, syscall.ENOTDIR)

		expect.OK(t, f.Mkdir("/dir", 0o755))
		_, err = f.Open("/dir", os.O_RDONLY, 0)
		expect.Fails(t, err, syscall.EISDIR)
		_, err = f.Open("/dir", os.O_WRONLY, 0)
		expect.Fails(t, err, syscall.EISDIR)
	})
}

func TestFilesAppendFlagWritesAtTheEnd(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		expect.Put(t, f, "/a", "one")
		file, err := f.Open("/a", os.O_WRONLY|os.O_APPEND, 0)
		expect.OK(t, err)
		expect.OK(t, f.Append("/a", []byte(" two")))
		_, err = io.WriteString(file, " three")
		expect.OK(t, err)
		expect.OK(t, file.Close())
		expect.Holds(t, f, "/a", "one two three")
	})
}

func TestFilesOpenFile(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		expect.Put(t, f, "/a", "hello world")
		file, err := f.Open("/a", os.O_RDWR, 0)
		expect.OK(t, err)
		part := make([]byte, 5)
		_, err = file.ReadAt(part, 6)
		expect.OK(t, err)
		if string(part) != "world" {
			t.Errorf("ReadAt gave %q", part)
		}
		if _, err = file.ReadAt(part, 8); err != io.EOF {
			t.Errorf("ReadAt beyond the end gave %v", err)
		}
		_, err = io.WriteString(file, "J")
		expect.OK(t, err)
		rest, err := io.ReadAll(file)
		expect.OK(t, err)
		if string(rest) != "ello world" {
			t.Errorf("after a write of one byte, the rest is %q", rest)
		}
		info, err := file.Stat()
		expect.OK(t, err)
		if info.Name != "a" || info.Size != 11 || !info.Mode.IsRegular() {
			t.Errorf("Stat gave %+v", info)
		}
		expect.OK(t, file.Sync())
		expect.OK(t, file.Close())
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
		expect.Put(t, f, "/a", "x")
		in, err := f.Open("/a", os.O_RDONLY, 0)
		expect.OK(t, err)
		defer in.Close()
		_, err = in.Write([]byte("y"))
		expect.Fails(t, err, syscall.EBADF)
		out, err := f.Open("/a", os.O_WRONLY, 0)
		expect.OK(t, err)
		defer out.Close()
		_, err = out.Read(make([]byte, 1))
		expect.Fails(t, err, syscall.EBADF)
	})
}

func TestFilesOpenFileOutlivesItsName(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		expect.Put(t, f, "/a", "old")
		file, err := f.Open("/a", os.O_RDONLY, 0)
		expect.OK(t, err)
		defer file.Close()
		expect.Put(t, f, "/b", "new")
		expect.OK(t, f.Rename("/b", "/a"))
		expect.OK(t, f.Remove("/a"))
		got, err := io.ReadAll(file)
		expect.OK(t, err)
		if string(got) != "old" {
			t.Errorf("the open file holds %q", got)
		}
	})
}

func TestFilesAppend(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		expect.Fails(t, f.Append("/a", []byte("x")), fs.ErrNotExist)
		expect.Put(t, f, "/a", "one\n")
		expect.OK(t, f.Append("/a", []byte("two\n")))
		expect.Holds(t, f, "/a", "one\ntwo\n")
		expect.OK(t, f.Mkdir("/dir", 0o755))
		expect.Fails(t, f.Append("/dir", []byte("x")), syscall.EISDIR)
	})
}

func TestFilesRename(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		expect.Fails(t, f.Rename("/a", "/b"), fs.ErrNotExist)
		expect.Put(t, f, "/a", "a")
		expect.Put(t, f, "/b", "b")
		expect.Fails(t, f.Rename("/a", "/no/a"), fs.ErrNotExist)
		expect.OK(t, f.Rename("/a", "/a"))
		expect.OK(t, f.Rename("/a", "/b"))
		expect.Holds(t, f, "/b", "a")
		_, err := f.Stat("/a")
		expect.Fails(t, err, fs.ErrNotExist)

		expect.OK(t, f.Mkdir("/dir", 0o755))
		expect.OK(t, f.Mkdir("/other", 0o755))
		expect.Fails(t, f.Rename("/b", "/dir"), fs.ErrExist)
		expect.Fails(t, f.Rename("/other", "/dir"), fs.ErrExist)
		expect.Fails(t, f.Rename("/dir", "/b"), syscall.ENOTDIR)
		expect.Fails(t, f.Rename("/dir", "/dir/sub"), syscall.EINVAL)
		expect.OK(t, f.Rename("/b", "/dir/b"))
		expect.OK(t, f.Rename("/dir", "/moved"))
		expect.Holds(t, f, "/moved/b", "a")
	})
}

func TestFilesRemove(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		expect.Fails(t, f.Remove("/a"), fs.ErrNotExist)
		expect.OK(t, f.Mkdir("/dir", 0o755))
		expect.Put(t, f, "/dir/a", "")
		expect.Fails(t, f.Remove("/dir"), syscall.ENOTEMPTY)
		expect.OK(t, f.Remove("/dir/a"))
		expect.OK(t, f.Remove("/dir"))
		if got := names(t, f, "/"); len(got) != 0 {
			t.Errorf("left: %v", got)
		}
	})
}

func TestFilesMkdir(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		expect.Fails(t, f.Mkdir("/no/a", 0o755), fs.ErrNotExist)
		expect.OK(t, f.Mkdir("/a", 0o777))
		expect.Fails(t, f.Mkdir("/a", 0o755), fs.ErrExist)
		info, err := f.Stat("/a")
		expect.OK(t, err)
		if info.Mode != fs.ModeDir|0o777 {
			t.Errorf("mode is %v: the umask must not apply", info.Mode)
		}
		expect.OK(t, host.MkdirAll(f, "/a/b/c", 0o700))
		expect.OK(t, host.MkdirAll(f, "/a/b/c", 0o700))
		expect.Put(t, f, "/file", "")
		expect.Fails(t, host.MkdirAll(f, "/file", 0o700), fs.ErrExist)
		expect.Fails(t, host.MkdirAll(f, "/file/a", 0o700), syscall.ENOTDIR)
	})
}

func TestFilesModes(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		file, err := f.Open("/a", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		expect.OK(t, err)
		expect.OK(t, file.Close())
		info, err := f.Stat("/a")
		expect.OK(t, err)
		if info.Mode != 0o666 {
			t.Errorf("mode is %v: the umask must not apply", info.Mode)
		}
		expect.OK(t, f.Chmod("/a", 0o400))
		info, err = f.Stat("/a")
		expect.OK(t, err)
		if info.Mode != 0o400 {
			t.Errorf("after Chmod mode is %v", info.Mode)
		}
		expect.Fails(t, f.Chmod("/b", 0o400), fs.ErrNotExist)
	})
}

func TestFilesReadDirIsSorted(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		for _, name := range []string{"/c", "/a", "/b"} {
			expect.Put(t, f, name, name)
		}
		expect.OK(t, f.Mkdir("/dir", 0o755))
		if got := names(t, f, "/"); !slices.Equal(got, []string{"a", "b", "c", "dir"}) {
			t.Errorf("got %v", got)
		}
		list, err := f.ReadDir("/")
		expect.OK(t, err)
		for _, info := range list {
			stat, err := f.Stat("/" + info.Name)
			expect.OK(t, err)
			if stat != info {
				t.Errorf("ReadDir says %+v, Stat %+v", info, stat)
			}
		}
		_, err = f.ReadDir("/a")
		expect.Fails(t, err, syscall.ENOTDIR)
		_, err = f.ReadDir("/no")
		expect.Fails(t, err, fs.ErrNotExist)
	})
}

func TestFilesStat(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		expect.Put(t, f, "/a", "12345")
		before, err := f.Stat("/a")
		expect.OK(t, err)
		if before.Name != "a" || before.Size != 5 || time.Since(before.Time).Abs() > time.Minute {
			t.Errorf("got %+v", before)
		}
		expect.Put(t, f, "/b", "")
		expect.OK(t, f.Rename("/b", "/a"))
		after, err := f.Stat("/a")
		expect.OK(t, err)
		if before.Inode == after.Inode || before.Device != after.Device {
			t.Errorf("a renamed file over it: %+v, then %+v", before, after)
		}
		top, err := f.Stat("/")
		expect.OK(t, err)
		if !top.Mode.IsDir() || top.Name != "/" {
			t.Errorf("the top is %+v", top)
		}
		_, err = f.Stat("/no")
		expect.Fails(t, err, fs.ErrNotExist)
	})
}

func TestFilesFlush(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		expect.Put(t, f, "/a", "x")
		expect.OK(t, f.Sync("/a"))
		expect.OK(t, f.SyncDir("/"))
		expect.Fails(t, f.SyncDir("/a"), syscall.ENOTDIR)
		expect.Fails(t, f.Sync("/"), syscall.EISDIR)
		expect.Fails(t, f.Sync("/b"), fs.ErrNotExist)
	})
}

func TestFilesNamesStayBelowTheTop(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		expect.Put(t, f, "/a", "x")
		expect.Holds(t, f, "/../../a", "x")
		expect.Holds(t, f, "a", "x")
		expect.Holds(t, f, "//./a", "x")
	})
}

func TestFilesIn(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		_, err := f.In("/dir")
		expect.Fails(t, err, fs.ErrNotExist)
		expect.OK(t, host.MkdirAll(f, "/dir/etc", 0o755))
		in, err := f.In("/dir")
		expect.OK(t, err)
		expect.Put(t, in, "/etc/hosts", "x")
		expect.Holds(t, f, "/dir/etc/hosts", "x")
		expect.Put(t, f, "/secret", "x")
		_, err = in.Stat("/../secret")
		expect.Fails(t, err, fs.ErrNotExist)
		if e, _ := errors.AsType[*fs.PathError](err); e != nil && !bytes.HasSuffix([]byte(e.Path), []byte("/dir/secret")) {
			t.Errorf("the error names %s, want the name from the top", e.Path)
		}
		expect.Put(t, f, "/file", "x")
		_, err = f.In("/file")
		expect.Fails(t, err, syscall.ENOTDIR)
	})
}

func TestFilesInFollowsTheName(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		expect.OK(t, host.MkdirAll(f, "/dir", 0o755))
		in, err := f.In("/dir")
		expect.OK(t, err)
		expect.OK(t, f.Rename("/dir", "/old"))
		_, err = in.Stat("/a")
		expect.Fails(t, err, fs.ErrNotExist)
		expect.OK(t, f.Mkdir("/dir", 0o755))
		expect.Put(t, f, "/dir/a", "new")
		expect.Holds(t, in, "/a", "new")
	})
}

func TestWriteFile(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		expect.OK(t, host.WriteFile(f, "/a", []byte("one"), 0o644))
		expect.OK(t, host.WriteFile(f, "/a", []byte("two"), 0o600))
		expect.Holds(t, f, "/a", "two")
		info, err := f.Stat("/a")
		expect.OK(t, err)
		if info.Mode != 0o600 {
			t.Errorf("mode is %v", info.Mode)
		}
		expect.Put(t, f, host.Temporary("/a"), "what a killed writer left, longer than the next")
		expect.OK(t, host.WriteFile(f, "/a", []byte("three"), 0o600))
		expect.Holds(t, f, "/a", "three")
		expect.OK(t, host.ReplaceFile(f, "/a", []byte("four"), 0o640))
		expect.Holds(t, f, "/a", "four")
		if got := names(t, f, "/"); !slices.Equal(got, []string{"a"}) {
			t.Errorf("left: %v", got)
		}
		expect.Fails(t, host.WriteFile(f, "/no/a", nil, 0o600), fs.ErrNotExist)
		expect.Fails(t, host.ReplaceFile(f, "/no/a", nil, 0o600), fs.ErrNotExist)
		expect.OK(t, f.Mkdir("/dir", 0o755))
		expect.Fails(t, host.WriteFile(f, "/dir", []byte("x"), 0o600), fs.ErrExist)
		if got := names(t, f, "/"); !slices.Equal(got, []string{"a", "dir"}) {
			t.Errorf("left by a failure: %v", got)
		}
	})
}

func TestCopyFile(t *testing.T) {
	conform(t, func(t *testing.T, f host.Files) {
		expect.Put(t, f, "/a", "one")
		expect.OK(t, f.Mkdir("/dir", 0o755))
		expect.Put(t, f, "/dir/b", "what was there")
		expect.OK(t, host.CopyFile(f, "/a", "/dir/b", 0o600))
		expect.Holds(t, f, "/dir/b", "one")
		expect.Holds(t, f, "/a", "one")
		info, err := f.Stat("/dir/b")
		expect.OK(t, err)
		if info.Mode != 0o600 {
			t.Errorf("mode is %v", info.Mode)
		}
		expect.Fails(t, host.CopyFile(f, "/no", "/dir/b", 0o600), fs.ErrNotExist)
		expect.Holds(t, f, "/dir/b", "one")
	})
}
