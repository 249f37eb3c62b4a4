package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/smf"
)

// smfChecks ask whether VMs come back with the sled.
func smfChecks() []Check {
	const group = "smf"
	return []Check{
		{ID: "manifests", Group: group, About: "sledctl's manifests are valid and imported", Asks: []Question{askInstalled}, Judge: judgeManifests},
		{ID: "services", Group: group, About: "no service of sledctl is in maintenance", Asks: []Question{askInstalled}, Judge: judgeServiceStates},
		{ID: "service-program", Group: group, About: "the services start this program", Asks: []Question{askInstalled}, Judge: judgeProgram},
	}
}

// Installed are sledctl's services on the sled.
type Installed struct {
	Manifests []smf.Manifest
	Invalid   []*smf.ManifestError
	States    map[string]string // by FMRI, of the instances that SMF knows
	// Programs is what the services of a manifest start, by its file; empty: the PATH of
	// the methods has none.
	Programs map[string]string
	// Other are those of the programs that are not this one.
	Other map[string]bool
}

// manifestDirectories are where sledctl's manifests are: those of the packages
// (packaging), and those that an administrator has put there (docs/smf).
func manifestDirectories() []string {
	return []string{"/lib/svc/manifest/ooce", "/lib/svc/manifest/site", "/var/svc/manifest/site", "/opt/custom/smf"}
}

// queryInstalled finds the manifests, and asks SMF about them.
func queryInstalled(ctx context.Context, s Settings, h host.Host) (in Installed, err error) {
	in.Programs, in.Other = map[string]string{}, map[string]bool{}
	files, err := manifests(h.Files())
	if err != nil {
		return in, err
	}
	services := []string{"svc:/site/sledctl/instances", "svc:/site/sledctl/agent"}
	for _, file := range files {
		m, broken := smf.ReadManifest(h.Files(), file)
		if broken == nil {
			broken = smf.Validate(ctx, h, file)
		}
		if invalid, is := errors.AsType[*smf.ManifestError](broken); is {
			in.Invalid = append(in.Invalid, invalid)
			continue
		}
		if broken != nil {
			return in, broken
		}
		in.Manifests = append(in.Manifests, m)
		services = append(services, m.Services...)
		for _, list := range m.Paths {
			if !slices.ContainsFunc(m.Services, runsSledctl) {
				continue // it restores the program on a RAM disk
			}
			program, other := s.program(h.Files(), list)
			in.Programs[file], in.Other[program] = program, other
		}
	}
	slices.Sort(services)
	in.States, err = smf.Find(ctx, h, slices.Compact(services)...)
	return in, err
}

// runsSledctl says whether a service of the packages starts the program.
func runsSledctl(service string) bool {
	return strings.HasSuffix(service, "/instances") || strings.HasSuffix(service, "/agent")
}

// manifests finds the files.
func manifests(files host.Files) (names []string, err error) {
	for _, dir := range manifestDirectories() {
		infos, err := files.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look for manifests: %w", err)
		}
		for _, info := range infos {
			if strings.HasPrefix(info.Name, "sledctl") && path.Ext(info.Name) == ".xml" {
				names = append(names, path.Join(dir, info.Name))
			}
		}
	}
	return names, nil
}

// program finds what a method starts by the name sledctl, and whether it is another file
// than this program. Where that lies is not known on another machine's sled: none is other.
func (s Settings) program(files host.Files, list string) (name string, other bool) {
	for dir := range strings.SplitSeq(list, ":") {
		name = path.Join("/", dir, "sledctl")
		found, err := opened(files, name)
		if err != nil || !found.Mode.IsRegular() || found.Mode&0o111 == 0 {
			continue
		}
		self, err := opened(files, s.Program)
		return name, s.Program != "" && err == nil && (self.Device != found.Device || self.Inode != found.Inode)
	}
	return "", false
}

// opened is Stat that follows a link at the end.
func opened(files host.Files, name string) (host.Info, error) {
	if name == "" {
		return host.Info{}, fs.ErrNotExist
	}
	f, err := files.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return host.Info{}, err
	}
	info, err := f.Stat()
	return info, errors.Join(err, f.Close())
}

// instances are the states of a service's instances.
func (in Installed) instances(service string) (all []string) {
	for _, fmri := range slices.Sorted(maps.Keys(in.States)) {
		if strings.HasPrefix(fmri, service+":") {
			all = append(all, fmri)
		}
	}
	return all
}

func judgeManifests(s Seen) Finding {
	var said, next []string
	for _, m := range s.Installed.Invalid {
		said = append(said, m.Error())
	}
	if said != nil {
		return fails("%s", strings.Join(said, "; ")).byHand("install sledctl again, or correct the file, then import it")
	}
	for _, m := range s.Installed.Manifests {
		for _, service := range m.Services {
			if s.Installed.instances(service) == nil && !slices.Contains(next, "svccfg import "+m.File) {
				said = append(said, fmt.Sprintf("%s is there, and SMF does not know %s", m.File, service))
				next = append(next, "svccfg import "+m.File)
			}
		}
	}
	switch {
	case said != nil:
		return fails("%s", strings.Join(said, "; ")).then(next...)
	case len(s.Installed.Manifests) == 0 && len(s.Installed.States) > 0:
		return warns("SMF knows %s, and their manifest is nowhere: a boot may forget them", strings.Join(slices.Sorted(maps.Keys(s.Installed.States)), ", ")).
			byHand("put the manifest into /var/svc/manifest/site")
	case len(s.Installed.Manifests) == 0:
		return fine("none is installed: no VM starts with the sled")
	}
	return fine("%d manifests are valid and imported", len(s.Installed.Manifests))
}

func judgeServiceStates(s Seen) Finding {
	var ill, next, said []string
	for _, fmri := range slices.Sorted(maps.Keys(s.Installed.States)) {
		state := s.Installed.States[fmri]
		if said = append(said, fmri+" is "+state); state == smf.Maintenance {
			ill, next = append(ill, fmri), append(next, "svcadm clear "+fmri)
		}
	}
	switch {
	case ill != nil:
		list := strings.Join(ill, " ")
		return fails("%s is in maintenance", strings.Join(ill, ", ")).byHand("repair what this names: svcs -xv " + list).then(next...)
	case said == nil:
		return fine("none is installed")
	}
	return fine("%s", strings.Join(said, ", "))
}

func judgeProgram(s Seen) Finding {
	var absent, other, right []string
	for _, file := range slices.Sorted(maps.Keys(s.Installed.Programs)) {
		switch program := s.Installed.Programs[file]; {
		case program == "":
			absent = append(absent, file)
		case s.Installed.Other[program]:
			other = append(other, program)
		default:
			right = append(right, program)
		}
	}
	switch {
	case absent != nil:
		return fails("no directory of the PATH in %s has the program sledctl", strings.Join(absent, ", ")).
			byHand("install sledctl there again, or add its directory to that PATH and import the manifest")
	case other != nil:
		program := slices.Compact(other)[0]
		return warns("the services start %s, and this is %s", program, s.Settings.Program).byHand("use the same one by hand").then(program + " doctor")
	case right == nil:
		return fine("none is installed")
	}
	return fine("%s", strings.Join(slices.Compact(right), ", "))
}
