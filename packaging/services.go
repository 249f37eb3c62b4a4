package main

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/sledctl/sledctl/host/privilege"
)

//go:embed files
var embedded embed.FS

// shipped is a file of the packages that is written by hand.
func shipped(name string, mode fs.FileMode) file {
	data, err := embedded.ReadFile("files/" + name)
	if err != nil {
		panic(err) // it is named in this package
	}
	return file{name, mode, data}
}

// Where the program lies, for the services to find it.
const (
	tarballPath = "/opt/sledctl/bin:/opt/custom/bin"
	ipsPath     = "/opt/ooce/sbin"
)

// service is a manifest of docs/smf as a package has it: not below site/, which is the
// administrator's, and with the program where the package puts it.
func service(name string, manifest []byte, where string) ([]byte, error) {
	for _, change := range []struct{ from, to string }{
		{`<service name="site/sledctl/`, `<service name="ooce/sledctl/`},
		{"svc:/site/sledctl/", "svc:/ooce/sledctl/"},
		{":/opt/sledctl/bin\"", ":" + where + "\""},
		{"      svccfg import /var/svc/manifest/site/" + name + "\n", ""},
	} {
		if !bytes.Contains(manifest, []byte(change.from)) {
			return nil, fmt.Errorf("%s does not say %q: its form is another one than packaging/services.go expects", name, change.from)
		}
		manifest = bytes.ReplaceAll(manifest, []byte(change.from), []byte(change.to))
	}
	return manifest, nil
}

// services are the manifests of a package.
func services(sources []file, where string) ([]file, error) {
	var all []file
	for _, s := range sources {
		data, err := service(path.Base(s.name), s.data, where)
		if err != nil {
			return nil, err
		}
		all = append(all, file{s.name, 0o444, data})
	}
	return all, nil
}

// rights are the fragments of exec_attr(5) and prof_attr(5): the profile lets an operator
// run the program at this path with all privileges through pfexec(1).
func rights(program string) (exec, prof []byte) {
	exec = []byte("sledctl Management:solaris:cmd:::" + program + ":uid=0;gid=0;privs=all\n" +
		"sledctl Observation:solaris:cmd:::" + program + ":privs=" + strings.Join(privilege.Read(), ",") + "\n")
	prof = []byte("sledctl Management:::Manage the virtual machines of this sled:\n" +
		"sledctl Observation:::Look at the virtual machines of this sled:\n")
	return exec, prof
}
