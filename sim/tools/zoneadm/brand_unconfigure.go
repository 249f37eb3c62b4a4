package zoneadm

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
)

// This file is omniosorg/pkg5 src/brand/ipkg/system-unconfigure, which a clone hook
// runs in the mounted zone: a clone gets nothing by which its source is known. Of the
// SMF repository it takes out what the seed does not have.

const (
	cleanHosts = "#\n# Internet host table\n#\n::1\t\tlocalhost\n127.0.0.1\tlocalhost loghost\n"

	cleanVFSTab = "#device\t\tdevice\t\tmount\t\tFS\tfsck\tmount\tmount\n#to mount\tto fsck\t\tpoint\t\ttype\tpass\tat boot\toptions\n#\n" +
		"/devices\t-\t\t/devices\tdevfs\t-\tno\t-\n/proc\t\t-\t\t/proc\t\tproc\t-\tno\t-\n" +
		"ctfs\t\t-\t\t/system/contract ctfs\t-\tno\t-\n" +
		"objfs\t\t-\t\t/system/object\tobjfs\t-\tno\t-\nsharefs\t\t-\t\t/etc/dfs/sharetab\tsharefs\t-\tno\t-\n" +
		"fd\t\t-\t\t/dev/fd\t\tfd\t-\tno\t-\n" +
		"swap\t\t-\t\t/tmp\t\ttmpfs\t-\tyes\t-\n"

	// blankPassword is what root's password becomes.
	blankPassword = "$5$kr1VgdIt$OUiUAyZCDogH/uaxH71rMeQxvpDEY2yX.x0ZQRnmeb9"
)

func (h *hook) unconfigure() {
	if exists(h.tx, h.root()+"/etc/inet/hosts") {
		h.replace("etc/inet/hosts", cleanHosts)
	}
	h.replace("etc/vfstab", cleanVFSTab)
	h.unconfigureNetwork()
	h.edit("etc/default/init", `(?m)^TZ.*$`, "TZ=UTC")
	h.edit("etc/shadow", `(?m)^root:[^:]*:`, "root:"+blankPassword+":")
	h.emptyLogs()
	for _, name := range []string{"ldap_client_cache", "ldap_client_cred", "ldap_client_file", "cachemgr.log"} {
		h.removeAll(path.Join(h.root(), "var/ldap", name))
	}
	h.resetSSH()
}

// replace writes a file of the zone again.
func (h *hook) replace(name, text string) {
	h.said(cli.WriteFile(h.tx.Files, path.Join(h.root(), name), []byte(text), 0o644))
}

// edit is sed on a file of the zone, if it is there.
func (h *hook) edit(name, pattern, with string) {
	name = path.Join(h.root(), name)
	info, err := h.tx.Files.Stat(name)
	if err != nil {
		return
	}
	data, err := host.ReadFile(h.tx.Files, name)
	if !h.said(err) {
		with = strings.ReplaceAll(with, "$", "$$")
		h.said(cli.WriteFile(h.tx.Files, name, regexp.MustCompile(pattern).ReplaceAll(data, []byte(with)), info.Mode.Perm()))
	}
}

func (h *hook) unconfigureNetwork() {
	for _, name := range []string{"etc/defaultdomain", "etc/defaultrouter", "etc/nodename", "etc/resolv.conf",
		"etc/inet/netmasks", "etc/inet/static_routes"} {
		h.removeAll(path.Join(h.root(), name))
	}
	for _, name := range h.names("etc", "hostname.") {
		h.removeAll(name)
	}
	for _, dir := range []string{"etc/ipadm", "etc/dladm"} {
		for _, name := range h.names(dir, "") {
			if strings.HasSuffix(name, ".conf") {
				_ = cli.WriteFile(h.tx.Files, name, nil, 0o644)
			}
		}
	}
}

// names are those in a directory of the zone that begin like this.
func (h *hook) names(dir, prefix string) []string {
	var found []string
	dir = path.Join(h.root(), dir)
	entries, _ := h.tx.Files.ReadDir(dir) // a missing directory has none
	for _, e := range entries {
		if strings.HasPrefix(e.Name, prefix) {
			found = append(found, path.Join(dir, e.Name))
		}
	}
	return found
}

func (h *hook) emptyLogs() {
	for dir, log := range map[string]string{"var/adm": "messages", "var/log": "syslog"} {
		for _, name := range h.names(dir, log+".") {
			h.removeAll(name)
		}
		h.replace(path.Join(dir, log), "")
	}
}

// resetSSH makes host keys. What is in them is not OpenSSH's; no two are alike.
func (h *hook) resetSSH() {
	if !exists(h.tx, h.root()+"/etc/ssh") {
		return
	}
	h.edit("etc/ssh/sshd_config", `(?m)^PermitRootLogin.*$`, "PermitRootLogin no")
	for _, algorithm := range []string{"rsa", "ecdsa", "ed25519"} {
		name, key := path.Join(h.root(), "etc/ssh/ssh_host_"+algorithm+"_key"), h.tx.UUID()
		private := "-----BEGIN OPENSSH PRIVATE KEY-----\n" + key + "\n-----END OPENSSH PRIVATE KEY-----\n"
		h.said(cli.WriteFile(h.tx.Files, name, []byte(private), 0o600))
		h.said(cli.WriteFile(h.tx.Files, name+".pub", fmt.Appendf(nil, "ssh-%s %s root@unknown\n", algorithm, key), 0o644))
	}
}
