package firstboot

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/sled/instance/record"
)

// The volume of an instance is read here by programs that know nothing of sledctl: mtools, fsck,
// blkid, the kernel where it has vfat, and cloud-init itself. .ci/run installs them.

const userData = `## template: sledctl
#cloud-config
fqdn: {{.Hostname}}
chpasswd:
  expire: false
write_files:
- path: /etc/owner
  content: |
    {{.Name}} {{.ID}}
`

const networkConfig = `## template: sledctl
version: 2
ethernets:
{{- range $i, $nic := .NICs}}
  nic{{$i}}:
    match: {macaddress: "{{.MAC}}"}
    addresses: [{{range .AllowIP}}"{{.}}/24"{{end}}]
{{- end}}
`

const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP ops@example"

func web1() record.Record {
	return record.Record{
		ID: "768c2a8b-de75-5e1b-9dd3-8bd4af7b3e3b", Name: "web1",
		Spec: record.Spec{
			NICs:      []record.NIC{{MAC: "02:08:20:00:00:02", AllowIP: []string{"10.1.0.5"}}, {MAC: "02:08:20:00:00:03", AllowIP: []string{"10.2.0.5"}}},
			CloudInit: &record.CloudInit{Hostname: "shop.example.com", SSHKeys: []string{key}, UserData: userData, NetworkConfig: networkConfig},
		},
	}
}

// volumeFile is the volume of an instance in a file.
func volumeFile(t *testing.T, r record.Record) string {
	t.Helper()
	text, err := Volume(r)
	if err != nil {
		t.Fatal(err)
	}
	image, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cidata.img")
	if err := os.WriteFile(file, image, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// tool runs another program, if it is there.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no %s here; .ci/run installs it", name)
	}
	var out, errs bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &errs, append(os.Environ(), "MTOOLS_SKIP_CHECK=0")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out.String(), errs.String())
	}
	return out.String()
}

func TestMtoolsReadsTheVolume(t *testing.T) {
	file := volumeFile(t, web1())
	listing := tool(t, "mdir", "-b", "-i", file, "::")
	if want := "::/meta-data\n::/user-data\n::/network-config\n"; listing != want {
		t.Errorf("got %q, want %q", listing, want)
	}
	if got := tool(t, "mtype", "-i", file, "::user-data"); !strings.HasPrefix(got, "#cloud-config\nfqdn: shop.example.com\n") {
		t.Errorf("%q", got)
	}
}

// fsck.fat finds no fault, at any size.
func TestFsckFindsNothing(t *testing.T) {
	for _, n := range []int{0, 100_000, 470_000, 560_000} {
		r := web1()
		r.Spec.CloudInit.UserData = "#cloud-config\n" + strings.Repeat("# pad\n", n/6)
		out := tool(t, "fsck.fat", "-n", "-v", volumeFile(t, r))
		for _, bad := range []string{"Reclaimed", "differ", "Bad ", "bytes, cluster chain"} {
			if strings.Contains(out, bad) {
				t.Errorf("%d bytes: %s", n, out)
			}
		}
	}
}

func TestBlkidKnowsTheVolume(t *testing.T) {
	out := tool(t, "blkid", "-p", "-o", "export", volumeFile(t, web1()))
	for _, want := range []string{"LABEL=cidata\n", "TYPE=vfat\n", "UUID=768C-2A8B\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

func TestLinuxMountsTheVolume(t *testing.T) {
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil || !strings.Contains(string(known), "vfat") || os.Getuid() != 0 {
		t.Skip("this kernel has no vfat, or we are not root")
	}
	at := t.TempDir()
	tool(t, "mount", "-o", "loop,ro", volumeFile(t, web1()), at)
	defer tool(t, "umount", at)
	data, err := os.ReadFile(filepath.Join(at, "meta-data"))
	if err != nil || !strings.Contains(string(data), `"local-hostname":"shop.example.com"`) {
		t.Errorf("%q %v", data, err)
	}
}

// SLEDCTL_CLOUD_INIT is a directory with the Python packages of cloud-init, which .ci/run
// unpacks; where it is not set, those of the system count.
func TestCloudInitReadsTheVolume(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	if dir := os.Getenv("SLEDCTL_CLOUD_INIT"); dir != "" {
		t.Setenv("PYTHONPATH", dir)
	}
	if exec.Command("python3", "-c", "import cloudinit.sources.DataSourceNoCloud").Run() != nil {
		t.Skip("there is no cloud-init here; .ci/run unpacks it and sets SLEDCTL_CLOUD_INIT")
	}
	tool(t, "mdir", "-i", volumeFile(t, web1()), "::") // mtools take the place of a mount
	out := tool(t, "python3", "testdata/nocloud.py", volumeFile(t, web1()))
	var got struct {
		ID, Hostname, FQDN    string
		Keys, MACs, Addresses []string
		Parts                 []string
		Config                map[string]any
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.ID != web1().ID || got.Hostname != "shop" || got.FQDN != "shop.example.com" || got.Config["fqdn"] != "shop.example.com" {
		t.Errorf("%+v", got)
	}
	for name, is := range map[string][2][]string{
		"keys": {got.Keys, {key}}, "MACs": {got.MACs, {"02:08:20:00:00:02", "02:08:20:00:00:03"}},
		"addresses": {got.Addresses, {"10.1.0.5", "10.2.0.5"}}, "parts": {got.Parts, {"multipart/mixed", "text/cloud-config"}},
	} {
		if diff := cmp.Diff(is[1], is[0]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
