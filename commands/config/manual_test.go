package config_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/propolis/spec"
)

// The manual's examples are values that Load takes, all together.
func TestTheExamplesOfTheManualAreTaken(t *testing.T) {
	var env []string
	for _, k := range config.Keys() {
		env = append(env, k.Variable+"="+k.Example)
	}
	if _, err := config.Load(source("", env...)); err != nil {
		t.Error(err)
	}
}

// The manual has the bounds that Load holds: the last value inside is taken, the first
// one outside is not.
func TestTheBoundsOfTheManualHold(t *testing.T) {
	values := map[string]string{}
	for _, k := range config.Keys() {
		values[k.Name] = k.Values
	}
	for _, c := range []struct {
		key, bound      string
		inside, outside []string
		needs           string
	}{
		{"instance.cpus", fmt.Sprintf("1 to %d", spec.MaxCPUs), []string{"1", strconv.Itoa(spec.MaxCPUs)}, []string{"0", strconv.Itoa(spec.MaxCPUs + 1)}, ""},
		{"network.mtu", "0, or 1280 to 65535 bytes", []string{"0", "1280", "65535"}, []string{"1279", "65536", "-1"}, ""},
		{"propolis.port", "1 to 65535", []string{"1", "65535"}, []string{"0", "65536"}, ""},
		{"instance.memory", "whole MiB, at least 1M", []string{"1048576"}, []string{"0", "1572864"}, ""},
		{"instance.reservoir", "auto, 1% to 99%", []string{"auto", "1%", "99%"}, []string{"0%", "100%", "automatic"}, ""},
		{"instance.reservoir", "whole MiB", []string{"0", "1048576"}, []string{"1572864"}, ""},
		{"network.underlay", "at least 4 addresses", []string{"10.0.0.0/30"}, []string{"10.0.0.0/31"}, ""},
		{"storage.salt", "64 hexadecimal digits", []string{strings.Repeat("0", 64)}, []string{strings.Repeat("0", 62)}, "SLEDCTL_STORAGE_KEY=command:k"},
		{"names.zone_prefix", "at most 27 bytes", []string{strings.Repeat("z", 27)}, []string{strings.Repeat("z", 28)}, ""},
		{"names.base_prefix", "at most 44 bytes", []string{strings.Repeat("b", 44)}, []string{strings.Repeat("b", 45)}, ""},
		{"names.vnic_prefix", "at most 22 bytes", []string{strings.Repeat("v", 22)}, []string{strings.Repeat("v", 23)}, ""},
		{"agent.tombstone_ttl", "above 0", []string{"1s"}, []string{"0s", "5"}, ""},
		{"nics.first_look", "above 0", []string{"1s"}, []string{"0s"}, ""},
	} {
		if !strings.Contains(values[c.key], c.bound) {
			t.Errorf("%s: the manual says %q, not %q", c.key, values[c.key], c.bound)
		}
		variable := "SLEDCTL_" + strings.ToUpper(strings.ReplaceAll(c.key, ".", "_")) + "="
		for _, value := range c.inside {
			if _, err := config.Load(source("", variable+value, c.needs)); err != nil {
				t.Errorf("%s %s: %v", c.key, value, err)
			}
		}
		for _, value := range c.outside {
			if _, err := config.Load(source("", variable+value, c.needs)); err == nil {
				t.Errorf("%s: %s is taken", c.key, value)
			}
		}
	}
}
