package record

import (
	"strings"
	"testing"
)

const aKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP ops@example"

func TestSSHKeys(t *testing.T) {
	keys, err := SSHKeys("# ours\n\n" + aKey + "\r\n  " + aKey + "  \n")
	if len(keys) != 2 || keys[0] != aKey || err != nil {
		t.Errorf("%q %v", keys, err)
	}
	for text, want := range map[string]string{
		"# none\n": "a file without keys",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n": "a private key",
		"ssh-ed25519 AAAA":                      "want a public key",
		"ssh-rsa " + strings.Fields(aKey)[1]:    "want a public key", // of another kind
		`command="x" ` + aKey:                   "want a public key",
		"ssh-ed25519 not*base64 x":              "want a public key",
		"ssh-ed25519 /////w== huge":             "want a public key",
		"ssh-rsa " + strings.Repeat("A", 9<<10): "want a public key",
	} {
		if keys, err := SSHKeys(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%.40q: %q %v, want %s", text, keys, err, want)
		}
	}
}

func TestHostnames(t *testing.T) {
	long := strings.Repeat("a", 63)
	for name, good := range map[string]bool{
		"web1": true, "Shop-1.example.com": true, long: true, "1": true,
		long + "a": false, "-a": false, "a-": false, "a..b": false, "a_b": false, "a b": false, "häuser": false, ".": false, "a\n": false,
		strings.Repeat(long+".", 4): false,
	} {
		err := (CloudInitParts{Hostname: &name}).Validate()
		if (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// What is left open stays; what is empty is removed, and with the last part the volume.
func TestCloudInitPartsAreAppliedOneByOne(t *testing.T) {
	text, none := "secret", ""
	had := &CloudInit{Hostname: "shop", UserData: "digest", Volume: "digest of it"}
	if got := (CloudInitParts{}).Apply(had); got != had {
		t.Errorf("%+v", got)
	}
	got := (CloudInitParts{NetworkConfig: &text, SSHKeys: []string{aKey}}).Apply(had)
	if got.Text() != "hostname shop, 1 SSH key, user-data, network-config" || got.Volume != had.Volume || had.NetworkConfig != "" {
		t.Errorf("%+v", got)
	}
	if got := (CloudInitParts{Hostname: &none, UserData: &none}).Apply(had); got != nil {
		t.Errorf("%+v", got)
	}
	if got := (CloudInitParts{UserData: &text}).Whole().Apply(had); got.Text() != "user-data" {
		t.Errorf("%+v", got)
	}
}

// Secrets are sealed once, a digest stays, and the record gives them back.
func TestCloudInitIsSealed(t *testing.T) {
	user, fresh := "password: hunter2", map[string]string{}
	sealed := (CloudInitParts{UserData: &user}).Seal([]byte("key"), fresh)
	again := sealed.Seal([]byte("key"), fresh)
	r := Record{Spec: Spec{CloudInit: again.Apply(nil)}}
	if len(fresh) != 1 || len(r.Digests()) != 1 || fresh[r.Digests()[0]] != user || r.Spec.CloudInit.UserData == user {
		t.Fatalf("%v %+v", fresh, r.Spec.CloudInit)
	}
	if got := r.Unseal(fresh).Spec.CloudInit.UserData; got != user {
		t.Errorf("%q", got)
	}
}

// The memo on a dataset, which is not encrypted, says what is no secret, and that something lacks.
func TestMemoHasNoUserData(t *testing.T) {
	r := Record{Name: "web1", Spec: Spec{CloudInit: &CloudInit{Hostname: "shop", UserData: "digest", Volume: "digest"}}}
	if got := MemoOf(r); strings.Contains(got, "digest") || !strings.Contains(got, `"hostname":"shop"`) || !strings.Contains(got, `"secret":true`) {
		t.Error(got)
	}
	r.Spec.CloudInit.UserData = ""
	if got := MemoOf(r); strings.Contains(got, "digest") || strings.Contains(got, "secret") {
		t.Error(got)
	}
}
