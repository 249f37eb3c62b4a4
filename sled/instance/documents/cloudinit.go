package documents

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sled/instance/record"
)

// CloudInit is the cloud-init data of an instance in a document. A text is there, or the name
// of the file that has it.
type CloudInit struct {
	Hostname          *string  `json:"hostname,omitempty" toml:"hostname"`
	SSHKeys           []string `json:"ssh_keys,omitzero" toml:"ssh_keys"`
	UserData          *string  `json:"user_data,omitempty" toml:"user_data"`
	UserDataFile      string   `json:"user_data_file,omitempty" toml:"user_data_file"`
	NetworkConfig     *string  `json:"network_config,omitempty" toml:"network_config"`
	NetworkConfigFile string   `json:"network_config_file,omitempty" toml:"network_config_file"`
}

// CloudInitOf are parts as a document has them; nil: there are none.
func CloudInitOf(p record.CloudInitParts) *CloudInit {
	if !p.Any() {
		return nil
	}
	return &CloudInit{Hostname: p.Hostname, SSHKeys: p.SSHKeys, UserData: p.UserData, NetworkConfig: p.NetworkConfig}
}

func (c *CloudInit) read() (p record.CloudInitParts, files record.CloudInitFiles, err error) {
	switch {
	case c == nil:
		return p, files, nil
	case c.UserData != nil && c.UserDataFile != "":
		return p, files, errors.New("want user_data or user_data_file, not both")
	case c.NetworkConfig != nil && c.NetworkConfigFile != "":
		return p, files, errors.New("want network_config or network_config_file, not both")
	}
	p = record.CloudInitParts{Hostname: c.Hostname, SSHKeys: c.SSHKeys, UserData: c.UserData, NetworkConfig: c.NetworkConfig}
	return p, record.CloudInitFiles{UserData: c.UserDataFile, NetworkConfig: c.NetworkConfigFile}, nil
}

// writeCloudInit writes the table, with digests in the places of secrets.
func writeCloudInit(b *strings.Builder, c *record.CloudInit) {
	if c == nil {
		return
	}
	b.WriteString("\n[cloud_init]\n")
	for _, text := range []struct{ key, value string }{
		{"hostname", c.Hostname}, {"user_data", c.UserData}, {"network_config", c.NetworkConfig},
	} {
		if text.value != "" {
			fmt.Fprintf(b, "%s = %s\n", text.key, quoted(text.value))
		}
	}
	if len(c.SSHKeys) > 0 {
		b.WriteString("ssh_keys = [\n")
		for _, key := range c.SSHKeys {
			fmt.Fprintf(b, "  %s,\n", quoted(key))
		}
		b.WriteString("]\n")
	}
}
