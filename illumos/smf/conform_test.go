package smf_test

import (
	"testing"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/test/steptest"
)

func TestSteps(t *testing.T) {
	const name = "svc:/network/dns/client:default"
	// The state of a running zone's services, and the files that steps write.
	on := func(steps ...steptest.Step) func(*testing.T) steptest.Sled {
		return func(t *testing.T) steptest.Sled {
			r := simulated(t, "none")
			r.lay()
			r.run("zoneadm", "-z", "web1", "boot")
			r.do(smf.Await{Zone: "web1", Root: root, FMRI: milestone, State: smf.Online})
			r.do(steps...)
			return steptest.Sled{Host: r.host, State: func() any {
				states, err := smf.States(t.Context(), r.host, "web1")
				r.must(err)
				files := map[string]string{}
				for _, file := range []string{directory + "/more", directory + "/more.xml", "/var/svc/profile/site.xml"} {
					if data, err := host.ReadFile(r.host.Files(), root+file); err == nil {
						files[file] = string(data)
					}
				}
				return []any{states, files}
			}}
		}
	}
	enable := smf.Enable{Zone: "web1", FMRI: name, Temporary: true}
	online := smf.Await{Zone: "web1", FMRI: name, State: smf.Online}
	steptest.Conform(t,
		steptest.Case{Step: enable, Sled: on()},
		steptest.Case{Step: smf.Disable{Zone: "web1", FMRI: name, Temporary: true}, Sled: on(enable, online)},
		steptest.Case{Step: online, Sled: on(enable), NoFailure: true},
		steptest.Case{Step: smf.WriteProfile{Root: root, Profile: profile(true, "10.0.0.1")}, Sled: on()},
		steptest.Case{Step: smf.WriteManifest{Root: root, Name: directory + "/more.xml", Content: []byte(manifest)}, Sled: on()},
		steptest.Case{Step: smf.WriteMethod{Root: root, Name: directory + "/more", Content: []byte(thing)}, Sled: on()},
	)
	written := smf.WriteProfile{Root: root, Profile: profile(true, "10.0.0.1")}
	steptest.Conform(t, steptest.Case{Step: smf.ApplyProfile{Zone: "web1"}, Sled: on(written)})
	steptest.Conform(t, steptest.Case{
		Step: smf.Seed{Root: root, Manifests: []string{directory}},
		Sled: func(t *testing.T) steptest.Sled {
			r := simulated(t, "none")
			r.lay()
			return steptest.Sled{Host: r.host, State: func() any {
				data, err := host.ReadFile(r.host.Files(), root+"/etc/svc/repository.db")
				r.must(err)
				return string(data)
			}}
		},
	})
}
