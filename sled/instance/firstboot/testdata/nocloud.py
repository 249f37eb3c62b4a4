"""Has cloud-init's data source NoCloud read a volume, and prints what it takes from it as JSON.

Usage: nocloud.py VOLUME. blkid judges whether the volume is one; in the place of a mount, mtools
copies its files out, since many kernels of test machines have no vfat.
"""
import json
import subprocess
import sys
import tempfile

from cloudinit import helpers, user_data, util
from cloudinit.config import schema
from cloudinit.distros import debian
from cloudinit.net import network_state
from cloudinit.sources import DataSourceNoCloud

volume = sys.argv[1]
find, blkid = util.find_devs_with, []


def find_devs_with(criteria=None, **_):
    blkid.append(criteria)
    return find(criteria, path=volume)


def mount_cb(device, callback, data=None, **_):
    with tempfile.TemporaryDirectory() as to:
        subprocess.run(["mcopy", "-n", "-i", device, "::*", to], check=True)
        return callback(to, data)


util.find_devs_with, util.mount_cb = find_devs_with, mount_cb
with tempfile.TemporaryDirectory() as run:
    paths = helpers.Paths({"run_dir": run, "cloud_dir": run})
    source = DataSourceNoCloud.DataSourceNoCloud({}, debian.Distro("debian", {}, paths), paths)
    if not source._get_data():
        sys.exit("NoCloud takes nothing from it; blkid was asked for " + str(blkid))
    config = util.load_yaml(source.userdata_raw)
    schema.validate_cloudconfig_schema(config, strict=True)
    parts = [p.get_content_type() for p in user_data.UserDataProcessor(paths).process(source.userdata_raw).walk()]
    network = util.load_yaml(source.network_config or "{}") if not isinstance(source.network_config, dict) else source.network_config
    state = network_state.parse_net_config_data(network)
    print(json.dumps({
        "id": source.get_instance_id(),
        "hostname": str(getattr(source.get_hostname(), "hostname", source.get_hostname())),
        "fqdn": str(getattr(source.get_hostname(fqdn=True), "hostname", source.get_hostname(fqdn=True))),
        "keys": source.get_public_ssh_keys(),
        "config": config,
        "parts": parts,
        "macs": [i["mac_address"] for i in state.iter_interfaces()],
        "addresses": [s["address"] for i in state.iter_interfaces() for s in i["subnets"]],
    }))
