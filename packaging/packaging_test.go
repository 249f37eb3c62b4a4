package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sledctl/sledctl/commands"
)

// program is the head of a program as Go links it for illumos.
func program(abi elf.OSABI, machine elf.Machine) []byte {
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: 1, Ehsize: 64}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION], h.Ident[elf.EI_OSABI] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1, byte(abi)
	var out bytes.Buffer
	if err := binary.Write(&out, binary.LittleEndian, h); err != nil {
		panic(err)
	}
	return append(out.Bytes(), "what the program does"...)
}

// example is what a small build gives.
func example() inputs {
	manifests, err := readAll(filepath.Join("..", "docs", "smf"))
	if err != nil {
		panic(err)
	}
	return inputs{
		version: "v0.1.0-3-gabcdef0", at: time.Unix(1795738694, 0).UTC(), program: program(elf.ELFOSABI_SOLARIS, elf.EM_X86_64), license: []byte("MPL\n"), components: []byte("{}\n"), services: manifests,
		manual:     []file{{"sledctl.8", 0o444, []byte(".Dd\n")}, {"sledctl-reap.8", 0o444, []byte(".Dd\n")}},
		completion: []file{{"_sledctl", 0o444, []byte("zsh")}, {"sledctl", 0o444, []byte("bash")}, {"sledctl.fish", 0o444, []byte("fish")}},
	}
}

// pack makes the outputs of the inputs, by name.
func pack(t *testing.T, in inputs) map[string][]byte {
	t.Helper()
	all, err := outputs(in)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string][]byte{}
	for _, f := range all {
		named[f.name] = f.data
	}
	return named
}

// unpack reads a tarball: the headers in their order, and the contents.
func unpack(t *testing.T, data []byte) (headers []*tar.Header, contents map[string][]byte) {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	contents = map[string][]byte{}
	for in := tar.NewReader(zip); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		if contents[h.Name], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
		headers = append(headers, h)
	}
}

// A program for a sled is marked as one for Solaris, and nothing else of it changes; one
// for another system is refused.
func TestTheProgramIsMarkedForItsSystem(t *testing.T) {
	plain, want := program(elf.ELFOSABI_NONE, elf.EM_X86_64), program(elf.ELFOSABI_SOLARIS, elf.EM_X86_64)
	for _, given := range [][]byte{plain, want} {
		if got, err := markSolaris(given); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%x: %v", got, err)
		}
	}
	for name, given := range map[string][]byte{
		"linux": program(elf.ELFOSABI_LINUX, elf.EM_X86_64), "arm": program(elf.ELFOSABI_NONE, elf.EM_AARCH64), "script": []byte("#!/bin/sh\n"), "empty": nil,
	} {
		if _, err := markSolaris(given); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The tarball has one directory, everything is root's and of the commit's time, each
// directory precedes what it holds, and the order of the inputs does not matter.
func TestATarballHoldsTheSameBytes(t *testing.T) {
	in := example()
	once := pack(t, in)
	slices.Reverse(in.manual)
	slices.Reverse(in.completion)
	for name, data := range pack(t, in) {
		if !bytes.Equal(data, once[name]) {
			t.Errorf("%s differs", name)
		}
	}
	headers, contents := unpack(t, once["sledctl-v0.1.0-3-gabcdef0-illumos-amd64.tar.gz"])
	seen := map[string]bool{"./": true}
	for _, h := range headers {
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "root" || !h.ModTime.Equal(in.at) || h.Mode&0o022 != 0 {
			t.Errorf("%s: %d:%d %s %s %o", h.Name, h.Uid, h.Gid, h.Uname, h.ModTime, h.Mode)
		}
		if h.Typeflag == tar.TypeDir {
			seen[h.Name] = true
		} else if !seen[filepath.Dir(h.Name)+"/"] {
			t.Errorf("%s comes before its directory", h.Name)
		}
		if !strings.HasPrefix(h.Name, "sledctl-v0.1.0-3-gabcdef0-illumos-amd64/") {
			t.Errorf("%s lies outside", h.Name)
		}
	}
	if got := string(contents["sledctl-v0.1.0-3-gabcdef0-illumos-amd64/VERSION"]); got != in.version+"\n" {
		t.Errorf("VERSION: %q", got)
	}
}

// Every output but the checksums has one, in the form that sha256sum reads.
func TestChecksumsAreOfAllOutputs(t *testing.T) {
	all := pack(t, example())
	lines := strings.Split(strings.TrimSpace(string(all["SHA256SUMS"])), "\n")
	if len(lines) != len(all)-1 {
		t.Errorf("%d checksums of %d outputs", len(lines), len(all)-1)
	}
	for _, line := range lines {
		sum, name, ok := strings.Cut(line, "  ")
		if !ok || len(sum) != 64 || all[name] == nil {
			t.Errorf("%q", line)
		}
	}
}

// sledctl reads the configuration that is installed as one that sets nothing, and
// without its comment signs as one in which each setting is valid and has its default.
func TestTheInstalledConfigurationIsValid(t *testing.T) {
	commented := configuration(commands.Settings())
	for want, data := range map[string][]byte{
		": 0 settings from ": commented,
		", 0 by default":     regexp.MustCompile(`(?m)^#([a-z\[])`).ReplaceAll(commented, []byte("$1")),
	} {
		name := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		read, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		exit := commands.Main([]string{"sledctl", "config", "check", name}, os.Stdin, out, out, []string{"SLEDCTL_HOST=sim:" + t.TempDir() + "/sled"}, "")
		out.Close()
		said, _ := io.ReadAll(read)
		if exit != 0 || !strings.Contains(string(said), want) {
			t.Errorf("exit %d: %s, want %q", exit, said, want)
		}
	}
}

// The same source in two folders gives the same bytes. The second build has what the
// compiler made for the first, unless SLEDCTL_SOAK is set: then it compiles all itself.
func TestTheSameCommitGivesTheSameBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program for a sled twice")
	}
	var built [2]map[string][]byte
	for i := range built {
		dir := filepath.Join(t.TempDir(), strings.Repeat("folder", i+1))
		if err := os.CopyFS(dir, source{os.DirFS("..")}); err != nil {
			t.Fatal(err)
		}
		if i == 1 && os.Getenv("SLEDCTL_SOAK") != "" {
			t.Setenv("GOCACHE", t.TempDir())
		}
		if err := run(dir, "v0.1.0", example().at, filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		built[i] = map[string][]byte{}
		out := os.DirFS(filepath.Join(dir, "out"))
		err := fs.WalkDir(out, ".", func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				built[i][name], err = fs.ReadFile(out, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(built[0]) < 2 || len(built[0]) != len(built[1]) {
		t.Fatalf("%d and %d files", len(built[0]), len(built[1]))
	}
	for name, data := range built[0] {
		if !bytes.Equal(data, built[1][name]) {
			t.Errorf("%s differs", name)
		}
	}
	_, contents := unpack(t, built[0]["sledctl-v0.1.0-illumos-amd64.tar.gz"])
	f, err := elf.NewFile(bytes.NewReader(contents["sledctl-v0.1.0-illumos-amd64/bin/sledctl"]))
	if err != nil || f.OSABI != elf.ELFOSABI_SOLARIS {
		t.Errorf("the program: %v %v", f, err)
	}
}

// source is a working directory without what version control and builds keep in it.
type source struct{ fs.FS }

// ReadDir leaves those out.
func (s source) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(s.FS, name)
	if name == "." {
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return slices.Contains([]string{".git", "bin", "dist"}, e.Name()) })
	}
	return entries, err
}
