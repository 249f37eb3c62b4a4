package main

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// ips is what publish.sh makes a p5p of: the files as they lie on a sled, a manifest for
// each distribution, and the script itself.
func ips(in inputs) ([]file, error) {
	proto, err := proto(in)
	if err != nil {
		return nil, err
	}
	all := []file{shipped("publish.sh", 0o555)}
	for _, of := range []struct{ name, brand string }{{"omnios", "system/zones/brand/sparse"}, {"helios", "system/zones/brand/omicron1/tools"}} {
		all = append(all, file{"sledctl-" + of.name + ".p5m", 0o444, packageManifest(in.version, proto, of.brand)})
	}
	return append(all, below("proto", proto)...), nil
}

// proto are the files of the IPS package, by their path on the sled.
func proto(in inputs) ([]file, error) {
	manifests, err := services(in.services, ipsPath)
	if err != nil {
		return nil, err
	}
	exec, prof := rights("/opt/ooce/sbin/sledctl")
	all := []file{
		{"LICENSE", 0o444, in.license},
		{"opt/ooce/sbin/sledctl", 0o555, in.program},
		{"opt/ooce/share/doc/sledctl/sbom.cdx.json", 0o444, in.components},
		{"etc/opt/ooce/sledctl/config.toml", 0o600, in.configuration()},
		{"etc/security/exec_attr.d/ooce:sledctl", 0o444, exec},
		{"etc/security/prof_attr.d/ooce:sledctl", 0o444, prof},
	}
	all = append(all, below("lib/svc/manifest/ooce", manifests)...)
	all = append(all, below("opt/ooce/share/man/man8", in.manual)...)
	for _, c := range in.completion {
		dir := map[string]string{".fish": "usr/share/fish/vendor_completions.d"}[path.Ext(c.name)]
		switch {
		case strings.HasPrefix(c.name, "_"):
			dir = "usr/share/zsh/site-functions"
		case dir == "":
			dir = "usr/share/bash-completion/completions"
		}
		all = append(all, below(dir, []file{c})...)
	}
	return all, nil
}

// packageManifest is the manifest (pkg(7)) of the files. A program is root's and bin's,
// and what a service reads makes that service read it again.
func packageManifest(version string, proto []file, brand string) []byte {
	var out bytes.Buffer
	set := func(name, value string) { fmt.Fprintf(&out, "set name=%s value=%q\n", name, value) }
	set("pkg.fmri", "pkg:/ooce/system/sledctl@"+dotted(version))
	set("pkg.summary", "Run virtual machines on an illumos server")
	set("pkg.description", "sledctl creates, starts, moves and removes virtual machines, each in a zone of its own.")
	set("pkg.human-version", version)
	set("info.classification", "org.opensolaris.category.2008:System/Administration and Configuration")
	set("variant.arch", "i386")
	out.WriteString("dir path=etc/opt/ooce/sledctl owner=root group=root mode=0755\n")
	out.WriteString("dir path=var/opt/ooce/sledctl owner=root group=root mode=0700\n")
	out.WriteString("link path=etc/sledctl target=opt/ooce/sledctl\n")
	for _, f := range sorted(proto) {
		if f.name == "LICENSE" {
			out.WriteString("license LICENSE license=MPL-2.0\n")
			continue
		}
		group, more := "bin", ""
		switch top, _, _ := strings.Cut(f.name, "/"); {
		case strings.HasSuffix(f.name, ".toml"):
			group, more = "root", " preserve=renamenew"
		case top == "etc":
			group, more = "sys", " restart_fmri=svc:/system/rbac:default"
		case top == "lib":
			group, more = "sys", " restart_fmri=svc:/system/manifest-import:default"
		}
		fmt.Fprintf(&out, "file %s path=%s owner=root group=%s mode=%04o%s\n", f.name, f.name, group, f.mode, more)
	}
	fmt.Fprintf(&out, "depend type=require fmri=%s\n", brand)
	out.WriteString("depend type=require fmri=system/bhyve\n")
	return out.Bytes()
}

// release is what a version is read as: of a tag, and how many commits later.
var release = regexp.MustCompile(`^v?([0-9]+(?:\.[0-9]+)*)(?:-([0-9]+)-g[0-9a-f]+)?(?:-dirty)?$`)

// dotted is a version as IPS counts: numbers, without leading zeros. A later commit of a
// release is a later version; a commit without a release is 0.
func dotted(version string) string {
	parts := release.FindStringSubmatch(version)
	if parts == nil || !strings.Contains(parts[1], ".") {
		return "0"
	}
	numbers := strings.Split(parts[1], ".")
	if parts[2] != "" {
		numbers = append(numbers, parts[2])
	}
	for i, n := range numbers {
		if numbers[i] = strings.TrimLeft(n, "0"); numbers[i] == "" {
			numbers[i] = "0"
		}
	}
	return strings.Join(numbers, ".")
}
