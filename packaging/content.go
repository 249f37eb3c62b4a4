package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/sledctl/sledctl/commands"
)

// inputs are what packages are made of.
type inputs struct {
	version    string
	at         time.Time
	program    []byte
	license    []byte
	components []byte // the bill of materials
	manual     []file // pages for man(1)
	completion []file // a script for each shell
	services   []file // the manifests of docs/smf
}

// outputs are all files that one build leaves, the checksums last.
func outputs(in inputs) ([]file, error) {
	name := "sledctl-" + in.version
	forSleds, err := content(in)
	if err != nil {
		return nil, err
	}
	forIPS, err := ips(in)
	if err != nil {
		return nil, err
	}
	all := []file{{name + ".cdx.json", 0o644, in.components}}
	for of, files := range map[string][]file{"-illumos-amd64": forSleds, "-ips": forIPS} {
		packed, err := tarball(below(name+of, files), in.at)
		if err != nil {
			return nil, err
		}
		all = append(all, file{name + of + ".tar.gz", 0o644, packed})
	}
	all = sorted(all)
	return append(all, file{"SHA256SUMS", 0o644, checksums(all)}), nil
}

// below are the files in a directory.
func below(dir string, all []file) []file {
	moved := make([]file, len(all))
	for i, f := range all {
		moved[i] = file{dir + "/" + f.name, f.mode, f.data}
	}
	return moved
}

// content is what the tarball with the installer holds.
func content(in inputs) ([]file, error) {
	manifests, err := services(in.services, tarballPath)
	if err != nil {
		return nil, err
	}
	exec, prof := rights("/opt/sledctl/bin/sledctl")
	all := []file{
		{"VERSION", 0o444, []byte(in.version + "\n")},
		{"LICENSE", 0o444, in.license},
		{"sbom.cdx.json", 0o444, in.components},
		shipped("install.sh", 0o555),
		{"bin/sledctl", 0o555, in.program},
		{"etc/config.toml", 0o600, in.configuration()},
		{"rights/exec_attr", 0o444, exec},
		{"rights/prof_attr", 0o444, prof},
	}
	all = append(all, below("smf", append(manifests, shipped("sledctl-restore.xml", 0o444), shipped("sledctl-restore", 0o555)))...)
	all = append(all, below("man/man8", in.manual)...)
	return append(all, below("completion", in.completion)...), nil
}

func (inputs) configuration() []byte { return configuration(commands.Settings()) }

// configuration is the file that is installed: each setting with its meaning, as a
// comment, so that the defaults of a later version hold where nothing was set.
func configuration(settings []commands.Setting) []byte {
	var out bytes.Buffer
	out.WriteString("# The settings of sledctl, with their defaults. To change one, remove the # before it and before\n# its section. sledctl config check FILE checks a file; sledctl config show shows what holds.\n")
	section := ""
	for _, s := range settings {
		of, key, _ := strings.Cut(s.Name, ".")
		if of != section {
			section = of
			fmt.Fprintf(&out, "\n#[%s]\n", section)
		}
		fmt.Fprintf(&out, "# %s\n#%s = %s\n", s.Doc, key, s.Written)
	}
	return out.Bytes()
}
