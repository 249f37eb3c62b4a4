package firstboot

import (
	"strings"
	"testing"

	"github.com/sledctl/sledctl/sled/instance/record"
)

// Only a text that says so is a template: braces of others stay.
func TestOnlyWhatSaysSoIsATemplate(t *testing.T) {
	g := guestOf(web1())
	for text, want := range map[string]string{
		"#!/bin/sh\ndocker ps --format '{{.Names}}'\n":                              "#!/bin/sh\ndocker ps --format '{{.Names}}'\n",
		"## template: jinja\n#cloud-config\nfqdn: {{ v1.local_hostname }}\n":        "## template: jinja\n#cloud-config\nfqdn: {{ v1.local_hostname }}\n",
		"## template: sledctl\r\n#cloud-config\nfqdn: {{.Name}}\n":                  "#cloud-config\nfqdn: web1\n",
		"## template: sledctl\n{{range .NICs}}{{.MAC}} {{.VLAN}} {{end}}{{.ID}}":    "02:08:20:00:00:02 0 02:08:20:00:00:03 0 768c2a8b-de75-5e1b-9dd3-8bd4af7b3e3b",
		"## template: sledctl\n## template: jinja\nfqdn: {{`{{ v1.hostname }}`}}\n": "## template: jinja\nfqdn: {{ v1.hostname }}\n",
	} {
		got, err := fill("cloud-init", text, g)
		if got != want || err != nil {
			t.Errorf("%q: got %q, want %q: %v", text, got, want, err)
		}
	}
}

// What is wrong with a template is told by its line, and nothing of it is quoted.
func TestErrorsOfTemplatesQuoteNothing(t *testing.T) {
	g := guestOf(web1())
	long := strings.Repeat("{{range $.NICs}}", 20) + strings.Repeat("x", 99) + strings.Repeat("{{end}}", 20)
	for text, want := range map[string]string{
		"a\n{{.Hostnam}} hunter2": `cloud-init "line 3: field Hostnam": want one of Name, ID, Hostname, SSHKeys and NICs`,
		`{{index .NICs 7}}`:       `cloud-init "line 2": want an index of its NICs, of which there are 2, or of its SSH keys, 1`,
		`{{"hunter2" | nothing}}`: `cloud-init "line 2": want a template as Go's text/template has them`,
		"\n\n{{hunter2":           `cloud-init "line 4": want a template as Go's text/template has them`,
		`{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`: `cloud-init "line 2": want a template as Go's text/template has them`,
		long: "want a template that makes at most 655360 bytes",
	} {
		_, err := fill("cloud-init", marker+"\n"+text, g)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.40q: got %v, want %s", text, err, want)
		}
	}
}

// Without a hostname the guest has the name of its instance; without texts, only meta-data.
func TestHostnameIsTheNameOfTheInstance(t *testing.T) {
	r := web1()
	r.Spec.CloudInit = &record.CloudInit{SSHKeys: []string{key}}
	files, err := Files(r)
	want := `{"instance-id":"768c2a8b-de75-5e1b-9dd3-8bd4af7b3e3b","local-hostname":"web1","public-keys":["` + key + `"]}` + "\n"
	if string(files.MetaData) != want || len(files.UserData)+len(files.NetworkConfig) > 0 || err != nil {
		t.Errorf("%s %q %q %v", files.MetaData, files.UserData, files.NetworkConfig, err)
	}
}

// The same record makes the same volume; each thing that goes into it makes another.
func TestTheSameRecordMakesTheSameVolume(t *testing.T) {
	volume := func(change func(*record.Record)) string {
		r := web1()
		change(&r)
		v, err := Volume(r)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	same := volume(func(*record.Record) {})
	for what, change := range map[string]func(*record.Record){
		"id":   func(r *record.Record) { r.ID = "11111111-1111-4111-8111-111111111111" },
		"name": func(r *record.Record) { r.Name = "web2" },
		"MAC":  func(r *record.Record) { r.Spec.NICs[1].MAC = "02:08:20:00:00:09" },
		"key":  func(r *record.Record) { r.Spec.CloudInit.SSHKeys = nil },
	} {
		if volume(change) == same {
			t.Errorf("another %s makes the same volume", what)
		}
	}
	if again := volume(func(r *record.Record) { r.Spec.CPUs, r.Generation, r.Spec.Pool = 7, 9, "other" }); again != same {
		t.Error("what does not go into it makes another volume")
	}
}

// What a volume was made of is read back from it, with the same volume.
func TestAVolumeIsReadBack(t *testing.T) {
	r := web1()
	r.Spec.CloudInit.UserData, r.Spec.CloudInit.NetworkConfig = "", "version: 2\n"
	volume, err := Volume(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadBack(volume)
	if err != nil || !got.Same(r.Spec.CloudInit) || got.Volume != volume {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := ReadBack("AAAA"); err == nil {
		t.Error("what is no volume was read")
	}
}
