#!/usr/bin/bash
# The start method in the image of a zone: what packaging/smf/method_script.sh
# of oxidecomputer/propolis does, for the simulated sled.

set -o errexit

. /lib/svc/share/smf_include.sh

DATALINK="$(svcprop -c -p config/datalink "${SMF_FMRI}")"
GATEWAY="$(svcprop -c -p config/gateway "${SMF_FMRI}")"
LISTEN_ADDR="$(svcprop -c -p config/listen_addr "${SMF_FMRI}")"
LISTEN_PORT="$(svcprop -c -p config/listen_port "${SMF_FMRI}")"
METRIC_ADDR="$(svcprop -c -p config/metric_addr "${SMF_FMRI}")"

if [[ $DATALINK == unknown ]] || [[ $GATEWAY == unknown ]]; then
	echo 'ERROR: missing datalink or gateway'
	exit "$SMF_EXIT_ERR_CONFIG"
fi

ipadm delete-if "$DATALINK" || true
ipadm create-if -t "$DATALINK"
ipadm set-ifprop -t -p mtu=9000 -m ipv4 "$DATALINK"
ipadm set-ifprop -t -p mtu=9000 -m ipv6 "$DATALINK"
ipadm show-addr "$DATALINK/ll" || ipadm create-addr -t -T addrconf "$DATALINK/ll"
ipadm show-addr "$DATALINK/omicron6" || ipadm create-addr -t -T static -a "$LISTEN_ADDR" "$DATALINK/omicron6"
route get -inet6 default -inet6 "$GATEWAY" || route add -inet6 default -inet6 "$GATEWAY"

ctrun -l child -o noorphan,regent \
	/opt/oxide/propolis-server/bin/propolis-server run \
	/opt/oxide/propolis-server/blob/OVMF_CODE.fd \
	"[$LISTEN_ADDR]:$LISTEN_PORT" \
	--metric-addr "$METRIC_ADDR" &
