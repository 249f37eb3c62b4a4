package packaging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Program is a propolis-server as a file of the host.
type Program struct {
	File        string
	LibraryPath string // LD_LIBRARY_PATH, as in its zone; may be empty
}

func (p Program) environment() []string {
	if p.LibraryPath == "" {
		return nil
	}
	return []string{"LD_LIBRARY_PATH=" + p.LibraryPath}
}

// versionCommand runs the program in a contract that ends with it, as its service does.
func (p Program) versionCommand() host.Command {
	return host.Command{Program: "ctrun", Args: []string{"-l", "child", "-o", "noorphan", p.File, "--version"}, Env: p.environment(), ReadOnly: true}
}

func (p Program) librariesCommand() host.Command {
	return host.Command{Program: "ldd", Args: []string{p.File}, Env: p.environment(), ReadOnly: true}
}

// Version runs the program for its version. That is the package's, and the same for all
// builds so far (bin/propolis-server/src/main.rs). Errors: a *host.CommandError.
func (p Program) Version(ctx context.Context, h host.Host) (string, error) {
	out, err := output(ctx, h, p.versionCommand())
	return strings.TrimSpace(out), err
}

// Libraries are the shared libraries that the program wants, and those of them that
// are not found.
type Libraries struct {
	Count  int
	Absent []string
}

// Libraries asks the runtime linker. Errors: a *host.CommandError.
func (p Program) Libraries(ctx context.Context, h host.Host) (Libraries, error) {
	out, err := output(ctx, h, p.librariesCommand())
	return parseLibraries(out), err
}

// parseLibraries reads the output of ldd, which ld.so.1 prints (usr/src/cmd/sgs/rtld).
func parseLibraries(out string) Libraries {
	var all Libraries
	for line := range strings.Lines(out) {
		name, found, ok := strings.Cut(line, "=>")
		if !ok {
			continue
		}
		all.Count++
		if strings.Contains(found, "not found") {
			all.Absent = append(all.Absent, strings.TrimSpace(name))
		}
	}
	return all
}

func output(ctx context.Context, h host.Host, c host.Command) (string, error) {
	r, err := h.Run(ctx, c)
	if err == nil && (r.Exit != 0 || r.Unknown) {
		err = &host.CommandError{Command: c, Result: r}
	}
	return string(r.Stdout), err
}

// Build is how a propolis-server was built.
type Build string

// The builds. What Oxide publishes is OmicronBuild (.github/buildomat/jobs/image.sh of
// oxidecomputer/propolis): it takes all memory of guests from the VMM reservoir.
const (
	OmicronBuild     Build = "omicron-build"
	DevelopmentBuild Build = "development"
	UnknownBuild     Build = "unknown"
)

// What a program's file has among its texts: each build logs starts, and only one that
// may do without the reservoir logs that it does so (bin/propolis-server/src/main.rs and
// src/lib/config.rs).
//
// Guess build-told-by-texts: these texts are in the file as they are in the source, each in one
// piece.
// Check: `strings -a propolis-server | egrep 'Starting server|reservoir too small'`
const (
	inEachBuild     = "Starting server..."
	inDevelopments  = "reservoir too small ("
	longestOfTheTwo = len(inDevelopments)
)

// Build reads how the program was built, from its file.
func (p Program) Build(ctx context.Context, files host.Files) (Build, error) {
	f, err := files.Open(p.File, os.O_RDONLY, 0)
	if err != nil {
		return UnknownBuild, err
	}
	build, err := readBuild(ctx, f)
	return build, errors.Join(err, f.Close())
}

func readBuild(ctx context.Context, from io.Reader) (Build, error) {
	build := UnknownBuild
	buffer, kept := make([]byte, 1<<20), 0
	for ctx.Err() == nil {
		n, err := from.Read(buffer[kept:])
		seen := buffer[:kept+n]
		switch {
		case bytes.Contains(seen, []byte(inDevelopments)):
			return DevelopmentBuild, nil
		case bytes.Contains(seen, []byte(inEachBuild)):
			build = OmicronBuild
		}
		if errors.Is(err, io.EOF) {
			return build, nil
		} else if err != nil {
			return UnknownBuild, fmt.Errorf("read how propolis-server was built: %w", err)
		}
		kept = copy(buffer, seen[max(0, len(seen)-longestOfTheTwo):]) // a text may lie over the edge
	}
	return UnknownBuild, ctx.Err()
}
