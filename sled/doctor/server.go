package doctor

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/propolis/packaging"
)

// Server is what is configured of propolis-server, as files of the host.
type Server struct {
	packaging.Program
	Bootrom string
	// CheckBootrom is what is wrong with a bootrom of so many bytes.
	CheckBootrom func(file string, size int64) error
}

// serverChecks ask whether propolis-server starts, and what it is.
func serverChecks() []Check {
	const group = "server"
	return []Check{
		{ID: "server", Group: group, About: "propolis-server runs on this host", Asks: []Question{askServer, askKernel}, Judge: ofServer(judgeServer)},
		{ID: "server-libraries", Group: group, About: "the libraries of propolis-server are found", Asks: []Question{askServer, askKernel}, Judge: ofServer(judgeLibraries)},
		{ID: "server-build", Group: group, About: "it is known how propolis-server was built", Asks: []Question{askBuild, askKernel}, Judge: ofServer(judgeBuild)},
		{ID: "bootrom", Group: group, About: "the bootrom is one that propolis-server takes", Asks: []Question{askBootrom, askKernel}, Judge: ofServer(judgeBootrom)},
	}
}

// ofServer leaves out hosts whose server is no file of the host.
func ofServer(judge func(Seen) Finding) func(Seen) Finding {
	return func(s Seen) Finding {
		switch {
		case s.Kernel.Distribution == system.SmartOS:
			return fine("sledctl runs no VMs on SmartOS")
		case s.Settings.Image:
			return fine("in the image that zones are installed from; it is not looked into")
		}
		return judge(s)
	}
}

// Program is what running the server came to.
type Program struct {
	Version string
	Failed  *host.CommandError // nil: it ran, and so has all its libraries
	// Libraries are the answer of the runtime linker about a server that does not run.
	Libraries packaging.Libraries
}

// queryServer runs the server. The runtime linker is only asked why it does not run: the
// checks are run daily, and each process takes its time.
func queryServer(ctx context.Context, s Settings, h host.Host) (p Program, err error) {
	if s.Image {
		return p, nil
	}
	p.Version, err = s.Server.Version(ctx, h)
	if !errors.As(err, &p.Failed) {
		return p, err
	}
	p.Libraries, err = s.Server.Libraries(ctx, h)
	if failed := (*host.CommandError)(nil); errors.As(err, &failed) {
		return p, nil // e.g. it is no program: what running it said is enough
	}
	return p, err
}

func queryBuild(ctx context.Context, s Settings, h host.Host) (packaging.Build, error) {
	if s.Image {
		return packaging.OmicronBuild, nil
	}
	build, err := s.Server.Build(ctx, h.Files())
	if errors.Is(err, fs.ErrNotExist) {
		return packaging.UnknownBuild, nil
	}
	return build, err
}

// queryBootrom is the size of the bootrom; -1: it does not exist.
func queryBootrom(_ context.Context, s Settings, h host.Host) (int64, error) {
	info, err := h.Files().Stat(s.Server.Bootrom)
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	return info.Size, err
}

const getServer = "install propolis-server as docs/install.md says, or set propolis.directory"

func judgeServer(s Seen) Finding {
	if s.Server.Failed != nil {
		return fails("%s does not run: %v", s.Settings.Server.File, s.Server.Failed).byHand(getServer).then("sledctl doctor")
	}
	return fine("%s is %s", s.Settings.Server.File, s.Server.Version)
}

func judgeLibraries(s Seen) Finding {
	switch absent := s.Server.Libraries.Absent; {
	case absent != nil:
		return fails("not found: %s", strings.Join(absent, ", ")).byHand("install the package of the library, or set propolis.library_path").then("pkg search " + absent[0])
	case s.Server.Failed != nil:
		return warns("not known: the server does not run").byHand(getServer).then("sledctl doctor")
	}
	return fine("found: the server runs")
}

func judgeBuild(s Seen) Finding {
	switch s.Build {
	case packaging.OmicronBuild:
		return fine("built with omicron-build, as Oxide publishes it: all memory of guests is from the reservoir; at most 254 CPUs")
	case packaging.DevelopmentBuild:
		return fine("built without omicron-build: memory of guests is from the reservoir if that is larger than 512M; at most 32 CPUs")
	}
	return warns("%s does not say how it was built", s.Settings.Server.File).byHand(getServer).then("sledctl doctor")
}

func judgeBootrom(s Seen) Finding {
	const set = "set propolis.bootrom to the server's bootrom"
	file := s.Settings.Server.Bootrom
	if s.Bootrom < 0 {
		return fails("there is no %s", file).byHand(set).then("sledctl doctor")
	}
	if err := s.Settings.Server.CheckBootrom(file, s.Bootrom); err != nil {
		return fails("%v", err).byHand(set).then("sledctl doctor")
	}
	return fine("%s", file)
}
