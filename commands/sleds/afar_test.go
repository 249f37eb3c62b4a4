package sleds

import (
	"slices"
	"testing"
)

// The commands that a text names can be typed as they stand: they name the sled that is meant,
// or the text says that they are typed there.
func TestCommandsThatAreNamedNameTheSled(t *testing.T) {
	words := Of([]string{"agent", "bootstrap", "events", "instance", "propolis", "status", "storage", "sim", "top", "zone"})
	flags := []string{"--agent", "https://sled3:12410", "--token-file", "my token"}
	for text, want := range map[string][3]string{ // by ssh or in a directory; an agent by its name; by --agent
		"sledctl status --problems": {"sledctl --sled s status --problems", "sledctl --sled s status --problems", "sledctl status --agent https://sled3:12410 --token-file 'my token' --problems"},
		"to see it, run: sledctl instance get web1 -o json; or, to prepare it, run: sledctl bootstrap": {
			"to see it, run: sledctl --sled s instance get web1 -o json; or, to prepare it, run: sledctl --sled s bootstrap",
			"to see it, run: sledctl --sled s instance get web1 -o json; or, to prepare it, run on the sled: sledctl bootstrap",
			"to see it, run: sledctl instance get --agent https://sled3:12410 --token-file 'my token' web1 -o json; or, to prepare it, run on the sled: sledctl bootstrap",
		},
		"sledctl instance ensure --all": {"sledctl --sled s instance ensure --all", "on the sled: sledctl instance ensure --all", "on the sled: sledctl instance ensure --all"},
		"sledctl instance stop w && sledctl instance start w (this powers it off)": {
			"sledctl --sled s instance stop w && sledctl --sled s instance start w (this powers it off)",
			"sledctl --sled s instance stop w && sledctl --sled s instance start w (this powers it off)",
			"sledctl instance stop --agent https://sled3:12410 --token-file 'my token' w && sledctl instance start --agent https://sled3:12410 --token-file 'my token' w (this powers it off)",
		},
		"the guest's output: sledctl zone exec z -- x":               {"the guest's output: sledctl --sled s zone exec z -- x", "the guest's output, on the sled: sledctl zone exec z -- x", "the guest's output, on the sled: sledctl zone exec z -- x"},
		"pfexec sledctl status":                                      {"on the sled: pfexec sledctl status", "on the sled: pfexec sledctl status", "on the sled: pfexec sledctl status"},
		"a zone that sledctl runs, sledctl":                          {"", "", ""},
		"run: sledctl storage --help":                                {"", "", ""},
		"to check it, run: sledctl propolis spec validate FILE":      {"", "", ""},
		"to retry, run on the source: sledctl instance migrate web1": {"", "", ""},
		"run: sledctl sled add NAME --ssh MACHINE":                   {"", "", ""},
	} {
		for i, a := range []Afar{words.Named("s", Sled{SSH: "x"}), words.Named("s", Sled{Agent: "unix:/x"}), words.Asked(slices.Clone(flags))} {
			wanted := want[i]
			if wanted == "" {
				wanted = text
			}
			got := a.Typed(text)
			if got != wanted {
				t.Errorf("%d: %q, want %q", i, got, wanted)
			}
			if again := a.Typed(got); i < 2 && again != got {
				t.Errorf("%d: what names the sled becomes %q", i, again)
			}
		}
		if got := words.Typed(text); got != text {
			t.Errorf("on the sled itself: %q", got)
		}
	}
}

// Several commands are one line, unless only some are typed on the sled.
func TestCommandsAreJoined(t *testing.T) {
	a := Afar{sled: "s", asks: true, words: []string{"bootstrap", "instance"}}
	for want, commands := range map[string][]string{
		"on the sled: sledctl bootstrap && sledctl instance ensure --all":             {"sledctl bootstrap", "sledctl instance ensure --all"},
		"on the sled: zpool clear x; then sledctl --sled s instance ensure web1":      {"zpool clear x", "sledctl instance ensure web1"},
		"sledctl --sled s instance stop web1 && sledctl --sled s instance start web1": {"sledctl instance stop web1", "sledctl instance start web1"},
	} {
		if got := a.Joined(a.Each(commands)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if here := (Afar{}).Each(commands); !slices.Equal(here, commands) {
			t.Errorf("on the sled itself: %q", here)
		}
	}
}
