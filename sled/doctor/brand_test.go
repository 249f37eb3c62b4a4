package doctor

import (
	"errors"
	"testing"

	"github.com/sledctl/sledctl/illumos/ips"
	"github.com/sledctl/sledctl/illumos/system"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/test/hosttest"
)

// Only what the packaging in use needs can fail.
func TestTheBrand(t *testing.T) {
	lofs, image := Settings{Packaging: packaging.Lofs}, Settings{Packaging: packaging.Image}
	of := func(p Publisher, bases int, kernel string) Seen {
		return Seen{Settings: lofs, Publisher: p, Records: Recorded{Bases: bases}, Kernel: system.ParseKernel(kernel)}
	}
	omnios := Publisher{Publisher: ips.Publisher{Name: "omnios", Origins: []string{"https://a/"}}}
	silent := omnios
	silent.Silent = errors.New("connection refused")
	const set = "then run: pkg set-publisher -g https://pkg.omnios.org/r151058/core/ omnios"
	sums := func(expected string) Seen {
		s := packaging.Sum{Image: "/opt/p.tar.gz", SHA256: "0123456789abcdef", Expected: expected}
		if expected != "" {
			s.From = "/opt/p.sha256.txt"
		}
		return Seen{Settings: image, Images: []packaging.Sum{s}}
	}
	judgeAll(t, map[string]judged{
		"answers":         {"publisher", of(omnios, 0, "omnios-r151058-1"), OK, "omnios https://a/"},
		"silent":          {"publisher", of(silent, 0, "omnios-r151058-1"), Fail, "publisher omnios does not answer: connection refused; let the sled reach"},
		"silent, later":   {"publisher", of(silent, 1, "omnios-r151058-1"), Warn, "refused; a base zone is there"},
		"none":            {"publisher", of(Publisher{}, 0, "omnios-r151058-1"), Fail, set},
		"none, bloody":    {"publisher", of(Publisher{}, 0, "omnios-master-1"), Fail, "https://pkg.omnios.org/bloody/core/ omnios"},
		"none, of Helios": {"publisher", of(Publisher{}, 0, "helios-2.0.23000"), Fail, "a copy on disk"},
		"not needed":      {"publisher", Seen{Settings: image}, OK, "not needed"},
		"entire":          {"entire", Seen{Settings: lofs, Entire: "11-0.151058"}, OK, "entire 11-0.151058"},
		"no entire":       {"entire", Seen{Settings: lofs}, Fail, "run: pkg install entire"},
		"no matter":       {"entire", Seen{Settings: image}, OK, "not needed"},
		"baseline":        {"baseline", Seen{Settings: image, Baseline: "/b"}, OK, "in /b"},
		"no baseline":     {"baseline", Seen{Settings: image}, Fail, "system/zones/brand/omicron1/tools, then run: svcadm enable svc:/system/omicron/baseline:default"},
		"no baseline, OK": {"baseline", Seen{Settings: lofs}, OK, "not needed"},
		"as published":    {"images", sums("0123456789abcdef"), OK, "p.tar.gz 0123456789ab, as p.sha256.txt says"},
		"not told":        {"images", sums(""), OK, "no file next to it"},
		"another":         {"images", sums("f123456789abcdef"), Fail, "/opt/p.tar.gz has the SHA-256 0123456789ab, and p.sha256.txt says f123456789ab; download the image again"},
		"no images":       {"images", Seen{Settings: lofs}, OK, "not needed"},
	})
}

// An origin answers if a connection to it is taken, or if its repository is on the sled.
func TestOriginsAnswerOrNot(t *testing.T) {
	sled := sim.New(sim.Options{Mode: world.OmniOS}, hosttest.Files)
	t.Cleanup(sled.Close)
	if err := world.Put(sled.Host().Files(), "/var/copy.p5p", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for origin, want := range map[string]bool{
		"https://pkg.omnios.org/r151058/core/": true, "file:///var/share/pkg/omnios": true, "file:///var/copy.p5p": true,
		"file:///var/share/pkg": false, "file:///absent.p5p": false, "http://127.0.0.1:81/": false, "http://other.example/": false, "http://%": false,
	} {
		if err := answers(t.Context(), sled.Host(), origin); (err == nil) != want {
			t.Errorf("%s: %v", origin, err)
		}
	}
}
